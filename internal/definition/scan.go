package definition

import (
	"errors"
	"strings"
)

const opening = "${{"

// segment is a part of a string: plain text, or the inside of `${{ }}`.
type segment struct {
	text string
	expr bool
	// nth is the index of the expression's `${{` in the string, from 0.
	nth int
}

var errUnclosed = errors.New("${{ is not closed by }}")

// scan splits a string into text and expressions. nth is, for an error, the index of the `${{` that caused it.
func scan(s string) (segs []segment, nth int, err error) {
	var text strings.Builder
	for {
		i := strings.Index(s, opening)
		if i < 0 {
			text.WriteString(s)
			break
		}
		if i > 0 && s[i-1] == '$' {
			text.WriteString(s[:i-1] + opening)
			s = s[i+len(opening):]
			nth++
			continue
		}
		end := closing(s[i+len(opening):])
		if end < 0 {
			return nil, nth, errUnclosed
		}
		text.WriteString(s[:i])
		if text.Len() > 0 {
			segs = append(segs, segment{text: text.String()})
			text.Reset()
		}
		inner := s[i+len(opening) : i+len(opening)+end]
		if strings.TrimSpace(inner) == "" {
			return nil, nth, errors.New("the expression is empty")
		}
		segs = append(segs, segment{text: inner, expr: true, nth: nth})
		s = s[i+len(opening)+end+2:]
		nth += 1 + strings.Count(inner, opening)
	}
	if text.Len() > 0 || len(segs) == 0 {
		segs = append(segs, segment{text: text.String()})
	}
	return segs, 0, nil
}

// closing finds the `}}` that ends an expression, ignoring those in strings and those that close braces within the expression.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"', '\'':
			n := quoted(s[i:], i > 0 && (s[i-1] == 'r' || s[i-1] == 'R') && (i < 2 || !wordByte(s[i-2])))
			if n < 0 {
				return -1
			}
			i += n - 1
		case '{':
			depth++
		case '}':
			if depth > 0 {
				depth--
			} else if i+1 < len(s) && s[i+1] == '}' {
				return i
			}
		}
	}
	return -1
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// quoted returns the length of the string literal at the beginning of s, -1 if it does not end. CEL has single and triple quotes; raw
// strings have no escapes.
func quoted(s string, raw bool) int {
	quote := s[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s, triple) {
		quote = triple
	}
	for i := len(quote); i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], quote) {
			return i + len(quote)
		}
	}
	return -1
}
