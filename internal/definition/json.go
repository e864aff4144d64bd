package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of documents and of JSON values: deep enough for
// anything people write, far from what would exhaust a stack.
const maxDepth = 200

var errTooDeep = errors.New("nested too deep")

// cursor reads JSON. Reading past a value that nobody asked for only finds its
// end; whatever is decoded is checked.
type cursor struct {
	src []byte
	at  int
}

func (c *cursor) space() {
	for c.at < len(c.src) {
		switch c.src[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (c *cursor) peek() byte {
	c.space()
	if c.at >= len(c.src) {
		return 0
	}
	return c.src[c.at]
}

func (c *cursor) expect(b byte) error {
	if got := c.peek(); got != b {
		return c.unexpected(fmt.Sprintf("%q", b))
	}
	c.at++
	return nil
}

func (c *cursor) unexpected(want string) error {
	if c.at >= len(c.src) {
		return fmt.Errorf("JSON ends where %s is expected", want)
	}
	r, _ := utf8.DecodeRune(c.src[c.at:])
	return fmt.Errorf("JSON has %q where %s is expected", r, want)
}

// text reads a string.
func (c *cursor) text() (string, error) {
	if err := c.expect('"'); err != nil {
		return "", err
	}
	start := c.at
	for c.at < len(c.src) {
		switch b := c.src[c.at]; {
		case b == '"':
			s := string(c.src[start:c.at])
			c.at++
			return s, nil
		case b == '\\':
			return c.escapedText(start)
		case b < 0x20:
			return "", fmt.Errorf("JSON string has the control character %#02x unescaped", b)
		default:
			c.at++
		}
	}
	return "", errors.New("JSON string does not end")
}

func (c *cursor) escapedText(start int) (string, error) {
	for c.at < len(c.src) && c.src[c.at] != '"' {
		if c.src[c.at] == '\\' {
			c.at++
		}
		c.at++
	}
	if c.at >= len(c.src) {
		c.at = len(c.src)
		return "", errors.New("JSON string does not end")
	}
	c.at++
	var s string
	if err := json.Unmarshal(c.src[start-1:c.at], &s); err != nil {
		return "", fmt.Errorf("read JSON string: %w", err)
	}
	return s, nil
}

// literal reads a number, true, false or null, and returns its text.
func (c *cursor) literal() (string, error) {
	c.space()
	start := c.at
	for c.at < len(c.src) && !delimiter(c.src[c.at]) {
		c.at++
	}
	text := string(c.src[start:c.at])
	switch text {
	case "true", "false", "null":
		return text, nil
	}
	if !validNumber(text) {
		c.at = start
		return "", c.unexpected("a value")
	}
	return text, nil
}

func delimiter(b byte) bool {
	switch b {
	case ' ', '\t', '\n', '\r', ',', ':', ']', '}', '[', '{', '"':
		return true
	}
	return false
}

// validNumber reports whether s is a number in JSON's grammar.
func validNumber(s string) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	if s == "" || (s[0] == '0' && len(s) > 1 && s[1] >= '0' && s[1] <= '9') || !digits() {
		return false
	}
	if s != "" && s[0] == '.' {
		if s = s[1:]; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}

// skip moves past one value.
func (c *cursor) skip() error {
	depth := 0
	for {
		switch b := c.peek(); b {
		case 0:
			return c.unexpected("a value")
		case '"':
			c.at++
			for c.at < len(c.src) && c.src[c.at] != '"' {
				if c.src[c.at] == '\\' {
					c.at++
				}
				c.at++
			}
			if c.at >= len(c.src) {
				c.at = len(c.src)
				return errors.New("JSON string does not end")
			}
			c.at++
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			depth--
			c.at++
		case ',', ':':
			c.at++
		default:
			for c.at < len(c.src) && !delimiter(c.src[c.at]) {
				c.at++
			}
		}
		if depth < 0 {
			return c.unexpected("a value")
		}
		if depth == 0 {
			return nil
		}
	}
}

// each calls visit for the members of an object; visit moves past the value
// and returns false to stop.
func (c *cursor) each(visit func(key string) (bool, error)) error {
	return c.members(func(key []byte) (bool, error) { return visit(string(key)) })
}

// members is each without a copy of the keys, which are valid until visit
// returns.
func (c *cursor) members(visit func(key []byte) (bool, error)) error {
	if err := c.expect('{'); err != nil {
		return err
	}
	if c.peek() == '}' {
		c.at++
		return nil
	}
	for {
		key, err := c.key()
		if err != nil {
			return err
		}
		if err := c.expect(':'); err != nil {
			return err
		}
		c.space()
		more, err := visit(key)
		if err != nil || !more {
			return err
		}
		if done, err := c.next('}'); err != nil || done {
			return err
		}
	}
}

// key reads a string as text does, but in place when it has no escapes.
func (c *cursor) key() ([]byte, error) {
	if c.peek() == '"' {
		for i := c.at + 1; i < len(c.src) && c.src[i] >= 0x20 && c.src[i] != '\\'; i++ {
			if c.src[i] == '"' {
				key := c.src[c.at+1 : i]
				c.at = i + 1
				return key, nil
			}
		}
	}
	s, err := c.text()
	return []byte(s), err
}

// items calls visit for the elements of a list, as each does.
func (c *cursor) items(visit func(i int) (bool, error)) error {
	if err := c.expect('['); err != nil {
		return err
	}
	if c.peek() == ']' {
		c.at++
		return nil
	}
	for i := 0; ; i++ {
		c.space()
		more, err := visit(i)
		if err != nil || !more {
			return err
		}
		if done, err := c.next(']'); err != nil || done {
			return err
		}
	}
}

func (c *cursor) next(end byte) (done bool, err error) {
	switch c.peek() {
	case ',':
		c.at++
		return false, nil
	case end:
		c.at++
		return true, nil
	}
	return false, c.unexpected(fmt.Sprintf("',' or %q", end))
}

// member returns the text of an object's member. A name that occurs twice has
// the value it had last, as everywhere in Go's JSON.
func member(raw []byte, name string) (value json.RawMessage, found bool, err error) {
	c := cursor{src: raw}
	err = c.members(func(key []byte) (bool, error) {
		start := c.at
		if err := c.skip(); err != nil {
			return false, err
		}
		if string(key) == name {
			value, found = raw[start:c.at:c.at], true
		}
		return true, nil
	})
	return value, found, err
}

// elements returns the texts of a list's elements.
func elements(raw []byte) ([]json.RawMessage, error) {
	c := cursor{src: raw}
	var list []json.RawMessage
	err := c.items(func(int) (bool, error) {
		start := c.at
		if err := c.skip(); err != nil {
			return false, err
		}
		list = append(list, raw[start:c.at:c.at])
		return true, nil
	})
	return list, err
}

// kindOf names the type of a JSON text by its first byte, as users call it.
func kindOf(raw []byte) string {
	c := cursor{src: raw}
	switch c.peek() {
	case '{':
		return "object"
	case '[':
		return "list"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n', 0:
		return "null"
	}
	return "number"
}

// decode reads one JSON value into what expressions compute with: whole
// numbers that fit become int64, others float64; objects are map[string]any.
func decode(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	c := cursor{src: raw}
	v, err := c.value(0)
	if err != nil {
		return nil, err
	}
	if c.space(); c.at != len(raw) {
		return nil, c.unexpected("the end")
	}
	return v, nil
}

func (c *cursor) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: more than %d levels", errTooDeep, maxDepth)
	}
	switch c.peek() {
	case '{':
		m := map[string]any{}
		err := c.each(func(key string) (bool, error) {
			v, err := c.value(depth + 1)
			m[key] = v
			return true, err
		})
		return m, err
	case '[':
		list := []any{}
		err := c.items(func(int) (bool, error) {
			v, err := c.value(depth + 1)
			list = append(list, v)
			return true, err
		})
		return list, err
	case '"':
		return c.text()
	}
	text, err := c.literal()
	if err != nil {
		return nil, err
	}
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	return number(text)
}

// number gives 5, 5.0 and 5e0 the same value, the integer: a producer's way of
// writing a whole number must not decide whether `x + 1` is well typed.
func number(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("number %.40s is out of range", text)
	}
	const exact = 1 << 53 // above it a float no longer tells neighbours apart
	if f == math.Trunc(f) && math.Abs(f) <= exact {
		return int64(f), nil
	}
	return f, nil
}

const hexDigits = "0123456789abcdef"

// appendText appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendText(b []byte, s string) []byte {
	b = slices.Grow(b, len(s)+2)
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\ufffd"...)
			i++
			start = i
			continue
		}
		i += n
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
