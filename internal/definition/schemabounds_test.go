package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

// doubled returns a schema in which n definitions each refer to the next one twice: there are 2^n paths for a value.
func doubled(keyword string, n int) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d": {%q: [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}`, i, keyword, i+1, i+1))
	}
	return fmt.Sprintf(`{"$ref": "#/$defs/d0", "$defs": {%s, "d%d": {"type": "integer"}}}`, strings.Join(defs, ", "), n)
}

// chained returns a schema in which n definitions form a chain of references.
func chained(n int) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d": {"$ref": "#/$defs/d%d"}`, i, i+1))
	}
	return fmt.Sprintf(`{"$ref": "#/$defs/d0", "$defs": {%s, "d%d": {"type": "integer"}}}`, strings.Join(defs, ", "), n)
}

func repeatedPatterns(n int, pattern string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`%q: {}`, fmt.Sprintf("%d%s", i, pattern)))
	}
	return fmt.Sprintf(`{"patternProperties": {%s}}`, strings.Join(all, ", "))
}

// The limits of a schema are checked when its document is applied, and again when a definition that was stored before is read.
func TestSchemaBounds(t *testing.T) {
	t.Parallel()
	const again = "refers to itself at the same value"
	const paths = "more than 10000 paths"
	for name, c := range map[string]struct{ schema, want string }{
		"itself":               {`{"$ref": "#"}`, again},
		"itself by two":        {`{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}`, again},
		"itself by allOf":      {`{"allOf": [{"$ref": "#"}]}`, again},
		"itself by anyOf":      {`{"anyOf": [{"type": "string"}, {"$ref": "#"}]}`, again},
		"itself by oneOf":      {`{"oneOf": [{"type": "string"}, {"$ref": "#"}]}`, again},
		"itself by not":        {`{"not": {"$ref": "#"}}`, again},
		"itself by if":         {`{"if": {"$ref": "#"}}`, again},
		"itself by else":       {`{"if": {"type": "string"}, "else": {"$ref": "#"}}`, again},
		"itself by dependents": {`{"dependentSchemas": {"a": {"$ref": "#"}}}`, again},
		"itself in a member":   {`{"properties": {"a": {"$ref": "#/properties/a"}}}`, again},
		"itself in elements":   {`{"items": {"allOf": [{"$ref": "#/items"}]}}`, again},
		"defaults in a circle": {`{"$defs": {"a": {"default": 1, "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}`, again},
		"a dynamic reference":  {`{"$dynamicAnchor": "a", "properties": {"b": {"$dynamicRef": "#a"}}}`, "$dynamicRef and $recursiveRef are not supported"},
		"anyOf":                {doubled("anyOf", 25), paths},
		"allOf":                {doubled("allOf", 25), paths},
		"oneOf":                {doubled("oneOf", 25), paths},
		"just too many paths":  {doubled("anyOf", 13), paths},
		"a long chain":         {chained(150), "more than 100 schemas refer to one another"},
		"large patterns":       {repeatedPatterns(1200, "(a?){900}"), "is too large"},
		"many patterns":        {repeatedPatterns(2000, "abc"), "is too large"},
		"long repetitions":     {`{"pattern": "a{999}b{999}c{999}d{999}e{999}f{999}"}`, "is too large"},
		"a size of 65 bits":    {`{"properties": {"a": {"maxLength": 18446744073709551616}}}`, "18446744073709551616 is larger"},
		"a huge size":          {`{"anyOf": [{"type": "string"}, {"minItems": 1e300}]}`, "1e+300 is larger than 2147483647"},
		"a default of another type": {`{"properties": {"n": {"type": "integer", "default": "7"}}}`,
			`the default "7" does not fit`},
		"a default by reference": {`{"properties": {"n": {"$ref": "#/$defs/d", "minimum": 5}}, "$defs": {"d": {"default": 1}}}`, "the default 1 does not fit"},
		"a default further in":   {`{"properties": {"a": {"properties": {"n": {"enum": [1, 2], "default": 3}}}}}`, "the default 3 does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := fmt.Sprintf("name: w\ninput: %s\ntasks: {t: {action: noop}}\n", c.schema)
			if _, err := Parse("w.yaml", []byte(source)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("applied: %.300v, want %q", err, c.want)
			}
			if _, err := newSchema(json.RawMessage(c.schema)).validate(nil, "input", nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("stored before: %.300v, want %q", err, c.want)
			}
		})
	}
}

// deep returns a value of n levels, each the member "c" of the one above.
func deep(n int) string { return strings.Repeat(`{"c": `, n) + "1" + strings.Repeat("}", n) }

// The steps of a check are limited by the size of the value, for any combination of schema and value.
func TestCostOfChecks(t *testing.T) {
	t.Parallel()
	tree := `{"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}}}`
	twice := `{"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"c": {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}}}}}`
	members := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"key%d": %d`, i, i))
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	numbers := "[" + strings.Repeat("1, ", 200_000) + "1]"
	const dear = "takes more than"
	for name, c := range map[string]struct{ schema, value, want string }{
		"a tree":                       {tree, `{"children": [{"children": []}, {"children": [{}]}]}`, ""},
		"many numbers":                 {`{"type": "array", "items": {"type": "integer"}}`, numbers, ""},
		"1,000 paths":                  {doubled("anyOf", 9), `7`, ""},
		"two alternatives, few levels": {twice, deep(8), ""},
		"two alternatives, 60 levels":  {twice, deep(60), dear},
		"many paths for many numbers":  {strings.Replace(doubled("anyOf", 11), `{"$ref": "#/$defs/d0",`, `{"items": {"$ref": "#/$defs/d0"},`, 1), numbers, dear},
		"many patterns, many members":  {repeatedPatterns(900, "ab"), members(3_000), dear},
		"a long text and a pattern":    {`{"pattern": "^(a|b|ab){50}$"}`, `"` + strings.Repeat("ab", 500_000) + `"`, dear},
		"texts that are patterns":      {`{"items": {"format": "regex"}}`, `["` + strings.Repeat(`(a?){1000}", "`, 10_000) + `"]`, dear},
		"a large enum":                 {`{"items": {"enum": [` + strings.Repeat(`"x", `, 4000) + `1]}}`, numbers, dear},
		"defaults on many paths": {strings.Replace(doubled("allOf", 11), `{"type": "integer"}`, `{"properties": {"z": {"default": 1}}}`, 1),
			members(50_000), dear},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newSchema(json.RawMessage(c.schema)).validate(json.RawMessage(c.value), "input", nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%.300v, want %q", err, c.want)
			}
		})
	}
}

// inGraphs names the environment variable with which this binary only checks graphs of references: a stack overflow, for which
// TestSchemaGraphs looks, ends the whole process.
const inGraphs = "PAWL_TEST_SCHEMA_GRAPHS"

// Random graphs of $ref, alternatives, defaults and members do not overflow the stack, and take little time and memory.
func TestSchemaGraphs(t *testing.T) {
	if os.Getenv(inGraphs) != "" {
		debug.SetMaxStack(64 << 20)
		if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: mostData, Max: mostData}); err != nil { // beyond it the process ends
			t.Fatal(err)
		}
		for seed := range uint64(3_000) {
			checkGraph(rand.New(rand.NewPCG(seed, 0)))
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.Sys > 400<<20 {
			t.Errorf("%d MB of memory were needed", m.Sys>>20)
		}
		return
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestSchemaGraphs$")
	child.Env = append(os.Environ(), inGraphs+"=1")
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v, %v\n%.3000s", err, ctx.Err(), out)
	}
}

// The refusal of a large value names some of its errors, and takes about as much memory as the value.
func TestRefusalOfLargeValues(t *testing.T) {
	list := func(element string) string { return "[" + strings.Repeat(element+",", 300_000) + element + "]" }
	for name, c := range map[string]struct{ schema, value, want string }{
		"elements":        {`{"items": {"type": "string"}}`, list("1"), "input[0]: got number, want string"},
		"by reference":    {`{"$ref": "#/$defs/l", "$defs": {"l": {"items": {"type": "string"}}}}`, list("1"), "input[0]: got number, want string"},
		"by allOf":        {`{"allOf": [{"items": {"type": "string"}}]}`, list("1"), "input[0]: got number, want string"},
		"by anyOf":        {`{"anyOf": [{"items": {"type": "string"}}, {"type": "null"}]}`, list("1"), "input[0]: got number, want string"},
		"by oneOf":        {`{"oneOf": [{"type": "object"}, {"items": {"type": "string"}}]}`, list("1"), "input[0]: got number, want"},
		"one of anyOf":    {`{"anyOf": [{"type": "string"}, {"items": {"type": "integer"}}]}`, list("1"), ""},
		"further in":      {`{"properties": {"l": {"items": {"items": {"minimum": 2}}}}}`, `{"l": ` + list("[3, 1]") + "}", "input.l[0][1]: "},
		"missing members": {`{"items": {"required": ["a"]}}`, list("{}"), "input[0]: missing property 'a'"},
		"names":           {`{"additionalProperties": {"type": "string"}}`, `{"a": ` + list("1") + "}", "input.a: got array, want string"},
		"the last one":    {`{"items": {"type": "integer"}}`, strings.TrimSuffix(list("1"), "]") + `, "x"]`, "input[300001]: got string, want integer"},
		"older drafts":    {`{"$schema": "http://json-schema.org/draft-07/schema#", "items": {"type": "string"}}`, list("1"), "input[0]: got number, want string"},
		"the list itself": {`{"maxItems": 3}`, list("1"), "input: maxItems: got 300,001, want 3"},
		"a right one":     {`{"items": {"type": "integer"}}`, list("1"), ""},
	} {
		s, value := newSchema(json.RawMessage(c.schema)), json.RawMessage(c.value)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := s.validate(value, "input", nil)
		runtime.ReadMemStats(&after)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %.200v, want %q", name, err, c.want)
		}
		var ps Problems
		if errors.As(err, &ps) && len(ps) > mostMistakes {
			t.Errorf("%s: %d problems are named", name, len(ps))
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; strings.Contains(c.want, "[0]: ") && took > 120 {
			t.Errorf("%s: the refusal took %d MB", name, took)
		}
	}
}

// FuzzSchemaGraph is TestSchemaGraphs for the fuzzer, which runs it in separate processes.
func FuzzSchemaGraph(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { checkGraph(rand.New(rand.NewPCG(a, b))) })
}

// checkGraph makes a graph of up to twelve schemas, compiles it and checks values with it. It succeeds if it returns.
func checkGraph(r *rand.Rand) {
	n := 1 + r.IntN(12)
	reference := func() string { return fmt.Sprintf(`{"$ref": "#/$defs/d%d"}`, r.IntN(n)) }
	var defs []string
	for i := range n {
		parts := []string{}
		for range 1 + r.IntN(3) {
			switch r.IntN(9) {
			case 0:
				parts = append(parts, `"$ref": "#/$defs/d`+fmt.Sprint(r.IntN(n))+`"`)
			case 1, 2, 3:
				keyword := []string{"allOf", "anyOf", "oneOf"}[r.IntN(3)]
				parts = append(parts, fmt.Sprintf(`%q: [%s, %s]`, keyword, reference(), reference()))
			case 4:
				parts = append(parts, `"not": `+reference())
			case 5:
				parts = append(parts, `"default": {"c": 1}`)
			case 6:
				parts = append(parts, `"items": `+reference())
			case 7:
				parts = append(parts, `"if": `+reference()+`, "then": `+reference())
			case 8:
				parts = append(parts, `"properties": {"c": `+reference()+`, "b": `+reference()+`}`)
			}
		}
		taken := map[string]bool{}
		var kept []string
		for _, p := range parts {
			if key := strings.SplitN(p, ":", 2)[0]; !taken[key] {
				taken[key] = true
				kept = append(kept, p)
			}
		}
		defs = append(defs, fmt.Sprintf(`"d%d": {%s}`, i, strings.Join(kept, ", ")))
	}
	s := newSchema(json.RawMessage(`{"$ref": "#/$defs/d0", "$defs": {` + strings.Join(defs, ", ") + `}}`))
	for _, value := range []string{"", "{}", `[[[[]]]]`, deep(100), strings.Repeat("[", 60) + strings.Repeat("]", 60)} {
		_, _ = s.validate(json.RawMessage(value), "input", nil)
	}
}
