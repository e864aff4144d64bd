package engine

import (
	"context"

	"github.com/pawl-run/pawl/internal/engine/why"
	"github.com/pawl-run/pawl/internal/flow"
)

// explainer is what why explains from.
func (e *Engine) explainer() *why.Explainer {
	return &why.Explainer{Store: e.opts.Store, Catalog: e.catalog, Engine: e, Waits: &e.awaited, Cut: e.opts.Cut}
}

// Why says what an execution is waiting for.
func (e *Engine) Why(ctx context.Context, id flow.ID) (why.Answer, error) {
	return e.explainer().Execution(ctx, id)
}

// WhySchedule says what a schedule waits for.
func (e *Engine) WhySchedule(ctx context.Context, name string) (why.Schedule, error) {
	k, d, err := e.Schedule(ctx, name)
	if err != nil {
		return why.Schedule{}, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return why.Schedule{}, err
	}
	failed, err := e.failures(ctx, &k, d.Schedule.PauseAfter)
	if err != nil {
		return why.Schedule{}, err
	}
	return e.explainer().Schedule(ctx, &k, d, failed, now)
}
