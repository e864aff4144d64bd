package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// RerunOptions is how a rerun differs from its original. The zero value runs the items again that did not complete, and those after them.
type RerunOptions struct {
	// From are items of a workflow that run again although they completed.
	From []orchestration.Item
	// Only are the only items that run: earlier items are reused, and later ones are left out.
	Only []orchestration.Item
	// Outputs are given to items, which end with them instead of running. By is the author of the outputs; "" is somebody.
	Outputs []flow.OutputOverride
	By      string
	// Within are paths into workflows among its tasks of which parts run again.
	Within []RerunWithin
	// Input replaces the original's; nil: the same.
	Input json.RawMessage
	// Definition is DefinitionSame (also ""), DefinitionLatest, or "name@version".
	Definition string

	// IdempotencyKey makes a repeated request harmless, as that of a Submission does.
	IdempotencyKey string

	naming naming
}

// Values of RerunOptions.Definition beside a name.
const (
	DefinitionSame   = "same"
	DefinitionLatest = "latest"
)

// reuseWeight is about how many bytes of a batch the row of a reused outcome takes.
const reuseWeight = 200

// recordedAtOnce is how many items of the original are read at a time.
const recordedAtOnce = 500

// RerunPlan is the plan of a rerun, made before anything happens.
type RerunPlan struct {
	Action  string // of the rerun
	Version int
	// Workflow has the decision about each task; nil if nothing can be reused, because the rerun or the original is not a workflow.
	Workflow *orchestration.RerunPlan
	// Parts are the plans of the workflows beneath it into which paths lead, each after its parent's.
	Parts []RerunPart

	reuses []store.Reuse
}

// Reused is how many outcomes the rerun reuses, including those beneath it.
func (p *RerunPlan) Reused() int { return len(p.reuses) }

// PlanRerun returns the plan of a rerun and starts nothing.
func (e *Engine) PlanRerun(ctx context.Context, id flow.ID, o RerunOptions) (*RerunPlan, error) {
	_, plan, err := e.planRerun(ctx, e.opts.NewID(), id, &o)
	return plan, err
}

// Rerun runs an ended execution again, as a new one that is linked to it; the old one never changes. Reused outcomes are copied in the
// transaction that submits the new one: from then on it does not depend on the old one.
func (e *Engine) Rerun(ctx context.Context, id flow.ID, o RerunOptions) (Submitted, *RerunPlan, error) {
	if err := fault.CheckText("idempotency_key", o.IdempotencyKey, fault.KeyLimit, "give another one"); err != nil {
		return Submitted{}, nil, err
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

// firstOf is the first execution of a chain of reruns.
func firstOf(x *flow.Execution) flow.ID {
	return cmp.Or(x.RerunFirst(), x.ID)
}

// rerunOp submits a planned rerun.
func (e *Engine) rerunOp(again, original flow.ID, r flow.Request, plan *RerunPlan, o *RerunOptions) *submitOp {
	r.IdempotencyKey = o.IdempotencyKey
	op := &submitOp{id: again, request: r, key: o.IdempotencyKey, hash: rerunHash(original, o), sums: uploads.SumsIn(r.Input, r.With),
		submitted: &e.counters.submitted}
	op.reuses = plan.reuses
	return op
}

// rerunHash distinguishes the reruns of an execution from other submissions, and from different reruns, under one idempotency key.
func rerunHash(original flow.ID, o *RerunOptions) [32]byte {
	text := fmt.Appendf(append([]byte("rerun "), original[:]...), " %q %q ", itemTexts(o.From), cmp.Or(o.Definition, DefinitionSame))
	if len(o.Only) > 0 {
		text = fmt.Appendf(text, "only %q ", itemTexts(o.Only))
	}
	for i := range o.Outputs {
		g := &o.Outputs[i]
		text = append(fmt.Appendf(text, "%q[%d]=", g.Task, g.Index), canonical(g.Output)...)
	}
	for i := range o.Within {
		text = append(text, o.Within[i].text()...)
	}
	return sha256.Sum256(append(text, canonical(o.Input)...))
}

// itemTexts are items in the form that users write, for a hash that is stored: Go's own form of a value contains names of the code.
func itemTexts(items []orchestration.Item) []string {
	texts := make([]string, len(items))
	for i := range items {
		texts[i] = items[i].Text()
	}
	return texts
}

func (e *Engine) planRerun(ctx context.Context, again, id flow.ID, o *RerunOptions) (flow.Request, *RerunPlan, error) {
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil {
		return flow.Request{}, nil, err
	}
	if err := checkEnded(x); err != nil {
		return flow.Request{}, nil, err
	}
	r, err := e.rerunRequest(ctx, x, o)
	if err != nil {
		return flow.Request{}, nil, err
	}
	r.LeaveWorkflow()
	r.Signal, r.ReusedOf, r.IdempotencyKey, r.NotBefore = flow.ID{}, flow.ID{}, "", time.Time{}
	r.MakeRerun(id, firstOf(x))
	plan := &RerunPlan{Action: r.Action, Version: r.Version}
	if r.Kind != flow.KindWorkflow || x.Kind != flow.KindWorkflow {
		return r, plan, o.refuseItems()
	}
	def, _, err := e.catalog.Get(ctx, r.Action, r.Version)
	if err != nil {
		return r, nil, fmt.Errorf("load its definition: %w", err)
	}
	if err := o.check(); err != nil {
		return r, plan, err
	}
	p := &planner{e: e, again: again, by: cmp.Or(o.By, somebody)}
	if plan.Workflow, err = p.plan(ctx, &level{x: x, r: &r, def: def.Workflow, named: o.all()}); err != nil {
		return r, plan, err
	}
	plan.reuses, plan.Parts = p.reuses, p.parts
	if len(p.beneath) > 0 {
		part := r.AsRerun()
		part.Beneath = p.beneath
		r.Rerun = &part
	}
	return r, plan, e.stillKept(ctx, x)
}

// stillKept refuses an original that retention may be removing: its tasks are removed one after the other, and removed tasks look like
// tasks that never ran. It is called after they have been read.
func (e *Engine) stillKept(ctx context.Context, x *flow.Execution) error {
	if e.opts.Retention <= 0 {
		return nil
	}
	top := x
	for !top.Parent.IsZero() {
		above, err := e.opts.Store.Get(ctx, top.Parent)
		if err != nil {
			return err
		}
		top = above
	}
	now, err := e.now(ctx)
	if err != nil {
		return err
	}
	if top.Stage.Terminal() && now.Sub(top.FinishedAt) >= e.opts.Retention {
		return fmt.Errorf("%s ended more than %s ago and is being removed; servers with a longer retention keep it: %w", top.ID, e.opts.Retention, store.ErrNotFound)
	}
	return nil
}

// refuseItems refuses items for an execution that is not a workflow.
func (o *RerunOptions) refuseItems() error {
	for path, n := range map[string]int{"from": len(o.From), "only": len(o.Only), "outputs": len(o.Outputs)} {
		if n > 0 {
			return fault.New(path, "", "the execution is not a workflow, so it has no tasks", "leave it out: all of it runs again")
		}
	}
	if len(o.Within) > 0 {
		return fault.New(o.Within[0].field(), o.Within[0].Item.Text(), "the execution is not a workflow, so it has no tasks",
			"leave it out: all of it runs again")
	}
	return nil
}

// rerunRequest is the request of a rerun. Without changes it is the original's. With another definition or input it is that of a new
// submission, with the settings that the original's submitter had changed.
func (e *Engine) rerunRequest(ctx context.Context, x *flow.Execution, o *RerunOptions) (flow.Request, error) {
	if x.Version > 0 {
		if err := e.catalog.RefuseRetired(ctx, x.Action); err != nil {
			return flow.Request{}, err
		}
	}
	action, input := x.Action, o.Input
	switch {
	case o.Definition == "" || o.Definition == DefinitionSame:
		if input == nil {
			again := x.Request
			if err := e.allRounds(ctx, x, &again); err != nil {
				return flow.Request{}, err
			}
			again.Queue = flow.ResumedKey(again.Queue)
			return again, nil
		}
		if x.Version > 0 {
			action = catalog.VersionKey(x.Action, x.Version)
		}
	case x.Version == 0:
		return flow.Request{}, fault.New("definition", o.Definition, "the execution ran on no definition: it was submitted as it is", "leave it out")
	case o.Definition != DefinitionLatest:
		action = o.Definition
	}
	if !x.Parent.IsZero() {
		return flow.Request{}, fault.New("id", x.ID.String(), "a task of a workflow is run again with what the workflow gave it",
			"leave out input and definition, or run its workflow again: "+x.Parent.String())
	}
	if input == nil {
		input = x.Input
	}
	was, own := e.byDefinition(ctx, x)
	var r flow.Request
	if err := e.request(ctx, &Submission{Action: action, Input: input, Labels: own}, x.ID, &r); err != nil {
		return flow.Request{}, err
	}
	keepAsked(&r, &x.Request, &was)
	if o.Definition == "" || o.Definition == DefinitionSame {
		r.Alias = x.Alias // by which that version was submitted
	}
	return r, nil
}

// byDefinition is the request that an execution's definition alone would have made, and the execution's labels that the
// definition does not have. If the definition cannot be read, it is the execution's own request.
func (e *Engine) byDefinition(ctx context.Context, x *flow.Execution) (was flow.Request, own map[string]string) {
	if x.Version == 0 {
		return requests.BuiltIn(x.Kind, x.Input), x.Labels
	}
	def, _, err := e.catalog.Get(ctx, x.Action, x.Version)
	if err != nil {
		return x.Request, x.Labels
	}
	own = map[string]string{}
	for name, value := range x.Labels {
		if def.Settings.Labels[name] != value {
			own[name] = value
		}
	}
	if was, err = requests.For(def, x.Version, x.Input, own, nil, definition.WorkWithin(definition.SharedWork)); err != nil {
		was = x.Request
	}
	return was, own
}

// keepAsked copies into a request the settings in which the original differs from its definition: its submitter had asked for them.
func keepAsked(r, original, was *flow.Request) {
	keep := func(differs bool, take func()) {
		if differs {
			take()
		}
	}
	queue := flow.ResumedKey(original.Queue) // it may have ended while its action was paused
	keep(queue != was.Queue, func() { r.Queue = queue })
	keep(original.Priority != was.Priority, func() { r.Priority = original.Priority })
	r.Settings = r.Settings.Keeping(original.Settings, was.Settings)
	keep(!reflect.DeepEqual(original.Retry, was.Retry), func() { r.Retry = original.Retry })
	keep(original.Key != was.Key || original.KeyLimit != was.KeyLimit || original.WhenFull != was.WhenFull || original.Fair != was.Fair, func() {
		r.Key, r.KeyLimit, r.WhenFull, r.Fair = original.Key, original.KeyLimit, original.WhenFull, original.Fair
	})
	keep(original.Rate != was.Rate, func() { r.Rate = original.Rate })
	r.NoCache, r.Traceparent, r.Rules = original.NoCache, original.Traceparent, original.Rules
}
