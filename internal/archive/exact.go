package archive

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-run/pawl/internal/strictjson"
)

// exact refuses JSON that encoding/json would accept silently: a repeated member, of which it uses the last, a member whose name differs in
// case, as in "Action", and text that is not UTF-8, which it repairs. It does not check values of users. t is the type into which the JSON
// that is next in dec is read.
func exact(dec *jsontext.Decoder, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	kind := dec.PeekKind()
	switch {
	case readsItself(t):
	case kind == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		seen := make(map[string]bool, 8)
		return strictjson.EachMember(dec, func(name string) error {
			of, known := fieldsOf(t)[name]
			if t.Kind() == reflect.Map {
				of, known = t.Elem(), true
			}
			if !known {
				return fmt.Errorf("there is no member %.60q", name)
			}
			if seen[name] {
				return fmt.Errorf("the member %.60q is given twice", name)
			}
			seen[name] = true
			return exact(dec, of)
		})
	case kind == '[' && t.Kind() == reflect.Slice:
		return strictjson.EachElement(dec, func(int) error { return exact(dec, t.Elem()) })
	case kind == '"' && t.Kind() == reflect.String:
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if _, err := jsontext.AppendUnquote(nil, raw); err != nil {
			return fmt.Errorf("the text %.60q is not UTF-8", raw)
		}
		return nil
	}
	return dec.SkipValue()
}

// readsItself reports whether a type has a method that decodes it, as times, ids and values of users have.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

var fieldTypes sync.Map // reflect.Type of a struct → map[string]reflect.Type

// fieldsOf returns the types of a struct's fields by their JSON names; a map has none.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t.Kind() == reflect.Map {
		return nil
	}
	if all, ok := fieldTypes.Load(t); ok {
		return all.(map[string]reflect.Type)
	}
	all := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name = cmp.Or(name, f.Name)
		all[name] = f.Type
	}
	fieldTypes.Store(t, all)
	return all
}
