package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Position is a place in a source file, counted from 1; a zero Line is unknown.
type Position struct {
	File   string
	Line   int
	Column int // in characters
}

// String writes the place as file:line:column, leaving out what is unknown.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one thing that is wrong with a document.
type Problem struct {
	Position
	// Path is where in the document it is, such as "tasks.build.retry.delay".
	Path string
	// Message says what is wrong with which value, Fix what to do about it.
	Message string
	Fix     string
}

// String writes the problem on one line: the place, what is wrong, and the fix.
func (p Problem) String() string {
	var b strings.Builder
	if at := p.Position.String(); at != "" {
		b.WriteString(at + ": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Fix != "" {
		b.WriteString(" (" + p.Fix + ")")
	}
	return b.String()
}

// Problems are all that is wrong with a file, ordered by place. It is the
// error that Parse and ValidateInput return.
type Problems []Problem

// Error writes one problem per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders the problems by place and drops repetitions.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}
