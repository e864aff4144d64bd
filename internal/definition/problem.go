package definition

import "github.com/pawl-run/pawl/internal/problem"

// Position is a position in a source file, counted from 1; Line 0 is unknown.
type Position struct {
	File   string
	Line   int
	Column int // in characters
}

// String writes the position as file:line:column, without the unknown parts.
func (p Position) String() string {
	return problem.Place(p.File, p.Line, p.Column)
}

// Problem is one error in a document. Problems are all of them: the error that Parse and validateInput return.
type (
	Problem  = problem.Problem
	Problems = problem.List
)
