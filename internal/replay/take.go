package replay

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// undo is what one try to replay a step has changed.
type undo struct {
	touched           []bool // by task
	tasks             []was  // the changed tasks, as they were
	taken             []place
	recalled, stopped bool
	cleaning          bool
	ending            flow.Stage
	reason            *flow.Error
}

// was is the earlier progress of a task.
type was struct {
	task int
	orchestration.Progress
}

// keep accepts a try.
func (a *attempt) keep() {
	for i := range a.undo.tasks {
		a.undo.touched[a.undo.tasks[i].task] = false
	}
	a.undo.tasks, a.undo.taken = a.undo.tasks[:0], a.undo.taken[:0]
	a.undo.recalled, a.undo.stopped, a.undo.ending, a.undo.reason = a.st.Recalled, a.st.Stopped, a.st.Ending, a.st.Reason
	a.undo.cleaning = a.st.Cleaning
}

// back undoes a try.
func (a *attempt) back() {
	for i := range a.undo.tasks {
		t := &a.undo.tasks[i]
		a.st.Tasks[t.task] = t.Progress
		delete(a.outputs, t.task)
	}
	for _, p := range a.undo.taken {
		it := &a.items[p.task]
		it.taken[p.index] = false
		it.first = 0
	}
	a.st.Recalled, a.st.Stopped, a.st.Ending, a.st.Reason = a.undo.recalled, a.undo.stopped, a.undo.ending, a.undo.reason
	a.st.Cleaning = a.undo.cleaning
	a.keep()
	a.tracker.Reset()
}

// touch saves a task before it is changed.
func (a *attempt) touch(task int) *orchestration.Progress {
	if !a.undo.touched[task] {
		a.undo.touched[task] = true
		a.undo.tasks = append(a.undo.tasks, was{task, a.st.Tasks[task]})
	}
	return &a.st.Tasks[task]
}

// end tells the workflow of the end of a child.
func (a *attempt) end(task, index int) {
	p, it := a.touch(task), &a.items[task]
	x := it.all[index]
	it.taken[index] = true
	a.undo.taken = append(a.undo.taken, place{task, index})
	a.tracker.Ended(task, x.Stage)
	if x.Outcome != nil {
		p.Blame(index, x.Stage, x.Outcome.Error)
	}
}

// open are the ended children of a task whose ends the workflow has not seen, by the time of their ends.
func (a *attempt) open(task int) []int {
	it := &a.items[task]
	for it.first < len(it.left) && it.taken[it.left[it.first]] {
		it.first++
	}
	return it.left[it.first:]
}

// find searches for ends, no later than an event, with which the rules do what the event says. If there are none, it reports the difference
// and returns nil.
func (a *attempt) find(e *flow.Event, was *orchestration.Advance) *orchestration.Plan {
	a.keep()
	if f := a.tooEarly(e, was); f != nil {
		a.w.findAt(*f)
		return nil
	}
	if a.lost {
		return nil
	}
	if a.endsByOrder(was) {
		if plan := a.try(was, func() { a.order(); a.takeAll(e.At) }); plan != nil {
			return plan
		}
	}
	// First the ends that the step needs; only then those that it may have seen as well.
	needed := func() { a.takeNeeded(e.At, was) }
	if plan := a.try(was, needed); plan != nil {
		return plan
	}
	failures := a.failures(e.At)
	for n := range min(len(failures), triedFailures) {
		if plan := a.try(was, func() { needed(); a.takeEach(failures[:n+1]) }); plan != nil {
			return plan
		}
	}
	if plan := a.try(was, func() { needed(); a.takeEach(failures) }); plan != nil {
		return plan
	}
	if plan := a.try(was, func() { a.takeAll(e.At) }); plan != nil {
		return plan
	}
	needed()
	plan := a.take(0, nil)
	rules := a.of(plan)
	f := Finding{Seq: e.Seq, Index: noIndex, Rules: stepText(rules), Recorded: stepText(was), Why: "no order of the ends recorded until then makes the rules do this"}
	if task, why := a.first(rules, was, plan); task != "" {
		f.Task, f.Why = task, why
	}
	a.back()
	a.w.findAt(f)
	return nil
}

// triedFailures is how many failures are tried one at a time before all are tried at once.
const triedFailures = 32

// try replays a step after the workflow has seen some ends; nil: then the rules do something else. A step that was too large for its
// transaction has done the first part of what the rules say.
func (a *attempt) try(was *orchestration.Advance, tell func()) *orchestration.Plan {
	tell()
	if plan := a.take(0, was); plan != nil && plan.Does(a.def, was) {
		return plan
	}
	a.back()
	if n := children(was); n > 0 {
		tell()
		if plan := a.take(n, was); plan != nil && plan.Does(a.def, was) {
			return plan
		}
		a.back()
	}
	return nil
}

// take lets the rules make a step, with at most so many children; 0: all. With a sought step it may give up before it evaluates anything:
// nil means that the rules do something else.
func (a *attempt) take(children int, sought *orchestration.Advance) *orchestration.Plan {
	plan := &orchestration.Plan{}
	for {
		next := a.tracker.Next()
		if next.Empty() {
			return plan
		}
		if sought != nil && children == 0 && !a.mayDo(&next, sought) {
			return nil
		}
		for _, m := range next.Marks {
			a.touch(m.Task)
		}
		for _, s := range next.Start {
			a.touch(s.Task)
		}
		for _, i := range next.More {
			a.touch(i)
		}
		for _, i := range next.Judge {
			a.touch(i)
		}
		if children > 0 {
			if a.facts.Most = children - len(plan.Children); a.facts.Most == 0 {
				return plan
			}
		} else {
			a.facts.Most = 0
		}
		if !orchestration.Take(a.def, a.st, next, &a.facts, plan) || plan.Stage != 0 {
			return plan
		}
	}
}

// mayDo reports whether a step that begins with next can do what is sought. A step without a bound names every task that is marked without
// an evaluation, and every task whose needs have ended.
func (a *attempt) mayDo(next *orchestration.Step, sought *orchestration.Advance) bool {
	for _, m := range next.Marks {
		if !sought.Names(a.def.Tasks[m.Task].Name) {
			return false
		}
	}
	for _, s := range next.Start {
		if !sought.Names(a.def.Tasks[s.Task].Name) {
			return false
		}
	}
	return true
}

// tooEarly checks whether everything before the tasks of a step had ended by then.
func (a *attempt) tooEarly(e *flow.Event, was *orchestration.Advance) *Finding {
	for _, t := range a.named {
		name := t.Name
		if p := &a.st.Tasks[t.Index]; p.Created > 0 || p.Mark != orchestration.Unmarked {
			continue // checked when it began
		}
		for _, n := range t.Needs {
			p, need := &a.st.Tasks[n], a.def.Tasks[n]
			for i := range p.Created {
				x := a.item(n, i)
				switch {
				case x == nil:
					a.w.unknown(Unknown{Seq: e.Seq, Task: need.Name, Index: i, What: fmt.Sprintf("its execution is not there, so what %s was started with is not known", name)})
					a.lost = true
					return nil
				case !x.Stage.Terminal():
					return &Finding{Seq: e.Seq, Task: name, Index: noIndex, Rules: "nothing before " + need.Name + " has ended", Recorded: stepText(was),
						Why: fmt.Sprintf("%s[%d], which it needs, has not ended (%s)", need.Name, i, x.ID)}
				case x.FinishedAt.After(e.At):
					return &Finding{Seq: e.Seq, Task: name, Index: noIndex, Rules: "not before " + clock(x.FinishedAt), Recorded: "at " + clock(e.At),
						Why: fmt.Sprintf("%s[%d], which it needs, ended later (%s)", need.Name, i, x.ID)}
				}
			}
		}
	}
	return nil
}

func (a *attempt) item(task, index int) *flow.Execution {
	if all := a.items[task].all; index < len(all) {
		return all[index]
	}
	return nil
}

// takeNeeded shows the workflow the ends without which it cannot have decided about the tasks of a step.
func (a *attempt) takeNeeded(at time.Time, was *orchestration.Advance) {
	for _, t := range a.named {
		for _, n := range t.Needs {
			for _, i := range a.open(n) {
				if !a.items[n].taken[i] && !a.items[n].all[i].FinishedAt.After(at) {
					a.end(n, i)
				}
			}
		}
		p := &a.st.Tasks[t.Index]
		if t.Repeat != nil && p.Open > 0 {
			a.takeSome(t, p.Open, at) // the round that was decided about
		}
		if n := was.Started[t.Name]; n > 0 && p.Created > 0 {
			if limit := a.limit(t); limit > 0 && p.Open+n > limit {
				a.takeSome(t, p.Open+n-limit, at)
			}
		}
	}
}

// takeSome shows the workflow the ends of some children of a task: successful ones first, and the earlier first.
func (a *attempt) takeSome(t *definition.Task, n int, at time.Time) {
	for _, failed := range []bool{false, true} {
		for _, i := range a.open(t.Index) {
			x := a.items[t.Index].all[i]
			if n > 0 && !a.items[t.Index].taken[i] && !x.FinishedAt.After(at) && (x.Stage == flow.Failed || x.Stage == flow.TimedOut) == failed {
				a.end(t.Index, i)
				n--
			}
			if n == 0 {
				return
			}
		}
	}
}

type place struct{ task, index int }

// pending are ended children whose ends the workflow has not seen, by the time of their ends.
func (a *attempt) pending(at time.Time, want func(*flow.Execution) bool) (all []place) {
	for task := range a.items {
		for _, i := range a.open(task) {
			if x := a.items[task].all[i]; !a.items[task].taken[i] && !x.FinishedAt.After(at) && want(x) {
				all = append(all, place{task, i})
			}
		}
	}
	slices.SortStableFunc(all, func(p, q place) int {
		return a.items[p.task].all[p.index].FinishedAt.Compare(a.items[q.task].all[q.index].FinishedAt)
	})
	return all
}

// failures are the pending ends without success.
func (a *attempt) failures(at time.Time) []place {
	return a.pending(at, func(x *flow.Execution) bool { return x.Stage != flow.Completed })
}

func (a *attempt) takeEach(all []place) {
	for _, p := range all {
		if !a.items[p.task].taken[p.index] {
			a.end(p.task, p.index)
		}
	}
}

func (a *attempt) takeAll(at time.Time) {
	a.takeEach(a.pending(at, func(*flow.Execution) bool { return true }))
}

// limit is how many items of a foreach may be open at once; 0: all. It never changes during an attempt.
func (a *attempt) limit(t *definition.Task) int {
	if t.InFlightOf == nil {
		return t.InFlight
	}
	n, ok := a.limits[t.Index]
	if !ok {
		var err error
		if n, err = orchestration.Limit(a.def, a.st, t, &a.facts); err != nil {
			n = 0 // the rules break the task
		}
		a.limits[t.Index] = n
	}
	return n
}

// first names a task about which the rules and the record differ.
func (a *attempt) first(rules, was *orchestration.Advance, plan *orchestration.Plan) (task, why string) {
	says := func(s *orchestration.Advance, name string) string {
		switch {
		case slices.Contains(s.Skipped, name):
			return "skipped"
		case slices.Contains(s.Cancelled, name):
			return "cancelled"
		case slices.Contains(s.Broken, name):
			return "ended by an expression that fails"
		case slices.Contains(s.Reached, name):
			return "ended because its until held"
		case slices.Contains(s.NotReached, name):
			return "ended without its until"
		}
		text := ""
		if n, ok := s.Expanded[name]; ok {
			text = fmt.Sprintf("expanded to %d items", n)
		}
		if n := s.Started[name]; n > 0 && text != "" {
			text += fmt.Sprintf(", %d of them started", n)
		} else if n > 0 {
			text = fmt.Sprintf("started (%d)", n)
		}
		return text
	}
	or := func(s string) string {
		return cmp.Or(s, "left alone")
	}
	for _, t := range a.def.Tasks {
		r, k := says(rules, t.Name), says(was, t.Name)
		if r == k {
			continue
		}
		why = fmt.Sprintf("by the rules %s is %s here, and it was %s", t.Name, or(r), or(k))
		for _, m := range plan.Marks {
			if m.Task == t.Index && m.Error != nil {
				why += ": " + m.Error.Message
			}
		}
		return t.Name, why
	}
	return "", ""
}

// lateReports is the delay from which on an end that the workflow had not seen is reported.
const lateReports = time.Minute

// late reports failures that were recorded long before the workflow saw them: the step follows only if their reports came late.
func (a *attempt) late(e *flow.Event) {
	if a.said {
		return
	}
	for _, p := range a.pending(e.At.Add(-lateReports), func(x *flow.Execution) bool { return x.Stage == flow.Failed || x.Stage == flow.TimedOut }) {
		a.said = true
		x := a.items[p.task].all[p.index]
		a.w.unknown(Unknown{Seq: e.Seq, Task: a.def.Tasks[p.task].Name, Index: p.index,
			What: fmt.Sprintf("it had %s %s before: the step follows only if its report came later than that, and when it came is not recorded", x.Stage, e.At.Sub(x.FinishedAt).Round(time.Second))})
	}
}
