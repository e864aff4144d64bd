package definition

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/payload"
)

// Every limit that there is has its range here.
func TestLimits(t *testing.T) {
	t.Parallel()
	if got, want := sortedKeys(codeLimits), slices.Sorted(slices.Values(payload.LimitFields())); !slices.Equal(got, want) {
		t.Errorf("limits are %v, here %v", want, got)
	}
}

// The schema for editors names every built-in kind.
func TestEditorSchemaKnowsEveryKind(t *testing.T) {
	t.Parallel()
	var doc struct {
		Defs struct {
			Kind struct{ Enum []string } `json:"kind"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(EditorSchema(), &doc); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(doc.Defs.Kind.Enum, BuiltIns) {
		t.Errorf("$defs.kind of pawl.schema.json has %q, want %q", doc.Defs.Kind.Enum, BuiltIns)
	}
}
