package definition

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// costly is an expression that takes about a tenth of a second and is allowed.
const costly = `${{ input.l.map(a, input.l.map(b, a + b)).size() }}`

func costlyVars() *Vars {
	return &Vars{Input: []byte(`{"l": [` + strings.Repeat("1, ", 230) + `1]}`)}
}

// Each expression is limited, and so are all expressions of a value together: their work is counted, so a template of 10,000 ends after the
// number that the limit allows.
func TestManyExpressionsOfOneValue(t *testing.T) {
	t.Parallel()
	var parts []string
	for i := range 10_000 {
		parts = append(parts, fmt.Sprintf("    m%d: %q\n", i, costly))
	}
	defs, err := Parse("w.yaml", []byte("name: w\ninput: {type: object}\ntasks:\n  t:\n   action: noop\n   with:\n"+strings.Join(parts, "")))
	if err != nil {
		t.Fatal(err)
	}
	with := defs[0].Workflow.Tasks[0].With
	v := costlyVars()
	began := time.Now()
	_, err = with.Eval(v)
	if err == nil || !strings.Contains(err.Error(), "more than 2000000 operations together") {
		t.Errorf("without a count: %.200v", err)
	}
	v.Work = &Work{}
	for i := range 2 { // the limit applies to each evaluation
		before := v.Work.Done
		_, err = with.Eval(v)
		if err == nil || !strings.Contains(err.Error(), "more than 5000000 operations together") {
			t.Errorf("%.200v", err)
		}
		if took := v.Work.Done - before; took < maxTemplateWork || took > maxTemplateWork+1_100_000 {
			t.Errorf("evaluation %d took %d operations", i, took)
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("three evaluations took %v", took)
	}
}

// The templates of one task share a limit. Each of these takes three million operations: only the first is within it.
func TestTemplatesOfOneTaskAreBoundedTogether(t *testing.T) {
	t.Parallel()
	defs, err := Parse("w.yaml", fmt.Appendf(nil, "name: w\ninput: {type: object}\ntasks: {t: {action: noop, with: {v: [%s]}}}\n",
		strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%q, ", costly), 3), ", ")))
	if err != nil {
		t.Fatal(err)
	}
	with, v := defs[0].Workflow.Tasks[0].With, costlyVars()
	v.Work = &Work{}
	v.Work.Together()
	if _, err := with.Eval(v); err != nil {
		t.Fatalf("the first, after %d: %v", v.Work.Done, err)
	}
	first := v.Work.Done
	if first < maxTemplateWork/3 || v.Work.Left() != maxTemplateWork-first {
		t.Fatalf("the first has taken %d, and %d are left", first, v.Work.Left())
	}
	for range 3 {
		_, err = with.Eval(v)
	}
	if err == nil || !strings.Contains(err.Error(), "more than 5000000 operations together") || v.Work.Done > maxTemplateWork+4*1_100_000 {
		t.Errorf("after %d: %v", v.Work.Done, err)
	}
	v.Work.Together()
	if _, err := with.Eval(v); err != nil {
		t.Errorf("of the next task: %v", err)
	}
}

// Work that takes time is counted: a lookup of a path in megabytes counts in proportion to them.
func TestWorkOfPaths(t *testing.T) {
	t.Parallel()
	defs, err := Parse("w.yaml", []byte("name: w\ninput: {type: object}\ntasks: {t: {action: noop, with: {a: \"${{ input.z }}\", b: \"${{ input.z }}\"}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	v := &Vars{Input: []byte(`{"a": "` + strings.Repeat("x", 1<<20) + `", "z": 1}`), Work: &Work{}}
	if _, err := defs[0].Workflow.Tasks[0].With.Eval(v); err != nil {
		t.Fatal(err)
	}
	if v.Work.Done < 2*(1<<20)/bytesPerOperation {
		t.Errorf("two paths through 1 MB took %d operations", v.Work.Done)
	}
}
