package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// A path such as deploy/verify[3] leads into a workflow among the tasks. That workflow runs again in parts: as an
// execution of the new workflow, which repeats the original's as a separate rerun would. It is planned in the same way,
// level by level.

// Paths are read in requests, and again in the transaction in which an execution of kind rerun begins: they are few, short and not deep.
const (
	// beneathMost is how many workflows beneath a rerun may run again in parts: each of them is part of its request.
	beneathMost = 100
	pathsMost   = 1000
	pathsBytes  = 64 << 10 // of all of a rerun together: 1,000 such as deploy/verify[123] have 18 KB
)

// naming counts what the paths of a rerun have named so far.
type naming struct{ paths, bytes, beneath int }

// add counts a path, and refuses one that exceeds a bound before the path is read.
func (n *naming) add(field, text string) error {
	n.paths++
	n.bytes += len(text)
	const fewer = "name whole tasks instead of their items, or rerun the rerun for the others"
	switch {
	case n.paths > pathsMost:
		return fault.New(field, fault.Short(text), fmt.Sprintf("more than %d paths are named", pathsMost), fewer)
	case n.bytes > pathsBytes:
		return fault.New(field, fault.Short(text), fmt.Sprintf("the paths have more than %d KB together", pathsBytes>>10), fewer)
	}
	if parts := strings.Count(text, "/") + 1; parts > requests.DepthLimit {
		return fault.New(field, fault.Short(text), fmt.Sprintf("the path has %d parts, and workflows nest %d deep at most", parts, requests.DepthLimit), "write deploy/verify, or deploy/verify[3]")
	}
	return nil
}

// RerunWithin names items of a workflow that is an item of another.
type RerunWithin struct {
	Item       orchestration.Item
	From, Only []orchestration.Item
	Outputs    []flow.OutputOverride
	Within     []RerunWithin
}

// RerunPart is the plan for a workflow beneath a rerun.
type RerunPart struct {
	Path    string  // of the workflow, from the rerun, as the request named it
	Of      flow.ID // the execution that is run again
	Action  string
	Version int
	Plan    *orchestration.RerunPlan
}

// Name adds a path to the options, or refuses it with *fault.Invalid. field is from, only or outputs; for outputs,
// output is the value.
func (o *RerunOptions) Name(field, text string, output json.RawMessage) error {
	if err := o.naming.add(field, text); err != nil {
		return err
	}
	from, only, outputs, within := &o.From, &o.Only, &o.Outputs, &o.Within
	parts := strings.Split(text, "/")
	for i, part := range parts {
		item, err := parseItem(field, part)
		if err == nil && part == "" {
			err = fault.New(field, text, "a path has tasks between its slashes", "write deploy/verify, or deploy/verify[3]")
		}
		if err != nil {
			return err
		}
		if i < len(parts)-1 {
			at := slices.IndexFunc(*within, func(w RerunWithin) bool { return w.Item == item })
			if at < 0 {
				if o.naming.beneath++; o.naming.beneath > beneathMost {
					return fault.New(field, fault.Short(text), fmt.Sprintf("paths lead into more than %d workflows", beneathMost), "name fewer: rerun the rerun for the others")
				}
				at = len(*within)
				*within = append(*within, RerunWithin{Item: item})
			}
			w := &(*within)[at]
			from, only, outputs, within = &w.From, &w.Only, &w.Outputs, &w.Within
			continue
		}
		switch field {
		case "from":
			*from = append(*from, item)
		case "only":
			*only = append(*only, item)
		default:
			*outputs = append(*outputs, flow.OutputOverride{Task: item.Task, Index: item.Index, Output: output})
		}
	}
	return nil
}

// all are the items named at the level of the rerun itself.
func (o *RerunOptions) all() *RerunWithin {
	return &RerunWithin{From: o.From, Only: o.Only, Outputs: o.Outputs, Within: o.Within}
}

// each calls visit for the names of each level, until it returns false.
func (w *RerunWithin) each(visit func(*RerunWithin) bool) bool {
	if !visit(w) {
		return false
	}
	for i := range w.Within {
		if !w.Within[i].each(visit) {
			return false
		}
	}
	return true
}

func (w *RerunWithin) runsAlone() bool {
	return !w.each(func(w *RerunWithin) bool { return len(w.Only) == 0 })
}

// text identifies the names, for a hash.
func (w *RerunWithin) text() []byte {
	var text []byte
	w.each(func(w *RerunWithin) bool {
		text = fmt.Appendf(text, "within %q from %q only %q deep %d ", w.Item.Text(), itemTexts(w.From), itemTexts(w.Only), len(w.Within))
		for i := range w.Outputs {
			text = append(fmt.Appendf(text, "%q[%d]=", w.Outputs[i].Task, w.Outputs[i].Index), canonical(w.Outputs[i].Output)...)
		}
		return true
	})
	return text
}

// check refuses options that exclude each other, at any level.
func (o *RerunOptions) check() error {
	var from, only *orchestration.Item
	overrides, size := 0, 0
	o.all().each(func(w *RerunWithin) bool {
		if len(w.From) > 0 {
			from = &w.From[0]
		}
		if len(w.Only) > 0 {
			only = &w.Only[0]
		}
		overrides += len(w.Outputs)
		for i := range w.Outputs {
			size += len(w.Outputs[i].Output)
		}
		return true
	})
	switch {
	case from != nil && only != nil:
		return fault.New("only", only.Text(), "from says what runs with everything after it, and only what runs alone", "leave out one of them")
	case overrides > maxOverrides:
		return fault.New("outputs", fmt.Sprint(overrides), fmt.Sprintf("at most %d outputs are given at once", maxOverrides),
			"give fewer: rerun the rerun for the others")
	case size > maxOverrideBytes:
		return fault.New("outputs", "", fmt.Sprintf("the outputs have more than %d KB together", maxOverrideBytes>>10), "give shorter ones")
	}
	return fault.CheckText("by", o.By, fault.AuthorLimit, "give a name")
}

// planner plans a rerun, level by level.
type planner struct {
	e       *Engine
	again   flow.ID // the rerun
	by      string  // who gives outputs
	reuses  []store.Reuse
	beneath []flow.Beneath
	parts   []RerunPart
}

// level is one workflow that runs again: the rerun or one beneath it.
type level struct {
	x     *flow.Execution // the original
	r     *flow.Request   // the new one's
	def   *definition.Workflow
	named *RerunWithin
	as    string // the path of the new one, "" for the rerun
	text  string // that path as the request named it, with a slash after it
	depth int
}

// plan plans a level, and those beneath it.
func (p *planner) plan(ctx context.Context, l *level) (*orchestration.RerunPlan, error) {
	rec, err := p.e.recording(ctx, store.WorkflowAttempt{ID: l.x.ID, Attempt: l.x.Attempt})
	if err != nil {
		return nil, err
	}
	if err := l.check(rec); err != nil {
		return nil, err
	}
	if len(l.named.Outputs) > 0 {
		again := l.r.AsRerun()
		again.Outputs, again.OverriddenBy = singleIndex(l.named.Outputs), p.by
		l.r.Rerun = &again
	}
	var failed error
	inner := map[orchestration.Item]*orchestration.Child{}
	kids := requests.Maker{Definition: p.e.catalog.GetFor, Workflow: firstOf(l.x).String(), Priority: l.r.Priority, Depth: l.depth}
	id := p.again
	if l.as != "" {
		id = p.e.opts.NewID() // a task that reads the workflow's id has another input in any case
	}
	plan, err := l.decide(p.original(ctx, l, rec, kids, inner, &failed), orchestration.Facts{ID: id.String(), Input: l.r.Input, Labels: l.r.Labels})
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	p.reuses = slices.Grow(p.reuses, len(plan.Reuses))
	for i := range plan.Reuses {
		u := &plan.Reuses[i]
		task := (&flow.Request{Rerun: &flow.Rerun{KeptAs: l.as}}).KeptTask(u.Task)
		p.reuses = append(p.reuses, store.Reuse{Workflow: p.again, Task: task, Index: u.Index, From: u.Execution, Of: u.Of, Hash: u.Work.Sum()})
	}
	for i := range l.named.Within {
		w := &l.named.Within[i]
		if err := p.within(ctx, l, w, rec, plan, inner[w.Item], kids); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// original answers a plan's questions about the original of a level. It puts the children that paths lead into into
// inner, and the first error into failed.
func (p *planner) original(ctx context.Context, l *level, rec *recording, kids requests.Maker, inner map[orchestration.Item]*orchestration.Child, failed *error) *orchestration.Original {
	return &orchestration.Original{
		Past:     rec.past,
		Override: l.r.OverrideOf,
		Within: func(c *orchestration.Child) bool {
			w := l.within(c.Task.Name, c.Index)
			if w != nil {
				kept := *c
				inner[w.Item] = &kept
			}
			return w != nil
		},
		Mark: func(task string) orchestration.Mark { return rec.marks[task] },
		Work: func(c *orchestration.Child) (orchestration.Work, error) {
			r, refusal, err := kids.Request(ctx, c, definition.WorkWithin(definition.SharedWork))
			if err != nil && *failed == nil {
				*failed = fmt.Errorf("task %q: %w", c.Task.Name, err)
			}
			if err == nil && refusal != nil {
				err = refusal
			}
			return workOf(&r), err
		},
		Output: func(t *definition.Task, n int) orchestration.Output {
			out, err := p.e.recordedOutput(ctx, store.WorkflowAttempt{ID: l.x.ID, Attempt: l.x.Attempt}, rec, t, n)
			applyOverrides(&out, t, n, l.r)
			if err != nil && *failed == nil {
				*failed = err
			}
			return out
		},
	}
}

// decide plans the workflow's own tasks.
func (l *level) decide(original *orchestration.Original, facts orchestration.Facts) (*orchestration.RerunPlan, error) {
	only := slices.Clone(l.named.Only)
	for i := range l.named.Within {
		if w := &l.named.Within[i]; w.runsAlone() {
			only = append(only, w.Item)
		}
	}
	if len(only) == 0 {
		return orchestration.PlanRerun(l.def, original, l.named.From, facts), nil
	}
	plan, err := orchestration.PlanOnly(l.def, original, only, facts)
	if refused, ok := errors.AsType[*orchestration.Refusal](err); ok {
		text, say := l.text+refused.Item.Text(), refused.Say
		if l.text != "" {
			say = text + ": " + say
		}
		return nil, fault.New("only", text, say, refused.Fix)
	}
	if err != nil {
		return nil, err
	}
	again := l.r.AsRerun()
	for _, i := range only {
		again.Only = append(again.Only, i.Text())
	}
	again.LeftOut = plan.LeftOut
	l.r.Rerun = &again
	return plan, nil
}

// within returns the names beneath an item; nil: there are none.
func (l *level) within(task string, index int) *RerunWithin {
	for i := range l.named.Within {
		if w := &l.named.Within[i]; w.Item.Task == task && max(0, w.Item.Index) == index {
			return w
		}
	}
	return nil
}

// check refuses names that do not exist at this level.
func (l *level) check(rec *recording) error {
	n := l.named
	if err := errors.Join(checkItems("from", l.text, l.def, rec, n.From), checkItems("only", l.text, l.def, rec, n.Only)); err != nil {
		return err
	}
	if err := l.checkOutputs(rec); err != nil {
		return err
	}
	for i := range n.Within {
		w := &n.Within[i]
		field, text := w.field(), l.text+w.Item.Text()
		if err := checkItems(field, l.text, l.def, rec, []orchestration.Item{w.Item}); err != nil {
			return err
		}
		t := l.def.Task(w.Item.Task)
		named := func(i orchestration.Item) bool {
			return i.Task == w.Item.Task && (i.Index == orchestration.AllItems || i.Index == max(0, w.Item.Index))
		}
		switch {
		case t.Repeat != nil:
			return fault.New(field, text, text+": "+"the task has a repeat, and each of its rounds follows from the one before it", "name the task: "+l.text+t.Name)
		case t.Foreach != nil && w.Item.Index == orchestration.AllItems:
			return fault.New(field, text, text+": "+"the task has a foreach: a path leads into one of its items", fmt.Sprintf("write %s[0]/…, %s[1]/… and so on", text, text))
		case slices.ContainsFunc(n.From, named) || slices.ContainsFunc(n.Only, named):
			return fault.New(field, text, text+": "+"it was named itself, so all of it runs", "leave out the task, or the path into it")
		case slices.ContainsFunc(n.Outputs, func(g flow.OutputOverride) bool { return named(orchestration.Item{Task: g.Task, Index: g.Index}) }):
			return fault.New(field, text, text+": "+"it is given an output, so nothing of it runs", "leave out the output, or the path into it")
		}
	}
	return nil
}

// field is the request's member that has the first path into a workflow.
func (w *RerunWithin) field() (name string) {
	name = "outputs"
	w.each(func(w *RerunWithin) bool {
		if len(w.From) > 0 {
			name = "from"
		} else if len(w.Only) > 0 {
			name = "only"
		}
		return name == "outputs"
	})
	return name
}

// within plans a workflow that is an item of a level. c is the child that the plan of that level starts for the item; nil: it starts none.
func (p *planner) within(ctx context.Context, l *level, w *RerunWithin, rec *recording, plan *orchestration.RerunPlan, c *orchestration.Child, kids requests.Maker) error {
	field, text := w.field(), l.text+w.Item.Text()
	task, index := w.Item.Task, max(0, w.Item.Index)
	if c == nil {
		for _, t := range plan.Tasks {
			if t.Task == task {
				return fault.New(field, text, fmt.Sprintf("the path leads into %s, of which nothing is reused (%s): %s", text, t.Decision, cmp.Or(t.Reason, "it does not start")), "leave the path out")
			}
		}
	}
	past, ok := rec.past(task, index)
	if !ok {
		return fault.New(field, text, fmt.Sprintf("the original has no execution of %s that a path could lead into", text), "leave the path out: it runs as a whole")
	}
	x, err := p.e.opts.Store.Get(ctx, past.Of)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fault.New(field, text, fmt.Sprintf("%s, which ran for %s, has been removed with its tasks", past.Of, text), "leave the path out: name "+text)
	case err != nil:
		return err
	case x.Kind != flow.KindWorkflow:
		return fault.New(field, text, fmt.Sprintf("%s runs %s, which is a %s: only workflows have tasks", text, x.Action, x.Kind), "name it without what is behind it: "+text)
	}
	if err := p.e.stillKept(ctx, x); err != nil {
		return err
	}
	r, refusal, err := kids.Request(ctx, c, definition.WorkWithin(definition.SharedWork))
	switch {
	case err != nil:
		return fmt.Errorf("task %q: %w", text, err)
	case refusal != nil:
		return fault.New(field, text, text+": "+"it cannot run any more: "+refusal.Message, "leave the path out")
	case r.Kind != flow.KindWorkflow:
		return fault.New(field, text, fmt.Sprintf("%s runs %s now, which is a %s: only workflows have tasks", text, r.Action, r.Kind), "name it without what is behind it: "+text)
	}
	def, _, err := p.e.catalog.Get(ctx, r.Action, r.Version)
	if err != nil {
		return fmt.Errorf("load the definition of %s: %w", text, err)
	}
	as := flow.ItemPath(l.as, task, index)
	work := workOf(&r).Sum()
	at := len(p.parts)
	p.parts = append(p.parts, RerunPart{Path: text, Of: x.ID, Action: r.Action, Version: r.Version})
	beneath, err := p.plan(ctx, &level{x: x, r: &r, def: def.Workflow, named: w, as: as, text: text + "/", depth: l.depth + 1})
	if err != nil {
		return err
	}
	p.parts[at].Plan = beneath
	again := r.AsRerun()
	p.beneath = append(p.beneath, flow.Beneath{Path: as, Of: x.ID, First: firstOf(x), Version: r.Version, Work: work,
		Only: again.Only, LeftOut: again.LeftOut, Outputs: again.Outputs, OverriddenBy: again.OverriddenBy})
	return nil
}
