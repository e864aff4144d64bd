// Package java reads Java sources and class files to find out the file name that a source needs and the class that a program starts
// with. It is pure.
package java

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// File is the file name under which javac accepts a source: that of its public top-level type, or else other.
func File(source, other string) string {
	s := scanner{rest: unescaped(source)}
	public, named := false, false
	for {
		word, depth := s.next()
		switch {
		case word == "":
			return other
		case depth > 0:
		case named && nameFrom(word):
			return word + ".java"
		case word == "public":
			public = true
		case word == "class" || word == "interface" || word == "enum" || word == "record":
			named = public
		case word == ";" || word == "}":
			public, named = false, false
		}
	}
}

// nameFrom reports whether a word is a name or a keyword.
func nameFrom(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return nameRune(r) && !unicode.IsDigit(r)
}

func nameRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.In(r, unicode.Sc, unicode.Pc, unicode.Mn, unicode.Mc)
}

// scanner splits a source into words and symbols, without comments, literals and white space.
type scanner struct {
	rest  string
	depth int // number of open brackets of any kind
}

// next returns the next word or symbol, and how many brackets are open around it; "" at the end. A string literal is returned as
// the symbol `"`.
func (s *scanner) next() (word string, depth int) {
	for {
		s.rest = strings.TrimLeftFunc(s.rest, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
		switch {
		case s.rest == "":
			return "", s.depth
		case strings.HasPrefix(s.rest, "//"):
			if i := strings.IndexAny(s.rest, "\r\n"); i >= 0 {
				s.rest = s.rest[i:]
			} else {
				s.rest = ""
			}
		case strings.HasPrefix(s.rest, "/*"):
			_, s.rest, _ = strings.Cut(s.rest[2:], "*/")
		case strings.HasPrefix(s.rest, `"""`):
			s.skip(`"""`)
			return `"`, s.depth
		case s.rest[0] == '"' || s.rest[0] == '\'':
			s.skip(s.rest[:1])
			return `"`, s.depth
		default:
			return s.token()
		}
	}
}

// skip skips a literal, from its opening mark to the closing one.
func (s *scanner) skip(mark string) {
	s.rest = s.rest[len(mark):]
	for s.rest != "" && !strings.HasPrefix(s.rest, mark) {
		if s.rest[0] == '\\' && len(s.rest) > 1 {
			s.rest = s.rest[1:]
		}
		s.rest = s.rest[1:]
	}
	s.rest = strings.TrimPrefix(s.rest, mark)
}

func (s *scanner) token() (word string, depth int) {
	end := strings.IndexFunc(s.rest, func(r rune) bool { return !nameRune(r) })
	if end == 0 {
		_, end = utf8.DecodeRuneInString(s.rest)
	}
	if end < 0 {
		end = len(s.rest)
	}
	word, s.rest = s.rest[:end], s.rest[end:]
	switch word {
	case "{", "(", "[":
		s.depth++
		return word, s.depth
	case "}", ")", "]":
		s.depth = max(0, s.depth-1)
	}
	return word, s.depth
}

// unescaped replaces the escapes \u0041 of a source with their characters: Java does so before anything else. A backslash after
// another backslash starts no escape.
func unescaped(source string) string {
	if !strings.Contains(source, `\u`) {
		return source
	}
	var out strings.Builder
	for source != "" {
		i := strings.IndexByte(source, '\\')
		if i < 0 || i+1 == len(source) {
			break
		}
		out.WriteString(source[:i])
		digits := strings.TrimLeft(source[i+1:], "u")
		if source[i+1] != 'u' || len(digits) < 4 {
			out.WriteString(source[i : i+2])
			source = source[i+2:]
			continue
		}
		code, err := strconv.ParseUint(digits[:4], 16, 16)
		if err != nil {
			out.WriteString(source[i : i+2])
			source = source[i+2:]
			continue
		}
		r := rune(code)
		source = digits[4:]
		if utf16.IsSurrogate(r) {
			r = '_' // half of a character beyond 16 bits, which a name may contain
		}
		out.WriteRune(r)
	}
	out.WriteString(source)
	return out.String()
}
