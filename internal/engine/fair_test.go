package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const sharedFairly = `
name: convert
action: noop
concurrency: {key: converters, limit: 1, fair_by: "${{ input.by }}"}
---
name: double
action: noop
concurrency: {key: converters, limit: 1, fair_by: "${{ input.by }}", weight: 2}
`

// Those who wait for a key take turns by their weights, however many executions each has waiting, within a priority;
// the turns begin anew when nobody waits.
func TestFairLine(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(sharedFairly)
		w := r.worker()
		submit := func(action, by string, priority int) {
			r.submit(Submission{Action: action, Input: []byte(fmt.Sprintf(`{"by":%q}`, by)), Priority: &priority})
		}
		serve := func(n int) string {
			r.Helper()
			var order []string
			for range n {
				a := w.take(1)
				if len(a) != 1 {
					r.Fatalf("after %v there are %d", order, len(a))
				}
				by := strings.Split(string(r.get(a[0].Execution).Input), `"`)[3]
				order = append(order, by)
				w.complete(a[0], "1")
			}
			return strings.Join(order, " ")
		}
		submit("convert", "ada", 0) // holds the key
		for range 5 {
			submit("convert", "ada", 0)
		}
		for range 2 {
			submit("convert", "bob", 0)
		}
		for range 4 {
			submit("double", "eve", 0)
		}
		submit("convert", "zoe", 10)
		for _, want := range []string{"ada", "zoe", "ada bob eve", "eve", "ada bob eve", "eve", "ada", "ada", "ada"} { // whose turns are at the same time go in any order
			turn := strings.Fields(serve(len(strings.Fields(want))))
			slices.Sort(turn)
			if got := strings.Join(turn, " "); got != want {
				r.Errorf("served %s, want %s", got, want)
			}
		}
		// The line has been empty: what ada had before counts no more.
		submit("convert", "ada", 0)
		submit("convert", "ada", 0)
		submit("convert", "bob", 0)
		if got := serve(3); got != "ada ada bob" && got != "ada bob ada" {
			r.Errorf("served %s", got)
		}
		r.verify()
		if _, err := r.e.dropOld(r.ctx, store.OldShares); err != nil {
			r.Error(err)
		}
	})
}

// Tasks of workflows and lines without fair_by go as they did.
func TestFairTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: w\ninput: {type: object}\ntasks:\n  a: {action: noop, concurrency: {key: k, limit: 1, fair_by: '${{ input.by }}', weight: 3}}\n  b: {action: noop, concurrency: {key: plain, limit: 1}}\n")
	w := r.submit(Submission{Action: "w", Input: []byte(`{"by":"ada"}`)})
	if x := r.get(r.child(w, "a", 0)); x.Fair != (flow.Fair{By: "ada", Weight: 3}) {
		t.Errorf("%+v", x.Fair)
	}
	if x := r.get(r.child(w, "b", 0)); x.Fair != (flow.Fair{}) {
		t.Errorf("%+v", x.Fair)
	}
}
