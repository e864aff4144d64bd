package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func ruleWith(condition, input string) string {
	return "kind: rule\nname: r\non: t\nif: " + condition + "\nrun: {action: noop, input: " + input + "}\n"
}

// A failed enforcement is retried by the version then in force, and runs once however often that is done.
func TestRetryEnforcement(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.apply(ruleWith("signal.data.host != ''", `{n: "${{ signal.data.n }}"}`))
		bad := r.emit(Emission{Trigger: "t", Data: json.RawMessage(`{"n":1}`)}).Signal
		if got := r.enforced(bad); got != "r failed if" {
			r.Fatal(got)
		}
		if e, err := r.e.RetryEnforcement(r.ctx, bad, "r"); err != nil || e.State != flow.EnforcementFailed || e.Reason.Code != flow.ReasonIf {
			r.Errorf("as it was: %+v %v", e, err)
		}
		r.apply(ruleWith("signal.data.n == 2", `{}`))
		r.e.Settle(r.ctx)
		var refused *fault.Invalid
		if _, err := r.e.RetryEnforcement(r.ctx, bad, "r"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "signal.data.n == 2 is false; signal.data.n is 1") {
			r.Errorf("a condition that does not hold: %v", err)
		}
		r.apply(ruleWith("signal.data.n == 1", `{n: "${{ signal.data.n }}"}`))
		r.e.Settle(r.ctx)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if e, err := r.e.RetryEnforcement(r.ctx, bad, "r"); err != nil || e.State != flow.EnforcementRan || e.Version != 3 || e.Execution.IsZero() {
					r.Errorf("%+v %v", e, err)
				}
			})
		}
		wg.Wait()
		if got := r.inputs("noop"); got != `{"n":1}` {
			r.Errorf("%s", got)
		}
		if got := r.enforced(bad); got != "r ran" {
			r.Error(got)
		}
	})
}

// A retried enforcement joins the window of its rule. A paused rule, or one without an enforcement of the signal, starts nothing.
func TestRetryIntoWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(ruleWith("signal.data.host != ''", "{}"))
	bad := r.emit(Emission{Trigger: "t", Data: json.RawMessage(`{"n":1}`)}).Signal
	r.apply("kind: rule\nname: r\non: t\nbatch: {key: k, size: 2, wait: 1h}\nrun: {action: noop, input: '${{ signals.map(s, s.data.n) }}'}\n")
	if e, err := r.e.RetryEnforcement(r.ctx, bad, "r"); err != nil || e.State != flow.EnforcementBuffered {
		t.Errorf("%+v %v", e, err)
	}
	r.emitN("x", 2)
	r.closes()
	if got := r.inputs("noop"); got != `[1,2]` {
		t.Errorf("%s", got)
	}
	other := r.emit(Emission{Trigger: "other"}).Signal
	if _, err := r.e.RetryEnforcement(r.ctx, other, "r"); !errors.Is(err, ErrNotEnforced) {
		t.Errorf("%v", err)
	}
	if _, err := r.e.RetryEnforcement(r.ctx, bad, "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := r.e.RetryEnforcement(r.ctx, flow.ID{1}, "r"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
	r.apply(ruleWith("signal.data.host != ''", "{}"))
	bad = r.emitN("x", 3)
	if err := r.e.PauseRule(r.ctx, "r", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.e.RetryEnforcement(r.ctx, bad, "r"); !errors.Is(err, ErrPaused) {
		t.Errorf("%v", err)
	}
}

// A rule that has paused itself can later run what it refused.
func TestRetryAfterStorm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply("kind: rule\nname: r\non: t\nstorm: {limit: 1, per: 1h}\nrun: {action: noop, input: {n: '${{ signal.data.n }}'}}\n")
	r.emitN("x", 1)
	refused := r.emitN("x", 2)
	if got := r.enforced(refused); got != "r refused storm" {
		t.Fatal(got)
	}
	if err := r.e.ResumeRule(r.ctx, "r"); err != nil {
		t.Fatal(err)
	}
	if e, err := r.e.RetryEnforcement(r.ctx, refused, "r"); err != nil || e.State != flow.EnforcementRan {
		t.Errorf("%+v %v", e, err)
	}
}
