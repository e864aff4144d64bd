package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// RerunOptions say how a rerun differs from its original. The zero value runs again what did not complete, and what comes after it.
type RerunOptions struct {
	// From are items of a workflow that run again though they completed.
	From []orchestration.Item
	// Input is given instead of the original's; nil: the same.
	Input json.RawMessage
	// Definition is the one that it runs on: DefinitionSame ("" too), DefinitionLatest, or "name@version".
	Definition string

	// IdempotencyKey makes asking again harmless, as that of a Submission does.
	IdempotencyKey string
}

// What RerunOptions.Definition may say beside a name.
const (
	DefinitionSame   = "same"
	DefinitionLatest = "latest"
)

// reuseWeight is about how many bytes of a batch the row of an outcome takes that is reused.
const reuseWeight = 200

// recordedPage is how many items of the original are read at a time.
const recordedPage = 500

// RerunPlan is what a rerun does, decided before anything happens.
type RerunPlan struct {
	Action  string // of the rerun
	Version int
	// Workflow says what becomes of each task; nil where nothing can be reused, because the rerun is no workflow or the original was none.
	Workflow *orchestration.RerunPlan
}

// PlanRerun says what a rerun would do.
func (e *Engine) PlanRerun(ctx context.Context, id flow.ID, o RerunOptions) (*RerunPlan, error) {
	_, plan, err := e.planRerun(ctx, e.opts.NewID(), id, &o)
	return plan, err
}

// Rerun runs an execution that has ended again, as a new one that is linked to it; the old one never changes. What the new one reuses is
// copied in the transaction that submits it: from then on it depends on nothing of the old one.
func (e *Engine) Rerun(ctx context.Context, id flow.ID, o RerunOptions) (Submitted, *RerunPlan, error) {
	if bad := badText(o.IdempotencyKey, keyLimit); o.IdempotencyKey != "" && bad != "" {
		return Submitted{}, nil, invalid("idempotency_key", shortText(o.IdempotencyKey), bad, "give another one")
	}
	again := e.opts.NewID()
	r, plan, err := e.planRerun(ctx, again, id, &o)
	if err != nil {
		return Submitted{}, nil, err
	}
	if err := e.place(ctx, &r); err != nil {
		return Submitted{}, nil, err
	}
	op := e.rerunOp(again, id, r, plan, &o)
	if err := e.submit(ctx, op); err != nil {
		return Submitted{}, nil, err
	}
	if errors.Is(op.verdict.Err, store.ErrNotFound) {
		return Submitted{}, nil, fmt.Errorf("%s, or a task of it, was removed while its rerun was planned: %w", id, op.verdict.Err)
	}
	return op.verdict, plan, op.verdict.Err
}

// rerunOp submits a rerun that was planned.
func (e *Engine) rerunOp(again, of flow.ID, r flow.Request, plan *RerunPlan, o *RerunOptions) *submitOp {
	r.IdempotencyKey = o.IdempotencyKey
	op := &submitOp{id: again, request: r, key: o.IdempotencyKey, hash: rerunHash(of, o), sums: sumsIn(r.Input, r.With), made: &e.counters.submitted}
	if plan.Workflow != nil {
		for i := range plan.Workflow.Reuses {
			u := &plan.Workflow.Reuses[i]
			op.reuses = append(op.reuses, store.Reuse{Workflow: again, Task: u.Task, Index: u.Index, From: u.Execution, Of: u.Of, Hash: u.Work.Sum()})
		}
	}
	return op
}

// rerunHash tells the reruns of an execution apart from other submissions, and from reruns that differ, under one idempotency key.
func rerunHash(of flow.ID, o *RerunOptions) [32]byte {
	text := fmt.Appendf(append([]byte("rerun "), of[:]...), " %#v %q ", o.From, o.Definition)
	return sha256.Sum256(append(text, canonical(o.Input)...))
}

// planRerun makes the request of a rerun, and its plan.
func (e *Engine) planRerun(ctx context.Context, again, id flow.ID, o *RerunOptions) (flow.Request, *RerunPlan, error) {
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil {
		return flow.Request{}, nil, err
	}
	if !x.Stage.Terminal() {
		return flow.Request{}, nil, invalid("id", id.String(), fmt.Sprintf("the execution is still %s", x.Stage), "wait for it, or cancel it first")
	}
	r, err := e.rerunRequest(ctx, x, o)
	if err != nil {
		return flow.Request{}, nil, err
	}
	r.Parent, r.ParentAttempt, r.Task, r.Index, r.Depth = flow.ID{}, 0, "", 0, 0
	r.Signal, r.ReusedOf, r.IdempotencyKey, r.NotBefore = flow.ID{}, flow.ID{}, "", x.CreatedAt
	r.RerunOf, r.RerunFirst = id, firstOf(x)
	plan := &RerunPlan{Action: r.Action, Version: r.Version}
	if r.Kind != flow.KindWorkflow || x.Kind != flow.KindWorkflow {
		if len(o.From) > 0 {
			return r, nil, invalid("from", o.From[0].Task, "the execution is no workflow, so it has no tasks", "leave it out: all of it runs again")
		}
		return r, plan, nil
	}
	def, _, err := e.catalog.get(ctx, r.Action, r.Version)
	if err != nil {
		return r, nil, fmt.Errorf("load its definition: %w", err)
	}
	plan.Workflow, err = e.planWorkflow(ctx, again, x, &r, def.Workflow, o.From)
	return r, plan, err
}

// rerunRequest is what a rerun asks for. Without changes that is what the original asked for. With another definition or input it is
// what a new submission would ask for; what the original's submitter had asked for beside its definition is kept.
func (e *Engine) rerunRequest(ctx context.Context, x *flow.Execution, o *RerunOptions) (flow.Request, error) {
	if x.Version > 0 {
		if err := e.refuseRetired(ctx, x.Action); err != nil {
			return flow.Request{}, err
		}
	}
	action, input := x.Action, o.Input
	switch {
	case o.Definition == "" || o.Definition == DefinitionSame:
		if input == nil {
			return x.Request, nil
		}
		if x.Version > 0 {
			action = versionKey(x.Action, x.Version)
		}
	case x.Version == 0:
		return flow.Request{}, invalid("definition", o.Definition, "the execution ran on no definition: it was submitted as it is", "leave it out")
	case o.Definition != DefinitionLatest:
		action = o.Definition
	}
	if !x.Parent.IsZero() {
		return flow.Request{}, invalid("id", x.ID.String(), "a task of a workflow is run again with what the workflow gave it",
			"leave out input and definition, or run its workflow again: "+x.Parent.String())
	}
	if input == nil {
		input = x.Input
	}
	was, own := x.Request, x.Labels // what the original's definition would have asked for
	if x.Version == 0 {
		was = builtIn(x.Kind, x.Input)
	} else if def, version, err := e.catalog.get(ctx, x.Action, x.Version); err == nil {
		own = map[string]string{}
		for name, value := range x.Labels {
			if def.Settings.Labels[name] != value {
				own[name] = value
			}
		}
		if was, err = requestFor(def, version, x.Input, own, nil); err != nil {
			was = x.Request
		}
	}
	r, err := e.request(ctx, &Submission{Action: action, Input: input, Labels: own}, x.ID)
	if err != nil {
		return flow.Request{}, err
	}
	keepAsked(&r, &x.Request, &was)
	return r, nil
}

// keepAsked keeps in a request what the original's submitter had asked for beside what its definition says: that in which the original
// differs from what its definition alone would have made of it.
func keepAsked(r, original, was *flow.Request) {
	keep := func(differs bool, take func()) {
		if differs {
			take()
		}
	}
	keep(original.Queue != was.Queue, func() { r.Queue = original.Queue })
	keep(original.Priority != was.Priority, func() { r.Priority = original.Priority })
	keep(original.Timeout != was.Timeout, func() { r.Timeout = original.Timeout })
	keep(original.QueueTimeout != was.QueueTimeout, func() { r.QueueTimeout = original.QueueTimeout })
	keep(original.TotalTimeout != was.TotalTimeout, func() { r.TotalTimeout = original.TotalTimeout })
	keep(!reflect.DeepEqual(original.Retry, was.Retry), func() { r.Retry = original.Retry })
	keep(original.Key != was.Key || original.KeyLimit != was.KeyLimit || original.WhenFull != was.WhenFull || original.Fair != was.Fair, func() {
		r.Key, r.KeyLimit, r.WhenFull, r.Fair = original.Key, original.KeyLimit, original.WhenFull, original.Fair
	})
	keep(original.Rate != was.Rate, func() { r.Rate = original.Rate })
	r.Traceparent, r.Rules = original.Traceparent, original.Rules
}

// recording is what is known of a workflow's execution that is planned again.
type recording struct {
	past  map[orchestration.Item]orchestration.Past
	sizes map[string]int64 // of the outputs of each task
	marks map[string]orchestration.Mark
}

// planWorkflow plans the rerun of a workflow.
func (e *Engine) planWorkflow(ctx context.Context, again flow.ID, x *flow.Execution, r *flow.Request, w *definition.Workflow, from []orchestration.Item) (*orchestration.RerunPlan, error) {
	of := store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}
	rec, err := e.recording(ctx, of)
	if err != nil {
		return nil, err
	}
	if err := checkFrom(w, rec, from); err != nil {
		return nil, err
	}
	var failed error
	kids := maker{e.catalog.getFor, firstOf(x).String(), r.Priority, 0}
	original := &orchestration.Original{
		Past: func(task string, index int) (orchestration.Past, bool) {
			past, is := rec.past[orchestration.Item{Task: task, Index: index}]
			return past, is
		},
		Mark: func(task string) orchestration.Mark { return rec.marks[task] },
		Work: func(c *orchestration.Child) (orchestration.Work, error) {
			r, refusal, err := kids.request(ctx, c)
			if err != nil && failed == nil {
				failed = fmt.Errorf("task %q: %w", c.Task.Name, err)
			}
			if err == nil && refusal != nil {
				err = refusal
			}
			return workOf(&r), err
		},
		Output: func(t *definition.Task, n int) orchestration.Output {
			out, err := e.recordedOutput(ctx, of, rec, t, n)
			if err != nil && failed == nil {
				failed = err
			}
			return out
		},
	}
	plan := orchestration.PlanRerun(w, original, from, orchestration.Facts{ID: again.String(), Input: r.Input, Labels: r.Labels})
	return plan, failed
}

// recording reads how the items of a workflow's attempt ended.
func (e *Engine) recording(ctx context.Context, of store.WorkflowAttempt) (*recording, error) {
	rec := &recording{past: map[orchestration.Item]orchestration.Past{}, sizes: map[string]int64{}, marks: map[string]orchestration.Mark{}}
	marks, err := e.opts.Store.Marks(ctx, of)
	if err != nil {
		return nil, err
	}
	for _, m := range marks {
		rec.marks[m.Task] = markNamed(m.State)
	}
	for task, index := "", -1; ; {
		all, err := e.opts.Store.Recorded(ctx, of, task, index, recordedPage)
		if err != nil || len(all) == 0 {
			return rec, err
		}
		for _, x := range all {
			task, index = x.Task, x.Index
			p := orchestration.Past{Execution: x.ID, Of: x.ID, Stage: x.Stage, Work: workOf(&x.Request), Fleeting: namesFiles(x.Outcome.Output)}
			if !x.ReusedOf.IsZero() {
				p.Of = x.ReusedOf
			}
			rec.past[orchestration.Item{Task: task, Index: index}] = p
			rec.sizes[task] += int64(len(x.Outcome.Output))
		}
	}
}

// namesFiles reports whether an output names blobs that are removed with the execution that wrote them. Uploads are held by those that
// name them.
func namesFiles(output json.RawMessage) bool {
	return slices.ContainsFunc(blob.References(output), func(r blob.Reference) bool {
		_, upload := blob.ParseSum(r.Name)
		return !upload
	})
}

// recordedOutput reads what the first n items of a task put out, within the same bound as a step.
func (e *Engine) recordedOutput(ctx context.Context, of store.WorkflowAttempt, rec *recording, t *definition.Task, n int) (out orchestration.Output, err error) {
	if rec.sizes[t.Name] > outputsLimit {
		out.TooLarge = fmt.Errorf("the outputs of task %q have more than %d MB together: what looks at them is not planned, and runs", t.Name, outputsLimit>>20)
		return out, nil
	}
	if t.Foreach != nil {
		out.Items = make([]json.RawMessage, n)
	}
	for index := -1; index < n-1; {
		all, err := e.opts.Store.Recorded(ctx, of, t.Name, index, min(recordedPage, n-1-index))
		if err != nil {
			return out, err
		}
		for _, x := range all {
			if x.Task != t.Name {
				return out, nil
			}
			if index = x.Index; t.Foreach == nil {
				out.Single = x.Outcome.Output
			} else if index < n {
				out.Items[index] = x.Outcome.Output
			}
		}
		if len(all) == 0 {
			return out, nil
		}
	}
	return out, nil
}

// checkFrom refuses to run again what there is not.
func checkFrom(w *definition.Workflow, rec *recording, from []orchestration.Item) error {
	for _, i := range from {
		t := w.Task(i.Task)
		text := ItemText(i)
		switch {
		case t == nil:
			var names []string
			for _, t := range w.Tasks {
				names = append(names, t.Name)
			}
			fix := problem.Nearest(i.Task, names)
			if fix == "" {
				fix = "its tasks are " + strings.Join(names[:min(len(names), namesShown)], ", ")
			}
			return invalid("from", text, fmt.Sprintf("the workflow has no task %q", i.Task), fix)
		case i.Index != orchestration.AllItems && t.Foreach == nil:
			return invalid("from", text, "the task has no foreach, so it has no items", "name the task: "+i.Task)
		}
		if _, is := rec.past[i]; !is && i.Index != orchestration.AllItems {
			return invalid("from", text, "the original has no such item", fmt.Sprintf("see its tasks: pawl describe; items that did not start run anyway (%s)", i.Task))
		}
	}
	return nil
}

// ItemText is an item as people write it: task, or task[index].
func ItemText(i orchestration.Item) string {
	if i.Index == orchestration.AllItems {
		return i.Task
	}
	return fmt.Sprintf("%s[%d]", i.Task, i.Index)
}

// ParseItem reads what ItemText writes.
func ParseItem(text string) (orchestration.Item, error) {
	name, rest, has := strings.Cut(text, "[")
	i := orchestration.Item{Task: name, Index: orchestration.AllItems}
	if !has {
		return i, nil
	}
	if _, err := fmt.Sscanf(rest, "%d]", &i.Index); err != nil || i.Index < 0 || ItemText(i) != text {
		return i, invalid("from", text, "an item is written as task[index], from 0 on", name+"[0]")
	}
	return i, nil
}
