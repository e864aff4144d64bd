package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Values returns nil if the JSON value got equals the JSON value want. Two values are equal if they have the same type and the same
// content: arrays element by element, objects in any order of members, and numbers by value, so that 1, 1.0 and 1e0 are equal. With
// Numeric two numbers that are not both integers may differ within the tolerances.
//
// The error says which of the two is not a single JSON value.
func (r Rule) Values(got, want []byte) (*Mismatch, error) {
	g, err := value(got)
	if err != nil {
		return nil, fmt.Errorf("the value is not JSON: %w", err)
	}
	w, err := value(want)
	if err != nil {
		return nil, fmt.Errorf("the expected value is not JSON: %w", err)
	}
	if r.Mode != Numeric {
		r.Absolute, r.Relative = 0, 0
	}
	return r.tolerances().values("", g, w), nil
}

// value reads one JSON value, and keeps the digits of its numbers.
func value(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err = d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err = d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the value at byte %d", d.InputOffset())
	}
	return v, nil
}

// values compares the values at a path, such as [2].name.
func (t tolerances) values(at string, got, want any) *Mismatch {
	switch w := want.(type) {
	case []any:
		if g, ok := got.([]any); ok {
			return t.arrays(at, g, w)
		}
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			return t.objects(at, g, w)
		}
	case json.Number:
		if g, ok := got.(json.Number); ok && t.near([]byte(g), []byte(w)) {
			return nil
		}
	default: // a string, true, false or null
		if got == want {
			return nil
		}
	}
	return differ(at, written(got), written(want))
}

func (t tolerances) arrays(at string, got, want []any) *Mismatch {
	for i := range min(len(got), len(want)) {
		if m := t.values(fmt.Sprintf("%s[%d]", at, i), got[i], want[i]); m != nil {
			return m
		}
	}
	switch n := min(len(got), len(want)); {
	case len(got) > n:
		return differ(fmt.Sprintf("%s[%d]", at, n), written(got[n]), None)
	case len(want) > n:
		return differ(fmt.Sprintf("%s[%d]", at, n), None, written(want[n]))
	}
	return nil
}

func (t tolerances) objects(at string, got, want map[string]any) *Mismatch {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		g, there := got[name]
		if !there {
			return differ(member(at, name), None, written(want[name]))
		}
		if m := t.values(member(at, name), g, want[name]); m != nil {
			return m
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, there := want[name]; !there {
			return differ(member(at, name), written(got[name]), None)
		}
	}
	return nil
}

// member is the path of a member of an object.
func member(at, name string) string {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return at + "[" + strconv.Quote(name) + "]"
	}
	return strings.TrimPrefix(at+"."+name, ".")
}

func differ(at, got, want string) *Mismatch {
	m := &Mismatch{Path: at, Got: got, Want: want, Say: fmt.Sprintf("got %s, expected %s", got, want)}
	if at != "" {
		m.Say = at + ": " + m.Say
	}
	return m
}

// written is a value as JSON, shortened.
func written(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	const most = 60
	text := strings.TrimSuffix(b.String(), "\n")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
