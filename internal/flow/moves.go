package flow

import (
	"fmt"
	"slices"
)

// Move is one row of the lifecycle: the effect of an event on the stage. docs/states.md is drawn from these rows.
type Move struct {
	Event EventType
	From  []Stage // the zero Stage: a new execution
	To    Stage
	// Opens means that the move begins the next attempt; other moves stay in their attempt.
	Opens bool
	Why   string
}

var moves = []Move{
	{EvRequested, []Stage{0}, Requested, true, "accepted"},
	{EvScheduled, []Stage{Requested}, Scheduled, false, "admitted and placed in its queue"},
	{EvProvisioning, []Stage{Scheduled}, Provisioning, false, "handed off to a worker session"},
	{EvRunning, []Stage{Provisioning}, Running, false, "the work began"},
	{EvCompleted, []Stage{Running}, Completed, false, "the work succeeded"},
	{EvReused, []Stage{Requested}, Completed, false, "it ended with the outcome of an identical execution, reused by a rerun or taken from the cache: nothing ran"},
	{EvOverridden, []Stage{Requested}, Completed, false, "a task of a rerun ended with an output that its client has given: nothing ran"},
	{EvFailed, []Stage{Provisioning, Running}, Failed, false, "the work failed, or its workers were lost too often"},
	{EvCancelled, []Stage{Requested, Scheduled, Provisioning, Running}, Cancelled, false, "cancelled; after the hand-off only once nothing is left running"},
	{EvTimedOut, []Stage{Requested, Scheduled, Provisioning, Running}, TimedOut, false, "a deadline passed"},
	{EvRequested, []Stage{Failed, TimedOut, Provisioning, Running}, Requested, true, "the next attempt: a retry, or recovery from a lost owner"},
}

func Moves() []Move { return slices.Clone(moves) }

// marks are the events that do not change the stage, with the stages in which they may occur.
var marks = map[EventType][]Stage{
	EvWaiting:  {Requested},
	EvLost:     {Provisioning, Running},
	EvAdvanced: {Running},
	EvProgress: {Provisioning, Running},
	EvPaused:   {Requested, Scheduled, Running},
	EvResumed:  {Requested, Scheduled, Running},
}

// Next is the stage after event t in stage s, and whether t opens an attempt. An event that the tables do not allow is
// an error wrapping ErrIllegalMove.
func Next(s Stage, t EventType) (Stage, bool, error) {
	for _, m := range moves {
		if m.Event == t && slices.Contains(m.From, s) {
			return m.To, m.Opens, nil
		}
	}
	if slices.Contains(marks[t], s) {
		return s, false, nil
	}
	return 0, false, fmt.Errorf("%w: %q while %s", ErrIllegalMove, t, s)
}
