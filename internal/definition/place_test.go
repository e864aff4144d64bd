package definition

import (
	"encoding/json"
	"strings"
	"testing"
)

// Errors name places as the user writes them: elements of lists by index, and for a built-in schema, the reference to it.
func TestPlacesOfSchemas(t *testing.T) {
	t.Parallel()
	elements := newSchema(json.RawMessage(`{"type": "object", "properties": {"a": {"items": {"items": {"type": "string"}}}, "0": {"type": "integer"}}}`))
	for value, want := range map[string]string{
		`{"a": [["x"], ["y", 47]]}`: `input.a[1][1]: got number, want string (write it in quotes, on a command line as '"47"')`,
		`{"a": [[true]]}`:           "input.a[0][0]: got boolean, want string",
		`{"0": "x"}`:                `input["0"]: got string, want integer`,
	} {
		if _, err := elements.validate(json.RawMessage(value), "input", nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
	const head = "name: w\ntasks: {t: {action: noop}}\n"
	for schema, want := range map[string]string{
		`{properties: {s: {$ref: "https://json-schema.org/draft/2020-12/schema"}}}`: "input.properties.s: not a valid JSON Schema: in https://json-schema.org/draft/2020-12/",
		`{$ref: "https://json-schema.org/draft/2020-12/schema"}`:                    "f.yaml:3:8: input: not a valid JSON Schema: in https://json-schema.org/draft/2020-12/",
		`{prefixItems: [{type: integer}, {type: strng}]}`:                           "input.prefixItems[1].type: not a valid JSON Schema",
		`{properties: {"0": {type: strng}}}`:                                        `input.properties["0"].type: not a valid JSON Schema`,
	} {
		if _, err := Parse("f.yaml", []byte(head+"input: "+schema+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", schema, err, want)
		}
	}
	ask := "name: w\ntasks: {t: {action: ask, with: {title: x, form: {prefixItems: [{type: strng}]}}}}\n"
	if _, err := Parse("f.yaml", []byte(ask)); err == nil || !strings.Contains(err.Error(), "form.prefixItems[0].type: not a valid") {
		t.Errorf("a form: %v", err)
	}
}

// Keywords after a dot, and the errors that the parser finds after them, give one problem with its fix.
func TestKeywordFields(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`input.in`:                   `in is a word of expressions and cannot follow a dot (write ["in"] in place of .in)`,
		`tasks.in.output`:            `in is a word`,
		`input.a. true == 1`:         `true is a word`,
		`input.null`:                 `null is a word`,
		`input.list.map(x, x.false)`: `false is a word`,
	} {
		_, err := Parse("f.yaml", []byte("name: w\ntasks: {in: {action: noop}, t: {needs: [in], action: noop, with: {a: '${{ "+expression+" }}'}}}\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "f.yaml:") != 1 {
			t.Errorf("%s: %v, want %s", expression, err, want)
		}
	}
	good := `name: w
tasks: {in: {action: noop}, t: {needs: [in], action: noop, with: {a: '${{ tasks["in"].output }} ${{ input["null"] }} ${{ "a.in" }} ${{ input.inner }}'}}}
`
	if _, err := Parse("f.yaml", []byte(good)); err != nil {
		t.Error(err)
	}
}

// The outputs of a workflow are the value of their expression, whether its type is known or not.
func TestOutputsOfAnyType(t *testing.T) {
	t.Parallel()
	const head = "name: w\ntasks: {e: {foreach: [1, 2], action: noop, with: {i: '${{ item }}'}}}\n"
	for _, expression := range []string{"tasks.e.output", "tasks.e.output.map(x, x.i)", "[1]", "'text'", "size(tasks.e.output)", "{'a': 1}", "true"} {
		if _, err := Parse("f.yaml", []byte(head+`outputs: "${{ `+expression+` }}"`+"\n")); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
	if _, err := Parse("f.yaml", []byte(head+"outputs: text\n")); err == nil {
		t.Error("outputs of a text are taken")
	}
}
