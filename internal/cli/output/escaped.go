package output

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escaped writes invisible characters in the quoted strings of JSON and YAML as escapes such as \u202e. A terminal would obey them: after
// U+202E it shows text from right to left. wide is the format for a character above U+FFFF, such as \U%08X in YAML; without a format the
// character becomes a surrogate pair, as JSON requires.
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

// hides reports whether a character is a control character from U+0080 to U+009F or an invisible formatting character (category Cf). It
// keeps the joiners U+200C and U+200D: Persian words and family emojis need them.
func hides(r rune) bool {
	const nonJoiner, joiner = 0x200C, 0x200D
	return unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner || r >= 0x80 && r < 0xA0
}
