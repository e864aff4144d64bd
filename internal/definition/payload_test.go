package definition

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Every limit has its range here.
func TestLimits(t *testing.T) {
	t.Parallel()
	var want []string
	limits := reflect.TypeFor[api.CodeLimits]()
	for _, f := range strictjson.Names(limits) {
		want = append(want, f.Name)
		if also := limits.FieldByIndex(f.Index).Tag.Get("also"); also != "" {
			want = append(want, also)
		}
	}
	slices.Sort(want)
	if got := sortedKeys(codeLimits); !slices.Equal(got, want) {
		t.Errorf("limits are %v, here %v", want, got)
	}
}

var update = flag.Bool("update", false, "write the built-in kinds into pawl.schema.json")

// kindsInSchema is the line of pawl.schema.json that lists the built-in kinds.
var kindsInSchema = regexp.MustCompile(`(?m)^      "enum": \["code", .*\]$`)

// The schema for editors names every built-in kind: go test ./internal/definition -run EveryKind -update writes them.
func TestEditorSchemaKnowsEveryKind(t *testing.T) {
	t.Parallel()
	want := []byte(`      "enum": ["` + strings.Join(BuiltIns, `", "`) + `"]`)
	if *update {
		if err := os.WriteFile("pawl.schema.json", kindsInSchema.ReplaceAll(editorSchema, want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := kindsInSchema.Find(editorSchema); !bytes.Equal(got, want) {
		t.Errorf("pawl.schema.json has\n%s\nwant\n%s", got, want)
	}
}
