// Package strictjson reads JSON into Go values and finds everything that is wrong with it at once, each problem with its place, the
// value and what to do. The syntax, duplicate names, UTF-8 and pointers are the jsontext library's; this package adds what a
// library that stops at the first error cannot have: one list of all problems, near names for unknown ones, and checks of single
// fields. Names must be known, given once and exactly; texts are UTF-8 without NUL; fields without "omitempty" or "omitzero" must
// be there; the nesting is bounded.
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

// Bounds of what is read.
const (
	MaxDepth    = 200 // levels of lists and objects; the same as definitions and inputs have
	maxProblems = 50  // more are not worth reading
)

// Rules say how values are read that the Go type alone does not describe. They must not change once they are used.
type Rules struct {
	// Types read values of Go types that JSON writes in a form of their own.
	Types map[reflect.Type]func(r *Reader, into reflect.Value)
	// Checks look at single fields; a field names its check with the tag `check:"name"`.
	Checks map[string]Check
	// Whole looks at a struct that has been read without problems, for what no single field shows.
	Whole map[reflect.Type]func(r *Reader, value reflect.Value)

	plans sync.Map // reflect.Type → *plan
}

// Check looks at the value of a field that has been read without problems, or that is required and missing. It passes at on to
// [Reader.ProblemAt].
type Check func(r *Reader, at string, value reflect.Value)

// Error is the error of a text that cannot be taken.
type Error struct {
	Problems problem.List
	// Syntax says that the text is no JSON, or not one that can be read to its end; the first problem says where.
	Syntax bool
}

// Error writes the problems on one line.
func (e *Error) Error() string { return strings.ReplaceAll(e.Problems.Error(), "\n", "; ") }

// Unwrap gives the problems.
func (e *Error) Unwrap() error { return e.Problems }

// Decode reads src, which is one JSON value, into what out points to. file names src in problems; where it is empty, problems have
// no lines and columns, as for a text that the user has written into another one. The error is an *Error.
func (rules *Rules) Decode(src []byte, file string, out any) error {
	v := reflect.ValueOf(out).Elem()
	r := &Reader{src: src, file: file, rules: rules, careful: bytes.Contains(src, []byte(`\u0000`))}
	err := r.read(v)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		// The library stops at a name that is given twice. Read again, looking at every name, to find the other problems as well.
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

// Reader reads one JSON text and collects what is wrong with it.
type Reader struct {
	src      []byte
	file     string
	rules    *Rules
	dec      *jsontext.Decoder
	problems problem.List
	err      error // why the text cannot be read any further
	start    int   // of the value that was read last
	// careful looks at every name and text itself: something in the text is given twice, or may be a NUL.
	careful bool
	names   [][]byte // of the objects that are being read, one stack for all; only when careful
	free    string   // path of the value of any form that is being read; within it the line and column say enough
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

// syntax places the reason why the text cannot be read.
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

// placed gives a problem its line and column.
func (r *Reader) placed(p problem.Problem, at int) problem.Problem {
	if r.file == "" {
		return p
	}
	p.File = r.file
	p.Line, p.Column = Place(r.src, at)
	return p
}

// Place is the line and column of a byte, both from 1, the column in characters.
func Place(src []byte, at int) (line, column int) {
	before := src[:min(at, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(before[start:])
}

func (r *Reader) next() int { return Next(r.src, r.dec) }

// Problem notes what is wrong with the value that was read last. Once the text cannot be read any further there is no such value,
// and nothing is noted.
func (r *Reader) Problem(message, fix string) {
	if r.err != nil {
		return
	}
	r.add(r.Path(), r.src[r.start:r.dec.InputOffset()], message, fix)
}

// ProblemAt notes what is wrong with a part of the value that was read last: at path beneath it, with the value given.
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

// Path is the place of the value or name that was read last: "executions[1].labels.team".
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

// nextPath is the place of the value that is read next: of an item of a list, whose number Path does not have yet.
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

// Text reads a string. ok is false when it is none, or has a NUL; that has been noted.
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

// Raw reads a value of any form and returns its text, which must not be changed; nil when it cannot be read.
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

// walk reads a value of any form and looks at every name and text in it.
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

// repeated notes a name that its object, whose names begin at base, had before. Objects are small, or they are data with hundreds
// of names, for which looking back over all of them would be slow.
func (r *Reader) repeated(name []byte, base int) {
	const lookBack = 64
	if slices.ContainsFunc(r.names[max(base, len(r.names)-lookBack):], func(n []byte) bool { return bytes.Equal(n, name) }) {
		r.add(r.Path(), nil, fmt.Sprintf("the name %.40q is given twice in one object", name), "give it once")
	}
	r.names = append(r.names, name)
}

// Skip moves past a value that says nothing, null, and reports whether there was one.
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

// Kind is the kind of the value that follows, as jsontext has it: '"' for a string, '{' for an object.
func (r *Reader) Kind() jsontext.Kind { return r.dec.PeekKind() }

// mismatch reads a value that is of another form than it should be, and notes that.
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

// Own lets a type that reads itself read the value, for [Rules.Types].
func Own(r *Reader, into reflect.Value) {
	raw := r.Raw()
	if r.err != nil {
		return
	}
	if err := into.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw); err != nil {
		r.Problem(err.Error(), "")
	}
}
