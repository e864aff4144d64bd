// Package problem describes what is wrong with an input: the place, the value, the fault, and what to do about it. Documents,
// requests and configurations report their problems in this form, all of them at once. It is pure.
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is one fault of an input.
type Problem struct {
	// Path is the place in the input's structure: "labels.team", "executions[3].timeout", `files["a.txt"]`.
	Path string
	// Value is the value at fault as it was written, shortened.
	Value string
	// Message says what is wrong with the value, Fix what to do about it.
	Message string
	Fix     string
	// File, Line and Column are the place in the input's text. Lines and columns count from 1, columns in characters; a zero Line is
	// unknown.
	File   string
	Line   int
	Column int
}

// String writes the problem on one line: file:line:column, path, message and fix, as far as known.
func (p Problem) String() string {
	var b strings.Builder
	if at := Place(p.File, p.Line, p.Column); at != "" {
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

// Place writes a place in a text as file:line:column, without unknown parts.
func Place(file string, line, column int) string {
	place := file
	for _, n := range []int{line, column} {
		if n == 0 {
			break
		}
		if place != "" {
			place += ":"
		}
		place += strconv.Itoa(n)
	}
	return place
}

// List is all problems of an input. It is an error.
type List []Problem

// Error writes the problems, each on its own line. Err is the list as an error, nil if it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

func (l List) Error() string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Sorted orders the problems by place and removes duplicates.
func (l List) Sorted() List {
	slices.SortStableFunc(l, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(l)
}

// Join is the path of a member of the value at path: "a.b", or `a["b c"]` for a name with characters other than letters,
// digits, "_" and "-".
func Join(path, name string) string {
	switch {
	case !plainName(name):
		return fmt.Sprintf("%s[%q]", path, name)
	case path == "":
		return name
	}
	return path + "." + name
}

func plainName(s string) bool {
	for _, r := range s {
		if !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return false
		}
	}
	return s != ""
}

// Clip cuts a text that is longer than most bytes, between two characters, and marks the cut.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
