package query

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	end    tokenKind = iota
	word             // a name, a keyword or a value
	quoted           // a value in quotes
	symbol           // = != < <= > >= ( ) ,
	other            // not part of the language
)

type token struct {
	kind tokenKind
	text string // without the quotes
	// parts are the pieces of a word between its dots; a quoted piece may contain dots.
	parts        []string
	line, column int
}

func (t token) is(kind tokenKind, text string) bool { return t.kind == kind && t.text == text }

// keyword reports whether the token is this word, in any case.
func (t token) keyword(text string) bool { return t.kind == word && strings.EqualFold(t.text, text) }

// lexer splits a text into tokens.
type lexer struct {
	rest         string
	line, column int
}

func (l *lexer) rune() rune {
	r, size := utf8.DecodeRuneInString(l.rest)
	l.rest = l.rest[size:]
	if l.column++; r == '\n' {
		l.line, l.column = l.line+1, 1
	}
	return r
}

func ofWord(r rune) bool {
	return !unicode.IsSpace(r) && !unicode.IsControl(r) && !strings.ContainsRune(`()=!<>,"'&|;`, r)
}

// next returns the next token; open is a quote that is not closed.
func (l *lexer) next() (t token, open rune) {
	for l.rest != "" {
		if r, _ := utf8.DecodeRuneInString(l.rest); !unicode.IsSpace(r) {
			break
		}
		l.rune()
	}
	t = token{line: l.line, column: l.column}
	if l.rest == "" {
		return t, 0
	}
	first, _ := utf8.DecodeRuneInString(l.rest)
	switch {
	case first == '"' || first == '\'':
		t.kind = quoted
		t.text, open = l.quoted()
		return t, open
	case ofWord(first):
		t.kind = word
		return t, l.word(&t)
	}
	t.kind = symbol
	t.text = string(l.rune())
	switch {
	case strings.ContainsAny(t.text, "!<>=") && strings.HasPrefix(l.rest, "="), strings.ContainsAny(t.text, "&|") && strings.HasPrefix(l.rest, t.text):
		t.text += string(l.rune())
	}
	if !strings.Contains(" = != < <= > >= ( ) , ", " "+t.text+" ") {
		t.kind = other
	}
	return t, 0
}

// word reads a word. After a dot, a piece may be quoted: label."with blanks".
func (l *lexer) word(t *token) (open rune) {
	var all, part strings.Builder
	for l.rest != "" {
		r, _ := utf8.DecodeRuneInString(l.rest)
		switch {
		case r == '.':
			all.WriteRune(l.rune())
			t.parts = append(t.parts, part.String())
			part.Reset()
		case (r == '"' || r == '\'') && strings.HasSuffix(all.String(), ".") && part.Len() == 0:
			var text string
			if text, open = l.quoted(); open != 0 {
				return open
			}
			part.WriteString(text)
			all.WriteString(text)
		case ofWord(r):
			part.WriteRune(r)
			all.WriteRune(l.rune())
		default:
			t.text, t.parts = all.String(), append(t.parts, part.String())
			return 0
		}
	}
	t.text, t.parts = all.String(), append(t.parts, part.String())
	return 0
}

// quoted reads a quoted text, in which a backslash escapes a quote or a backslash.
func (l *lexer) quoted() (text string, open rune) {
	quote := l.rune()
	var b strings.Builder
	for l.rest != "" {
		r := l.rune()
		switch {
		case r == quote:
			return b.String(), 0
		case r == '\\' && l.rest != "":
			r = l.rune()
		}
		b.WriteRune(r)
	}
	return b.String(), quote
}
