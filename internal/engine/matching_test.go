package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

const endBook = `name: deploy
action: noop
---
name: tell
action: noop
---
name: count
action: noop
---
kind: rule
name: tell-failures
on: execution.ended
if: signal.data.action == "deploy" && signal.data.status != "completed"
run: {action: tell, input: {what: "${{ signal.data.error.message }}", of: "${{ signal.subject }}"}}
---
kind: rule
name: count-team
on: execution.ended
if: signal.data.labels.team == "x"
run: {action: count, input: {output: "${{ signal.data.output }}"}}
`

// of waits until there are n executions of an action.
func (r *rig) of(action string, n int) []*flow.Execution {
	r.Helper()
	var all []*flow.Execution
	r.within(patience, fmt.Sprintf("there are not %d executions of %s", n, action), func() bool {
		var err error
		if all, err = store.List(r.ctx, r.store, store.Filter{Action: action, Limit: 100}); err != nil {
			r.Fatal(err)
		}
		return len(all) >= n
	})
	if len(all) != n {
		r.Errorf("%d executions of %s, want %d", len(all), action, n)
	}
	return all
}

// An end to which a rule listens is recorded with a signal, and the rule runs once; other ends make no signal.
func TestEndsAsSignals(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply(endBook)
		h := r.worker()
		deploy := r.submit(Submission{Action: "deploy", Labels: map[string]string{"team": "x"}})
		other := r.submit(Submission{Action: "noop"})
		for _, a := range h.take(2) {
			if a.Execution == deploy {
				h.fail(a, "broken")
			} else {
				h.complete(a, "1")
			}
		}
		told := r.get(r.of("tell", 1)[0].ID)
		if string(told.Input) != `{"of":"deploy","what":"broken"}` || strings.Join(told.Rules, " ") != "tell-failures" {
			r.Errorf("%s %v", told.Input, told.Rules)
		}
		r.of("count", 1)
		all, err := r.store.Signals(r.ctx, store.SignalFilter{Limit: 10})
		if err != nil || len(all) != 1 {
			r.Fatalf("%d signals, %v", len(all), err)
		}
		s := all[0]
		if s.Trigger != flow.TriggerEnded || s.Key != deploy.String() || s.Cause != deploy || s.Source != flow.SourceExecution || s.Generation == 0 || s.State != flow.SignalMatched {
			r.Errorf("%+v (other %s)", s, other)
		}
		for _, name := range []string{"created_at", "finished_at"} {
			var data map[string]any
			if err := json.Unmarshal(s.Data, &data); err != nil || len(fmt.Sprint(data[name])) != len("2026-11-21T08:00:00.000000Z") {
				r.Errorf("%s of %s, %v", name, s.Data, err)
			}
		}
		if got, want := r.enforced(s.ID), "count-team ran, tell-failures ran"; got != want {
			r.Errorf("enforced %q, want %q", got, want)
		}
	})
}

// A rule on any failure runs for each, except for failures of executions that it has started itself.
func TestAnyFailure(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply("name: page\naction: noop\n---\nkind: rule\nname: on-call\non: execution.ended\nif: signal.data.status == \"failed\"\n" +
			"run: {action: page, input: {of: '${{ signal.data.action }}'}}\n")
		h := r.worker()
		broken := r.submit(Submission{Action: "noop"})
		r.submit(Submission{Action: "noop"})
		for _, a := range h.take(2) {
			if a.Execution == broken {
				h.fail(a, "broken")
			} else {
				h.complete(a, "1")
			}
		}
		if told := r.get(r.of("page", 1)[0].ID); string(told.Input) != `{"of":"noop"}` {
			r.Errorf("%s", told.Input)
		}
		h.fail(h.take(1)[0], "broken too")
		r.within(patience, "the rule was not asked about its own failure", func() bool {
			all, err := r.store.Signals(r.ctx, store.SignalFilter{Limit: 10})
			return err == nil && len(all) == 2 && all[0].State == flow.SignalMatched
		})
		r.of("page", 1)
	})
}

// Executions of rules carry the chain, so rules that start one another end.
func TestEndlessRules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply("name: a\naction: noop\n---\nname: b\naction: noop\n---\nkind: rule\nname: ping\non: execution.ended\nif: signal.data.action == \"a\"\nreentry: allow\ndepth: 3\nrun: {action: b}\n" +
		"---\nkind: rule\nname: pong\non: execution.ended\nif: signal.data.action == \"b\"\nrun: {action: a}\n")
	h := r.worker()
	r.submit(Submission{Action: "a"})
	for range 4 { // a, b by ping, a by pong, b by ping; pong is refused then
		h.complete(h.take(1)[0], "1")
	}
	r.within(patience, "nothing was refused", func() bool {
		all, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{State: flow.EnforcementRefused, Limit: 10})
		return err == nil && len(all) == 1 && all[0].Rule == "pong" && all[0].Reason.Code == flow.ReasonLoop && strings.Contains(all[0].Reason.Message, "ping → pong → ping → pong")
	})
}

// Signals that a server stored as new before it ended are matched by another one, under the rules of their time.
func TestNewSignalsOfAnotherLife(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply("kind: rule\nname: a\non: t\nrun: {action: noop, input: {v: 1}}\n")
		generation := r.e.rules.current.Load().Generation
		if err := r.e.PauseRule(r.ctx, "a", ""); err != nil {
			r.Fatal(err)
		}
		kept, err := inBatch(r.ctx, r.e, nil, func(ctx context.Context, tx *transaction) (flow.Signal, error) {
			s := flow.Signal{ID: r.e.opts.NewID(), Trigger: "t", Source: flow.SourceAPI, State: flow.SignalNew, Data: json.RawMessage(`{}`), Hash: [32]byte{1}, SignalDetail: flow.SignalDetail{Generation: generation}}
			return s, tx.keepSignal(ctx, &s)
		})
		if err != nil {
			r.Fatal(err)
		}
		r.within(patience, "it was not matched", func() bool { return r.signal(kept.ID).State == flow.SignalMatched })
		if got, want := r.enforced(kept.ID), "a ran"; got != want {
			r.Errorf("enforced %q, want %q", got, want)
		}
	})
}

// A server that was idle decides about its first end with the rules that another one has put in force meanwhile.
func TestEndOnIdleReplica(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t)
	other := r.replica(func(o *Options) { o.Uptime = nil })
	r.apply(endBook)
	r.e.Settle(r.ctx)
	id := r.submit(Submission{Action: "deploy", Labels: map[string]string{"team": "x"}})
	if _, err := other.Cancel(r.ctx, id, ""); err != nil {
		t.Fatal(err)
	}
	r.of("count", 1)
}

// Two servers that match the same signals at once start one execution for each.
func TestMatchingReplicas(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t)
	other := r.replica(func(o *Options) { o.Uptime = nil })
	r.apply(endBook)
	r.e.Settle(r.ctx)
	h := r.worker()
	const n = 30
	for range n {
		r.submit(Submission{Action: "deploy", Labels: map[string]string{"team": "x"}})
	}
	for done := 0; done < n; {
		for _, a := range h.take(10) {
			if r.get(a.Execution).Action == "deploy" {
				done++
			}
			h.complete(a, "1")
			other.rules.wakeMatching()
		}
	}
	r.of("count", n)
	if left, err := r.store.NewSignals(r.ctx, time.Now(), store.SignalPlace{}, 10); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A signal whose executions the store refuses does not affect others: its rules have failed, with the reason.
func TestMatchingBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	isolated(t, func(r *rig, s *refusing) {
		r.apply("name: x\naction: noop\n---\nname: y\naction: noop\n---\nkind: rule\nname: a\non: execution.ended\nif: signal.data.action == \"x\"\nrun: {action: y, labels: {from: a}, input: {of: '${{ signal.data.labels.n }}'}}\n")
		s.set(func(d *flow.Draft) bool { return d.Action == "y" && string(d.Input) == `{"of":"3"}` })
		h := r.worker()
		for i := range 6 {
			r.submit(Submission{Action: "x", Labels: map[string]string{"n": fmt.Sprint(i)}})
		}
		for done := 0; done < 6; {
			for _, a := range h.take(10) {
				h.complete(a, "1")
				if r.get(a.Execution).Action == "x" {
					done++
				}
			}
		}
		r.of("y", 5)
		r.within(patience, "the refused one has not failed", func() bool {
			all, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{State: flow.EnforcementFailed, Limit: 10})
			return err == nil && len(all) == 1 && strings.Contains(all[0].Reason.Message, "planted")
		})
	})
}
