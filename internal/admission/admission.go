// Package admission decides who may start now: it turns the use of a concurrency key into a verdict. It is pure; the
// engine counts under the key's lock and carries out the verdict in the same transaction.
package admission

import "github.com/pawl-run/pawl/internal/flow"

// Verdict is the decision about a due execution.
type Verdict uint8

const (
	Admit  Verdict = 1 + iota // take a slot and go to the queue
	Wait                      // draw a ticket and join the key's wait list
	Refuse                    // end it as cancelled: its key is full and when_full is cancel_new
	// Supersede: join the wait list, and order the oldest holder to end if Supersedes says so.
	Supersede
	Replaced // end it as superseded: another has its slot, and when_full is cancel_oldest
)

// Arrive decides about an execution that has become due. If others wait, it waits behind them even if a slot is free: the wait list is
// served first.
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

// Return decides about an execution that was admitted and lost its slot while it was put aside. It gets a free slot before the wait list is
// served. If there is none, it joins the wait list: freed slots go there, so it would never find one by looking. With cancel_oldest a
// newcomer has its slot, as if it had been a holder.
func Return(holders, limit int, when flow.WhenFull) Verdict {
	switch {
	case holders < limit:
		return Admit
	case when == flow.WhenFullCancelOldest:
		return Replaced
	}
	return Wait
}

// Admissible is how many of the wait list may be admitted now.
func Admissible(holders, waiting, limit int) int {
	return max(0, min(limit-holders, waiting))
}

// Supersedes reports whether a superseding newcomer must end one more holder: whether it will get that holder's slot. waiting executions
// wait before it and get the free slots and those of the ending holders. With more of these slots than waiting executions the newcomer gets
// one anyway; with fewer, another execution would get the slot.
func Supersedes(holders, waiting, ending, limit int) bool { return limit-holders+ending == waiting }
