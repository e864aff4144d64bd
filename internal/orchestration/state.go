// Package orchestration decides what a workflow does next. It is pure: the engine loads the outcomes of the tasks, asks
// Next for the next step, loads the outputs that this needs, lets Take plan the children to create, and commits the
// plan. The same state always gives the same plan, so a plan that was lost, or made twice, does no harm.
package orchestration

import (
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// Mark is a stored decision about a task that its children do not show.
type Mark uint8

const (
	Unmarked   Mark = iota
	Expanded        // a foreach with a known number of children (Total)
	Skipped         // its condition did not hold
	Cancelled       // the workflow failed, or was ended, before the task could start
	Broken          // one of its expressions failed, see Error. Nothing more of it starts
	Reached         // the `until` of its repeat held after its latest round
	NotReached      // its repeat has had all its rounds, or all its time, see Error
	marks
)

var markNames = [marks]string{"", "expanded", "skipped", "cancelled", "broken", "reached", "not_reached"}

// MarkNamed is the mark with a stored name; Unmarked for every other text.
func MarkNamed(name string) Mark {
	for m := range marks {
		if markNames[m] == name {
			return m
		}
	}
	return Unmarked
}

// String is the mark's name, in its stored and shown form.
func (m Mark) String() string {
	if int(m) < len(markNames) {
		return markNames[m]
	}
	return "unknown"
}

// Progress is the progress of one task. The zero value is a task about which nothing is decided.
type Progress struct {
	Mark  Mark
	Total int // children in all, of an Expanded task
	// Created counts the children so far; their indices are 0..Created-1.
	Created int
	Open    int // children that have not ended
	// The children that have ended, by outcome.
	Completed, Failed, Cancelled, TimedOut int
	// Error is why the child ErrorIndex ended as ErrorStage, chosen by Blame; for a Broken task, the expression's error;
	// for one that is NotReached, why there are no more rounds.
	Error      *flow.Error
	ErrorIndex int
	ErrorStage flow.Stage
}

// Messages of children that are cancelled because the workflow cannot complete any more.
const (
	AfterFailure = "the workflow failed"
	AfterCancel  = "a task of the workflow was cancelled"
)

// Blame records why a child ended. The task's error is that of the failure or timeout with the lowest index. A cancelled child counts only
// if none failed, and one that was cancelled because of another child only if there is no other: a failure cancels the waiting items, so an
// item 0 that waited for its retry would otherwise hide the failure of item 1.
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

// blameless is how little a child's end explains the end of its task: 0 if it failed or timed out, 1 if it was cancelled, 2 if it was
// cancelled because of another.
func blameless(as flow.Stage, why *flow.Error) int {
	switch {
	case as != flow.Cancelled:
		return 0
	case why.Code == flow.CodeCancelled && (why.Message == AfterFailure || why.Message == AfterCancel):
		return 2
	}
	return 1
}

// Unexplained reports whether children of the task have ended without success and Error is not known yet.
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

type State struct {
	// Tasks has the indexes of Workflow.Tasks.
	Tasks []Progress
	// Ending is flow.Cancelled or flow.TimedOut if the execution must end early, with Reason; otherwise the zero stage.
	Ending flow.Stage
	Reason *flow.Error
	// Recalled means that a Recall was completed: workers hold all remaining children. Stopped means the same of a Cancel:
	// every open child has been ordered to end.
	Recalled, Stopped bool
	// Cleaning means that the execution, which must end early, first runs the tasks whose conditions survive that. CleanedUp means that the
	// clean-up is over, or is skipped.
	Cleaning, CleanedUp bool
}

// Cleans reports whether a task whose condition survives the early end of the workflow still has to run, or is running.
func (st *State) Cleans(w *definition.Workflow) bool {
	for i, t := range w.Tasks {
		if p := &st.Tasks[i]; t.If.Survives() && !t.LeftOut && (!p.started() || st.Status(w, i) == "") {
			return true
		}
	}
	return false
}

// unsuccessful reports whether a child of the task failed.
func (p *Progress) unsuccessful() bool {
	return p.Mark == Broken || p.Mark == NotReached || p.Failed+p.TimedOut > 0
}

// fails reports whether the task makes its workflow fail.
func fails(t *definition.Task, p *Progress) bool {
	return p.unsuccessful() && !t.ContinueOnError
}

// Failing reports whether a task makes the workflow fail. From then on only tasks whose condition survives a failure
// are started.
func (st *State) Failing(w *definition.Workflow) bool {
	for i := range st.Tasks {
		if fails(w.Tasks[i], &st.Tasks[i]) {
			return true
		}
	}
	return false
}

// narrowed reports whether only tasks with surviving conditions may start: the workflow is failing, cleaning up, or has cleaned up.
func (st *State) narrowed(w *definition.Workflow) bool {
	return st.Cleaning || st.CleanedUp || st.Failing(w)
}

// started reports whether the task does not wait for others any more.
func (p *Progress) started() bool { return p.Mark != Unmarked || p.Created > 0 }

// stopped reports whether a foreach creates no more children.
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

// status is the status of the task; "" if it has not ended.
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

// rounds is the status of a repeated task without an open round; "" if the next round is undecided. A task that is Reached has completed,
// whatever its earlier rounds did: only with ContinueOnError can one of them have failed.
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

// undecided reports whether a repeated task waits for the decision about another round.
func (p *Progress) undecided(t *definition.Task) bool {
	return t.Repeat != nil && p.Created > 0 && p.Open == 0 && p.rounds(t) == ""
}

// interrupted reports whether part of an ended task was cancelled, or never started. ContinueOnError covers failures
// only.
func (p *Progress) interrupted() bool {
	return p.Cancelled > 0 || p.Mark == Cancelled || p.Mark == Expanded && p.Created < p.Total
}

// Status is the status of the task with an index; "" if it has not ended.
func (st *State) Status(w *definition.Workflow, task int) definition.Status {
	return st.Tasks[task].status(w.Tasks[task], st.narrowed(w))
}
