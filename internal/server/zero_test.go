package server

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// nothingMeans has the fields of request bodies whose zero value has the meaning given here: it is the default, or it means "none".
var nothingMeans = map[string]string{
	"Retry.jitter":                "no part of the delay is random",
	"Submission.start_in":         "at once",
	"Evaluation.start_in":         "at once",
	"Evaluation.wait":             "the answer comes at once",
	"Evaluation.rerun_near_limit": "no further run",
	"Evaluation.std":              "an expression of a document may give none",
	"Evaluation.runtime":          "as std",
	"Case.name":                   "the case is known by its number",
	"Emission.subject":            "the signal is about nothing in particular",
}

// words are fields that only people read.
var words = []string{"reason", "by", "note"}

// A field that is present must have a meaning. If the zero value of a field means "not given", a body that contains it is refused: the
// caller probably meant zero (no attempt, no time, no key) and would get the default.
func TestNothingIsNotLeftOut(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || typ == reflect.TypeFor[time.Time]() || typ == reflect.TypeFor[api.Content]() {
			return
		}
		seen[typ] = true
		for _, f := range strictjson.Names(typ) {
			field := typ.FieldByIndex(f.Index)
			walk(field.Type)
			name := typ.Name() + "." + f.Name
			if f.Required || slices.Contains(words, f.Name) {
				continue
			}
			zero := ""
			switch field.Type.Kind() {
			case reflect.String:
				zero = `""`
			case reflect.Int, reflect.Int64, reflect.Float64:
				zero = "0"
			default:
				continue
			}
			into := reflect.New(typ)
			err := payload.Decode([]byte(`{"`+f.Name+`":`+zero+`}`), "", into.Interface())
			var bad *strictjson.Error
			refused := false
			if errors.As(err, &bad) {
				for _, p := range bad.Problems {
					refused = refused || p.Path == f.Name
				}
			}
			if _, means := nothingMeans[name]; refused == means {
				t.Errorf("%s: %s refused: %v, has a meaning: %v", name, zero, refused, means)
			}
		}
	}
	for _, rt := range h.routes() {
		if rt.body != nil {
			walk(rt.body)
		}
	}
}
