package automation

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// Wake is when a window closes that was opened at a moment and holds n signals with data of so many bytes, the last of which joins it
// now, unless another one comes before.
func Wake(w *definition.Window, opened, now time.Time, n int, bytes int64) time.Time {
	if n >= w.Size || w.All() && bytes >= int64(w.Bytes) {
		return now
	}
	most := opened.Add(w.AtMost)
	if quiet := now.Add(w.Quiet); w.Quiet > 0 && quiet.Before(most) {
		return quiet
	}
	return most
}

// Portion is how many of the signals that a window holds, in their order, go into one execution: as many as fit, and one at least.
func Portion(w *definition.Window, held []flow.Signal) int {
	bytes := 0
	for i := range held {
		if bytes += len(held[i].Data); i > 0 && (i >= w.Size || bytes > w.Bytes) {
			return i
		}
	}
	return len(held)
}

// Gather says what a rule makes of the signals that it has held and runs for together. The rules that have led to the execution are those
// of the signal to which the most have.
func Gather(r *Rule, held []flow.Signal) (Verdict, error) {
	v := Verdict{Rule: r, State: flow.EnforcementFailed}
	vars, err := definition.SignalsVars(held)
	if err != nil {
		return v, err
	}
	var chain []string
	for i := range held {
		if rules := held[i].Rules; len(rules) > len(chain) {
			chain = rules
		}
	}
	if reason := r.evaluate(vars, &v); reason != nil {
		v.Reason = *reason
		return v, nil
	}
	v.State, v.Chain = flow.EnforcementRan, append(slices.Clip(chain), r.Name)
	return v, nil
}
