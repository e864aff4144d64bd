package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/duration"
)

// Bounds of a body beside its size.
const (
	maxDepth  = 200 // the same as definitions and inputs have
	maxFaults = 50  // more are not worth reading
)

// decodeStrict reads body into out, which points to a struct of package api. Beyond what encoding/json asks for, names must
// be known, given once and exactly, required fields be there, texts be UTF-8 without NUL, and the nesting be bounded. The
// error is a *api.Problem with everything that is wrong.
func decodeStrict(body []byte, out any) error {
	if p := checkJSON(body, reflect.TypeOf(out).Elem()); p != nil {
		return p
	}
	if err := json.Unmarshal(body, out); err != nil {
		if p := problemOf(err); p.Status < 500 {
			return p
		}
		return unreadable(api.FieldError{Message: err.Error(), Fix: "see /openapi.json for what is expected"})
	}
	return nil
}

// checkJSON checks body against the Go type that it will be decoded into; nil takes any value.
func checkJSON(body []byte, t reflect.Type) *api.Problem {
	if at := invalidUTF8(body); at >= 0 {
		e := place(body, at)
		e.Value = fmt.Sprintf("%#02x", body[at])
		e.Message, e.Fix = "the body is not UTF-8", `encode text as UTF-8; where bytes are allowed send {"base64": "…"}`
		return unreadable(e)
	}
	c := checker{src: body}
	c.space()
	if c.at == len(c.src) {
		return unreadable(api.FieldError{Message: "the body is empty", Fix: "send a JSON object"})
	}
	c.value(t, "", reflect.StructTag(""))
	c.space()
	if c.broken == nil && c.at < len(c.src) {
		c.fail("something follows the JSON value", "send one value only")
	}
	if c.broken != nil {
		return unreadable(append([]api.FieldError{*c.broken}, c.faults...)...)
	}
	if len(c.faults) > 0 {
		return invalid(c.faults...)
	}
	return nil
}

func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// place is the line and column of a byte, both from 1, the column in characters.
func place(src []byte, at int) api.FieldError {
	before := src[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	return api.FieldError{
		File: "body", Line: 1 + bytes.Count(before, []byte{'\n'}), Column: 1 + utf8.RuneCount(before[start:]),
	}
}

// checker walks over JSON along a Go type.
type checker struct {
	src    []byte
	at     int
	depth  int
	faults []api.FieldError
	broken *api.FieldError // the text is no JSON from here on
	keys   [][]byte        // names of the objects that the walk is in, one stack for all
}

func (c *checker) space() {
	for c.at < len(c.src) {
		switch c.src[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

// fail notes that the text cannot be read any further.
func (c *checker) fail(message, fix string) {
	if c.broken == nil {
		e := place(c.src, min(c.at, len(c.src)))
		e.Message, e.Fix = message, fix
		c.broken = &e
	}
}

// fault notes something wrong with the value that begins at start and ends here.
func (c *checker) fault(path string, start int, message, fix string) {
	c.faultAt(path, start, c.at, message, fix)
}

func (c *checker) faultAt(path string, start, end int, message, fix string) {
	if len(c.faults) < maxFaults {
		e := place(c.src, start)
		e.Path, e.Message, e.Fix, e.Value = path, message, fix, shorten(c.src[start:end])
		c.faults = append(c.faults, e)
	}
}

// shorten makes a value fit to be shown.
func shorten(b []byte) string { return shortenTo(string(b[:min(len(b), 100)]), 60) }

// shortenTo cuts a text that is longer than most bytes.
func shortenTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := s[:most]
	for len(cut) > 0 && !utf8.RuneStart(s[len(cut)]) {
		cut = cut[:len(cut)-1]
	}
	return cut + "…"
}

// value checks the value that begins here, for a field with the given tag.
func (c *checker) value(t reflect.Type, path string, tag reflect.StructTag) {
	c.space()
	if c.broken != nil {
		return
	}
	if c.at >= len(c.src) {
		c.fail("the JSON ends too early", "send the whole value")
		return
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	own := t != nil && (t == timeType || reflect.PointerTo(t).Implements(unmarshalerType))
	start := c.at
	inner := t
	if own || t == rawType {
		inner = nil
	}
	switch b := c.src[c.at]; {
	case b == '{':
		c.object(inner, path)
	case b == '[':
		c.array(inner, path)
	case b == '"':
		c.text(path)
		c.isText(inner, path, start, tag)
	case b == '-' || (b >= '0' && b <= '9'):
		c.number()
		c.isNumber(inner, path, start)
	case c.word("null"):
		return // as if it were not there
	case c.word("true"), c.word("false"):
		if inner != nil && inner.Kind() != reflect.Bool {
			c.fault(path, start, "it is a boolean and should be "+kindName(inner), writeAs(inner))
		}
	default:
		r, _ := utf8.DecodeRune(c.src[c.at:])
		c.fail(fmt.Sprintf("%q cannot begin a JSON value", r), "texts are in double quotes; names and the last item have no comma behind them")
		return
	}
	if own && c.broken == nil && path != "" {
		c.asks(t, path, start)
	}
}

var (
	timeType        = reflect.TypeFor[time.Time]()
	durationType    = reflect.TypeFor[api.Duration]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	bytesType       = reflect.TypeFor[[]byte]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// asks lets a type that reads itself try the value.
func (c *checker) asks(t reflect.Type, path string, start int) {
	v := reflect.New(t)
	reader, ok := v.Interface().(json.Unmarshaler)
	if !ok {
		return
	}
	if err := reader.UnmarshalJSON(c.src[start:c.at]); err != nil {
		message, fix := err.Error(), ""
		switch t {
		case timeType:
			message, fix = "it is not a time", "write RFC 3339, as in 2026-11-21T08:00:00Z"
		case durationType:
			message, fix = "it is not a duration", `write "1.5s", "1m30s" or "2d", or a number of seconds`
			if errors.Is(err, duration.ErrNegative) {
				message, fix = "it is negative", "leave it out, or give a time span of more than 0"
			}
		}
		c.fault(path, start, message, fix)
	} else if t == durationType && v.Elem().Int() < 0 {
		c.fault(path, start, "it is negative", "leave it out, or give a time span of more than 0")
	}
}

func (c *checker) isText(t reflect.Type, path string, start int, tag reflect.StructTag) {
	if t == nil || c.broken != nil {
		return
	}
	if t.Kind() != reflect.String && t != bytesType {
		c.fault(path, start, "it is a string and should be "+kindName(t), writeAs(t))
		return
	}
	if enum := tag.Get("enum"); enum != "" {
		var s string
		_ = json.Unmarshal(c.src[start:c.at], &s) // has been checked
		if choices := commaSeparated(enum); s != "" && !slices.Contains(choices, s) {
			c.fault(path, start, "it is not a known value", closest(s, choices))
		}
	}
}

func (c *checker) isNumber(t reflect.Type, path string, start int) {
	if t == nil || c.broken != nil {
		return
	}
	text := string(c.src[start:c.at])
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if _, err := strconv.ParseInt(text, 10, t.Bits()); err != nil {
			c.fault(path, start, "it is not a whole number within the range", "")
		}
	case reflect.Float32, reflect.Float64:
		if f, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(f, 0) {
			c.fault(path, start, "it is too large a number", "")
		}
	default:
		c.fault(path, start, "it is a number and should be "+kindName(t), writeAs(t))
	}
}

// writeAs says how a value of a type is written.
func writeAs(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return `write it in quotes: "…"`
	case reflect.Bool:
		return "write true or false, without quotes"
	case reflect.Struct, reflect.Map:
		return "write {…}"
	case reflect.Slice:
		if t == bytesType {
			return `write it in quotes: "…"`
		}
		return "write […]"
	}
	return "write it in digits, without quotes"
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		if t == bytesType {
			return "a string of base64"
		}
		return "a list"
	}
	return "a number"
}
