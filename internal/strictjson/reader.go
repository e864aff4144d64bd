// Package strictjson reads JSON into Go values and finds all errors at once, each with its place, the value and the fix. Syntax, duplicate
// names, UTF-8 and pointers are checked by the jsontext library. This package adds what a library that stops at the first error cannot do:
// one list of all errors, suggestions for unknown names, and checks of single fields. Names must be known, exact and not repeated; texts
// are UTF-8 without NUL; fields without "omitempty" or "omitzero" are required; the nesting is limited.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/problem"
)

const (
	MaxDepth    = 200 // levels of lists and objects; the same limit as for definitions and inputs
	maxProblems = 50  // nobody reads more
)

// Rules define how values are read, beyond the Go type. They must not change after their first use.
type Rules struct {
	// Types read values of Go types with their own JSON form.
	Types map[reflect.Type]func(r *Reader, into reflect.Value)
	// Checks check single fields; a field names its check with the tag `check:"name"`.
	Checks map[string]Check
	// Whole makes the checks of a struct that concern several fields, after it has been read without errors.
	Whole map[reflect.Type]func(r *Reader, value reflect.Value)

	plans sync.Map // reflect.Type → *plan
}

// Check checks the value of a field that has been read without errors, or that is required and missing. It passes at to [Reader.ProblemAt].
type Check func(r *Reader, at string, value reflect.Value)

// Error is the error of a text that cannot be accepted.
type Error struct {
	Problems problem.List
	// Syntax means that the text is not JSON, or cannot be read to its end; the first problem says where.
	Syntax bool
}

// Error writes the problems on one line.
func (e *Error) Error() string { return strings.ReplaceAll(e.Problems.Error(), "\n", "; ") }

func (e *Error) Unwrap() error { return e.Problems }

// Decode reads src, which is one JSON value, into what out points to. file names src in problems; if it is empty, problems have no lines
// and columns, as for a text that the user has written inside another one. The error is an *Error.
func (rules *Rules) Decode(src []byte, file string, out any) error {
	v := reflect.ValueOf(out).Elem()
	r := &Reader{src: src, file: file, rules: rules, careful: bytes.Contains(src, []byte(`\u0000`))}
	err := r.read(v)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		// The library stops at a repeated name. Read again with a check of every name, to find the other errors as well.
		v.SetZero()
		r = &Reader{src: src, file: file, rules: rules, careful: true}
		err = r.read(v)
	}
	switch {
	case err != nil:
		return &Error{Problems: append(problem.List{r.syntax(err)}, r.problems...), Syntax: true}
	case len(r.problems) > 0:
		return &Error{Problems: r.problems}
	}
	return nil
}

// Reader reads one JSON text and collects its errors.
type Reader struct {
	src      []byte
	file     string
	rules    *Rules
	dec      *jsontext.Decoder
	problems problem.List
	err      error // why the text cannot be read further
	start    int   // offset of the latest value
	// careful makes the reader check every name and text itself, because a name is repeated or a text may contain a NUL.
	careful bool
	names   [][]byte // of all objects around the current position, in one stack; only if careful
	free    string   // path of the value of any form that is being read; line and column identify places inside it
	within  bool     // free is set
}

var errTooDeep = fmt.Errorf("the JSON is nested deeper than %d levels", MaxDepth)

func (r *Reader) read(v reflect.Value) error {
	if len(bytes.TrimLeft(r.src, " \t\r\n")) == 0 {
		return errEmpty
	}
	if DeeperThan(r.src, MaxDepth) >= 0 {
		return errTooDeep
	}
	r.dec = jsontext.NewDecoder(bytes.NewBuffer(r.src), jsontext.AllowDuplicateNames(r.careful))
	r.Value(v)
	if r.err == nil {
		r.err = End(r.src, r.dec)
	}
	return r.err
}

var errEmpty = errors.New("the text is empty")

// syntax returns the problem for a syntax error, with its position.
func (r *Reader) syntax(err error) problem.Problem {
	switch {
	case errors.Is(err, errEmpty):
		return r.placed(problem.Problem{Message: "the JSON is empty", Fix: "send a JSON object"}, 0)
	case errors.Is(err, errTooDeep):
		return r.placed(problem.Problem{Message: err.Error(), Fix: "flatten it, or send it as a string"}, DeeperThan(r.src, MaxDepth))
	}
	p, at := Syntax(r.src, r.dec, err)
	return r.placed(p, at)
}

// placed sets the line and column of a problem.
func (r *Reader) placed(p problem.Problem, at int) problem.Problem {
	if r.file == "" {
		return p
	}
	p.File = r.file
	p.Line, p.Column = Place(r.src, at)
	return p
}

// Place returns the line and column of a byte, both from 1, the column in characters.
func Place(src []byte, at int) (line, column int) {
	before := src[:min(at, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(before[start:])
}

func (r *Reader) next() int { return Next(r.src, r.dec) }

// Problem reports an error of the latest value. If the text cannot be read further, there is no such value, and nothing is reported.
func (r *Reader) Problem(message, fix string) {
	if r.err != nil {
		return
	}
	r.add(r.Path(), r.src[r.start:r.dec.InputOffset()], message, fix)
}

// ProblemAt reports an error of a part of the latest value: at path below it, with the given value.
func (r *Reader) ProblemAt(path, value, message, fix string) {
	if r.err != nil {
		return
	}
	at := r.Path()
	switch {
	case at == "":
		at = path
	case path != "" && path[0] == '[':
		at += path
	case path != "":
		at += "." + path
	}
	r.add(at, []byte(value), message, fix)
}

func (r *Reader) add(path string, value []byte, message, fix string) {
	if len(r.problems) >= maxProblems {
		return
	}
	p := problem.Problem{Path: path, Value: problem.Clip(string(value[:min(len(value), 100)]), 60), Message: message, Fix: fix}
	if p.Value != "" {
		p.Message += ": " + p.Value
	}
	r.problems = append(r.problems, r.placed(p, r.start))
}

// Path returns the path of the latest value or name: "executions[1].labels.team".
func (r *Reader) Path() string {
	if r.within {
		return r.free
	}
	path, level := "", 0
	for name := range r.dec.StackPointer().Tokens() {
		level++
		if kind, _ := r.dec.StackIndex(level); kind == '[' {
			path += "[" + name + "]"
		} else {
			path = problem.Join(path, name)
		}
	}
	return path
}

// nextPath returns the path of the next value: an item of a list, whose number Path does not have yet.
func (r *Reader) nextPath() string {
	path := r.Path()
	kind, read := r.dec.StackIndex(r.dec.StackDepth())
	if kind != '[' {
		return path
	}
	if read > 0 {
		path = path[:strings.LastIndexByte(path, '[')]
	}
	return fmt.Sprintf("%s[%d]", path, read)
}

// Text reads a string. ok is false if it is not a string, or contains a NUL; the error has been reported.
func (r *Reader) Text() (s string, ok bool) {
	if kind := r.dec.PeekKind(); kind != '"' {
		r.mismatch(kind, "a string", `write it in quotes: "…"`)
		return "", false
	}
	r.start = r.next()
	tok, err := r.dec.ReadToken()
	if err != nil {
		r.err = err
		return "", false
	}
	s = tok.String()
	return s, !r.careful || r.withoutNUL(s)
}

func (r *Reader) withoutNUL(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			r.add(r.Path(), nil, fmt.Sprintf("it holds a NUL character at byte %d", i), `remove \u0000; where bytes are allowed send {"base64": "…"}`)
			return false
		}
	}
	return true
}

// Raw reads a value of any form and returns its text, which must not be changed; nil if it cannot be read.
func (r *Reader) Raw() []byte {
	r.start = r.next()
	if !r.careful {
		raw, err := r.dec.ReadValue()
		if err != nil {
			r.err = err
		}
		return raw
	}
	if start := r.start; !r.within {
		r.free, r.within = r.nextPath(), true
		r.walk()
		if r.within, r.start = false, start; r.err != nil {
			return nil
		}
		return r.src[start:r.dec.InputOffset()]
	}
	r.walk()
	return nil
}

// walk reads a value of any form and checks every name and text in it.
func (r *Reader) walk() {
	base := len(r.names)
	for depth := r.dec.StackDepth(); r.err == nil; {
		r.start = r.next()
		kind, length := r.dec.StackIndex(r.dec.StackDepth())
		name := kind == '{' && length%2 == 0
		tok, err := r.dec.ReadToken()
		if err != nil {
			r.err = err
			return
		}
		switch tok.Kind() {
		case '{':
			r.names = append(r.names, nil) // separates the names of this object
		case '}':
			r.names = r.names[:lastNil(r.names)]
		case '"':
			s := tok.String()
			r.withoutNUL(s)
			if name {
				r.repeated([]byte(s), lastNil(r.names)+1)
			}
		}
		if r.dec.StackDepth() == depth {
			break
		}
	}
	r.names = r.names[:base]
}

func lastNil(names [][]byte) int {
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] == nil {
			return i
		}
	}
	return 0
}

// repeated reports a name that its object, whose names begin at base, already had. Most objects are small; in data with hundreds of names,
// comparing with all of them would be slow.
func (r *Reader) repeated(name []byte, base int) {
	const lookBack = 64
	if slices.ContainsFunc(r.names[max(base, len(r.names)-lookBack):], func(n []byte) bool { return bytes.Equal(n, name) }) {
		r.add(r.Path(), nil, fmt.Sprintf("the name %.40q is given twice in one object", name), "give it once")
	}
	r.names = append(r.names, name)
}

// Skip skips a null, and reports whether there was one.
func (r *Reader) Skip() bool {
	if r.dec.PeekKind() != 'n' {
		return false
	}
	r.start = r.next()
	if _, err := r.dec.ReadToken(); err != nil {
		r.err = err
	}
	return true
}

// Kind returns the kind of the next value, as in jsontext: '"' for a string, '{' for an object.
func (r *Reader) Kind() jsontext.Kind { return r.dec.PeekKind() }

// mismatch reads a value of the wrong form, and reports the error.
func (r *Reader) mismatch(kind jsontext.Kind, want, fix string) {
	raw := r.Raw()
	if r.err == nil {
		r.add(r.Path(), raw, "it is "+kindName(kind)+" and should be "+want, fix)
	}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

// Own reads a value by its type's own method, for [Rules.Types].
func Own(r *Reader, into reflect.Value) {
	raw := r.Raw()
	if r.err != nil {
		return
	}
	if err := into.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw); err != nil {
		r.Problem(err.Error(), "")
	}
}
