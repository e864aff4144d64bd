package jsonvalue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/strictjson"
)

// Canonical appends to b the canonical text of a JSON value: without white space, with the members of objects sorted by name, numbers by
// their exact value (5, 5.0 and 0.5e1 are 5), and strings with only the necessary escapes. If an object has a name twice, both members
// stay, in order. It makes one pass, and copies a member again only if an object's members are out of order.
func Canonical(b []byte, raw json.RawMessage) ([]byte, error) {
	w := canonicalWriter{out: slices.Grow(b, len(raw))}
	err := strictjson.Read(raw, func(dec *jsontext.Decoder) error {
		w.dec = dec
		if err := w.write(); err != nil {
			return err
		}
		return strictjson.End(raw, dec)
	})
	if err != nil {
		return nil, err
	}
	return w.out, nil
}

// Same reports whether two texts are the same JSON value.
func Same(a, b json.RawMessage) bool {
	x, err := Canonical(nil, a)
	if err != nil {
		return false
	}
	y, err := Canonical(nil, b)
	return err == nil && string(x) == string(y)
}

// canonicalWriter reads JSON and writes it to out.
type canonicalWriter struct {
	dec     *jsontext.Decoder
	out     []byte
	members []writtenMember // of all objects around the current position, in one stack
	moved   []byte          // used by sortMembers
}

// writtenMember is a member of an object in out: from the first quote of its name to the comma after its value.
type writtenMember struct{ start, colon, end int }

func (w *canonicalWriter) write() error {
	if w.dec.StackDepth() > strictjson.MaxDepth {
		return fmt.Errorf("%w: more than %d levels", ErrTooDeep, strictjson.MaxDepth)
	}
	switch w.dec.PeekKind() {
	case '{':
		return w.object()
	case '[':
		return w.list()
	}
	text, err := w.dec.ReadValue()
	switch {
	case err != nil:
		return err
	case text.Kind() == '"':
		w.out = appendCanonicalText(w.out, text)
	case text.Kind() == '0':
		w.out = appendCanonicalNumber(w.out, string(text))
	default:
		w.out = append(w.out, text...)
	}
	return nil
}

func (w *canonicalWriter) list() error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	w.out = append(w.out, '[')
	for start := len(w.out); w.dec.PeekKind() != ']'; {
		if len(w.out) > start {
			w.out = append(w.out, ',')
		}
		if err := w.write(); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	_, err := w.dec.ReadToken()
	return err
}

func (w *canonicalWriter) object() error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	base, start := len(w.members), len(w.out)
	w.out = append(w.out, '{')
	for w.dec.PeekKind() != '}' {
		name, err := w.dec.ReadValue()
		if err != nil {
			return err
		}
		m := writtenMember{start: len(w.out)}
		w.out = appendCanonicalText(w.out, name)
		m.colon = len(w.out)
		w.out = append(w.out, ':')
		if err := w.write(); err != nil {
			return err
		}
		w.out = append(w.out, ',')
		m.end = len(w.out)
		w.members = append(w.members, m)
	}
	w.sortMembers(w.members[base:])
	w.members = w.members[:base]
	if len(w.out) > start+1 {
		w.out = w.out[:len(w.out)-1] // the last comma
	}
	w.out = append(w.out, '}')
	_, err := w.dec.ReadToken()
	return err
}

// sortMembers sorts the members of the object at the end of out by name.
func (w *canonicalWriter) sortMembers(members []writtenMember) {
	byName := func(a, b writtenMember) int {
		return bytes.Compare(w.out[a.start:a.colon], w.out[b.start:b.colon])
	}
	if slices.IsSortedFunc(members, byName) {
		return
	}
	start := members[0].start
	slices.SortStableFunc(members, byName)
	w.moved = w.moved[:0]
	for _, m := range members {
		w.moved = append(w.moved, w.out[m.start:m.end]...)
	}
	copy(w.out[start:], w.moved)
}

// appendCanonicalText appends a quoted string that has been read. Most strings have no escape and are copied unchanged.
func appendCanonicalText(b, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return append(b, quoted...)
	}
	text, _ := jsontext.AppendUnquote(nil, quoted) // it is valid, so there is no error
	b, _ = jsontext.AppendQuote(b, text)
	return b
}

// appendCanonicalNumber writes a number as its digits without leading and trailing zeros, and a power of ten: 1200 and 1.2e3 are 12e2.
func appendCanonicalNumber(b []byte, text string) []byte {
	d, ok := DecimalOf(text)
	if !ok {
		return append(b, text...) // two spellings of such a number stay different
	}
	if d.digits == "" {
		return append(b, '0')
	}
	if d.negative {
		b = append(b, '-')
	}
	b = append(b, d.digits...)
	if d.power != 0 {
		b = strconv.AppendInt(append(b, 'e'), d.power, 10)
	}
	return b
}
