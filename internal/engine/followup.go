package engine

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

const (
	// followUpLimit is how many follow-ups go into one transaction. A workflow's step may use the whole budget of a transaction: of more
	// follow-ups, most would be postponed again.
	followUpLimit = 100
	// followUpTakes is how long one follow-up takes at most on average, as part of a transaction: 0.5 to 1 ms were measured.
	followUpTakes = 2 * time.Millisecond
)

// followUps are requests of the engine's own: what committed transactions have left to later ones. They do not wait among the
// requests of callers: a workflow of three lines that starts two of itself, 20 levels deep, has half a million of them after ten
// seconds, and each caller would wait for all of those before it. Batches of callers and of follow-ups alternate, and no batch has
// both, so that what follows from a caller's request finds the whole budget of its transaction.
//
// The step of a workflow that has many children goes alone: it may use the whole budget of its transaction, which all that time has
// the workflow's row. Of four in one transaction three would be postponed again, and reports of the children of all four would wait for it.
//
// One batch of such steps and one of other follow-ups are under way at a time, so that callers find the other committers. With four
// side by side, 100 steps of workflows that start themselves were decided again up to nine times on PostgreSQL, because each batch
// wanted rows of the others: for 6 s no caller was answered.
type followUps struct {
	ops       []op
	wide      []op             // steps of workflows that have many children
	steps     map[flow.ID]bool // workflows that ops and wide go on with
	waitLists map[string]bool  // keys whose whole wait lists ops go on with
	busy      bool             // a batch of ops is under way
	busyWide  bool             // one of wide is
	last      bool             // the last batch was of follow-ups
	lastWide  bool             // the last of those was of wide
}

// source says which requests a batch is of.
type source uint8

const (
	sourcePlain     source = iota // of sessions, callers and loops; none is known to need a contended key
	sourceContended               // of callers: of the requests of each call one or more need contended keys
	sourceFollowUps
	sourceWideStep // of a workflow that has many children
)

func (f *followUps) len() int { return len(f.ops) + len(f.wide) }

// startable is how many follow-ups need not wait for the end of a batch that is under way.
func (f *followUps) startable() (n int) {
	if !f.busy {
		n = len(f.ops)
	}
	if !f.busyWide {
		n += len(f.wide)
	}
	return n
}

// followUp hands a follow-up to the committer. One that finds no room, or an engine that is ending, is left to the sweeps: rows say
// what it was for.
func (e *Engine) followUp(o op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed == nil && e.batcher.followUps.add(o) {
		e.wakeCommitter()
	}
}

// add takes in a follow-up, and reports whether it did: not where the same step of a workflow or the same wait list waits already, nor
// beyond
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

// next takes the next batch of follow-ups; nil when it is the callers' turn. callers says whether any of them waits. done is to be
// called at the batch's end.
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

// isNext reports whether the next batch is of follow-ups: while callers wait, they alternate with these.
func (f *followUps) isNext(callers bool) bool {
	return f.startable() > 0 && !(f.last && callers)
}

// wideIsNext reports whether the next batch of follow-ups is the step of a wide workflow: while others can start, they
// alternate with these.
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

// done ends a batch, and reports whether follow-ups may begin now that had to wait for it.
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

// goOnWithin is when the sweep goes on with a workflow that is postponed now, should the follow-up that does so be lost with the
// process. While many follow-ups wait that is later: the sweep would only do their work before that of other timers.
func (e *Engine) goOnWithin() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return goOnLeast + time.Duration(e.batcher.followUps.len())*followUpTakes
}
