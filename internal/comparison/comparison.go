// Package comparison decides whether a program's output equals the expected output. It is pure.
package comparison

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type Mode string

// The modes, from the strictest to the most lenient: texts that one mode accepts are accepted by all after it.
const (
	Exact   Mode = "exact"   // byte for byte
	Trimmed Mode = "trimmed" // ignores white space at the end of lines, and empty lines at the end
	Tokens  Mode = "tokens"  // the same words in the same order; ignores the white space between them
	Numeric Mode = "numeric" // as tokens, but numbers that are not both integers may differ within the tolerances
)

// Modes lists the modes, the strictest first.
func Modes() []Mode { return []Mode{Exact, Trimmed, Tokens, Numeric} }

// DefaultTolerance is the absolute and relative tolerance of Numeric if neither is given.
const DefaultTolerance = 1e-6

type Rule struct {
	Mode Mode
	// Absolute and Relative are the tolerances of a number: by its difference, and by its difference in relation to
	// the expected number. Two integers must be equal. Only Numeric has tolerances.
	Absolute, Relative float64
}

// Mismatch is the first place at which an output differs from the expected one.
type Mismatch struct {
	Line int    // in the output, from 1; 0 for values
	Path string // for values: the path, such as [2].name; empty for the whole
	// Got and Want are the line or the word at that place, shortened; None after the end of the text.
	Got, Want string
	// Say is a sentence about the difference.
	Say string
}

// None stands for a missing line or word.
const None = "(nothing)"

// Compare returns nil if got equals want under the rule.
func (r Rule) Compare(got, want []byte) *Mismatch {
	switch r.Mode {
	case Exact:
		return exact(got, want)
	case Trimmed:
		return trimmed(got, want)
	case Numeric:
		return words(got, want, r.tolerances().near)
	}
	return words(got, want, bytes.Equal)
}

func exact(got, want []byte) *Mismatch {
	if bytes.Equal(got, want) {
		return nil
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	begin := bytes.LastIndexByte(got[:at], '\n') + 1 // both are equal up to there
	m := &Mismatch{Line: 1 + bytes.Count(got[:at], []byte{'\n'}), Got: show(line(got[begin:]), begin < len(got)), Want: show(line(want[begin:]), begin < len(want))}
	switch {
	case len(want) == at:
		m.Say = fmt.Sprintf("line %d: %d bytes more than expected follow", m.Line, len(got)-at)
	case len(got) == at:
		m.Say = fmt.Sprintf("line %d: the output ends %d bytes too early", m.Line, len(want)-at)
	default:
		m.Say = fmt.Sprintf("line %d, column %d: %s instead of %s", m.Line, at-begin+1, char(got[at:]), char(want[at:]))
	}
	return m
}

// line is the first line of a text, without its end.
func line(b []byte) []byte {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i]
	}
	return b
}

// char is the first character of a text, as a Go literal.
func char(b []byte) string {
	if r, size := utf8.DecodeRune(b); r == utf8.RuneError && size <= 1 {
		return fmt.Sprintf("byte %#02x", b[0])
	} else {
		return strconv.QuoteRune(r)
	}
}

func trimmed(got, want []byte) *Mismatch {
	got, want = trimEnd(got), trimEnd(want)
	for n := 1; ; n++ {
		g, moreGot := nextLine(&got)
		w, moreWant := nextLine(&want)
		if !moreGot && !moreWant {
			return nil
		}
		if moreGot != moreWant || !bytes.Equal(g, w) {
			m := &Mismatch{Line: n, Got: show(g, moreGot), Want: show(w, moreWant)}
			m.Say = fmt.Sprintf("line %d: got %s, expected %s", n, m.Got, m.Want)
			return m
		}
	}
}

// nextLine removes a line from a text and returns it without the white space at its end. An empty text has no line.
func nextLine(b *[]byte) ([]byte, bool) {
	if *b == nil {
		return nil, false
	}
	head, rest, more := bytes.Cut(*b, []byte{'\n'})
	if *b = rest; !more {
		*b = nil
	}
	return bytes.TrimRightFunc(head, unicode.IsSpace), true
}

// trimEnd removes the white space at the end of a text; nil is the empty text.
func trimEnd(b []byte) []byte {
	if b = bytes.TrimRightFunc(b, unicode.IsSpace); len(b) == 0 {
		return nil
	}
	return b
}

func words(got, want []byte, same func(got, want []byte) bool) *Mismatch {
	n := 1
	for k := 1; ; k++ {
		skipped, g := nextWord(&got)
		_, w := nextWord(&want)
		n += bytes.Count(skipped, []byte{'\n'})
		if g == nil && w == nil {
			return nil
		}
		if g == nil || w == nil || !same(g, w) {
			m := &Mismatch{Line: n, Got: show(g, g != nil), Want: show(w, w != nil)}
			m.Say = fmt.Sprintf("line %d, word %d of the output: got %s, expected %s", n, k, m.Got, m.Want)
			return m
		}
	}
}

// nextWord removes a word, and the white space before it, from a text; nil if there is none.
func nextWord(b *[]byte) (space, word []byte) {
	all := *b
	rest := bytes.TrimLeftFunc(all, unicode.IsSpace)
	space = all[:len(all)-len(rest)]
	if len(rest) == 0 {
		*b = nil
		return space, nil
	}
	end := bytes.IndexFunc(rest, unicode.IsSpace)
	if end < 0 {
		end = len(rest)
	}
	*b = rest[end:]
	return space, rest[:end]
}

// shown is the number of bytes of a line or word that a mismatch shows.
const shown = 80

// show writes a line or word for people.
func show(b []byte, there bool) string {
	if !there {
		return None
	}
	if len(b) <= shown {
		return strconv.Quote(string(b))
	}
	return strconv.Quote(strings.ToValidUTF8(string(b[:shown]), "")) + "…"
}
