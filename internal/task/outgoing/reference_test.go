package outgoing

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
)

var update = flag.Bool("update", false, "write docs/reference-outputs.md from the code")

const referenceDoc = "../../../docs/reference-outputs.md"

// docs/reference-outputs.md contains every field of every built-in kind's output and every error code; `go test ./internal/task/outgoing
// -update` writes it.
func TestReferenceOfOutputs(t *testing.T) {
	t.Parallel()
	want := reference(t)
	if *update {
		if err := os.WriteFile(referenceDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referenceDoc)
	if err != nil || string(got) != want {
		t.Errorf("docs/reference-outputs.md is not what the code says (%v): go test ./internal/task/outgoing -run Reference -update", err)
	}
}

// outputsByKind are the outputs with fields of their own, and a sentence about each of the others.
var outputsByKind = map[flow.Kind]any{
	flow.KindCode:      reflect.TypeFor[api.CodeResult](),
	flow.KindContainer: reflect.TypeFor[api.CodeResult](),
	flow.KindHTTP:      reflect.TypeFor[response](),
	flow.KindLLM:       reflect.TypeFor[completion](),
	flow.KindWebhook:   reflect.TypeFor[delivered](),
	flow.KindAsk:       reflect.TypeFor[flow.AnswerOutput](),
	flow.KindInput:     "The output is the payload.",
	flow.KindOutput:    "The output is the payload.",
	flow.KindNoop:      "The output is the payload.",
	flow.KindWorkflow:  "The output is the value of `outputs` of the workflow, or null.",
	flow.KindSleep:     "The output is null.",
	flow.KindWait:      "The output is the signal that was taken, as `signal` in a rule ([automation.md](automation.md)); null if none came and `on_timeout` is null.",
}

func reference(t *testing.T) string {
	var b strings.Builder
	b.WriteString(`# Outputs and error codes

This page is for people who write [workflows](workflows.md). It lists the output of each built-in kind of execution, ` + "`tasks.NAME.output`" + `, with types and units, and the codes of ` + "`tasks.NAME.error.code`" + `.
For example, ` + "`tasks.build.output.exit_code`" + ` is the exit code of a task ` + "`build`" + ` of kind ` + "`code`" + `. A test writes this page from the code. Fields marked *optional* may be absent:
` + "`default(x, y)`" + ` then gives y. A failed task has an output too if its kind has one, for example code with an exit code other than 0. Custom handlers have their own outputs and codes.

## Outputs
`)
	described := map[reflect.Type]bool{}
	var later []reflect.Type
	for _, kind := range flow.BuiltIns() {
		fmt.Fprintf(&b, "\n### %s\n\n", kind)
		switch out := outputsByKind[kind].(type) {
		case string:
			b.WriteString(out + "\n")
		case reflect.Type:
			if described[out] {
				b.WriteString("The fields are those of `code`; a container has no `cases` and no `compile`.\n")
				continue
			}
			described[out] = true
			later = append(later, fields(t, &b, out)...)
		default:
			t.Errorf("the output of kind %s is not described", kind)
		}
	}
	for len(later) > 0 {
		of := later[0]
		if later = later[1:]; !described[of] {
			described[of] = true
			fmt.Fprintf(&b, "\n### %s\n\n", title(of))
			later = append(later, fields(t, &b, of)...)
		}
	}
	b.WriteString(`
## Error codes

The last column is about ` + "`retry`" + `. *on*: the code may be in ` + "`retry.on`" + `, and without ` + "`on`" + ` it is retried. *never*: it is not retried, and ` + "`retry.on`" + ` refuses it.
*always*: it is retried, even if ` + "`on`" + ` does not have it, as long as attempts are left.

| code | of | ends as | meaning | retry |
|---|---|---|---|---|
`)
	for _, c := range flow.ErrorCodes() {
		of := "all"
		if len(c.Kinds) > 0 {
			var kinds []string
			for _, k := range c.Kinds {
				kinds = append(kinds, string(k))
			}
			of = strings.Join(kinds, ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.Code, of, c.Stage, c.Meaning, []string{"on", "never", "always"}[c.Retry])
	}
	return b.String()
}

// fields writes the rows of a struct's fields and returns the structs that they refer to.
func fields(t *testing.T, b *strings.Builder, of reflect.Type) (others []reflect.Type) {
	b.WriteString("| field | type | meaning |\n|---|---|---|\n")
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		kind, other := typeOf(f.Type)
		if other != nil && other != of {
			others = append(others, other)
		}
		if strings.Contains(options, "omit") {
			kind += ", optional"
		}
		if unit := unitOf(name); unit != "" {
			kind += ", " + unit
		}
		doc := f.Tag.Get("doc")
		if doc == "" {
			t.Errorf("%s.%s has no doc", of, f.Name)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, kind, doc)
	}
	return others
}

func unitOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_ms"):
		return "milliseconds"
	case strings.HasSuffix(name, "_bytes"), name == "size":
		return "bytes"
	case strings.HasSuffix(name, "_tokens"):
		return "tokens"
	}
	return ""
}

func typeOf(of reflect.Type) (name string, other reflect.Type) {
	switch of {
	case reflect.TypeFor[json.RawMessage]():
		return "any", nil
	case reflect.TypeFor[time.Time]():
		return "string, a time of RFC 3339", nil
	case reflect.TypeFor[[]byte]():
		return "string, base64", nil
	case reflect.TypeFor[api.Duration]():
		return "string, a duration such as 1m30s", nil
	case reflect.TypeFor[api.Size]():
		return "integer, bytes", nil
	}
	switch of.Kind() {
	case reflect.Pointer:
		return typeOf(of.Elem())
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int, reflect.Int64:
		return "integer", nil
	case reflect.Float64:
		return "number", nil
	case reflect.String:
		return "string", nil
	case reflect.Slice:
		name, other = typeOf(of.Elem())
		return "list of " + name, other
	case reflect.Map:
		name, other = typeOf(of.Elem())
		return "object of " + name, other
	case reflect.Struct:
		return fmt.Sprintf("[%s](#%s)", title(of), strings.ToLower(strings.ReplaceAll(title(of), " ", "-"))), of
	}
	return "any", nil
}

// title is the name of a struct on the page.
func title(of reflect.Type) string {
	if of == reflect.TypeFor[api.CodeResult]() {
		return "code"
	}
	return strings.ToUpper(of.Name()[:1]) + of.Name()[1:]
}
