package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/store"
)

// reuses is the reusable outcomes that a step of a rerun has loaded.
type reuses struct {
	items map[orchestration.Item]*store.Reusable
	bytes int // of their outputs
}

// reusableAtOnce bounds the outcomes that one step loads for a foreach whose concurrency is an expression: the limit is not known before
// the step evaluates it.
const reusableAtOnce = 64

// loadReusable loads the outcomes that items of this step may reuse, within the bounds. For a task whose outcomes were
// not all loaded, upto is the index up to which the step may create items.
func (s *step) loadReusable(ctx context.Context, next *orchestration.Step, rows, bytes int) (upto map[int]int, err error) {
	if s.w.RerunOf.IsZero() {
		return nil, nil
	}
	tasks := slices.Concat(next.More, next.Judge)
	for _, start := range next.Start {
		tasks = append(tasks, start.Task)
	}
	for _, i := range tasks {
		t, from, n := s.def.Tasks[i], s.p.tracker.State().Tasks[i].Created, max(1, rows)
		switch {
		case t.Repeat != nil:
			n = 1 // the next round is known when this one has ended
		case t.InFlight > 0:
			n = min(n, t.InFlight)
		case t.InFlightOf != nil:
			n = min(n, reusableAtOnce)
		}
		all, err := s.t.tx.Reusable(ctx, s.w.KeptBy(s.w.ID), s.w.KeptTask(t.Name), from, n, int64(max(0, bytes)))
		if err != nil {
			return nil, fmt.Errorf("load what task %q reuses: %w", t.Name, err)
		}
		had := bytes
		for j := range all {
			item := orchestration.Item{Task: t.Name, Index: all[j].Index}
			if s.reuses.items == nil {
				s.reuses.items = map[orchestration.Item]*store.Reusable{}
			}
			if s.reuses.items[item] == nil {
				s.reuses.items[item] = &all[j]
				s.reuses.bytes += len(all[j].Output)
				bytes -= len(all[j].Output)
			}
		}
		if len(all) == n || had > 0 && bytes < 0 || had <= 0 && len(all) > 0 {
			if upto == nil {
				upto = map[int]int{}
			}
			upto[i] = all[len(all)-1].Index + 1
		}
	}
	return upto, nil
}

// reusable returns the outcome with which a child ends instead of running, and sets ReusedOf in the child's request; nil: the child runs.
// The work of the child is compared once more, because an action may have another version than when the rerun was planned. If it differs,
// nothing after the child is reused either.
func (s *step) reusable(ctx context.Context, c *orchestration.Child, r *flow.Request, refusal *flow.Error) (*store.Reusable, error) {
	u := s.reuses.items[orchestration.Item{Task: c.Task.Name, Index: c.Index}]
	if u == nil {
		return nil, nil
	}
	if refusal == nil && workOf(r).Sum() == u.Hash {
		r.ReusedOf = u.Of
		return u, nil
	}
	after := orchestration.After(s.def, c.Task)
	if c.Task.Repeat != nil {
		after = append(after, c.Task.Name) // the rounds that follow this one
	}
	if err := s.forget(ctx, after...); err != nil {
		return nil, fmt.Errorf("forget what comes after task %q: %w", c.Task.Name, err)
	}
	maps.DeleteFunc(s.reuses.items, func(i orchestration.Item, _ *store.Reusable) bool { return slices.Contains(after, i.Task) })
	return nil, nil
}

// forget deletes the outcomes that are stored for tasks of the workflow to reuse, and those beneath them.
func (s *step) forget(ctx context.Context, tasks ...string) error {
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = s.w.KeptTask(t)
	}
	return s.t.tx.DropReusable(ctx, s.w.KeptBy(s.w.ID), names)
}

// runBeneath completes the request of a child workflow of which parts run again. If its work is not the planned one, because an earlier
// task has another output, it reuses nothing.
func (s *step) runBeneath(ctx context.Context, c *orchestration.Child, b *flow.Beneath, m *childRequest) error {
	if m.refusal != nil {
		return nil
	}
	_, m.request.Alias, _ = strings.Cut(c.Action, "@")
	if workOf(&m.request).Sum() != b.Work {
		if err := s.forget(ctx, flow.ItemPath("", c.Task.Name, c.Index)); err != nil {
			return fmt.Errorf("forget what is beneath task %q: %w", c.Task.Name, err)
		}
	}
	m.request.RunBeneath(s.w.ID, &s.w.Request, b)
	return nil
}

// workOf is the work of an execution: what its outcome depends on, and not when, where, how often or how long it may run. It includes a
// workflow's labels, which the expressions of its tasks can read. It compares values, not texts: a definition loaded from the store has the
// members of its objects in another order than one just applied.
func workOf(r *flow.Request) orchestration.Work {
	text := []byte(r.Kind)
	if r.Kind == flow.KindWorkflow {
		text = fmt.Appendf(text, " %q@%d", r.Action, r.Version)
		for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
			text = fmt.Appendf(text, " %q=%q", name, r.Labels[name])
		}
	}
	text = append(append(text, ' '), canonical(r.With)...)
	return orchestration.Work{Action: sha256.Sum256(text), Input: sha256.Sum256(canonical(r.Input))}
}

// canonical is the one text of all payloads with the same value.
func canonical(payload json.RawMessage) []byte {
	if len(payload) == 0 {
		return nil
	}
	text, err := jsonvalue.Canonical(nil, payload)
	if err != nil {
		return payload // not JSON: the text itself is compared
	}
	return text
}
