package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func (r *rig) whySignal(id flow.ID, rule string) string {
	r.Helper()
	all, _, err := r.e.WhySignal(r.ctx, id, rule)
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, w := range all {
		out = append(out, fmt.Sprintf("%s@%d %t: %s", w.Rule, w.Version, w.Fired, w.Summary))
	}
	return strings.Join(out, "\n")
}

// WhySignal uses the rules as they were when the signal came.
func TestWhySignal(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply(ruleBook)
		v := r.emit(Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"id":"1","host":"db1"}`)})
		want := func(rule, say string) {
			r.Helper()
			if got := r.whySignal(v.Signal, rule); !strings.Contains(got, say) {
				r.Errorf("%s\nwant %q", got, say)
			}
		}
		want("", "every@1 true: it has started ex_")
		want("", "faulty@1 false: failed (if): ${{ signal.data.count > 3 }}: no such key")
		want("page", `page@1 false: its condition does not hold: signal.data.severity == "page" is false; signal.data.severity is "warn"`)
		r.apply("kind: rule\nname: page\non: other\nrun: {action: noop}\n---\nkind: rule\nname: late\non: alert.fired\nrun: {action: noop}\n")
		want("page", `page@1 false: its condition does not hold`)
		want("late", "late@0 false: it was not in force when the signal came")
		if got := r.whySignal(v.Signal, ""); strings.Contains(got, "late") {
			r.Errorf("%s", got)
		}
		if err := r.e.PauseRule(r.ctx, "late", "too loud"); err != nil {
			r.Fatal(err)
		}
		v = r.emit(Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"id":"2"}`)})
		if err := r.e.ResumeRule(r.ctx, "late"); err != nil {
			r.Fatal(err)
		}
		want("late", "late@1 false: it was paused when the signal came: too loud")
		want("page", "page@2 false: it listens to other, and the signal is alert.fired")
		if _, _, err := r.e.WhySignal(r.ctx, v.Signal, "nobody"); !errors.Is(err, store.ErrNotFound) {
			r.Errorf("%v", err)
		}
		none := r.emit(Emission{Trigger: "unheard"})
		if all, _, err := r.e.WhySignal(r.ctx, none.Signal, ""); err != nil || len(all) != 0 {
			r.Errorf("%+v, %v", all, err)
		}
	})
}

func TestWhyRule(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(ruleBook)
	state := func(name string) string {
		t.Helper()
		_, w, err := r.e.WhyRule(r.ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return w.Summary + "\n" + strings.Join(w.Facts, "\n") + "\n" + fmt.Sprint(w.Unblock)
	}
	if got := state("page"); !strings.Contains(got, "none of the latest signals") {
		t.Error(got)
	}
	for i := range 3 {
		r.emit(Emission{Trigger: "alert.fired", Data: json.RawMessage(fmt.Sprintf(`{"id":"%d","host":"h","severity":"%s"}`, i, []string{"warn", "page", "warn"}[i]))})
	}
	if got := state("page"); !strings.Contains(got, "listens to 3") || !strings.Contains(got, "1 ran") || !strings.Contains(got, `2 not: its condition does not hold: signal.data.severity == "page"`) {
		t.Error(got)
	}
	if got := state("faulty"); !strings.Contains(got, "3 failed") || !strings.Contains(got, "pawl rules retry faulty") {
		t.Error(got)
	}
	r.apply("kind: rule\nname: late\non: alert.fired\nrun: {action: noop}\n")
	if got := state("late"); !strings.Contains(got, "3 not: it was not in force when the signal came: pawl rules replay late") {
		t.Error(got)
	}
	if err := r.e.PauseRule(r.ctx, "page", "too loud"); err != nil {
		t.Fatal(err)
	}
	if got := state("page"); !strings.Contains(got, "is paused and starts nothing: too loud") || !strings.Contains(got, "pawl rules resume page") {
		t.Error(got)
	}
	if _, _, err := r.e.WhyRule(r.ctx, "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// A test of rules on past signals uses the functions that fire rules, and stores nothing.
func TestRulesOnThePast(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply("kind: rule\nname: a\non: t\nif: signal.data.n > 5\nrun: {action: noop, input: {n: '${{ signal.data.n }}'}}\n")
		for i := range 10 {
			r.emit(Emission{Trigger: "t", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
		}
		r.emit(Emission{Trigger: "t", Data: json.RawMessage(`{}`)})
		r.emit(Emission{Trigger: "other", Data: json.RawMessage(`{"n":9}`)})
		defs, err := definition.Parse("r.yaml", []byte("kind: rule\nname: a\non: t\nif: signal.data.n > 3\nrun: {action: noop, input: {n: '${{ signal.data.n }}'}}\n---\n"+
			"kind: rule\nname: b\non: [t, other]\nif: default(signal.data.n, 0) == 9\nrun: {action: nobody}\n"))
		if err != nil {
			r.Fatal(err)
		}
		all, err := r.e.TestRules(r.ctx, defs, time.Now().Add(-time.Hour))
		if err != nil || len(all) != 2 {
			r.Fatalf("%+v, %v", all, err)
		}
		if p := all[0]; p.Signals != 11 || p.Ran != 6 || p.Failed != 1 || p.Unlike != 2 || p.More || len(p.Samples) != 7 {
			r.Errorf("%+v", p)
		}
		if p := all[1]; p.Signals != 12 || p.Failed != 2 || p.Unlike != 0 || !strings.Contains(p.Samples[0].Reason.Message, "no action") {
			r.Errorf("%+v", p)
		}
		defs, err = definition.Parse("r.yaml", []byte("kind: rule\nname: c\non: t\nrun: {action: noop, once: '${{ signal.data.n / 5 }}'}\n"))
		if err != nil {
			r.Fatal(err)
		}
		if all, err := r.e.TestRules(r.ctx, defs, time.Time{}); err != nil || all[0].Ran != 10 || all[0].Runs != 2 || all[0].Failed != 1 {
			r.Errorf("once: %+v, %v", all, err)
		}
		if all, err := r.e.TestRules(r.ctx, defs, time.Now().Add(time.Hour)); err != nil || all[0].Signals != 0 {
			r.Errorf("nothing of the future: %+v, %v", all, err)
		}
		if n, err := store.List(r.ctx, r.store, store.Filter{Limit: 100}); err != nil || len(n) != 4 {
			r.Errorf("%d executions, %v", len(n), err)
		}
	})
}

// A rule enforces a past signal once, however often and by however many callers it is replayed.
func TestReplayRule(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		for i := range 10 {
			r.emit(Emission{Trigger: "t", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
		}
		r.apply("kind: rule\nname: a\non: t\nif: signal.data.n > 3\nrun: {action: noop, once: '${{ signal.data.n > 7 }}'}\n")
		hour := time.Now().Add(-time.Hour)
		p, err := r.e.ReplayRule(r.ctx, "a", hour, true)
		if err != nil || p.Signals != 10 || p.Ran != 6 || p.Enforced != 0 {
			r.Fatalf("dry: %+v, %v", p, err)
		}
		if n, err := store.List(r.ctx, r.store, store.Filter{Limit: 100}); err != nil || len(n) != 0 {
			r.Errorf("%d executions, %v", len(n), err)
		}
		done := make(chan error, 4)
		for range cap(done) {
			go func() { _, err := r.e.ReplayRule(r.ctx, "a", hour, false); done <- err }()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				r.Error(err)
			}
		}
		if p, err = r.e.ReplayRule(r.ctx, "a", hour, false); err != nil || p.Enforced != 6 || p.Ran != 0 {
			r.Errorf("again: %+v, %v", p, err)
		}
		if n, err := store.List(r.ctx, r.store, store.Filter{Limit: 100}); err != nil || len(n) != 2 { // one for each value of once
			r.Errorf("%d executions, %v", len(n), err)
		}
		all, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{Rule: "a", Limit: 100})
		if err != nil || len(all) != 6 {
			r.Errorf("%d enforcements, %v", len(all), err)
		}
		if got := r.whySignal(all[0].Signal, ""); !strings.Contains(got, "when the signal was replayed") {
			r.Error(got)
		}
		if err := r.e.PauseRule(r.ctx, "a", ""); err != nil {
			r.Fatal(err)
		}
		if _, err := r.e.ReplayRule(r.ctx, "a", hour, false); !errors.Is(err, ErrPaused) {
			r.Errorf("%v", err)
		}
	})
}

// Verify finds planted errors of rules and signals.
func TestVerifyRules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply("kind: rule\nname: a\non: t\nrun: {action: noop}\n")
	generation := r.e.rules.current.Load().Generation
	plant := func(change func(*flow.Signal)) []store.Violation {
		t.Helper()
		s := flow.Signal{ID: r.e.opts.NewID(), Number: 1 << 40, Trigger: "t", Source: flow.SourceAPI, At: time.Now().Add(-time.Hour), State: flow.SignalMatched, Data: json.RawMessage(`{}`), SignalDetail: flow.SignalDetail{Generation: generation}}
		change(&s)
		found, err := r.e.verifySignal(r.ctx, &s, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := func(what string, found []store.Violation, invariant int) {
		t.Helper()
		if len(found) != 1 || found[0].Invariant != invariant {
			t.Errorf("%s: %+v, want invariant %d broken", what, found, invariant)
		}
	}
	want("a rule that was skipped", plant(func(*flow.Signal) {}), 40)
	want("a signal that stays new", plant(func(s *flow.Signal) { s.State = flow.SignalNew }), 41)
	if found := plant(func(s *flow.Signal) { s.Replayed = true }); len(found) > 0 {
		t.Errorf("a replay: %+v", found)
	}
	v := r.emit(Emission{Trigger: "t"})
	looped := r.signal(v.Signal)
	looped.Rules = []string{"a"} // as if the chain had not been carried
	want("a rule that has led to itself", plant(func(s *flow.Signal) { *s = looped }), 51)
}
