package automation

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// ClosesAt returns when a window closes that buffers n signals with so many bytes, the last of which has come now: now if it is full, else
// the earlier of opened+AtMost and, if the window has a Quiet, now+Quiet. Another signal may change that.
func ClosesAt(w *definition.Window, opened, now time.Time, n int, bytes int64) time.Time {
	if n >= w.Size || w.All() && bytes >= int64(w.Bytes) {
		return now
	}
	most := opened.Add(w.AtMost)
	if quiet := now.Add(w.Quiet); w.Quiet > 0 && quiet.Before(most) {
		return quiet
	}
	return most
}

// Portion is how many of a window's signals, in order, go into one execution: as many as fit, at least one.
func Portion(w *definition.Window, buffered []flow.Signal) int {
	bytes := 0
	for i := range buffered {
		if bytes += len(buffered[i].Data); i > 0 && (i >= w.Size || bytes > w.Bytes) {
			return i
		}
	}
	return len(buffered)
}

// Gather returns the verdict of a rule on the buffered signals that it runs for together. The chain of rules that have led to the execution
// is the longest one among the signals. w counts and bounds the work.
func Gather(r *Rule, buffered []flow.Signal, w *definition.Work) (Verdict, error) {
	v := Verdict{Rule: r, State: flow.EnforcementFailed}
	vars, err := definition.SignalsVars(buffered)
	if err != nil {
		return v, err
	}
	vars.Work = w
	var chain []string
	for i := range buffered {
		if rules := buffered[i].Rules; len(rules) > len(chain) {
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
