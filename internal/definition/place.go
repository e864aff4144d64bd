package definition

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// indent returns the indentation of a line of an expression, except the first, within the text; in the source, the indentation of its block
// is added.
func indent(text string, line int) int {
	if line < 2 {
		return 0
	}
	n := 1
	for l := range strings.SplitSeq(text, "\n") {
		if n == line {
			return len(l) - len(strings.TrimLeft(l, " "))
		}
		n++
	}
	return 0
}

// expressionAt finds the inside of the nth `${{` of a string in the source. It returns a function that gives the position of a line (from
// 1) and column (from 0) in it.
func (b *builder) expressionAt(v *value, nth int) func(line, column int) Position {
	return b.placer(v, func() int {
		at := b.offset(v)
		for ; at >= 0 && nth >= 0; nth-- {
			next := bytes.Index(b.src[at:], []byte(opening))
			if next < 0 {
				return -1
			}
			at += next + len(opening)
		}
		return at
	})
}

// placer returns a function that gives positions after an offset. The offset is searched only when there is an error to place; if it is -1,
// only v's own position is known.
func (b *builder) placer(v *value, find func() int) func(line, column int) Position {
	return func(line, column int) Position {
		if len(b.problems) >= maxProblems {
			return Position{b.file, v.line, v.column}
		}
		at := find()
		if at < 0 {
			return Position{b.file, v.line, v.column}
		}
		start := bytes.LastIndexByte(b.src[:at], '\n') + 1
		p := Position{b.file, 1 + bytes.Count(b.src[:start], []byte("\n")), 1 + utf8.RuneCount(b.src[start:at]) + column}
		for ; line > 1; line-- {
			next := bytes.IndexByte(b.src[start:], '\n')
			if next < 0 {
				break
			}
			start += next + 1
			p.Line++
			rest := b.src[start:]
			p.Column = 1 + len(rest) - len(bytes.TrimLeft(rest, " ")) + column
		}
		return p
	}
}

// shift corrects positions for white space that was trimmed from the beginning of the expression.
func shift(at func(line, column int) Position, lead string) func(line, column int) Position {
	lines := strings.Count(lead, "\n")
	if lines > 0 {
		lead = ""
	}
	return func(line, column int) Position {
		if line == 1 {
			column += len(lead)
		}
		return at(line+lines, column)
	}
}

// offset returns the offset of v in the source, -1 if unknown.
func (b *builder) offset(v *value) int {
	if v.line == 0 {
		return -1
	}
	if b.lines == nil {
		b.lines = []int{0}
		for i, c := range b.src {
			if c == '\n' {
				b.lines = append(b.lines, i+1)
			}
		}
	}
	if v.line > len(b.lines) {
		return -1
	}
	at := b.lines[v.line-1]
	for range v.column - 1 {
		if at >= len(b.src) {
			return -1
		}
		_, n := utf8.DecodeRune(b.src[at:])
		at += n
	}
	return at
}
