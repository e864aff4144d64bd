package definition

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// FuzzParse checks that an accepted document survives its canonical form, and that the message of a refusal can be shown.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		complete,
		"name: w\ntasks: {a: {action: noop}}\n",
		`{"name": "w", "tasks": {"a": {"action": "noop", "with": {"x": "${{ input.y }}"}}}}`,
		"name: w\ntasks: {a: {action: noop, needs: [b]}, b: {action: noop, needs: [a]}}\n",
		"a: &a [*a]\n", "name: x\naction: code\n---\nname: y\nhandler: z\n", "{{{{", "? [a]\n: b\n", "<<: {name: w}\n", "name: !!binary aGk=\n",
		"name: w\ninput: {type: object, properties: {a: {default: 1}}}\ntasks: {a: {action: noop, if: 'x ${{', foreach: [1], batch: 2}}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var defs []*Definition
		var problems Problems
		if took := spent(t, func() { defs, problems = Examine("f.yaml", src) }); took > 5*slack*time.Second {
			t.Errorf("%d bytes take %s", len(src), took)
		}
		for _, d := range defs {
			d.References()
			d.QueueRefs()
			d.Awaited()
		}
		if err := problems.Sorted(); len(problems) > 0 {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("the error is not UTF-8: %q", err)
			}
			return
		}
		for _, d := range defs {
			if !json.Valid(d.Canonical()) {
				t.Fatalf("the canonical form is not JSON: %s", d.Canonical())
			}
			again, err := Decode(d.Canonical())
			if err != nil {
				t.Fatalf("decode %s: %v", d.Canonical(), err)
			}
			if again.Hash() != d.Hash() {
				t.Fatalf("%s comes back as %s", d.Canonical(), again.Canonical())
			}
			if parsed, err := Parse("f.json", d.Canonical()); err != nil || parsed[0].Hash() != d.Hash() {
				t.Fatalf("parse %s: %v", d.Canonical(), err)
			}
		}
	})
}

// FuzzExpression evaluates every expression that compiles: it ends soon and gives JSON.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{
		"input.n + 1", "tasks.a.output.x", `tasks["load-data"].error.code`, "input.list.map(x, x * 2).sort()", "default(input.absent, 'x')",
		"'%s %d %5.2f'.format([input, 1, 2.5])", "input.?deep.?a[?0]", "json(parse_json('[1, 2]'))", "lists.range(100).map(a, lists.range(100))",
		"[input, input].distinct() == [input]", "'a,b'.split(',').join('-')", "sets.contains([1], [1.0])", "input.s.replace('t', 'ttt').lastIndexOf('t')",
		"timestamp('2026-01-01T00:00:00Z') + duration('1h')", "tasks.map(k, tasks[k].status)", "input.list.sortBy(x, -x)", "-9223372036854775808 / -1",
		"item.name.matches('(a|b)+')", "cel.bind(x, input.n, x + x)", "input.deep.transformMap(k, v, k)", "b'\\xff'", "1.0 / 0.0", "optional.none()",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := &expression{field: "f", compiled: newCompiled(text, scopeItem)}
		var raw json.RawMessage
		var err error
		took := spent(t, func() {
			if e.compile(); len(e.issues) == 0 {
				raw, err = e.eval(testVars())
			}
		})
		if len(e.issues) > 0 {
			return
		}
		if took > 2*slack*time.Second {
			t.Errorf("%q takes %s", text, took)
		}
		if err == nil && !json.Valid(raw) {
			t.Errorf("%q gives %q", text, raw)
		}
		v := testVars()
		v.Success = true
		c := &Condition{expr: &expression{field: "if", compiled: newCompiled(text, scopeIf)}}
		if c.expr.compile(); len(c.expr.issues) == 0 {
			_, _ = c.Eval(v) // an error is fine; it only has to end
		}
	})
}

// FuzzJSON compares our JSON reader with the standard library's.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,-0,1e9,"x\u0000\ud800",true,false,null]}`, `[`, `"\`, `{"a":1,"a":2}`, "\"\x01\"", `01`, `1.`, ` 1 `, `[1,]`, `{,}`, `nul`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		val, err := jsonvalue.Decode(raw)
		valid := json.Valid(raw)
		if err == nil && len(raw) > 0 && !valid {
			t.Errorf("%q is accepted as %v", raw, val)
		}
		if _, _, err := strictjson.Member(raw, "a"); err == nil && valid && jsonvalue.KindOf(raw) != "object" {
			t.Errorf("%q has a member", raw)
		}
	})
}
