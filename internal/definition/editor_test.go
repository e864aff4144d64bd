package definition

import (
	_ "embed" // for the schema
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-run/pawl/internal/jsonvalue"
)

// editorSchema is the JSON Schema of definition documents, for editors. It knows fields, types and ranges; Parse checks everything.
//
//go:embed pawl.schema.json
var editorSchema []byte

func editorChecks(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonvalue.Decode(editorSchema)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("pawl.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("pawl.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads the documents of a file without validating them.
func asJSON(t *testing.T, src string) []any {
	t.Helper()
	docs, problems := read("e.yaml", []byte(src))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var out []any
	for _, d := range docs {
		v, err := jsonvalue.Decode(d.appendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// TestEditorSchemaAcceptsWhatParseDoes checks valid documents, including the examples that we ship.
func TestEditorSchemaAcceptsWhatParseDoes(t *testing.T) {
	t.Parallel()
	s := editorChecks(t)
	sources := map[string]string{"complete": complete, "queue": "kind: queue\nname: gpu\n", "schedule": nightly, "automation": automation, "rate": ratedDocument, "webhook": githubHook + "---\n" + hmacHook}
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sources[f] = string(src)
	}
	for name, src := range sources {
		if _, err := Parse(name, []byte(src)); err != nil {
			t.Errorf("%v", err)
		}
		for _, doc := range asJSON(t, src) {
			if err := s.Validate(doc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestEditorSchemaRefusesWhatParseDoes checks errors that a schema can find.
func TestEditorSchemaRefusesWhatParseDoes(t *testing.T) {
	t.Parallel()
	s := editorChecks(t)
	for _, src := range []string{
		"name: w\n",
		"name: W\ntasks: {a: {action: noop}}",
		"name: w\nconcurency: {}\ntasks: {a: {action: noop}}",
		"name: w\ntasks: {}",
		"name: w\ntasks: {a: {}}",
		"name: w\ntasks: {a: {action: noop, timeout: -10}}",
		"name: w\ntasks: {a: {action: noop, timeout: soon}}",
		"name: w\ntasks: {a: {action: noop, priority: 1001}}",
		"name: w\ntasks: {a: {action: noop, retry: {delay: 1s}}}",
		"name: w\ntasks: {a: {action: noop, retry: {max_attempts: 2, on: ['exit:300']}}}",
		"name: w\ntasks: {a: {action: noop, with: [1]}}",
		"name: w\ntasks: {a: {action: noop, nedds: [b]}}",
		"name: w\ntasks: {a: {action: Noop!}}",
		"name: w\nconcurrency: {limit: 3}\ntasks: {a: {action: noop}}",
		"name: w\nconcurrency: 3\ntasks: {a: {action: noop}}",
		"name: x\naction: cod\n",
		"name: x\naction: code\nhandler: y\n",
		"name: x\naction: code\nneeds: [a]\n",
		"kind: queue\n",
		"kind: queue\nname: gpu\nslots: 1\n",
		"kind: trigger\n",
		"kind: trigger\nname: t\nkeys: x\n",
		"kind: rule\nname: r\nrun: {action: noop}\n",
		"kind: rule\nname: r\non: t\n",
		"kind: rule\nname: r\non: ['a b']\nrun: {action: noop}\n",
		"kind: rule\nname: r\non: t\ndepth: 40\nrun: {action: noop}\n",
		"kind: rule\nname: r\non: t\nrun: {action: noop, env: {a: b}}\n",
		"kind: schedule\nname: s\nevery: 1h\n",
		"kind: schedule\nname: s\nrun: {action: noop}\n",
		"kind: schedule\nname: s\nevery: 1h\ncron: '0 0 * * *'\nrun: {action: noop}\n",
		"kind: schedule\nname: s\nevery: 1h\noverlap: maybe\nrun: {action: noop}\n",
	} {
		if _, err := Parse("e.yaml", []byte(src)); err == nil {
			t.Errorf("Parse accepts:\n%s", src)
		}
		for _, doc := range asJSON(t, src) {
			if err := s.Validate(doc); err == nil {
				t.Errorf("the editor's schema accepts:\n%s", src)
			}
		}
	}
}

// TestEditorSchemaKnowsEveryField compares the names of all fields.
func TestEditorSchemaKnowsEveryField(t *testing.T) {
	t.Parallel()
	var doc struct {
		Defs map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(editorSchema, &doc); err != nil {
		t.Fatal(err)
	}
	fields := map[string][]string{"workflow": workflowFields, "action": actionFields, "task": taskFieldNames,
		"queue": documents[KindQueue].fields, "schedule": scheduleFields, "trigger": triggerFields, "rule": ruleFields}
	for def, want := range fields {
		want = slices.Sorted(slices.Values(want))
		if got := sortedKeys(doc.Defs[def].Properties); !slices.Equal(got, want) {
			t.Errorf("%s has\n%s\nwant\n%s", def, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
}
