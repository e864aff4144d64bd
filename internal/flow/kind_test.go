package flow

import "testing"

// The row of a kind is found without a search.
func TestRowsOfKinds(t *testing.T) {
	t.Parallel()
	for i := range builtIns {
		if kind := builtIns[i].kind; kind.row() != &builtIns[i] {
			t.Errorf("the kind %s has the row of %q", kind, kind.row().kind)
		}
	}
	if Kind("resize").BuiltIn() {
		t.Error("a custom kind has a row")
	}
}
