package automation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

const gathering = `kind: rule
name: many
on: t
batch: {key: "${{ signal.subject }}", size: 3, wait: 1m, bytes: 20}
run: {action: noop, input: {all: "${{ signals }}", n: "${{ size(signals) }}", first: "${{ signals[0].data.n }}"}, concurrency: {key: "k:${{ signals[0].subject }}"}}
---
kind: rule
name: quiet
on: t
debounce: {key: k, quiet: 10s, at_most: 30s, keep: all}
run: {action: noop, input: "${{ signals[1].data }}"}
`

func TestClosesAt(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, gathering)
	opened := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		rule  int
		after time.Duration // since it was opened
		n     int
		bytes int64
		want  time.Duration
	}{
		{0, 0, 1, 5, time.Minute}, {0, 50 * time.Second, 2, 19, time.Minute}, {0, time.Second, 3, 5, time.Second}, {0, time.Second, 1, 20, time.Second}, {0, time.Second, 1, 1 << 20, time.Second},
		{1, 0, 1, 5, 10 * time.Second}, {1, 5 * time.Second, 2, 5, 15 * time.Second}, {1, 25 * time.Second, 3, 5, 30 * time.Second},
		{1, time.Second, 1000, 5, time.Second}, {1, time.Second, 2, 1 << 20, time.Second},
	} {
		if got := ClosesAt(rules[c.rule].Window, opened, opened.Add(c.after), c.n, c.bytes).Sub(opened); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	last := rulesOf(t, "kind: rule\nname: last\non: t\ndebounce: {key: k, quiet: 10s}\nrun: {action: noop}\n")[0]
	if got := ClosesAt(last.Window, opened, opened, 2, 1<<30).Sub(opened); got != 10*time.Second {
		t.Errorf("the bytes of signals that are not gathered count: %s", got)
	}
}

func held(t *testing.T, data ...string) (all []flow.Signal) {
	t.Helper()
	for i, d := range data {
		s := signalOf("t", d)
		s.ID, s.Number = flow.ID{byte(i + 1)}, int64(i+1)
		all = append(all, *s)
	}
	return all
}

func TestPortion(t *testing.T) {
	t.Parallel()
	w := rulesOf(t, gathering)[0].Window
	for data, want := range map[string]int{
		`1`: 1, `1 2 3`: 3, `1 2 3 4`: 3, `"aaaaaaaa" "aaaaaaaa"`: 2, `"aaaaaaaa" "aaaaaaaa" 1`: 2, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaa" 1`: 1, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaa"`: 1,
	} {
		if got := Portion(w, held(t, strings.Fields(data)...)); got != want {
			t.Errorf("%s: %d, want %d", data, got, want)
		}
	}
}

func TestGather(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, gathering)
	all := held(t, `{"n":7}`, `{"n":8}`)
	all[1].Rules = []string{"x", "y"}
	for i := range all {
		v, holds, err := MatchRule(rules[0], &all[i], nil)
		if err != nil || !holds || v.State != flow.EnforcementBuffered || v.Window != "s" || v.Input != nil {
			t.Fatalf("%+v %t %v", v, holds, err)
		}
	}
	v, err := Gather(rules[0], all, nil)
	if err != nil || v.State != flow.EnforcementRan || v.Key != "k:s" || fmt.Sprint(v.Chain) != "[x y many]" {
		t.Errorf("%+v %v", v, err)
	}
	for _, want := range []string{`"n":2`, `"first":7`, `"data":{"n":7}`, `"data":{"n":8}`, `"subject":"s"`} {
		if !strings.Contains(string(v.Input), want) {
			t.Errorf("%s has no %s", v.Input, want)
		}
	}
	v, err = Gather(rules[1], all[:1], nil)
	if err != nil || v.State != flow.EnforcementFailed || v.Reason.Code != flow.ReasonInput || v.Reason.Path != "run.input" {
		t.Errorf("%+v %v", v, err)
	}
	if reason := Guard(rules[0], []string{"many"}); reason == nil || reason.Code != flow.ReasonLoop {
		t.Errorf("%+v", reason)
	}
}
