// Package verification compares the stored state of executions with the lifecycle's tables. It is pure: a backend loads the rows and calls
// it.
package verification

import (
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Most is the number of violations after which a check stops.
const Most = 1000

// Findings collects what a check found. It is for one goroutine.
type Findings struct {
	All []store.Violation

	rates   map[string]*slots // by key
	metered int               // executions with a slot
	paused  map[subject][]span
	claims  []claim // made while their queues or actions were paused
}

// Add records that an execution violates an invariant, given by its number in docs/invariants.md.
func (f *Findings) Add(invariant int, id flow.ID, format string, args ...any) {
	f.All = append(f.All, store.Violation{Invariant: invariant, Execution: id, Say: fmt.Sprintf(format, args...)})
}

// Full reports whether the check should stop.
func (f *Findings) Full() bool { return len(f.All) >= Most }

// Execution checks one execution, loaded with its outcome, and its whole history in order.
func Execution(f *Findings, x *flow.Execution, events []flow.Event) {
	checkPlace(f, x)
	checkLimits(f, x)
	checkRate(f, x)
	checkPaused(f, x, events)
	checkReused(f, x, events)
	replay(f, x, events)
}

var stagesOf = map[flow.Place][]flow.Stage{
	flow.Delayed:  {flow.Requested},
	flow.Waiting:  {flow.Requested, flow.Scheduled}, // it was put aside in its queue, and its key was full when it was tried again
	flow.Ready:    {flow.Scheduled},
	flow.Held:     {flow.Provisioning, flow.Running},
	flow.Finished: {flow.Completed, flow.Failed, flow.Cancelled, flow.TimedOut},
}

func checkPlace(f *Findings, x *flow.Execution) {
	switch {
	case x.Place == 0 && x.Stage == flow.Requested:
		// Accepted, and not placed yet: the decision takes several transactions.
	case x.Place == flow.Delayed && x.Stage == flow.Scheduled && x.Aside != nil:
		// It was put aside and taken out of its queue.
	case !slices.Contains(stagesOf[x.Place], x.Stage):
		f.Add(13, x.ID, "it is %s and its place is %d: a slot is held exactly while scheduled, provisioning or running", x.Stage, x.Place)
	}
	if x.Place != flow.Held && !x.Owner.IsZero() {
		f.Add(3, x.ID, "it is %s and has the owner %s", x.Stage, x.Owner.Text(flow.SessionPrefix))
	}
	if x.Place == flow.Held && x.Owner.IsZero() && !x.Kind.ByEngine() {
		f.Add(3, x.ID, "it is %s and nobody owns it", x.Stage)
	}
	held, _ := flow.PausedAction(x.Queue)
	if x.Kind.ByEngine() && (x.Place == flow.Ready && held != x.Action || !x.Owner.IsZero()) {
		f.Add(47, x.ID, "the engine runs a %s itself, and it stands in a queue or a worker owns it", x.Kind)
	}
	if x.Place == flow.Finished && (x.FinishedAt.IsZero() || x.Outcome == nil) {
		f.Add(2, x.ID, "it is %s without a time or an outcome", x.Stage)
	}
	if o := x.Outcome; x.Place == flow.Finished && o != nil && (o.Error == nil) != (x.Stage == flow.Completed) {
		f.Add(2, x.ID, "it is %s, and an outcome has an error exactly where it is not completed", x.Stage)
	}
}

// Row is the state of one item in a workflow's rows.
type Row struct {
	Lives, Ended bool       // of the workflow
	Names        bool       // the row of the item names this execution
	As           flow.Stage // stage in which the item has ended; 0: unfinished
}

// Item compares an execution with its row in its workflow.
func Item(f *Findings, x *flow.Execution, r Row) {
	want := flow.Stage(0)
	if x.Place == flow.Finished {
		want = x.Stage
	}
	switch {
	case !r.Lives && !r.Ended:
		f.Add(17, x.ID, "its workflow %s does not exist", x.Parent)
	case !r.Names:
		f.Add(17, x.ID, "item %d of task %q of %s is another execution", x.Index, x.Task, x.Parent)
	case r.As != want:
		f.Add(33, x.ID, "it is %s and its workflow's row says %d", x.Stage, r.As)
	case !r.Lives && x.Place != flow.Finished:
		f.Add(20, x.Parent, "it has ended and its child %s has not", x.ID)
	}
}

// Inbox compares the number of stored events after a gap with the execution's count of them.
func Inbox(f *Findings, x *flow.Execution, kept int) {
	if kept != int(x.Inbox) {
		f.Add(33, x.ID, "it counts %d kept events and has %d", x.Inbox, kept)
	}
	if x.Inbox > flow.InboxLimit {
		f.Add(28, x.ID, "%d events are kept ahead of a gap: at most %d", x.Inbox, flow.InboxLimit)
	}
}

// Inquiry compares an execution that asks with its inquiry, which is nil if there is none.
func Inquiry(f *Findings, x *flow.Execution, i *flow.Inquiry) {
	open := i != nil && i.State == flow.InquiryOpen
	switch {
	case x.Place == flow.Held && !open:
		f.Add(44, x.ID, "it waits for an answer, and has no open inquiry")
	case x.Place != flow.Held && open:
		f.Add(44, x.ID, "it is %s, and %s is open", x.Stage, i.ID.Text(flow.InquiryPrefix))
	case i != nil && i.Answer != nil:
		as, outcome, err := i.Answer.Outcome()
		if err != nil || x.Stage != as || x.Outcome == nil || string(x.Outcome.Output) != string(outcome.Output) {
			f.Add(44, x.ID, "it is %s, which is not what follows from the answer of %s", x.Stage, i.ID.Text(flow.InquiryPrefix))
		}
	}
}

// Wait compares an execution that waits for a signal with its wait, which is nil if there is none.
func Wait(f *Findings, x *flow.Execution, w *flow.Wait) {
	open := w != nil && w.Signal == 0
	if w != nil && w.Damage != "" {
		f.Add(32, x.ID, "its wait cannot be read: %s", w.Damage)
	}
	switch {
	case x.Place == flow.Held && !open:
		f.Add(44, x.ID, "it waits for a signal, and has no open wait")
	case x.Place != flow.Held && open:
		f.Add(44, x.ID, "it is %s, and its wait is open", x.Stage)
	case w != nil && w.Signal != 0 && x.Stage != flow.Completed:
		f.Add(44, x.ID, "it is %s, and its wait has taken signal %d", x.Stage, w.Signal)
	}
}

// RuleStart is the enforcement that an execution leads.
type RuleStart struct {
	Rule   string
	Signal flow.ID // zero: it does not exist, which another check reports
}

// Enforcement compares an execution without a parent with the enforcement that it leads, or nil if none. there means that the signal
// for which it was started exists and was matched with the rules.
func Enforcement(f *Findings, x *flow.Execution, start *RuleStart, there bool) {
	switch {
	case start == nil && there:
		f.Add(39, x.ID, "a rule has started it for %s, and there is no enforcement that says so", x.Signal.Text(flow.SignalPrefix))
	case start == nil || start.Signal.IsZero():
	case x.Signal != start.Signal || len(x.Rules) == 0 || x.Rules[len(x.Rules)-1] != start.Rule:
		f.Add(39, x.ID, "rule %s has started it for %s, and it says %v for %s", start.Rule, start.Signal.Text(flow.SignalPrefix), x.Rules,
			x.Signal.Text(flow.SignalPrefix))
	}
}

// checkReused checks that an execution that reused an outcome or got a supplied output did nothing else, and that no other execution did
// that.
func checkReused(f *Findings, x *flow.Execution, events []flow.Event) {
	given := slices.ContainsFunc(events, func(e flow.Event) bool { return e.Type == flow.EvOverridden })
	reused := slices.ContainsFunc(events, func(e flow.Event) bool { return e.Type == flow.EvReused })
	switch {
	case given != x.WasOverridden() || given && (len(events) != 2 || x.Stage != flow.Completed || !x.ClaimedAt.IsZero() ||
		!x.StartedAt.IsZero()):
		f.Add(59, x.ID, "its output was given by %q, and its history does not say that it ended with that and did nothing else",
			x.AsRerun().OverriddenBy)
	case reused && x.ReusedOf.IsZero():
		f.Add(59, x.ID, "it ended with another's outcome and does not name whose")
	case x.ReusedOf.IsZero():
	case !reused || len(events) != 2 || x.Stage != flow.Completed || !x.ClaimedAt.IsZero() || !x.StartedAt.IsZero():
		f.Add(59, x.ID, "it reuses the outcome of %s, and its history does not say that it ended with that and did nothing else", x.ReusedOf)
	}
}

// Reused compares the outcome of an execution with the outcome that it reused.
func Reused(f *Findings, x, of *flow.Execution) {
	switch {
	case of.Stage != flow.Completed:
		f.Add(59, x.ID, "it reuses the outcome of %s, which is %s", of.ID, of.Stage)
	case !of.ReusedOf.IsZero():
		f.Add(59, x.ID, "it reuses the outcome of %s, which itself reused that of %s", of.ID, of.ReusedOf)
	case x.Cached() && x.NoCache:
		f.Add(67, x.ID, "it ended with what was kept of %s, and was to run without the cache", of.ID)
	case x.Cached() && (of.Cache == nil || x.Cache.Hash != of.Cache.Hash):
		f.Add(67, x.ID, "it ended with what was kept of %s, which had something else to do", of.ID)
	case x.Outcome != nil && of.Outcome != nil && string(x.Outcome.Output) != string(of.Outcome.Output):
		f.Add(59, x.ID, "it reuses the outcome of %s, and its output is another", of.ID)
	}
}

func checkLimits(f *Findings, x *flow.Execution) {
	if most := max(x.Retry.Attempts(flow.CodeWorkerLost), x.Retry.Attempts("")); x.Spent() > most {
		f.Add(22, x.ID, "it is in attempt %d of %d", x.Spent(), most)
	}
	if x.Stage != flow.TimedOut || x.Outcome == nil || x.Outcome.Error == nil {
		return
	}
	deadline := x.CreatedAt
	switch x.Outcome.Error.Code {
	case flow.CodeQueueTimeout:
		deadline = x.QueueDeadline()
	case flow.CodeTotalTimeout:
		deadline = x.TotalDeadline()
	}
	if x.FinishedAt.Before(deadline) {
		f.Add(24, x.ID, "it ended with %s at %s, before its deadline %s", x.Outcome.Error.Code, x.FinishedAt, deadline)
	}
}

// replay applies the history to the lifecycle's tables and compares the result with the stored state.
func replay(f *Findings, x *flow.Execution, events []flow.Event) {
	var stage flow.Stage
	attempt := 0
	for i, e := range events {
		if e.Seq != int64(i+1) {
			f.Add(6, x.ID, "event %d stands in place %d of the history", e.Seq, i+1)
			return
		}
		to, opens, err := flow.Next(stage, e.Type)
		if err != nil {
			f.Add(1, x.ID, "event %d: %v", e.Seq, err)
			return
		}
		if opens {
			attempt++
		}
		stage = to
		if i > 0 && e.At.Before(events[i-1].At) {
			f.Add(37, x.ID, "event %d was at %s, before event %d at %s", e.Seq, e.At, e.Seq-1, events[i-1].At)
		}
		if e.Attempt != attempt {
			f.Add(4, x.ID, "event %d is of attempt %d, in attempt %d", e.Seq, e.Attempt, attempt)
		}
	}
	if x.NextSeq != int64(len(events)+1) {
		f.Add(6, x.ID, "it has %d events and expects number %d next", len(events), x.NextSeq)
	}
	if stage != x.Stage || attempt != x.Attempt {
		f.Add(1, x.ID, "its history leads to %s in attempt %d; it is %s in attempt %d", stage, attempt, x.Stage, x.Attempt)
	}
}
