package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/problem"
)

var (
	rawType         = reflect.TypeFor[json.RawMessage]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// Value reads a value by the Go type of into. null leaves into unchanged.
func (r *Reader) Value(into reflect.Value) {
	if r.err != nil {
		return
	}
	t := into.Type()
	if t == rawType {
		into.SetBytes(bytes.Clone(r.Raw()))
		return
	}
	if r.Skip() {
		return
	}
	if read := r.rules.Types[t]; read != nil {
		read(r, into)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(t.Elem()))
		r.Value(into.Elem())
	case reflect.Interface:
		r.Raw()
	case reflect.Struct:
		r.Struct(into)
	case reflect.String:
		if s, ok := r.Text(); ok {
			into.SetString(s)
		}
	case reflect.Map:
		r.table(into)
	case reflect.Slice:
		r.list(into)
	case reflect.Bool:
		r.boolean(into)
	default:
		r.number(into)
	}
}

func (r *Reader) boolean(into reflect.Value) {
	kind := r.dec.PeekKind()
	if kind != 't' && kind != 'f' {
		r.mismatch(kind, "true or false", "write true or false, without quotes")
		return
	}
	r.start = r.next()
	tok, err := r.dec.ReadToken()
	if r.err = err; err == nil {
		into.SetBool(tok.Bool())
	}
}

func (r *Reader) number(into reflect.Value) {
	if kind := r.dec.PeekKind(); kind != '0' {
		r.mismatch(kind, "a number", "write it in digits, without quotes")
		return
	}
	r.start = r.next()
	tok, err := r.dec.ReadToken()
	if r.err = err; err != nil {
		return
	}
	if into.CanInt() {
		if n, err := strconv.ParseInt(tok.String(), 10, into.Type().Bits()); err != nil {
			r.Problem("it is not a whole number within the range", "write it in digits, without a point or an exponent")
		} else {
			into.SetInt(n)
		}
		return
	}
	f, err := strconv.ParseFloat(tok.String(), 64)
	digits, _, _ := strings.Cut(strings.ToLower(tok.String()), "e")
	switch {
	case err != nil || math.IsInf(f, 0):
		r.Problem("it is too large a number", "")
	case f == 0 && strings.ContainsAny(digits, "123456789"):
		r.Problem("it is too small a number", "write 0, or one of at least 1e-300")
	default:
		into.SetFloat(f)
	}
}

// open reads the bracket that begins an object or a list, and returns where it is.
func (r *Reader) open(kind jsontext.Kind, want, fix string) (start int, ok bool) {
	if got := r.dec.PeekKind(); got != kind {
		r.mismatch(got, want, fix)
		return 0, false
	}
	start = r.next()
	_, r.err = r.dec.ReadToken()
	return start, r.err == nil
}

// more reports whether a list or an object has more items; at its end, it reads the bracket.
func (r *Reader) more(end jsontext.Kind, start int) bool {
	if r.err != nil {
		return false
	}
	if r.dec.PeekKind() != end {
		return true
	}
	_, r.err = r.dec.ReadToken()
	r.start = start
	return false
}

func (r *Reader) list(into reflect.Value) {
	want, fix := "a list", "write […]"
	if into.Type().Elem().Kind() == reflect.String {
		want, fix = "a list of strings", `write ["…", "…"]`
	}
	start, ok := r.open('[', want, fix)
	if !ok {
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	for n := 0; r.more(']', start); n++ {
		into.Grow(1)
		into.SetLen(n + 1)
		into.Index(n).SetZero()
		r.element(into.Index(n))
	}
}

func (r *Reader) table(into reflect.Value) {
	start, ok := r.open('{', "an object", "write {…}")
	if !ok {
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	base := len(r.names)
	for r.more('}', start) {
		name := string(r.name(base))
		el := reflect.New(into.Type().Elem()).Elem()
		r.element(el)
		into.SetMapIndex(reflect.ValueOf(name), el)
	}
	r.names = r.names[:base]
}

// element reads a value of a list or table. A null is refused where the Go type cannot hold it: it would become "", 0 or an empty struct.
func (r *Reader) element(into reflect.Value) {
	kind := into.Kind()
	if r.err == nil && r.dec.PeekKind() == 'n' && kind != reflect.Pointer && kind != reflect.Interface && into.Type() != rawType {
		if r.Skip() {
			r.add(r.Path(), nil, "it is null", "leave it out, or give a value")
		}
		return
	}
	r.Value(into)
}

// name reads the name of a member of an object whose names begin at base.
func (r *Reader) name(base int) []byte {
	r.start = r.next()
	raw, err := r.dec.ReadValue()
	if err != nil {
		r.err = err
		return nil
	}
	if raw[0] != '"' {
		r.err = jsontext.ErrNonStringName
		return nil
	}
	name := raw[1 : len(raw)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = jsontext.AppendUnquote(nil, raw) // it is valid, so there is no error
	}
	if r.careful {
		r.withoutNUL(string(name))
		r.repeated(bytes.Clone(name), base)
	}
	return name
}

// Struct reads an object into a struct, ignoring the rules for the struct's type. It reports whether there were no errors.
func (r *Reader) Struct(into reflect.Value) bool {
	plan := r.rules.planOf(into.Type())
	start, ok := r.open('{', "an object", plan.write)
	if !ok {
		return false
	}
	base, problems := len(r.names), len(r.problems)
	var seen uint64
	for r.more('}', start) {
		name := r.name(base)
		if r.err != nil {
			return false
		}
		f, known := plan.byName[string(name)]
		if !known {
			r.add(r.Path(), nil, fmt.Sprintf("there is no such field: %.60q", name), plan.meant(string(name)))
			r.Raw()
			continue
		}
		if len(f.names) > 1 && seen&(1<<f.number) != 0 {
			r.add(r.Path(), nil, "it means the same as "+f.other(string(name)), "give one of them")
		}
		if r.field(into.FieldByIndex(f.index), f) {
			seen |= 1 << f.number
		}
	}
	r.names = r.names[:base]
	if r.err == nil {
		r.complete(into, plan, seen, problems)
	}
	return r.err == nil && len(r.problems) == problems
}

// field reads the value of a field and checks it. It reports whether there is a value: null is none.
func (r *Reader) field(into reflect.Value, f *field) bool {
	before, null := len(r.problems), r.dec.PeekKind() == 'n'
	r.Value(into)
	if r.err != nil || null || len(r.problems) > before {
		return !null
	}
	if f.enum != nil && !slices.Contains(f.enum, into.String()) {
		r.Problem("it is not a known value", problem.NearestOr(into.String(), f.enum, "one of"))
	}
	if f.check != nil {
		f.check(r, "", into)
	}
	return true
}

// complete reports missing fields of a struct that has been read, and runs the check of its type as a whole.
func (r *Reader) complete(into reflect.Value, plan *plan, seen uint64, problems int) {
	for _, f := range plan.required {
		switch {
		case seen&(1<<f.number) != 0:
		case f.check != nil:
			f.check(r, f.names[0], into.FieldByIndex(f.index))
		default:
			r.ProblemAt(f.names[0], "", "it is missing", "")
		}
	}
	if whole := r.rules.Whole[into.Type()]; whole != nil && len(r.problems) == problems {
		whole(r, into)
	}
}

// plan has the fields of a struct for reading.
type plan struct {
	byName   map[string]*field
	names    []string
	hints    map[string]string // other systems' names for a field, and the right name
	required []*field
	write    string // fix for a value that is not an object
}

// meant suggests the field that an unknown name may stand for.
func (p *plan) meant(name string) string {
	if own := p.hints[name]; own != "" {
		return fmt.Sprintf("did you mean %q?", own)
	}
	return problem.NearestOr(name, p.names, "one of")
}

type field struct {
	names  []string // the second is an alternative name
	number int
	index  []int
	enum   []string
	check  Check
}

// other returns the alternative name of a field.
func (f *field) other(name string) string {
	if name == f.names[0] {
		return f.names[1]
	}
	return f.names[0]
}

func (rules *Rules) planOf(t reflect.Type) *plan {
	if p, ok := rules.plans.Load(t); ok {
		return p.(*plan)
	}
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		panic(fmt.Sprintf("strictjson: %s reads itself and is not among the rules' types", t))
	}
	p := &plan{byName: map[string]*field{}, hints: map[string]string{}}
	for i, name := range Names(t) {
		sf := t.FieldByIndex(name.Index)
		f := &field{names: []string{name.Name}, number: i, index: name.Index}
		if also := sf.Tag.Get("also"); also != "" {
			f.names = append(f.names, also)
		}
		for hint := range strings.FieldsFuncSeq(sf.Tag.Get("hint"), func(r rune) bool { return r == ',' }) {
			p.hints[hint] = name.Name
		}
		if enum := sf.Tag.Get("enum"); enum != "" {
			f.enum = strings.Split(enum, ",")
		}
		if check := sf.Tag.Get("check"); check != "" {
			if f.check = rules.Checks[check]; f.check == nil {
				panic(fmt.Sprintf("strictjson: field %s of %s names the check %q, which is not among the rules", name.Name, t, check))
			}
		}
		for _, n := range f.names {
			p.byName[n] = f
		}
		p.names = append(p.names, name.Name)
		if name.Required {
			p.required = append(p.required, f)
		}
	}
	const shown = 4 // fields, the most important first
	p.write = "write {…}"
	if n := len(p.names); n > shown {
		p.write += " with " + strings.Join(p.names[:shown], ", ") + ", …"
	} else if n > 0 {
		p.write += " with " + strings.Join(p.names, ", ")
	}
	stored, _ := rules.plans.LoadOrStore(t, p)
	return stored.(*plan)
}

// Name is a field of a struct with its JSON name.
type Name struct {
	Name     string
	Index    []int // for reflect.Value.FieldByIndex
	Required bool  // it has neither omitempty nor omitzero
}

// Names lists the fields of a struct, with those of the structs embedded in it.
func Names(t reflect.Type) []Name {
	var all []Name
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" {
			continue
		}
		all = append(all, Name{name, f.Index, !strings.Contains(options, "omit")})
	}
	return all
}
