package simulation

import (
	"context"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// rerunBugs are planted bugs of reruns and aliases.
var rerunBugs = []bug{
	{name: "what comes after what was named is reused", invariant: []int{60}, tune: rerunningPlan, rerun: func(_ *row, o *engine.RerunOptions) { o.From = nil },
		tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
			d.Workflows.Reuses = slices.DeleteFunc(slices.Clone(d.Workflows.Reuses), func(r store.Reuse) bool { return t.w.load.named(d.Drafts, &r) })
			return t.Tx.Apply(ctx, d)
		}})},
	{name: "what was named is reused", invariant: []int{60}, tune: rerunningPlan, rerun: func(_ *row, o *engine.RerunOptions) { o.From = nil }},
	{name: "what a path names is reused", invariant: []int{60}, tune: wrappingPlan, rerun: func(_ *row, o *engine.RerunOptions) {
		o.Within = slices.Clone(o.Within)
		for i := range o.Within {
			o.Within[i].From = nil
		}
	}},
	{name: "what is reused beneath a rerun is lost", invariant: []int{62}, tune: wrappingPlan, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Workflows.Reuses = slices.DeleteFunc(slices.Clone(d.Workflows.Reuses), func(r store.Reuse) bool { return strings.Contains(r.Task, "/") })
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "path is forgotten", invariant: []int{62}, tune: wrappingPlan, rerun: func(_ *row, o *engine.RerunOptions) { o.Within = nil }},
	{name: "another input is not looked at", invariant: []int{62}, tune: rerunningPlan, rerun: func(_ *row, o *engine.RerunOptions) { o.Input = nil }},
	{name: "rerun runs on the latest version", invariant: []int{62}, tune: rerunningPlan, rerun: func(of *row, o *engine.RerunOptions) {
		if of.x.Action == turns && o.Definition == "" {
			o.Definition = engine.DefinitionLatest
		}
	}},
	{name: "what is to be reused is lost", invariant: []int{62}, tune: rerunningPlan, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Workflows.Reuses = nil
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "items that could reuse run", invariant: []int{60, 62}, tune: rerunningPlan, tx: twisted(twist{reusable: func(_ *twist, _ string, all []store.Reusable) []store.Reusable {
		return slices.DeleteFunc(all, func(r store.Reusable) bool { return r.Index%2 == 1 })
	}})},
	{name: "item reuses the outcome of another", invariant: []int{59}, tune: rerunningPlan, tx: twisted(twist{reusable: func(_ *twist, _ string, all []store.Reusable) []store.Reusable {
		if len(all) > 1 {
			all[0].Output, all[1].Output = all[1].Output, all[0].Output
		}
		return all
	}})},
	{name: "reused outcome names one that did not run", invariant: []int{59}, tune: rerunningPlan, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Workflows.Reuses = slices.Clone(d.Workflows.Reuses)
		for i := range d.Workflows.Reuses {
			d.Workflows.Reuses[i].Of = d.Workflows.Reuses[i].From
		}
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "given output is not used", invariant: []int{59}, tune: rerunningPlan, tx: twisted(twist{workflows: func(_ *twist, x *flow.Execution) {
		alterRerun(&x.Request, func(again *flow.Rerun) { again.Outputs = nil })
	}})},
	{name: "rerun does not name its original", invariant: []int{62}, tune: rerunningPlan, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		for _, x := range d.Drafts {
			x.RerunOf = flow.ID{}
			alterRerun(&x.Request, func(again *flow.Rerun) { again.First = flow.ID{} })
		}
		d.Workflows.Reuses = nil
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "rerun is not listed", invariant: []int{62}, tune: rerunningPlan, store: bent(crooked{reruns: true})},
	{name: "key of a rerun is not kept", invariant: []int{25}, tune: rerunningPlan, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		d.Keys = slices.DeleteFunc(slices.Clone(d.Keys), func(k store.IdempotencyKey) bool { return strings.HasPrefix(k.Key, "rerun") })
		return t.Tx.Apply(ctx, d)
	}})},
	{name: "alias is resolved again at each step", invariant: []int{63, 18, 60, 62}, tune: rerunningPlan, tx: twisted(twist{workflows: func(t *twist, x *flow.Execution) {
		if x.Alias == stable {
			x.Version = t.w.shadow.target(x.Action)
		}
	}})},
}

// alterRerun changes the rerun options of one request, and leaves other requests that share them unchanged.
func alterRerun(r *flow.Request, change func(*flow.Rerun)) {
	if r.Rerun != nil {
		again := *r.Rerun
		change(&again)
		r.Rerun = &again
	}
}

// rerunningPlan is a plan with many reruns and alias moves.
func rerunningPlan(p *plan) { p.Reruns, p.Ops = true, 2*p.Ops }

func wrappingPlan(p *plan) {
	rerunningPlan(p)
	p.Wraps = true
}

// named reports whether the client that requested a rerun named an item.
func (l *load) named(drafts []*flow.Draft, r *store.Reuse) bool {
	at := slices.IndexFunc(drafts, func(x *flow.Draft) bool { return x.ID == r.Workflow })
	if at < 0 {
		return false
	}
	o := l.ordered(drafts[at].IdempotencyKey)
	return o != nil && names(o.asks.From, orchestration.Item{Task: r.Task, Index: r.Index})
}

// target returns the version that a definition's alias points to.
func (s *shadow) target(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.targets[name]
}
