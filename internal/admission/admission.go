// Package admission decides who may start now: it turns how full a concurrency key is into a verdict. It is pure; the
// engine counts under the key's lock and carries the verdict out in the same transaction.
package admission

import "github.com/pawl-run/pawl/internal/flow"

// Verdict is what becomes of an execution that is due.
type Verdict uint8

// The verdicts.
const (
	Admit  Verdict = 1 + iota // take a slot and go to the queue
	Wait                      // draw a ticket and stand in the key's wait list
	Refuse                    // end it as cancelled: its key is full and it does not want to wait
	// Supersede: stand in the wait list, and order the oldest holder to end if Supersedes says so.
	Supersede
	Replaced // end it as superseded: its slot is another's, and its key is for the latest
)

// Arrive decides about an execution that has become due. An execution that comes while others wait stands behind them,
// even when a slot is free: the wait list is served first.
func Arrive(holders, waiting, limit int, when flow.WhenFull) Verdict {
	if holders < limit && waiting == 0 {
		return Admit
	}
	switch when {
	case flow.WhenFullCancelNew:
		return Refuse
	case flow.WhenFullCancelOldest:
		return Supersede
	}
	return Wait
}

// Return decides about an execution that was admitted and gave its slot up while it was put aside. A free slot is its
// own before the wait list is served. Where there is none it stands in the wait list: the slots that are freed go there, so it
// would find none however often it looked. With cancel_oldest a newcomer has its slot, as if it had been a holder.
func Return(holders, limit int, when flow.WhenFull) Verdict {
	switch {
	case holders < limit:
		return Admit
	case when == flow.WhenFullCancelOldest:
		return Replaced
	}
	return Wait
}

// Admissible is how many of the wait list may go now.
func Admissible(holders, waiting, limit int) int {
	return max(0, min(limit-holders, waiting))
}

// Supersedes reports whether an execution that has come to supersede is to have one more holder end: when the slot of that
// holder is the newcomer's. waiting executions stand in the wait list before it and get the free slots and those of the holders
// that are ending already; with more of these than executions the newcomer needs none, and with fewer it would be another's.
func Supersedes(holders, waiting, ending, limit int) bool { return limit-holders+ending == waiting }
