// Package orchestration decides what a workflow does next. It is pure: the
// engine loads what became of the tasks, asks Next what there is to do, loads
// the outputs that this needs, lets Take work out the children to create, and
// commits the plan. The same state always gives the same plan, so a plan that
// was lost, or worked out twice, does no harm.
package orchestration

import (
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// Mark is a stored decision about a task that its children do not show.
type Mark uint8

// The marks.
const (
	Unmarked   Mark = iota
	Expanded        // a foreach whose number of children (Total) is known
	Skipped         // its condition did not hold
	Cancelled       // the workflow failed, or was ended, before the task could start
	Broken          // one of its expressions failed; Error says which. Nothing more of it starts
	Reached         // the `until` of its repeat held over its latest round
	NotReached      // its repeat has had all its rounds, or all its time; Error says so
	marks
)

var markNames = [marks]string{"", "expanded", "skipped", "cancelled", "broken", "reached", "not_reached"}

// MarkNamed is the mark with a name, as it is stored; Unmarked for every other text.
func MarkNamed(name string) Mark {
	for m := range marks {
		if markNames[m] == name {
			return m
		}
	}
	return Unmarked
}

// String is the mark's name, as it is stored and shown.
func (m Mark) String() string {
	if int(m) < len(markNames) {
		return markNames[m]
	}
	return "unknown"
}

// Progress is how far one task has come. The zero value is a task that has not
// been looked at.
type Progress struct {
	Mark  Mark
	Total int // children in all, of an Expanded task
	// Created counts the children so far; their indices are 0..Created-1.
	Created int
	Open    int // children that have not ended
	// The children that have ended, by outcome.
	Completed, Failed, Cancelled, TimedOut int
	// Error is why the child with the index ErrorIndex ended as ErrorStage, as
	// Blame chooses it; of a Broken task, the expression's error; of one that is
	// NotReached, why there is no further round.
	Error      *flow.Error
	ErrorIndex int
	ErrorStage flow.Stage
}

// Messages of children that are cancelled because the workflow cannot complete any more.
const (
	AfterFailure = "the workflow failed"
	AfterCancel  = "a task of the workflow was cancelled"
)

// Blame takes note of why a child ended. The task's error is that of the failure or timeout with the lowest index. A child that was
// cancelled counts only where none failed, and one that was cancelled because of another child only where there is no other: a failure
// cancels the items that wait, so an item 0 that waited for its retry would otherwise hide the failure of item 1.
func (p *Progress) Blame(index int, as flow.Stage, why *flow.Error) {
	if why == nil || p.Mark == Broken || p.Mark == NotReached {
		return
	}
	if p.Error != nil {
		was, is := blameless(p.ErrorStage, p.Error), blameless(as, why)
		if is > was || is == was && index >= p.ErrorIndex {
			return
		}
	}
	p.Error, p.ErrorIndex, p.ErrorStage = why, index, as
}

// blameless is how little a child's end explains the end of its task: 0 that of one that failed or timed out, 1 of one that was cancelled,
// 2 of one that was cancelled because of another.
func blameless(as flow.Stage, why *flow.Error) int {
	switch {
	case as != flow.Cancelled:
		return 0
	case why.Code == flow.CodeCancelled && (why.Message == AfterFailure || why.Message == AfterCancel):
		return 2
	}
	return 1
}

// Unexplained reports whether children of the task have ended without success and Error does not say why yet.
func (p *Progress) Unexplained() bool {
	if p.Error == nil {
		return p.Failed+p.TimedOut+p.Cancelled > 0
	}
	switch blameless(p.ErrorStage, p.Error) {
	case 0:
		return false
	case 1:
		return p.Failed+p.TimedOut > 0
	}
	return p.Failed+p.TimedOut > 0 || p.Cancelled > 1
}

// State is a workflow execution as it is stored.
type State struct {
	// Tasks is indexed as Workflow.Tasks.
	Tasks []Progress
	// Ending is flow.Cancelled or flow.TimedOut once the execution is to end
	// early, with Reason; the zero stage otherwise.
	Ending flow.Stage
	Reason *flow.Error
	// Recalled means that a Recall was carried out to its end: no child is
	// left that no worker holds. Stopped means the same of a Cancel: every
	// child that is open has been ordered to end.
	Recalled, Stopped bool
	// Cleaning means that the execution, which is to end early, first runs the tasks whose conditions survive that. CleanedUp
	// means that it has been decided that this is over, or does not take place.
	Cleaning, CleanedUp bool
}

// Cleans reports whether some task whose condition survives the early end of the workflow is still to be run, or runs.
func (st *State) Cleans(w *definition.Workflow) bool {
	for i, t := range w.Tasks {
		if p := &st.Tasks[i]; t.If.Survives() && !t.LeftOut && (!p.started() || st.Status(w, i) == "") {
			return true
		}
	}
	return false
}

// unsuccessful reports whether something of the task failed.
func (p *Progress) unsuccessful() bool {
	return p.Mark == Broken || p.Mark == NotReached || p.Failed+p.TimedOut > 0
}

// fails reports whether the task makes its workflow fail.
func fails(t *definition.Task, p *Progress) bool {
	return p.unsuccessful() && !t.ContinueOnError
}

// Failing reports whether some task makes the workflow fail. From then on only
// tasks whose condition survives a failure are started.
func (st *State) Failing(w *definition.Workflow) bool {
	for i := range st.Tasks {
		if fails(w.Tasks[i], &st.Tasks[i]) {
			return true
		}
	}
	return false
}

// narrowed reports whether only tasks whose conditions survive are started, if any: the workflow is failing, cleaning up, or has
// cleaned up.
func (st *State) narrowed(w *definition.Workflow) bool {
	return st.Cleaning || st.CleanedUp || st.Failing(w)
}

// started reports whether the task has left the stage of waiting for others.
func (p *Progress) started() bool { return p.Mark != Unmarked || p.Created > 0 }

// stopped reports whether no more children of a foreach are created.
func (p *Progress) stopped(t *definition.Task, failing bool) bool {
	return p.Mark == Broken || fails(t, p) || failing && !t.If.Survives()
}

// remaining is how many children are still to be created.
func (p *Progress) remaining(t *definition.Task, failing bool) int {
	if p.Mark != Expanded || p.stopped(t, failing) {
		return 0
	}
	return p.Total - p.Created
}

// status is what became of the task; "" while it has not ended.
func (p *Progress) status(t *definition.Task, failing bool) definition.Status {
	switch {
	case !p.started() || p.Open > 0:
		return ""
	case p.Mark == Skipped:
		return definition.StatusSkipped
	case p.Mark == Cancelled && p.Created == 0:
		return definition.StatusCancelled
	case t.Repeat != nil:
		return p.rounds(t)
	case p.remaining(t, failing) > 0:
		return ""
	case p.Mark == Broken || p.Failed > 0:
		return definition.StatusFailed
	case p.TimedOut > 0:
		return definition.StatusTimedOut
	case p.interrupted():
		return definition.StatusCancelled
	}
	return definition.StatusCompleted
}

// rounds is what became of a repeated task no round of which is open; "" while it is to be decided whether another one follows. A task that
// is Reached has completed whatever became of the rounds before: only with ContinueOnError can one of them have failed.
func (p *Progress) rounds(t *definition.Task) definition.Status {
	switch {
	case p.Mark == Reached:
		return definition.StatusCompleted
	case p.Mark == Broken, p.Mark == NotReached:
		return definition.StatusFailed
	case p.interrupted():
		return definition.StatusCancelled
	case t.ContinueOnError:
		return ""
	case p.Failed > 0:
		return definition.StatusFailed
	case p.TimedOut > 0:
		return definition.StatusTimedOut
	}
	return ""
}

// undecided reports whether a repeated task waits for the decision whether another round follows.
func (p *Progress) undecided(t *definition.Task) bool {
	return t.Repeat != nil && p.Created > 0 && p.Open == 0 && p.rounds(t) == ""
}

// interrupted reports whether part of a task that has ended was cancelled, or
// never started. ContinueOnError is about failures and does not cover that.
func (p *Progress) interrupted() bool {
	return p.Cancelled > 0 || p.Mark == Cancelled || p.Mark == Expanded && p.Created < p.Total
}

// Status is what became of the task with the given index; "" while it has not
// ended.
func (st *State) Status(w *definition.Workflow, task int) definition.Status {
	return st.Tasks[task].status(w.Tasks[task], st.narrowed(w))
}
