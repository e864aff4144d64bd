package engine

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine/archives"
	"github.com/pawl-run/pawl/internal/engine/find"
	"github.com/pawl-run/pawl/internal/engine/histories"
	"github.com/pawl-run/pawl/internal/engine/inquiries"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/engine/why"
	"github.com/pawl-run/pawl/internal/flow"
)

// engineForSubpackages is the part of the engine that the packages in its directory use. They cannot import the engine, because it imports
// them.
type engineForSubpackages struct{ *Engine }

// StillKept refuses an execution that retention may be removing.
func (e engineForSubpackages) StillKept(ctx context.Context, x *flow.Execution) error {
	return e.stillKept(ctx, x)
}

// Inquiries are the questions that executions put to people.
func (e *Engine) Inquiries() *inquiries.Inquiries { return e.inquiries }

// Uploads are the contents that clients have uploaded.
func (e *Engine) Uploads() *uploads.Uploads { return e.uploads }

// Archives writes executions into archives, and stores an archive in an empty store.
func (e *Engine) Archives() *archives.Archives {
	return &archives.Archives{Store: e.opts.Store, Blobs: e.opts.Blobs, Uploads: e.uploads, Update: e.update, Engine: engineForSubpackages{e}, MostBlob: mostBlob}
}

func (e *Engine) explainer() *why.Explainer {
	return &why.Explainer{Store: e.opts.Store, Catalog: e.catalog, Engine: engineForSubpackages{e}, Waits: &e.awaited, Cut: e.opts.Unreachable}
}

// Why explains what an execution waits for.
func (e *Engine) Why(ctx context.Context, id flow.ID) (api.Why, error) {
	w, err := e.explainer().Execution(ctx, id)
	if err != nil || w.Waiting == "nothing" {
		return w, err
	}
	if refused := e.refusedWrite(ctx); refused != nil {
		w.Facts = append([]string{w.Summary}, w.Facts...)
		w.Summary = fmt.Sprintf("nothing goes on just now: %v", refused)
		w.Unblock = append([]api.Advice{{Text: "the store takes writes again"}}, w.Unblock...)
	}
	return w, nil
}

// WhySchedule explains what a schedule waits for.
func (e *Engine) WhySchedule(ctx context.Context, name string) (api.ScheduleWhy, error) {
	k, d, err := e.Schedule(ctx, name)
	if err != nil {
		return api.ScheduleWhy{}, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return api.ScheduleWhy{}, err
	}
	failed, err := e.failures(ctx, &k, d.Schedule.PauseAfter)
	if err != nil {
		return api.ScheduleWhy{}, err
	}
	return e.explainer().Schedule(ctx, &k, d, failed, now)
}

// Finder finds executions by conditions.
func (e *Engine) Finder() *find.Finder { return &find.Finder{Store: e.opts.Store, Catalog: e.catalog} }

// Histories replays the recorded histories.
func (e *Engine) Histories() *histories.Histories { return histories.Of(e.opts.Store, e.catalog) }
