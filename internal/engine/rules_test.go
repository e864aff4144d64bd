package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// enforced describes the enforcements of a signal, rule by rule.
func (r *rig) enforced(id flow.ID) string {
	r.Helper()
	all, err := r.store.Enforcements(r.ctx, store.EnforcementFilter{Signal: r.signal(id).Number, Limit: 100})
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for i := len(all) - 1; i >= 0; i-- {
		e := all[i]
		if e.Signal != id || e.At.IsZero() || e.Version == 0 {
			r.Errorf("%+v of signal %s", e, id)
		}
		say := e.Rule + " " + e.State.String()
		if e.Reason.Code != "" {
			say += " " + e.Reason.Code
		}
		if !e.Execution.IsZero() {
			if x, err := r.store.Get(r.ctx, e.Execution); err != nil || e.State == flow.EnforcementRan && (x.Signal != id || x.Rules[len(x.Rules)-1] != e.Rule) {
				r.Errorf("execution %s of %s: %v, %+v", e.Execution, say, err, x)
			}
		}
		out = append(out, say)
	}
	return strings.Join(out, ", ")
}

// apply registers documents.
func (r *rig) apply(src string) {
	r.Helper()
	if err := r.tryApply(src); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) tryApply(src string) error {
	r.Helper()
	defs, err := definition.Parse("r.yaml", []byte(src))
	if err == nil {
		_, err = r.e.Define(r.ctx, defs)
	}
	return err
}

const ruleBook = `name: clean
action: noop
input: {type: object, required: [host], properties: {host: {type: string}}}
---
kind: trigger
name: alert.fired
data: {type: object, required: [id], properties: {id: {type: string}, severity: {enum: [warn, page], default: warn}}}
key: ${{ signal.data.id }}
subject: ${{ default(signal.data.host, "") }}
---
kind: rule
name: page
on: [alert.*]
if: signal.data.severity == "page"
run: {action: clean, input: {host: "${{ signal.data.host }}"}, labels: {team: ops}, priority: 7, concurrency: {key: "host:${{ signal.subject }}", limit: 1}}
---
kind: rule
name: every
on: alert.fired
run: {action: noop, input: {id: "${{ signal.data.id }}"}}
---
kind: rule
name: faulty
on: alert.fired
if: signal.data.count > 3
run: {action: noop}
`

func TestRules(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply(ruleBook)
		v := r.emit(Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"id":"1","severity":"page","host":"db1"}`)})
		if got, want := r.enforced(v.Signal), "every ran, faulty failed if, page ran"; got != want {
			r.Errorf("enforced %q, want %q", got, want)
		}
		if len(v.Enforcements) != 3 || v.Enforcements[2].Rule != "page" || v.Enforcements[2].State != flow.EnforcementRan {
			r.Errorf("%+v", v)
		}
		x, err := r.store.Get(r.ctx, v.Enforcements[2].Execution)
		if err != nil || x.Action != "clean" || string(x.Input) != `{"host":"db1"}` || x.Labels["team"] != "ops" || x.Priority != 7 || x.Key != "host:db1" {
			r.Errorf("%+v, %v", x, err)
		}
		if s := r.signal(v.Signal); s.Key != "1" || s.Subject != "db1" || s.Generation == 0 {
			r.Errorf("%+v", s)
		}
		if again := r.emit(Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"id":"1","severity":"page","host":"db1"}`)}); !again.Existing || again.Signal != v.Signal || len(again.Enforcements) > 0 {
			r.Errorf("again: %+v", again)
		}

		// The default makes it a warning, and the action of page would refuse it anyway.
		warned := r.emit(Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"id":"2"}`)})
		if got, want := r.enforced(warned.Signal), "every ran, faulty failed if"; got != want {
			r.Errorf("enforced %q, want %q", got, want)
		}
		refused := r.emit(Emission{Trigger: "alert.other", Data: json.RawMessage(`{"severity":"page","host":5}`)})
		if got, want := r.enforced(refused.Signal), "page failed action"; got != want {
			r.Errorf("enforced %q, want %q", got, want)
		}
		var bad *fault.Invalid
		if w := r.tryEmit(Emission{Trigger: "alert.fired", Data: json.RawMessage(`{"severity":"none"}`)}); !errors.As(w.Err, &bad) || !strings.HasPrefix(bad.Problems[0].Path, "data") {
			r.Errorf("data beside the schema: %v", w.Err)
		}
		if none := r.emit(Emission{Trigger: "other"}); len(none.Enforcements) > 0 {
			r.Errorf("%+v", none)
		}
		h := r.worker()
		for _, w := range h.take(4) {
			h.complete(w, "1")
		}
	})
}

// A rule with once starts one execution for each value, with any number of simultaneous signals; later signals are folded into it.
func TestRuleOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply("kind: rule\nname: o\non: order\nrun: {action: noop, once: '${{ signal.data.order }}'}\n")
		all, err := r.e.Emit(r.ctx, []Emission{{Trigger: "order", Data: json.RawMessage(`{"order":1}`)}, {Trigger: "order", Data: json.RawMessage(`{"order":1,"n":2}`)}, {Trigger: "order", Data: json.RawMessage(`{"order":2}`)}})
		if err != nil {
			r.Fatal(err)
		}
		a, b, c := all[0].Enforcements[0], all[1].Enforcements[0], all[2].Enforcements[0]
		if a.State != flow.EnforcementRan || b.State != flow.EnforcementFolded || b.Execution != a.Execution || c.State != flow.EnforcementRan {
			r.Errorf("%+v", all)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if _, err := r.e.Emit(r.ctx, []Emission{{Trigger: "order", Data: json.RawMessage(fmt.Sprintf(`{"order":3,"n":%d}`, i))}}); err != nil {
					r.Error(err)
				}
			})
		}
		wg.Wait()
		if x, err := store.List(r.ctx, r.store, store.Filter{Limit: 100}); err != nil || len(x) != 3 {
			r.Errorf("%d executions, %v", len(x), err)
		}
	})
}

func TestPausedRule(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply("kind: rule\nname: p\non: a\nrun: {action: noop}\n")
		if err := r.e.PauseRule(r.ctx, "p", "too loud"); err != nil {
			r.Fatal(err)
		}
		rule, _, err := r.e.Rule(r.ctx, "p")
		if err != nil || !rule.Paused || rule.Reason != "too loud" {
			r.Errorf("%+v, %v", rule, err)
		}
		if v := r.emit(Emission{Trigger: "a"}); len(v.Enforcements) > 0 {
			r.Errorf("paused: %+v", v)
		}
		r.apply("kind: rule\nname: p\non: a\nrun: {action: noop, priority: 1}\n")
		if rule, _, err := r.e.Rule(r.ctx, "p"); err != nil || !rule.Paused || rule.Version != 2 {
			r.Errorf("a new version: %+v, %v", rule, err)
		}
		if err := r.e.ResumeRule(r.ctx, "p"); err != nil {
			r.Fatal(err)
		}
		if v := r.emit(Emission{Trigger: "a"}); len(v.Enforcements) != 1 || v.Enforcements[0].Version != 2 {
			r.Errorf("resumed: %+v", v)
		}
		generation, err := r.store.Generation(r.ctx)
		if err != nil || generation != 4 {
			r.Errorf("generation %d, %v", generation, err)
		}
		if err := errors.Join(r.e.ResumeRule(r.ctx, "p"), r.tryApply("kind: rule\nname: p\non: a\nrun: {action: noop, priority: 1}\n")); err != nil {
			r.Error(err)
		}
		if again, _ := r.store.Generation(r.ctx); again != generation {
			r.Errorf("nothing has changed, and the generation is %d", again)
		}
		for _, name := range []string{"nobody", "a\x00"} {
			if err := r.e.PauseRule(r.ctx, name, ""); !errors.Is(err, store.ErrNotFound) {
				r.Errorf("%q: %v", name, err)
			}
		}
	})
}

func TestRulesThatLeadToOneAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply("name: x\naction: noop\n---\nname: y\naction: noop\n---\nkind: rule\nname: a\non: execution.ended\nif: signal.data.action == \"x\"\nrun: {action: y}\n")
	err := r.tryApply("kind: rule\nname: b\non: execution.ended\nif: signal.data.action == \"y\"\nrun: {action: x}\n")
	var ps definition.Problems
	if !errors.As(err, &ps) || len(ps) != 1 || !strings.Contains(ps[0].Message, "a → b → a") || ps[0].Line != 3 || ps[0].Fix == "" {
		t.Errorf("%v", err)
	}
	if err := r.tryApply("kind: rule\nname: b\non: execution.ended\nif: signal.data.action == \"y\"\nreentry: allow\nrun: {action: x}\n"); err != nil {
		t.Error(err)
	}
	if err := r.tryApply("kind: rule\nname: c\non: t\nrun: {action: nobody}\n"); !errors.As(err, &ps) || ps[0].Path != "run.action" {
		t.Errorf("%v", err)
	}
}

// The chain of a signal bounds which rules may run on it.
func TestChains(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply("kind: rule\nname: a\non: t\nrun: {action: noop}\n---\nkind: rule\nname: b\non: t\ndepth: 1\nrun: {action: noop}\n")
	if got, want := r.enforced(r.emit(Emission{Trigger: "t", Rules: []string{"a"}}).Signal), "a refused loop, b refused too_deep"; got != want {
		t.Errorf("enforced %q, want %q", got, want)
	}
	v := r.emit(Emission{Trigger: "t", Rules: []string{"x"}})
	x, err := r.store.Get(r.ctx, v.Enforcements[0].Execution)
	if err != nil || strings.Join(x.Rules, " ") != "x a" {
		t.Errorf("%v, %v", x, err)
	}
}

// Servers on one database use rules that are at most LatestFor old, and a signal that both get starts one execution.
func TestRuleReplicas(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t)
	other := r.replica(func(o *Options) { o.Uptime = nil })
	r.apply("kind: rule\nname: a\non: t\nrun: {action: noop}\n")
	r.e.Settle(r.ctx)
	for i := range 10 {
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				if _, err := []*Engine{r.e, other}[n%2].Emit(r.ctx, []Emission{{Trigger: "t", Key: fmt.Sprint(i)}}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if all, err := store.List(r.ctx, r.store, store.Filter{Limit: 100}); err != nil || len(all) != 10 {
		t.Errorf("%d executions of 10 signals, %v", len(all), err)
	}
	if err := other.PauseRule(r.ctx, "a", ""); err != nil {
		t.Fatal(err)
	}
	r.e.Settle(r.ctx)
	if v := r.emit(Emission{Trigger: "t"}); len(v.Enforcements) > 0 {
		t.Errorf("paused elsewhere: %+v", v)
	}
}

// A repeated signal starts nothing and does not count for the storm.
func TestRepetitionsAreNoStorm(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply("kind: rule\nname: wild\non: t\nstorm: {limit: 3, per: 1h}\nrun: {action: noop}\n")
		for n := range 3 {
			for again := range 5 {
				if v := r.emit(Emission{Trigger: "t", Key: fmt.Sprint(n)}); v.Existing != (again > 0) {
					r.Errorf("%+v", v)
				}
			}
		}
		if rule, _, err := r.e.Rule(r.ctx, "wild"); err != nil || rule.Paused {
			r.Errorf("%+v, %v", rule, err)
		}
		r.of("noop", 3)
		if v := r.emit(Emission{Trigger: "t", Key: "3"}); len(v.Enforcements) != 1 || v.Enforcements[0].Reason.Code != flow.ReasonCircuitBreaker {
			r.Errorf("the fourth: %+v", v)
		}
	})
}

// A rule that runs too often on a server pauses itself with a reason; later signals are kept.
func TestStorm(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply("kind: rule\nname: wild\non: t\nstorm: {limit: 5, per: 1h}\nrun: {action: noop}\n---\nname: tell\naction: noop\n---\nkind: rule\nname: tell\non: rule.paused\nrun: {action: tell, input: {who: '${{ signal.data.rule }}', why: '${{ signal.data.reason }}'}}\n")
		all := make([]Emission, 10)
		for i := range all {
			all[i] = Emission{Trigger: "t", Key: fmt.Sprint(i)}
		}
		done, err := r.e.Emit(r.ctx, all)
		if err != nil {
			r.Fatal(err)
		}
		counts := map[string]int{}
		for _, v := range done {
			if len(v.Enforcements) == 0 {
				counts["none"]++
				continue
			}
			counts[v.Enforcements[0].State.String()+" "+v.Enforcements[0].Reason.Code]++
		}
		if counts["ran "] != 5 || counts["refused storm"] != 1 || counts["none"] != 4 {
			r.Errorf("%v", counts)
		}
		if rule, _, err := r.e.Rule(r.ctx, "wild"); err != nil || !rule.Paused || !strings.Contains(rule.Reason, "more than 5 times in 1h") {
			r.Errorf("%+v, %v", rule, err)
		}
		if x := r.get(r.of("tell", 1)[0].ID); !strings.Contains(string(x.Input), `"who":"wild"`) {
			r.Errorf("%s", x.Input)
		}
		if err := r.e.ResumeRule(r.ctx, "wild"); err != nil {
			r.Fatal(err)
		}
		if v := r.emit(Emission{Trigger: "t"}); len(v.Enforcements) != 1 || v.Enforcements[0].State != flow.EnforcementRan {
			r.Errorf("resumed: %+v", v)
		}
		p, err := r.e.ReplayRule(r.ctx, "wild", time.Now().Add(-time.Hour), true)
		if err != nil || p.Ran != 4 {
			r.Errorf("replay: %+v, %v", p, err)
		}
	})
}

// The executions of a rule begin at its rate; those beyond it wait, or are dropped.
func TestRuleRate(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply("kind: rule\nname: a\non: t\nrun: {action: noop, rate: {key: 'k:${{ signal.subject }}', limit: 1, per: 1h, over: drop}}\n---\n" +
			"kind: rule\nname: b\non: t\nrun: {action: noop, rate: {key: 'd:${{ signal.subject }}', limit: 1, per: 1h}}\n")
		for _, subject := range []string{"x", "x", "y"} {
			r.emit(Emission{Trigger: "t", Subject: subject})
		}
		dropped, err := store.List(r.ctx, r.store, store.Filter{Stages: []flow.Stage{flow.Cancelled}, Limit: 10})
		if err != nil || len(dropped) != 1 || dropped[0].Rules[0] != "a" {
			r.Errorf("dropped: %v, %v", dropped, err)
		}
		waiting, err := store.List(r.ctx, r.store, store.Filter{Stages: []flow.Stage{flow.Requested}, Limit: 10})
		if err != nil || len(waiting) != 1 || waiting[0].Rules[0] != "b" {
			r.Errorf("waiting: %v, %v", waiting, err)
		}
	})
}

// defining counts the documents that each transaction defines.
type defining struct {
	store.Store
	most atomic.Int64
}

type definingTx struct {
	store.Tx
	s *defining
	n int64
}

func (s *defining) Update(ctx context.Context, decide func(context.Context, store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return decide(ctx, &definingTx{Tx: tx, s: s}) })
}

func (t *definingTx) Define(ctx context.Context, d store.Definition) (int, bool, error) {
	t.n++
	t.s.most.Store(max(t.s.most.Load(), t.n)) // one committer
	return t.Tx.Define(ctx, d)
}

// Simultaneous calls of Define go into separate transactions: two in one could lock names in an order that crosses another server's.
func TestDefinesAreApart(t *testing.T) {
	t.Parallel()
	s := &defining{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	var wg sync.WaitGroup
	for i := range 20 {
		defs, err := definition.Parse("a.yaml", fmt.Appendf(nil, "name: a%d\naction: noop\n", i))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := r.e.Define(r.ctx, defs); err != nil {
				t.Errorf("define: %v", err)
			}
		})
	}
	wg.Wait()
	if n := s.most.Load(); n != 1 {
		t.Errorf("a transaction has defined %d documents", n)
	}
}
