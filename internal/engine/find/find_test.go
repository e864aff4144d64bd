package find_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/enginetest"
	"github.com/pawl-run/pawl/internal/engine/find"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// found pages through the executions that meet a condition, oldest first, and returns their inputs' n.
func found(r *enginetest.Rig, text string, f store.Filter) (labels []string, pages int) {
	r.Helper()
	q, err := r.Engine.Finder().Query(r.Ctx, text, time.Now())
	if err != nil {
		r.Fatalf("%s: %v", text, err)
	}
	for {
		pages++
		got, err := r.Engine.Finder().Find(r.Ctx, f, q)
		if err != nil {
			r.Fatalf("%s: %v", text, err)
		}
		for _, x := range got.Executions {
			labels = append([]string{x.Labels["n"]}, labels...)
		}
		switch {
		case !got.Searched.IsZero():
			f.Before = got.Searched
		case len(got.Executions) == f.Limit:
			f.Before = got.Executions[len(got.Executions)-1].ID
		default:
			return labels, pages
		}
	}
}

const searched = `
name: order
searchable: [input.customer, output.score, "input.items[0].id"]
action: noop
`

func TestFind(t *testing.T) {
	t.Parallel()
	enginetest.OnEachStore(t, func(r *enginetest.Rig) {
		r.Define(searched)
		r.Define("name: plain\naction: noop\n")
		r.Worker().Serve(func(a handoff.Assignment) (string, *flow.Error) {
			if strings.Contains(string(a.Payload), "bad") {
				return "", &flow.Error{Code: "boom", Message: "boom"}
			}
			return `{"score": 0.5, "secret": 1}`, nil
		})
		for i, in := range []struct{ action, input, team string }{
			{"order", `{"customer": "a", "items": [{"id": 7}]}`, "docs"}, {"order", `{"customer": "b", "items": [{"id": "8"}]}`, "web"}, {"order", `{"customer": "a", "bad": true}`, "docs"},
			{"plain", `{"customer": "a"}`, "docs"}, {"noop", `{"bad": 1}`, ""}, {"noop", `{}`, "web"},
		} {
			s := engine.Submission{Action: in.action, Input: json.RawMessage(in.input), Labels: map[string]string{"n": fmt.Sprint(i)}}
			if in.team != "" {
				s.Labels["team"] = in.team
			}
			r.Ended(r.Submit(s))
		}
		open := r.Submit(engine.Submission{Action: "sleep", Input: json.RawMessage(`{"for": "1h"}`), Labels: map[string]string{"n": "6"}})
		for text, want := range map[string]string{
			"label.team = docs":                               "[0 2 3]",
			"label.team = docs and status = failed":           "[2]",
			"label.team != docs":                              "[1 4 5 6]",
			"label.team not exists":                           "[4 6]",
			"label.team in (docs, web) and version = 1":       "[0 1 2 3]",
			"input.customer = a":                              "[0 2]", // plain does not declare it
			"input.customer in (a, b) and status = completed": "[0 1]",
			"output.score >= 0.5 or error = boom":             "[0 1 2 4]",
			"input.items[0].id = 7":                           "[0]",
			`input.items[0].id = "7"`:                         "[]", // a quoted value is a text
			`input.items[0].id = "8"`:                         "[1]",
			`input.items[0].id in ("7", x)`:                   "[]",
			`input.items[0].id < "8"`:                         "[0]",
			"input.items[0].id >= 7":                          "[0 1]", // the second is a text
			`input.items[0].id in ("7", 8)`:                   "[1]",
			"action = order and input.customer not exists":    "[]",
			"status = failed and created > -7d and input.customer in (a, b) and label.team = docs": "[2]",
			"finished not exists": "[6]",
			"kind = sleep":        "[6]",
			"created < -1d":       "[]",
			"created > -1d and not (label.team = docs or action = noop)": "[1 6]",
			"error = boom and label.team exists":                         "[2]",
			"status = running and status = failed":                       "[]",
		} {
			for _, f := range []store.Filter{{Limit: 100}, {Limit: 2}, {Limit: 1, Reach: 2}, {Limit: 100, Reach: 3}} {
				if got, _ := found(r, text, f); fmt.Sprint(got) != want {
					r.Errorf("%s with %+v: %v, want %s", text, f, got, want)
				}
			}
		}
		for say, c := range map[string]struct {
			f    store.Filter
			text string
			want string
		}{
			"another filter":   {store.Filter{Stages: []flow.Stage{flow.Completed}}, "label.team = docs and version exists", "[0 3]"},
			"none of both":     {store.Filter{Stages: []flow.Stage{flow.Completed}}, "status = failed", "[]"},
			"another action":   {store.Filter{Action: "order"}, "action = plain", "[]"},
			"another label":    {store.Filter{Labels: map[string]string{"team": "docs"}}, "label.team = web", "[]"},
			"one more label":   {store.Filter{Labels: map[string]string{"team": "docs"}}, "label.n = 0", "[0]"},
			"another verdict":  {store.Filter{Verdicts: []string{store.VerdictOK}}, "error = boom", "[]"},
			"the same verdict": {store.Filter{Verdicts: []string{store.VerdictOK, "boom"}}, "error = boom", "[2 4]"},
			"a later time":     {store.Filter{Since: time.Now().Add(time.Hour)}, "created > -1d", "[]"},
		} {
			c.f.Limit = 100
			if got, _ := found(r, c.text, c.f); fmt.Sprint(got) != c.want {
				r.Errorf("%s: %v, want %s", say, got, c.want)
			}
		}
		for text, want := range map[string]string{
			"input.custmer = a":                     `1:1: no definition declares input.custmer searchable (did you mean "input.customer"?)`,
			"action = plain and input.customer = a": "1:20: no definition of plain declares input.customer searchable (add searchable: [input.customer] to the definition, and apply it)",
			"output.secret = 1":                     "1:1: no definition declares output.secret searchable",
			"status = faild":                        `did you mean "failed"?`,
		} {
			if _, err := r.Engine.Finder().Query(r.Ctx, text, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
				r.Errorf("%s: %v, want %s", text, err, want)
			}
		}
		if _, err := r.Engine.Cancel(r.Ctx, open, ""); err != nil {
			r.Fatal(err)
		}
	})
}

// A worker is found by its name while it holds something.
func TestFindByWorker(t *testing.T) {
	t.Parallel()
	r := enginetest.OnSQLite(t)
	w := r.Worker()
	r.Submit(engine.Submission{Action: "noop", Labels: map[string]string{"n": "held"}})
	a := w.Take(1)[0]
	r.Submit(engine.Submission{Action: "noop", Labels: map[string]string{"n": "waits"}})
	sessions, err := r.Store.LiveSessions(r.Ctx)
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%v %v", sessions, err)
	}
	for text, want := range map[string]string{
		"worker = " + sessions[0].Name: "[held]", "worker = nobody": "[]", "worker != nobody": "[held waits]", "worker not exists": "[waits]",
	} {
		if got, _ := found(r, text, store.Filter{Limit: 10}); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	w.Complete(a, "{}")
}

// One page reads the inputs of a bounded number of executions, and the next page continues there.
func TestFindReadsSoManyInputs(t *testing.T) {
	t.Parallel()
	r := enginetest.OnSQLite(t)
	r.Define(searched)
	const n = find.MembersReach + 150
	subs := make([]engine.Submission, n)
	for i := range subs {
		subs[i] = engine.Submission{Action: "order", Input: json.RawMessage(`{"customer": "x"}`), Labels: map[string]string{"n": fmt.Sprint(i)}}
	}
	subs[0].Input = json.RawMessage(`{"customer": "wanted"}`)
	if _, err := r.Engine.Submit(r.Ctx, subs); err != nil {
		t.Fatal(err)
	}
	q, err := r.Engine.Finder().Query(r.Ctx, "input.customer = wanted", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.Engine.Finder().Find(r.Ctx, store.Filter{Limit: 10, Reach: 40_000}, q)
	if err != nil || len(first.Executions) > 0 || first.Searched.IsZero() || first.At.IsZero() {
		t.Fatalf("%+v %v", first, err)
	}
	if got, pages := found(r, "input.customer = wanted", store.Filter{Limit: 10, Reach: 40_000}); fmt.Sprint(got) != "[0]" || pages != 2 {
		t.Errorf("%v in %d pages", got, pages)
	}
}
