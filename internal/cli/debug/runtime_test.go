package debug

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
)

// varied calls do with copies of a JSON value, in each of which one string, or one additional member of an object, is text.
func varied(v any, text string, do func()) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Collect(keys(v)) {
			old := v[name]
			v[name] = text
			do()
			v[name] = old
			varied(old, text, do)
		}
		for _, name := range []string{"runtime", "Runtime", "RUNTIME"} {
			old, had := v[name]
			v[name] = text
			do()
			if delete(v, name); had {
				v[name] = old
			}
		}
	case []any:
		for i, old := range v {
			v[i] = text
			do()
			v[i] = old
			varied(old, text, do)
		}
	}
}

func keys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// A recorded attempt runs in a runtime that isolates, whatever the record says: only --runtime can choose another.
func TestRecordsChooseNoRuntimeThatIsolatesNothing(t *testing.T) {
	t.Parallel()
	record := func(kind string) (*api.Execution, *api.Attempt) {
		payload := json.RawMessage(`{"language":"python","source":"print(1)","runtime":"sandbox","files":{"a":"b"},"cases":[{"name":"a"}],"checker":{"source":"x","runtime":"docker"}}`)
		return &api.Execution{ID: "ex_1", Kind: kind, Action: "code", Queue: "default", Output: json.RawMessage(`{"verdict":"ok","runtime":"sandbox","tool":"python3","limits":{}}`)},
			&api.Attempt{Execution: "ex_1", Attempt: 1, Kind: kind, Action: "code", Payload: payload}
	}
	names := append([]string{"", "process", "Process", " process", "process ", "process,sandbox", "sandbox,process", ",process", "docker,process", "sandbox, process", "kubernetes",
		"docker", "sandbox", "sandbox\x00", "none", "*", "../process"}, config.RuntimeNames...)
	tried := 0
	for _, configured := range []string{"sandbox", "docker", "sandbox,process", "process,sandbox", "process"} {
		for _, kind := range []string{"code", "container"} {
			for _, name := range names {
				x, rec := record(kind)
				whole := map[string]any{}
				for part, v := range map[string]any{"x": x, "rec": rec} {
					text, err := json.Marshal(v)
					if err != nil {
						t.Fatal(err)
					}
					var parsed any
					if err := json.Unmarshal(text, &parsed); err != nil {
						t.Fatal(err)
					}
					whole[part] = parsed
				}
				varied(whole, name, func() {
					text, err := json.Marshal(whole)
					if err != nil {
						t.Fatal(err)
					}
					var r struct {
						X   *api.Execution
						Rec *api.Attempt
					}
					if json.Unmarshal(text, &r) != nil || r.X == nil || r.Rec == nil {
						return // the client refuses it
					}
					a := &app.App{Err: io.Discard}
					a.Config = config.Config{Values: map[string]string{"runtime": configured}, Source: map[string]string{"runtime": "pawl.yaml"}}
					if placeOf(a, r.Rec, r.X) != nil {
						return
					}
					tried++
					opened := a.Config.List("runtime")
					if len(opened) != 1 || !slices.Contains([]string{"sandbox", "docker", "kubernetes"}, opened[0]) {
						t.Fatalf("with runtime %s here, a record with %q opens %q: %s", configured, name, opened, text)
					}
					var payload map[string]any
					if err := json.Unmarshal(r.Rec.Payload, &payload); err != nil {
						t.Fatal(err)
					}
					if asked, there := payload["runtime"]; there && asked != opened[0] {
						t.Fatalf("the attempt asks for runtime %v in %s", asked, opened)
					}
				})
			}
		}
	}
	if tried < 10_000 {
		t.Errorf("%d records were tried", tried)
	}
}

// --runtime chooses the runtime, and the first of several is used.
func TestRuntimeFlagChooses(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"process": "process", "process,sandbox": "process", "docker": "docker"} {
		a := &app.App{Err: io.Discard}
		a.Config = config.Config{Values: map[string]string{"runtime": given}, Source: map[string]string{"runtime": "--runtime"}}
		x := &api.Execution{Output: json.RawMessage(`{"runtime":"sandbox"}`)}
		if err := placeOf(a, &api.Attempt{Kind: "code", Payload: json.RawMessage(`{}`)}, x); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(a.Config.List("runtime")); got != "["+want+"]" {
			t.Errorf("--runtime %s opens %s", given, got)
		}
	}
}
