package definition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	b.Run("every field", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Parse("c.yaml", []byte(complete)); err != nil {
				b.Fatal(err)
			}
		}
	})
	var doc strings.Builder
	doc.WriteString("name: w\ntasks:\n  t0: {action: noop}\n")
	for i := 1; i < 1000; i++ {
		fmt.Fprintf(&doc, "  t%d:\n    action: noop\n    needs: [t%d]\n    with: {x: \"${{ tasks.t%d.output.x }}\", y: %d}\n", i, i-1, i-1, i)
	}
	b.Run("1000 tasks", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse("c.yaml", []byte(doc.String())); err != nil {
				b.Fatal(err)
			}
		}
	})
	defs, err := Parse("c.yaml", []byte(complete))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Decode(defs[0].Canonical()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if e := newCompiled("input.n > 1 && size(input.list) == 3", scopeIf); e.compiles() != nil {
			b.Fatal(e.issues)
		}
	}
}

func (e *compiled) compiles() []issue {
	e.compile()
	return e.issues
}

func BenchmarkEval(b *testing.B) {
	list := make([]json.RawMessage, 10_000)
	for i := range list {
		list[i] = json.RawMessage(fmt.Sprintf(`{"name": "s%d", "score": %d, "stdout": "some output of it", "verdict": "ok"}`, i, i%100))
	}
	fresh := func() *Vars {
		v := testVars()
		v.shared = nil
		task := v.Task
		v.Task = func(name string) *Result {
			if name == "wide" {
				return &Result{Status: StatusCompleted, Items: list}
			}
			return task(name)
		}
		return v
	}
	for _, text := range []string{
		"input.n", "(input.n)", "tasks.a.output.x", "(tasks.a.output.x)", "input.n + 1", "input.deep.a[0].b",
		"tasks.wide.output", "tasks.wide.output[9999].name", "sum(tasks.wide.output.map(o, o.score))",
		"tasks.wide.output.filter(o, o.verdict == 'ok').sortBy(o, o.score).map(o, o.name)",
	} {
		e := &expression{field: "f", compiled: newCompiled(text, scopeItem)}
		if e.compile(); len(e.issues) > 0 {
			b.Fatal(e.issues)
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.eval(fresh()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
