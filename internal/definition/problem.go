package definition

import "github.com/pawl-run/pawl/internal/problem"

// Position is a place in a source file, counted from 1; a zero Line is unknown.
type Position struct {
	File   string
	Line   int
	Column int // in characters
}

// String writes the place as file:line:column, leaving out what is unknown.
func (p Position) String() string {
	return problem.Place(p.File, p.Line, p.Column)
}

// Problem is one thing that is wrong with a document, Problems all of them: the error that Parse and validateInput return.
type (
	Problem  = problem.Problem
	Problems = problem.List
)
