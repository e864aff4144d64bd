package replay

import (
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// state is the state after the replayed part of the history.
func (w *walk) state() State {
	x := w.x
	s := State{Stage: x.Stage, Attempt: x.Attempt, NotBefore: x.WakeAt, Worker: w.worker()}
	if w.i > 0 {
		last := &w.rec.Events[w.i-1]
		s.Seq, s.At = last.Seq, last.At
	}
	if x.Place != flow.Delayed {
		s.NotBefore = time.Time{}
	}
	if w.wf != nil {
		s.Tasks = w.wf.tasks(s.At)
	}
	s.Why = w.waiting(s.Tasks)
	return s
}
