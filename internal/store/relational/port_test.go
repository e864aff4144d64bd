package relational_test

import (
	"reflect"
	"testing"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
)

// A backend implements the methods for executions, wait lists, workflows, sessions and logs. All others are implemented once in this
// package.
func TestMethodsOfABackend(t *testing.T) {
	t.Parallel()
	const most = 60
	given := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[relational.Tx](), reflect.TypeFor[relational.Reader]()} {
		for m := range of.Methods() {
			given[m.Name] = true
		}
	}
	var own []string
	for _, of := range []reflect.Type{reflect.TypeFor[store.Store](), reflect.TypeFor[store.Tx]()} {
		for m := range of.Methods() {
			if !given[m.Name] {
				given[m.Name] = true
				own = append(own, m.Name)
			}
		}
	}
	if len(own) > most {
		t.Errorf("a backend has %d methods to write, at most %d are wanted: %v", len(own), most, own)
	}
	t.Logf("%d methods: %v", len(own), own)
}
