package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
)

// Retire lets nothing new of a definition be accepted, or with undo lets it again. Doing it twice changes nothing.
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
	r, err := askAlone(ctx, e, func(ctx context.Context, t *transaction) (catalog.Retirement, error) {
		was, err := catalog.ReadRetirement(ctx, t.tx, name)
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
