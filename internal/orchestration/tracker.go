package orchestration

import (
	"slices"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// Tracker keeps the progress of a workflow between steps. After a change of one task it checks that task and, if the
// task has ended, those that need it: a workflow of 4,000 tasks costs as much for each end as one of four. Between two
// calls of Next the state changes only by Take, with the step that Next returned, and by Ended; after other changes
// call Reset.
type Tracker struct {
	w  *definition.Workflow
	st *State

	tasks     []tracked
	due       []int32 // tasks to check, by their position in Workflow.Order
	left      []int32 // of Next: tasks to check again
	failing   bool    // some task makes the workflow fail
	cleaning  bool    // State.Cleaning when all tasks were checked
	undecided int     // tasks that have no status
}

// tracked is what the tracker knows of one task.
type tracked struct {
	position int32 // in Workflow.Order
	needs    int32 // tasks among its needs that have no status
	means    uint8 // its effect on the tasks that need it
	due      bool
}

func Track(w *definition.Workflow, st *State) *Tracker {
	k := &Tracker{w: w, st: st, tasks: make([]tracked, len(w.Tasks))}
	for position, i := range w.Order {
		k.tasks[i].position = int32(position)
	}
	k.Reset()
	return k
}

func (k *Tracker) State() *State { return k.st }

// Reset makes the tracker check every task again.
func (k *Tracker) Reset() {
	k.undecided, k.failing, k.cleaning = len(k.tasks), false, k.st.Cleaning
	k.due = k.due[:0]
	for position, i := range k.w.Order {
		t := &k.tasks[i]
		t.needs, t.means, t.due = int32(len(k.w.Tasks[i].Needs)), 0, true
		k.due = append(k.due, int32(position))
	}
}

func (k *Tracker) Ended(task int, as flow.Stage) {
	p := &k.st.Tasks[task]
	p.Open--
	switch as {
	case flow.Completed:
		p.Completed++
	case flow.Failed:
		p.Failed++
	case flow.Cancelled:
		p.Cancelled++
	case flow.TimedOut:
		p.TimedOut++
	}
	k.look(task)
}

// look adds a task to those to check.
func (k *Tracker) look(task int) {
	t := &k.tasks[task]
	if t.due {
		return
	}
	t.due = true
	at, _ := slices.BinarySearch(k.due, t.position)
	k.due = slices.Insert(k.due, at, t.position)
}

// Next returns the next step. The caller must take it before the next call.
func (k *Tracker) Next() Step {
	if k.st.Ending != 0 && !k.st.Cleaning {
		return end(k.w, k.st)
	}
	if k.st.Cleaning != k.cleaning {
		k.Reset() // for every task: those that have not started are decided again
	}
	if !k.failing && k.startsFailing() {
		k.Reset() // for every task: those that have not started are decided again
		k.failing = true
	}
	var s Step
	left := k.left[:0] // a task with work is checked again once the work is done
	for n := 0; n < len(k.due); n++ {
		position := k.due[n]
		i := k.w.Order[position]
		if k.step(i, &s) {
			left = append(left, position)
		} else {
			k.tasks[i].due = false
		}
	}
	k.due, k.left = append(k.due[:0], left...), left
	if k.undecided == 0 {
		if s.Done = outcome(k.st, k.failing); k.st.Ending != 0 {
			s.Done = k.st.Ending
		}
	}
	return s
}

// startsFailing reports whether one of the tasks to check makes the workflow fail.
func (k *Tracker) startsFailing() bool {
	return slices.ContainsFunc(k.due, func(position int32) bool {
		i := k.w.Order[position]
		return fails(k.w.Tasks[i], &k.st.Tasks[i])
	})
}

// step adds the work of one task, and reports whether there is any.
func (k *Tracker) step(i int, s *Step) (busy bool) {
	t, p := k.w.Tasks[i], &k.st.Tasks[i]
	if !p.started() && k.tasks[i].needs > 0 {
		return false // the end of its last need makes it due again
	}
	before, narrowed := k.before(t), k.failing || k.st.Cleaning
	if !p.started() {
		mark, start := k.decide(t, before)
		busy = true
		if mark == Unmarked {
			s.Start = append(s.Start, start)
			return busy
		}
		s.Marks = append(s.Marks, Marking{Task: i, Mark: mark})
		p = &Progress{Mark: mark}
	}
	status := p.status(t, narrowed)
	switch {
	case status == "" && p.undecided(t) && k.st.Cleaning && !t.If.Survives():
		s.Marks = append(s.Marks, Marking{Task: i, Mark: Cancelled})
		marked := *p
		marked.Mark = Cancelled
		p, busy = &marked, true
		status = p.status(t, narrowed)
	case status == "" && p.undecided(t):
		s.Judge = append(s.Judge, i)
		busy = true
	case status == "":
		busy = k.runs(t, p, s)
	}
	k.mean(t, meaning(t, p, status, before, k.failing))
	return busy
}

// runs adds the work of a running task, and reports whether there is any.
func (k *Tracker) runs(t *definition.Task, p *Progress, s *Step) (busy bool) {
	limit := t.InFlight
	if t.InFlightOf != nil {
		limit = p.Open + 1 // only Take can tell
	}
	if room(t, p, k.failing || k.st.Cleaning, limit) > 0 {
		s.More = append(s.More, t.Index)
		busy = true
	}
	switch {
	case p.Open == 0 || t.If.Survives():
	case k.st.Cleaning && !k.st.Stopped:
		s.Cancel = append(s.Cancel, t.Index)
		busy = true
	case k.failing && !k.st.Cleaning && !k.st.Recalled:
		s.Recall = append(s.Recall, t.Index)
		busy = true
	}
	return busy
}

// before is the effect of a task's needs on it.
func (k *Tracker) before(t *definition.Task) uint8 {
	all, some := ended|ok, uint8(0)
	for _, n := range t.Needs {
		all &= k.tasks[n].means
		some |= k.tasks[n].means
	}
	return all | some&(failedHere|cancelledAt)
}

// mean records the effect of a task on those that need it.
func (k *Tracker) mean(t *definition.Task, means uint8) {
	was := k.tasks[t.Index].means
	k.tasks[t.Index].means = means
	if means&ended == 0 || was&ended != 0 {
		return
	}
	k.undecided--
	for _, s := range t.Successors {
		k.tasks[s].needs--
		if k.tasks[s].needs == 0 {
			k.look(s)
		}
	}
}

// Task is the index of the task with a name; -1 if there is none.
func (k *Tracker) Task(name string) int {
	if t := k.w.Task(name); t != nil {
		return t.Index
	}
	return -1
}
