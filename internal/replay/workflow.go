package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// attempt is the replay of one attempt of a workflow. The record has when each task ended and what each step did, but not which ends a step
// had seen. A history follows from the rules if there is an order of ends, none before its time, with which the rules do what was recorded.
// take.go searches for it.
type attempt struct {
	w       *walk
	def     *definition.Workflow
	st      *orchestration.State
	tracker *orchestration.Tracker
	facts   orchestration.Facts
	items   []items // by task
	outputs map[int]orchestration.Output
	limits  map[int]int // of tasks whose limit is an expression
	undo    undo
	named   []*definition.Task  // by the replayed step
	said    bool                // an unknown about late ends was reported
	over    bool                // its end was replayed
	lost    bool                // the record contradicted the rules, so they do not decide what comes next
	done    *orchestration.Plan // the workflow has ended by the rules: its end is the next event
}

// items are the recorded executions of one task in one attempt.
type items struct {
	all   []*flow.Execution // by index
	taken []bool            // the workflow has seen their ends
	left  []int             // started ones that are not taken, by the time of their ends
	first int               // how many at the front of left may have been taken since
}

// prepare groups the children of a workflow by attempt.
func (w *walk) prepare() {
	x := w.rec.Execution
	if x.Kind != flow.KindWorkflow {
		return
	}
	if w.rec.Workflow == nil || w.rec.Workflow.Definition == nil {
		w.unknown(Unknown{Index: noIndex, What: "what its tasks did is not replayed: " + w.rec.Without})
		return
	}
	w.kids = map[int][]*flow.Execution{}
	for _, k := range w.rec.Workflow.Children {
		w.kids[k.ParentAttempt] = append(w.kids[k.ParentAttempt], k)
	}
}

func (w *walk) begin(n int) {
	def := w.rec.Workflow.Definition
	a := &attempt{w: w, def: def, st: &orchestration.State{Tasks: make([]orchestration.Progress, len(def.Tasks))}, items: make([]items, len(def.Tasks)),
		outputs: map[int]orchestration.Output{}, limits: map[int]int{}}
	for _, k := range w.kids[n] {
		t := def.Task(k.Task)
		if t == nil {
			w.findAt(Finding{Task: k.Task, Index: k.Index, Rules: "no such task", Recorded: k.ID.String(), Why: "the definition has no task of this name"})
			continue
		}
		all := &a.items[t.Index].all
		for len(*all) <= k.Index {
			*all = append(*all, nil)
		}
		if (*all)[k.Index] != nil {
			w.findAt(Finding{Task: k.Task, Index: k.Index, Rules: "one execution", Recorded: fmt.Sprintf("%s and %s", (*all)[k.Index].ID, k.ID), Why: "an item of a task is one execution"})
		}
		(*all)[k.Index] = k
	}
	for i := range a.items {
		a.items[i].taken = make([]bool, len(a.items[i].all))
	}
	a.tracker = orchestration.Track(def, a.st)
	a.facts = orchestration.Facts{ID: w.x.ID.String(), Input: w.x.Input, Labels: w.x.Labels, Items: orchestration.Items{}, Output: a.output}
	a.undo.touched = make([]bool, len(def.Tasks))
	w.wf = a
}

// follow lets a workflow's rules decide an event of its history.
func (w *walk) follow(e *flow.Event) {
	if e.Type == flow.EvProvisioning {
		w.claimed = e
	}
	if w.kids == nil {
		return
	}
	switch {
	case e.Type == flow.EvRunning:
		w.begin(e.Attempt)
	case w.wf == nil || w.wf.lost || w.wf.over: // an attempt may also end before it begins
	case e.Type == flow.EvAdvanced:
		w.wf.advanced(e)
	case w.terminal(e):
		w.wf.finish(e, w.outcome(w.i))
		w.wf.over = true
	}
}

// unspoken finds executions of tasks that no event of the ended attempt names.
func (a *attempt) unspoken(e *flow.Event) {
	for i := range a.items {
		if n, all := a.st.Tasks[i].Created, a.items[i].all; n < len(all) {
			a.w.findAt(Finding{Seq: e.Seq, Task: a.def.Tasks[i].Name, Index: n, Rules: fmt.Sprintf("%d started", n), Recorded: fmt.Sprintf("%d executions", len(all)), Why: "an execution is there that no event of the workflow speaks of"})
		}
	}
}

// children is how many executions a step started.
func children(s *orchestration.Advance) (n int) {
	for _, k := range s.Started {
		n += k
	}
	return n
}

func stepText(s *orchestration.Advance) string {
	b, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return flow.Clipped(string(b), 300)
}

// of is the effect of a plan, in the form of its event.
func (a *attempt) of(plan *orchestration.Plan) *orchestration.Advance {
	s := plan.Advance(a.def)
	s.Sort()
	return &s
}

func (a *attempt) advanced(e *flow.Event) {
	was, err := orchestration.ReadAdvance(e.Data)
	if err != nil {
		a.diverge(Finding{Seq: e.Seq, Index: noIndex, Rules: "what a step did", Recorded: said(e), Why: "it cannot be read: " + err.Error()})
		return
	}
	was.Sort()
	if a.done != nil {
		a.diverge(Finding{Seq: e.Seq, Index: noIndex, Rules: "the end: " + a.done.Stage.String(), Recorded: said(e), Why: "nothing was left to do"})
		return
	}
	if !a.cleanUp(e, was) {
		return
	}
	if len(was.Started) > 0 && was.Cleanup == "" && a.w.x.PausedAt(e.At) {
		a.w.find(e.Seq, "no tasks are started", said(e), "the workflow is paused")
	}
	a.named = a.named[:0]
	for _, name := range was.Tasks() {
		t := a.def.Task(name)
		if t == nil {
			a.diverge(Finding{Seq: e.Seq, Task: name, Index: noIndex, Rules: "no such task", Recorded: said(e), Why: "the definition has no task of this name"})
			return
		}
		a.named = append(a.named, t)
	}
	plan := a.find(e, was)
	if plan == nil {
		a.lost = true
		return
	}
	a.keep()
	for i := range plan.Children {
		a.started(e, &plan.Children[i])
	}
	if plan.Stage != 0 {
		a.done = plan
	}
	a.late(e)
}

// diverge reports that the record contradicts the rules, so that they do not decide the rest of this attempt.
func (a *attempt) diverge(f Finding) {
	a.w.findAt(f)
	a.lost = true
}

// started compares a child of the rules with the execution that was started.
func (a *attempt) started(e *flow.Event, c *orchestration.Child) {
	it := &a.items[c.Task.Index]
	at := Finding{Seq: e.Seq, Task: c.Task.Name, Index: c.Index}
	if c.Index >= len(it.all) || it.all[c.Index] == nil {
		a.w.unknown(Unknown{Seq: e.Seq, Task: c.Task.Name, Index: c.Index, What: "its execution is not there: it may have been removed"})
		return
	}
	x := it.all[c.Index]
	if x.Stage.Terminal() {
		at := len(it.left)
		for at > it.first && it.all[it.left[at-1]].FinishedAt.After(x.FinishedAt) {
			at--
		}
		it.left = slices.Insert(it.left, at, c.Index)
	}
	if due := x.CreatedAt.Add(c.Delay); c.Delay > 0 && x.ReusedOf.IsZero() && x.AsRerun().OverriddenBy == "" && !x.NotBefore.Equal(due) {
		at.Rules, at.Recorded, at.Why = "not before "+clock(due), "not before "+clock(x.NotBefore), "a round waits for the delay of the task's repeat"
		a.w.findAt(at)
	}
	if x.CreatedAt.After(e.At) {
		at.Rules, at.Recorded, at.Why = "not after "+clock(e.At), "at "+clock(x.CreatedAt), "a task is started in the step that the event records"
		a.w.findAt(at)
	}
	if x.Stage.Terminal() && x.FinishedAt.Before(x.CreatedAt) {
		at.Rules, at.Recorded, at.Why = "not before "+clock(x.CreatedAt), "ended at "+clock(x.FinishedAt), "nothing ends before it is started"
		a.w.findAt(at)
	}
	if b := a.w.x.BeneathAt(c.Task.Name, c.Index); b != nil && x.RerunOf != b.Of || b == nil && !x.AsRerun().KeptWith.IsZero() {
		at.Rules, at.Recorded, at.Why = "a workflow that runs as a whole", "the rerun of "+x.RerunOf.String(), "the rerun says which workflows beneath it run again in parts"
		if b != nil {
			at.Rules = "the rerun of " + b.Of.String()
		}
		a.w.findAt(at)
	}
	if override := a.w.x.OverrideOf(c.Task.Name, c.Index); (override != nil) != x.WasOverridden() || override != nil &&
		(x.Outcome == nil || !sameJSON(override, x.Outcome.Output)) {
		at.Rules, at.Recorded, at.Why = overrideText(override), "not that", "the rerun says to which items an output was given"
		if override == nil {
			at.Recorded = "an output that " + x.AsRerun().OverriddenBy + " has given"
		}
		a.w.findAt(at)
	}
	r, err := a.w.rec.Workflow.Request(c, x)
	if err != nil {
		a.w.unknown(Unknown{Seq: e.Seq, Task: c.Task.Name, Index: c.Index, What: err.Error()})
		return
	}
	a.sameRequest(at, &r, &x.Request)
}

func overrideText(output json.RawMessage) string {
	if output == nil {
		return "no output was given"
	}
	return "ended with the given output " + flow.Clipped(string(output), 300)
}

func (a *attempt) sameRequest(at Finding, rules, was *flow.Request) {
	differ := func(what, r, recorded, why string) {
		at.Rules, at.Recorded, at.Why = what+" "+flow.Clipped(r, 300), what+" "+flow.Clipped(recorded, 300), why
		a.w.findAt(at)
	}
	if rules.Kind != was.Kind || rules.Action != was.Action || rules.Version != was.Version {
		name := func(r *flow.Request) string { return fmt.Sprintf("%s (%s, version %d)", r.Action, r.Kind, r.Version) }
		differ("runs", name(rules), name(was), "the definition says what the task runs")
		return
	}
	if !sameJSON(rules.Input, was.Input) {
		differ("input", string(rules.Input), string(was.Input), "the definition maps what came before to another input")
	}
	if !sameJSON(rules.With, was.With) {
		differ("what its handler is given", string(rules.With), string(was.With), "the definition maps what came before to something else")
	}
	if rules.Key != was.Key {
		differ("concurrency key", rules.Key, was.Key, "the definition maps what came before to another key")
	}
}

// tasks is the progress of the tasks at a moment: started by the events so far, and ended by then.
func (a *attempt) tasks(at time.Time) []api.ReplayTask {
	all := make([]api.ReplayTask, len(a.def.Tasks))
	for i, t := range a.def.Tasks {
		p := &a.st.Tasks[i]
		s := api.ReplayTask{Task: t.Name, Mark: p.Mark.String(), Total: p.Total, Started: p.Created}
		for n := range p.Created {
			var x *flow.Execution
			if n < len(a.items[i].all) {
				x = a.items[i].all[n]
			}
			if x == nil || !x.Stage.Terminal() || x.FinishedAt.After(at) {
				s.Open++
				continue
			}
			switch x.Stage {
			case flow.Completed:
				s.Completed++
			case flow.Failed:
				s.Failed++
			case flow.Cancelled:
				s.Cancelled++
			case flow.TimedOut:
				s.TimedOut++
			}
		}
		all[i] = s
	}
	return all
}

// output is the output of those children of a task whose ends the workflow has seen.
func (a *attempt) output(task int) orchestration.Output {
	if out, ok := a.outputs[task]; ok {
		return out
	}
	it, t, p := &a.items[task], a.def.Tasks[task], &a.st.Tasks[task]
	out := outputOf(t, p.Created, it.all, func(i int) bool { return it.taken[i] })
	if p.Open == 0 && t.Repeat == nil {
		a.outputs[task] = out
	}
	return out
}

// outputOf is the output of those of the first n items of a task whose ends the workflow has seen.
func outputOf(t *definition.Task, n int, all []*flow.Execution, told func(index int) bool) (out orchestration.Output) {
	if t.Repeat != nil {
		if last := n - 1; last >= 0 && last < len(all) && all[last] != nil && all[last].Outcome != nil && told(last) {
			o := all[last].Outcome
			out = orchestration.Output{Single: o.Output, Stage: all[last].Stage, Error: o.Error}
		}
		return out
	}
	if t.Foreach != nil {
		out.Items = make([]json.RawMessage, n)
	}
	for i := range min(n, len(all)) {
		if all[i] == nil || all[i].Outcome == nil || !told(i) {
			continue
		}
		if o := all[i].Outcome.Output; t.Foreach == nil {
			out.Single = o
		} else {
			out.Items[i] = o
		}
	}
	return out
}
