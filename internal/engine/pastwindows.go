package engine

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// evaluateAlone is evaluate for a test of rules: for a rule that gathers signals it also checks whether the execution
// could be made if the signal were the only one.
func (e *Engine) evaluateAlone(ctx context.Context, r *automation.Rule, s *flow.Signal, spent *definition.Work) (*plannedEnforcement, error) {
	x, err := e.evaluate(ctx, r, s, spent)
	if err != nil || x == nil || x.verdict.State != flow.EnforcementBuffered || !r.Window.All() {
		return x, err
	}
	w := definition.WorkWithin(definition.SharedWork)
	defer func() { spent.Done += w.Done }()
	v, err := automation.Gather(r, []flow.Signal{*s}, w)
	if err != nil {
		return nil, err
	}
	alone, err := e.planEnforcement(ctx, v, s.ID, w)
	if err != nil {
		return nil, err
	}
	if v = alone.verdict; v.State == flow.EnforcementRan {
		v.State, v.Window = flow.EnforcementBuffered, x.verdict.Window
	}
	return &plannedEnforcement{verdict: v}, nil
}

// pastWindows are the past signals that a rule would have buffered, the latest first.
type pastWindows struct{ buffered []pastBuffered }

type pastBuffered struct {
	window string
	at     time.Time
	bytes  int64
}

func (p *pastWindows) buffer(v *automation.Verdict, s *flow.Signal) {
	if v.State == flow.EnforcementBuffered {
		p.buffered = append(p.buffered, pastBuffered{v.Window, s.At, int64(len(s.Data))})
	}
}

// runs is how many executions would have started for the buffered signals.
func (p *pastWindows) runs(w *definition.Window) (n int) {
	type open struct {
		opened, wake time.Time
		count        int
		bytes        int64
	}
	all := map[string]*open{}
	for _, h := range slices.Backward(p.buffered) {
		o := all[h.window]
		if o == nil || !o.wake.After(h.at) {
			o = &open{opened: h.at}
			all[h.window] = o
			n++
		}
		o.count, o.bytes = o.count+1, o.bytes+h.bytes
		o.wake = automation.ClosesAt(w, o.opened, h.at, o.count, o.bytes)
	}
	return n
}
