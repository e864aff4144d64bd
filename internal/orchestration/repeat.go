package orchestration

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// judge decides what follows the latest round of a repeated task: the task's end, or another round. A round is a child whose index is its
// number minus one; it is created only here, after the end of all earlier rounds, so at most one is open.
func (k *taking) judge(t *definition.Task) (again bool) {
	p, last := &k.st.Tasks[t.Index], k.latest(t)
	v := k.scope(t)
	if err := k.environment(v); err != nil {
		return k.broken(t, err)
	}
	reached, err := t.Repeat.Reached(v, last)
	switch {
	case err != nil:
		return k.broken(t, fmt.Errorf("round %d: %w", last.Number, err))
	case reached:
		k.mark(Marking{Task: t.Index, Mark: Reached})
	case last.Error != nil && last.Error.Code == flow.CodeTotalTimeout:
		k.notReached(t, last.Error)
	case p.Created >= t.Repeat.Max:
		k.notReached(t, &flow.Error{Code: flow.CodeNotReached, Message: fmt.Sprintf("tasks.%s.repeat.until: ${{ %s }} did not hold after round %d of at most %d",
			t.Name, t.Repeat.Until.Text(), last.Number, t.Repeat.Max)})
	case k.failing && !t.If.Survives():
		k.mark(Marking{Task: t.Index, Mark: Cancelled})
	default:
		n := len(k.plan.Children)
		if k.create(t, p.Created, v.Beginning(last.Number+1, last)) {
			return true
		}
		k.plan.Children[n].Delay = t.Repeat.Delay
		return false
	}
	return true
}

// notReached ends a repeated task without another round.
func (k *taking) notReached(t *definition.Task, why *flow.Error) {
	k.mark(Marking{Task: t.Index, Mark: NotReached, Error: why})
	k.failing = k.st.narrowed(k.w)
}

func (k *taking) latest(t *definition.Task) definition.Round {
	out := k.f.Output(t.Index)
	r := definition.Round{Number: k.st.Tasks[t.Index].Created, Status: definition.StatusCompleted, Output: out.Single, Unread: out.TooLarge}
	switch out.Stage {
	case flow.Failed:
		r.Status, r.Error = definition.StatusFailed, out.Error
	case flow.TimedOut:
		r.Status, r.Error = definition.StatusTimedOut, out.Error
	}
	return r
}
