package output

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escaped writes by its number, in the quoted strings of JSON and YAML, what does something to a terminal or to the text beside it, as
// U+202E and the control characters above U+007F do. wide is the form of a character above U+FFFF: empty where it is two of \uXXXX.
func escaped(text []byte, wide string) []byte {
	if !bytes.ContainsFunc(text, hides) {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		switch high, low := utf16.EncodeRune(r); {
		case !hides(r):
			out = utf8.AppendRune(out, r)
		case r <= 0xFFFF:
			out = fmt.Appendf(out, `\u%04X`, r)
		case wide != "":
			out = fmt.Appendf(out, wide, r)
		default:
			out = fmt.Appendf(out, `\u%04X\u%04X`, high, low)
		}
	}
	return out
}

// hides reports whether a character is not seen itself, and formats what is. Two of them join letters and emojis.
func hides(r rune) bool {
	const nonJoiner, joiner = 0x200C, 0x200D
	return unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner || r >= 0x80 && r < 0xA0
}
