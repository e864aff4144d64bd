package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
)

const calling = "kind: rule\nname: %s\non: t\nreentry: %s\ndepth: 3\nrun: {action: code, input: {language: bash, source: 'true'}}\n"

// called emits a signal with a chain and returns its enforcements, and the chain that their execution sends.
func (r *rig) called(w *hand, header string) (enforced, next string) {
	r.Helper()
	rules, err := r.e.Chain(r.ctx, header)
	if err != nil {
		r.Fatal(err)
	}
	id := r.emit(Emission{Trigger: "t", Data: json.RawMessage(`{}`), Rules: rules}).Signal
	if enforced = r.enforced(id); !strings.HasSuffix(enforced, " ran") {
		return enforced, ""
	}
	for _, a := range w.take(10) {
		next = a.Chain
		w.complete(a, `{}`)
	}
	return enforced, next
}

// A rule that calls itself over HTTP is refused, whether it calls this Pawl or another one that forwards the chain.
func TestChainThroughTheOutside(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(fmt.Sprintf(calling, "caller", "refuse"))
	w := r.worker()
	enforced, chain := r.called(w, "")
	if enforced != "caller ran" || len(chain) != 16 || strings.Contains(chain, "caller") {
		t.Fatalf("%s, %q", enforced, chain)
	}
	if enforced, _ := r.called(w, chain); enforced != "caller refused loop" {
		t.Error(enforced)
	}

	other := newRig(t) // whose rule has the same name
	other.apply(fmt.Sprintf(calling, "caller", "refuse"))
	v := other.worker()
	enforced, on := other.called(v, chain)
	if enforced != "caller ran" || !strings.HasPrefix(on, chain+",") || strings.Count(on, ",") != 1 {
		t.Fatalf("elsewhere: %s, %q of %q", enforced, on, chain)
	}
	if enforced, _ := r.called(w, on); enforced != "caller refused loop" {
		t.Error(enforced)
	}
	if enforced, _ := other.called(v, on); enforced != "caller refused loop" {
		t.Error(enforced)
	}
	other.apply(fmt.Sprintf(calling, "caller", "allow"))
	if enforced, on = other.called(v, on); enforced != "caller ran" || strings.Count(on, ",") != 2 {
		t.Errorf("%s %s", enforced, on)
	}
	if enforced, _ = other.called(v, on); enforced != "caller refused too_deep" {
		t.Error(enforced)
	}
}

// The tasks of a workflow that a rule runs carry its chain, and so do submissions with a chain.
func TestChainOfTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply("name: flow\ntasks: {a: {action: code, with: {language: bash, source: 'true'}}}\n---\nkind: rule\nname: caller\non: t\nrun: {action: flow}\n")
	w := r.worker()
	_, chain := r.called(w, "")
	rules, err := r.e.Chain(r.ctx, " "+chain+" ")
	if err != nil || fmt.Sprint(rules) != "[caller]" {
		t.Fatalf("%q: %v %v", chain, rules, err)
	}
	all, err := r.e.Submit(r.ctx, []Submission{{Action: "noop", Rules: rules, IdempotencyKey: "k"}, {Action: "noop", IdempotencyKey: "k"}})
	if err != nil || all[0].Err != nil || all[1].Err != nil || all[0].Execution != all[1].Execution {
		t.Fatalf("%+v %v", all, err)
	}
	if x := r.get(all[0].Execution); fmt.Sprint(x.Rules) != "[caller]" {
		t.Errorf("%v", x.Rules)
	}
}

// A Pawl without rules forwards a chain.
func TestChainWithoutRules(t *testing.T) {
	t.Parallel()
	var c chains
	if got := c.header([]string{elsewhere + "0123456789abcdef", "gone", elsewhere + "fedcba9876543210"}); got != "0123456789abcdef,fedcba9876543210" {
		t.Error(got)
	}
}

func TestBadChains(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for header, want := range map[string]string{
		"caller": "not a tag of a rule", "0123456789abcdeF": "not a tag", "0123456789abcd": "not a tag", "0123456789abcdef,,": "not a tag",
		strings.Repeat("0123456789abcdef,", 64) + "0123456789abcdef": "names 65 rules", strings.Repeat("x", 10_000): "not a tag",
	} {
		_, err := r.e.Chain(r.ctx, header)
		var refused *fault.Invalid
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%.50s: %v", header, err)
		}
	}
	if rules, err := r.e.Chain(r.ctx, "0123456789abcdef"); err != nil || rules[0] != "elsewhere:0123456789abcdef" {
		t.Errorf("%v %v", rules, err)
	}
}

// goneHook reports, as a worker, a webhook whose receiver has answered 410.
func (r *rig) goneHook(w *hand) {
	r.Helper()
	work := w.take(10)
	if len(work) != 1 {
		r.Fatalf("%d executions", len(work))
	}
	w.fail(work[0], flow.CodeGone)
}

const notice = "kind: rule\nname: tell\non: t\nrun: {action: webhook, input: {url: 'https://hooks.example.com/%s', event: e, secret_env: S}}\n---\n" +
	"kind: rule\nname: alarm\non: rule.paused\nrun: {action: noop, input: '${{ signal.data }}'}\n"

// A receiver that answers 410 pauses the rule that sends the webhooks, once, unless the rule was resumed or changed since.
func TestReceiverGone(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply(fmt.Sprintf(notice, "a"))
		r.e.Settle(r.ctx)
		w := r.worker()
		paused := func() bool {
			rule, _, err := r.e.Rule(r.ctx, "tell")
			if err != nil {
				r.Fatal(err)
			}
			if rule.Paused && !strings.Contains(rule.Reason, "webhook ex_") {
				r.Errorf("%q", rule.Reason)
			}
			return rule.Paused
		}
		r.emitN("x", 1)
		r.goneHook(w)
		if !paused() {
			r.Error("it goes on")
		}
		r.within(patience, "nobody is told", func() bool { return strings.Contains(r.inputs("noop"), `"rule":"tell"`) })
		if err := r.e.ResumeRule(r.ctx, "tell"); err != nil {
			r.Fatal(err)
		}
		r.e.Settle(r.ctx)
		r.emitN("x", 2)
		r.apply(fmt.Sprintf(notice, "b"))
		r.e.Settle(r.ctx)
		for _, a := range w.take(10) {
			w.fail(a, flow.CodeGone)
		}
		if paused() {
			r.Error("the receiver of the version before has paused it")
		}
		id := r.submit(Submission{Action: "webhook", Input: json.RawMessage(`{"url":"https://hooks.example.com","event":"e","secret_env":"S"}`)})
		for _, a := range w.take(10) {
			w.fail(a, flow.CodeGone)
		}
		r.ended(id)
		if paused() {
			r.Error("a webhook of no rule has paused it")
		}
	})
}
