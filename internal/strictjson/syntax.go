package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/problem"
)

// syntaxHelp translates the end of the library's messages to users' terms, with a fix. "%q" stands for the offending character.
var syntaxHelp = []struct{ library, message, fix string }{
	{"after top-level value", "something follows the JSON value", "send one value only"},
	{"in string (expecting non-control character)", "a string has the control character %q", `write it as an escape, such as \n`},
	{"in number (expecting digit)", "%q is not expected in a number", "write it in decimal digits, such as 1.5 or 2e3"},
	{"after object name (expecting ':')", "a name is followed by a colon and its value, not by %q", ""},
	{"after object value (expecting ',' or '}')", "an object's fields are separated by commas and end with }; here is %q", ""},
	{"after array element (expecting ',' or ']')", "a list's items are separated by commas and end with ]; here is %q", ""},
	{"in literal ", "%q is not expected here: the words are true, false and null", "write other texts in double quotes"},
	{"at start of value", "%q cannot begin a JSON value", "texts are in double quotes; names and the last item have no comma behind them"},
}

// Next returns the offset in src at which the next value or name of dec begins.
func Next(src []byte, dec *jsontext.Decoder) int {
	return beyond(src, dec, " \t\r\n:,")
}

// beyond returns the offset of the first byte in src, from dec's position on, that is none of these.
func beyond(src []byte, dec *jsontext.Decoder, these string) int {
	at := int(dec.InputOffset())
	for at < len(src) && strings.IndexByte(these, src[at]) >= 0 {
		at++
	}
	return at
}

// blank may follow a value: white space, but no comma.
const blank = " \t\r\n"

// errFollows means that there is text after the value.
var errFollows = errors.New("something follows the JSON value")

// End returns an error unless dec has read all of src.
func End(src []byte, dec *jsontext.Decoder) error {
	if beyond(src, dec, blank) < len(src) {
		return errFollows
	}
	return nil
}

// Syntax explains an error of dec, which reads src: the message, the fix, and the offset. Other errors are explained by their own text.
func Syntax(src []byte, dec *jsontext.Decoder, err error) (p problem.Problem, at int) {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		at = min(int(syntax.ByteOffset), len(src))
	case errors.Is(err, io.EOF): // the text is empty
		return problem.Problem{Message: "the JSON ends too early", Fix: "send the whole value"}, len(src)
	case errors.Is(err, errFollows):
		return problem.Problem{Message: err.Error(), Fix: "send one value only"}, beyond(src, dec, blank)
	default:
		return problem.Problem{Message: err.Error()}, Next(src, dec)
	}
	kind, length := dec.StackIndex(dec.StackDepth())
	name := kind == '{' && length%2 == 0 // the name of a field should begin here
	bad, _ := utf8.DecodeRune(src[at:])
	text := syntax.Err.Error()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || at == len(src):
		return problem.Problem{Message: "the JSON ends too early", Fix: "send the whole value, with the quotes and brackets that close it"}, len(src)
	case src[at] == 0:
		return problem.Problem{Message: "the text has a NUL byte", Fix: "remove it"}, at
	case strings.HasPrefix(text, "invalid UTF-8"):
		return problem.Problem{Value: fmt.Sprintf("%#02x", src[at]), Message: "the text is not UTF-8", Fix: `encode text as UTF-8; where bytes are allowed send {"base64": "…"}`}, at
	case strings.HasPrefix(text, "invalid escape sequence"):
		end := min(at+2, len(src))
		if src[end-1] == 'u' {
			end = min(at+6, len(src))
		}
		return problem.Problem{Message: fmt.Sprintf("%s is not an escape", bytes.ToValidUTF8(src[at:end], []byte("�"))), Fix: `write \\ for a backslash, and characters as they are`}, at
	case at > 0 && strings.HasPrefix(text, "invalid character") && isDigit(src[at-1]) && isDigit(src[at]):
		return problem.Problem{Message: "it is not a JSON number: it begins with 0", Fix: "leave out zeros in front"}, at
	case name || errors.Is(err, jsontext.ErrNonStringName):
		if bad == ',' || bad == '}' {
			return problem.Problem{Message: "an object's field begins with its name in double quotes; there is none behind the comma", Fix: "remove the comma, or write the field"}, at
		}
		return problem.Problem{Message: fmt.Sprintf("an object's field begins with its name in double quotes, not with %q", bad), Fix: `write {"name": value}`}, at
	}
	for _, h := range syntaxHelp {
		if strings.Contains(text, h.library) {
			message := h.message
			if strings.Contains(message, "%q") {
				message = fmt.Sprintf(message, bad)
			}
			return problem.Problem{Message: message, Fix: h.fix}, at
		}
	}
	return problem.Problem{Message: text}, at
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// HoldsNUL reports whether a JSON text contains a NUL, which is written as \u0000; "\\u0000" is a backslash and five letters.
func HoldsNUL(src []byte) bool {
	for i := 0; i < len(src); i++ {
		if src[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(src[i:], []byte(`\u0000`)) {
			return true
		}
		i++
	}
	return false
}

// Value returns the errors of src as one JSON value: its syntax, a NUL, half of a surrogate pair, or a repeated name in an object.
func Value(src []byte) error {
	var value json.RawMessage
	return new(Rules).Decode(src, "", &value)
}

// DeeperThan returns the offset in src at which brackets are nested deeper than levels, -1 if nowhere. It does not check whether src is
// JSON.
func DeeperThan(src []byte, levels int) int {
	if bytes.Count(src, []byte{'{'})+bytes.Count(src, []byte{'['}) <= levels {
		return -1
	}
	depth := 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > levels {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}
