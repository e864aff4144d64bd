package replay

import (
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// endsByOrder reports whether a step is the last of a workflow that was ordered to end: it only marks tasks that never started.
func (a *attempt) endsByOrder(was *orchestration.Advance) bool {
	if was.Cleanup != "" || len(was.Started)+len(was.Expanded)+len(was.Skipped)+len(was.Broken)+len(was.Reached)+len(was.NotReached) > 0 {
		return false
	}
	n := a.w.next(1)
	return n != nil && a.ordered(n)
}

// ordered reports whether a workflow's end may have been ordered: its reason does not come from its tasks.
func (a *attempt) ordered(e *flow.Event) bool {
	switch e.Type {
	case flow.EvCancelled:
		message := textOf(e.Data, "message")
		return !slices.ContainsFunc(a.def.Tasks, func(t *definition.Task) bool { return orchestration.SaysCancelledBy(t, message) })
	case flow.EvTimedOut:
		return true
	case flow.EvFailed:
		return textOf(e.Data, "code") == flow.CodeInternal
	}
	return false
}

// order makes the workflow end as its next terminal event says. The author and the time of the order are not in its history.
func (a *attempt) order() {
	for n := range 2 {
		if e := a.w.next(n); e != nil && a.ordered(e) {
			if as, err := flow.ParseStage(string(e.Type)); err == nil {
				a.st.Ending, a.st.Reason, a.st.Cleaning = as, a.w.outcome(a.w.i+n).Error, false
			}
			return
		}
	}
}

// cleanUp makes the workflow run the tasks that survive the order to end it, if a step belongs to its clean-up, or ends the clean-up with a
// step that does not. The reason of the order is that of the end that follows.
func (a *attempt) cleanUp(e *flow.Event, was *orchestration.Advance) bool {
	a.st.Cleaning = was.Cleanup != ""
	if !a.st.Cleaning {
		return true
	}
	as, err := flow.ParseStage(was.Cleanup)
	if err != nil || !as.Terminal() || !a.st.Cleans(a.def) && a.st.Ending == 0 {
		a.diverge(Finding{Seq: e.Seq, Index: noIndex, Rules: "no clean-up", Recorded: said(e), Why: "only tasks whose conditions survive the end of the workflow are run after it was ordered"})
		return false
	}
	a.st.Ending = as
	for i := a.w.i + 1; i < len(a.w.rec.Events); i++ {
		if end := &a.w.rec.Events[i]; a.w.terminal(end) {
			a.st.Reason = a.w.outcome(i).Error
			break
		}
	}
	return true
}

// finish replays the end of a workflow's attempt.
func (a *attempt) finish(e *flow.Event, o flow.Outcome) {
	if a.lost {
		return
	}
	a.unspoken(e)
	plan := a.done
	if plan == nil {
		if plan = a.atEnd(e); plan == nil {
			a.lost = true
			return
		}
	}
	if plan.Stage.String() != string(e.Type) {
		a.w.find(e.Seq, plan.Stage.String(), string(e.Type), "that is what its tasks lead to")
		return
	}
	a.sameEnd(e, plan, &o)
}

// atEnd is the end that follows from all ends of tasks.
func (a *attempt) atEnd(e *flow.Event) *orchestration.Plan {
	for i, t := range a.def.Tasks {
		for n := range a.st.Tasks[i].Created {
			x := a.item(i, n)
			if x == nil {
				return nil // its absence has been reported
			}
			if !x.Stage.Terminal() || x.FinishedAt.After(e.At) {
				a.w.findAt(Finding{Seq: e.Seq, Task: t.Name, Index: n, Rules: "no end of the workflow", Recorded: said(e), Why: fmt.Sprintf("an execution of it had not ended (%s)", x.ID)})
				return nil
			}
		}
	}
	nothing := &orchestration.Advance{}
	a.keep()
	if plan := a.try(nothing, func() { a.takeAll(e.At) }); plan != nil && plan.Stage.String() == string(e.Type) && a.saysSo(e, plan) {
		return plan
	}
	a.back()
	if a.ordered(e) {
		if plan := a.try(nothing, func() { a.order(); a.takeAll(e.At) }); plan != nil && plan.Stage != 0 {
			return plan
		}
		a.back()
		if plan := a.unmarked(e); plan != nil {
			return plan
		}
	}
	a.takeAll(e.At)
	plan := a.take(0, nil)
	if does := a.of(plan); len(does.Tasks()) > 0 {
		f := Finding{Seq: e.Seq, Index: noIndex, Rules: stepText(does), Recorded: said(e), Why: "something was left to do"}
		f.Task = does.Tasks()[0]
		a.w.findAt(f)
		return nil
	}
	if plan.Stage == 0 {
		a.w.find(e.Seq, "no end of the workflow", said(e), "not all of its tasks have ended")
		return nil
	}
	return plan
}

// unmarked is the end, by order, of a workflow that did not mark its unstarted tasks: the engine ends a workflow so if it cannot read its
// definition.
func (a *attempt) unmarked(e *flow.Event) *orchestration.Plan {
	a.order()
	a.takeAll(e.At)
	plan := a.take(0, nil)
	if does := a.of(plan); plan.Stage == 0 || len(does.Cancelled) != len(does.Tasks()) {
		a.back()
		return nil
	}
	a.w.unknown(Unknown{Seq: e.Seq, Index: noIndex, What: "it ended as ordered without a mark on what never started: it follows if its definition could not be read then, which is not recorded"})
	return plan
}

// saysSo reports whether a workflow's own end, and not an ordered one, has this reason.
func (a *attempt) saysSo(e *flow.Event, plan *orchestration.Plan) bool {
	return !a.ordered(e) || plan.Outcome.Error == nil || plan.Outcome.Error.Code == textOf(e.Data, "code") && plan.Outcome.Error.Message == textOf(e.Data, "message")
}

// sameEnd compares the outcome that follows with the recorded one.
func (a *attempt) sameEnd(e *flow.Event, plan *orchestration.Plan, was *flow.Outcome) {
	last := a.w.i == len(a.w.rec.Events)-1
	if rules := plan.Outcome.Error; rules != nil || was.Error != nil {
		if rules == nil || was.Error == nil || rules.Code != was.Error.Code || rules.Message != was.Error.Message && !a.anotherItem(was.Error.Message) {
			a.w.find(e.Seq, errorText(rules), errorText(was.Error), "the outcome follows from the tasks and from the definition's outputs")
		}
	}
	if last && !sameJSON(plan.Outcome.Output, was.Output) {
		a.w.find(e.Seq, "output "+flow.Clipped(string(plan.Outcome.Output), 300), "output "+flow.Clipped(string(was.Output), 300), "the definition makes another output of what the tasks put out")
	}
}

// anotherItem reports whether an error names another item of the first task that failed: which of several came first depends on the times
// of their ends, and any of them may be named. Older histories name no item of a cancelled task.
func (a *attempt) anotherItem(message string) bool {
	if slices.ContainsFunc(a.def.Tasks, func(t *definition.Task) bool { return message == orchestration.CancelledBy(t, 0, nil) }) {
		return true
	}
	for i, t := range a.def.Tasks {
		p := &a.st.Tasks[i]
		if t.ContinueOnError || p.Mark != orchestration.Broken && p.Mark != orchestration.NotReached && p.Failed+p.TimedOut == 0 {
			continue
		}
		for n := range p.Created {
			x := a.item(i, n)
			if t.Foreach == nil || x == nil || x.Outcome == nil || x.Outcome.Error == nil {
				continue
			}
			if message == orchestration.FailedBy(t, n, x.Outcome.Error) {
				return true
			}
		}
		return false
	}
	return false
}

func errorText(e *flow.Error) string {
	if e == nil {
		return "no error"
	}
	return "error " + flow.Clipped(e.Error(), 300)
}
