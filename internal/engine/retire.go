package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
)

// Retire makes new executions of a definition be refused, or with undo accepted again. Repeating it changes nothing.
func (e *Engine) Retire(ctx context.Context, name string, undo bool, by, reason string) (catalog.Retirement, error) {
	var f fault.List
	f.Text("by", by, fault.AuthorLimit)
	f.Text("reason", reason, fault.ReasonLimit)
	if len(f) > 0 {
		return catalog.Retirement{}, &fault.Invalid{Problems: f}
	}
	if _, err := e.catalog.Registered(ctx, name); err != nil {
		return catalog.Retirement{}, err
	}
	asked := time.Now()
	r, err := inBatchAlone(ctx, e, func(ctx context.Context, t *transaction) (catalog.Retirement, error) {
		was, err := catalog.ReadRetirement(ctx, &t.tx, name)
		if err != nil || was.Retired == !undo {
			return was, err
		}
		r := catalog.Retirement{Name: name, Retired: !undo, At: t.now, By: by, Reason: reason}
		row, err := r.Row()
		if err == nil {
			r.Number, _, err = t.tx.Define(ctx, row)
		}
		return r, err
	})
	if err != nil {
		return r, fmt.Errorf("retire %q: %w", name, err)
	}
	e.catalog.IsRetired(r, asked)
	return r, nil
}

// MentionsOfRetired lists where definitions are retired, or name a retired one: a task runs it anyway, and the starts of a schedule or rule
// are refused. They can be defined all the same.
func (e *Engine) MentionsOfRetired(ctx context.Context, defs []*definition.Definition) (definition.Problems, error) {
	var names []string
	for _, d := range defs {
		if d.Runnable() {
			names = append(names, d.Name)
		}
		for _, ref := range d.References() {
			base, _, _ := strings.Cut(ref.Name, "@")
			names = append(names, base)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	retired, err := e.catalog.Retired(ctx, names)
	if err != nil || len(retired) == 0 {
		return nil, err
	}
	var all definition.Problems
	for _, d := range defs {
		if r, ok := retired[d.Name]; ok && d.Runnable() {
			all = append(all, definition.Problem{File: d.Position.File, Line: d.Position.Line, Column: d.Position.Column, Path: "name", Value: d.Name, Message: r.Say(),
				Fix: "nothing new of it is accepted until it is brought back: pawl retire " + r.Name + " --undo"})
		}
		for _, ref := range d.References() {
			base, _, _ := strings.Cut(ref.Name, "@")
			r, ok := retired[base]
			if !ok {
				continue
			}
			what := "the task runs it all the same"
			if ref.Task == "" {
				what = "each start of it is refused"
			}
			p := refProblem(ref, r.Say(), what+": name another one, or bring it back: pawl retire "+base+" --undo")
			p.Value = ref.Name
			all = append(all, p)
		}
	}
	return all, nil
}
