package engine

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

const (
	// followUpLimit is how many follow-ups go into one transaction. A workflow's step may use the whole budget of a transaction: with more
	// follow-ups, most would be postponed again.
	followUpLimit = 100
	// followUpTakes is an upper bound of the average time of one follow-up in a transaction: 0.5 to 1 ms were measured.
	followUpTakes = 2 * time.Millisecond
)

// followUps are the engine's own requests: work that committed transactions have postponed. They have a queue apart from callers: a
// workflow of three lines that starts two of itself, 20 levels deep, has half a million follow-ups after ten seconds, and each caller would
// wait for all of them. Batches of callers and of follow-ups alternate, and no batch has both, so that the follow-ups of a caller's request
// find the whole budget of its transaction.
//
// The step of a workflow with many children goes alone: it may use the whole budget of its transaction, which locks the workflow's row all
// that time. With four in one transaction, three would be postponed again, and reports of the children of all four would wait for it.
//
// One batch of such steps and one of other follow-ups are under way at a time, so that callers find the other committers. With four side by
// side, 100 steps of workflows that start themselves were decided again up to nine times on PostgreSQL, because each batch needed rows of
// the others: for 6 s no caller was answered.
type followUps struct {
	ops       []op
	wide      []op             // steps of workflows with many children
	steps     map[flow.ID]bool // workflows that have a step in ops or wide
	waitLists map[string]bool  // keys whose whole wait lists are served by ops
	busy      bool             // a batch of ops is under way
	busyWide  bool             // one of wide is
	last      bool             // the last batch was of follow-ups
	lastWide  bool             // the last batch of follow-ups was of wide
}

// source is the kind of requests in a batch.
type source uint8

const (
	sourcePlain     source = iota // of sessions, callers and loops; none is known to need a contended key
	sourceContended               // of callers: each call has requests that need contended keys
	sourceFollowUps
	sourceWideStep // of a workflow with many children
)

func (f *followUps) len() int { return len(f.ops) + len(f.wide) }

// startable is how many follow-ups can start before a running batch ends.
func (f *followUps) startable() (n int) {
	if !f.busy {
		n = len(f.ops)
	}
	if !f.busyWide {
		n += len(f.wide)
	}
	return n
}

// followUp hands a follow-up to the committer. If there is no room, or the engine is stopping, the sweeps find the work in the rows.
func (e *Engine) followUp(o op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed == nil && e.batcher.followUps.add(o) {
		e.wakeCommitter()
	}
}

// add adds a follow-up, and reports whether it did: not if the same step of a workflow or the same wait list is queued already, nor beyond
// pendingLimit.
func (f *followUps) add(o op) bool {
	if f.len() >= pendingLimit {
		return false
	}
	to := &f.ops
	switch o := o.(type) {
	case *advanceOp:
		if f.steps[o.id] {
			return false
		}
		if f.steps == nil {
			f.steps = map[flow.ID]bool{}
		}
		f.steps[o.id] = true
		if o.wide {
			to = &f.wide
		}
	case *waitListOp:
		if o.mode != wholeWaitList {
			break
		}
		if f.waitLists[o.key] {
			return false
		}
		if f.waitLists == nil {
			f.waitLists = map[string]bool{}
		}
		f.waitLists[o.key] = true
	}
	*to = append(*to, o)
	return true
}

// next takes the next batch of follow-ups; nil if it is the callers' turn. callers reports whether any of them waits. The caller calls done
// at the batch's end.
func (f *followUps) next(callers bool) ([]op, source) {
	if f.last = f.isNext(callers); !f.last {
		return nil, sourcePlain
	}
	if f.lastWide = f.wideIsNext(); f.lastWide {
		f.busyWide = true
		return f.take(&f.wide, 1), sourceWideStep
	}
	f.busy = true
	return f.take(&f.ops, followUpLimit), sourceFollowUps
}

// isNext reports whether the next batch is of follow-ups: they alternate with waiting callers.
func (f *followUps) isNext(callers bool) bool {
	return f.startable() > 0 && !(f.last && callers)
}

// wideIsNext reports whether the next batch of follow-ups is the step of a wide workflow: it alternates with other follow-ups.
func (f *followUps) wideIsNext() bool {
	others := len(f.ops) > 0 && !f.busy
	return len(f.wide) > 0 && !f.busyWide && !(f.lastWide && others)
}

// take takes up to n out of a list.
func (f *followUps) take(from *[]op, n int) []op {
	n = min(len(*from), n)
	ops := slices.Clone((*from)[:n])
	if *from = (*from)[n:]; len(*from) == 0 {
		*from = nil // frees its memory
	}
	for _, o := range ops {
		switch o := o.(type) {
		case *advanceOp:
			delete(f.steps, o.id)
		case *waitListOp:
			if o.mode == wholeWaitList {
				delete(f.waitLists, o.key)
			}
		}
	}
	return ops
}

// done ends a batch, and reports whether follow-ups that waited for it may begin now.
func (f *followUps) done(batchSource source) (startable bool) {
	switch batchSource {
	case sourceFollowUps:
		f.busy = false
		return len(f.ops) > 0
	case sourceWideStep:
		f.busyWide = false
		return len(f.wide) > 0
	default:
		return false
	}
}

// goOnWithin is when the sweep continues a postponed workflow if its follow-up is lost with the process. The delay grows with the number of
// waiting follow-ups: the sweep would only do their work before that of other timers.
func (e *Engine) goOnWithin() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return goOnLeast + time.Duration(e.batcher.followUps.len())*followUpTakes
}
