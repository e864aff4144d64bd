// Package direct is the hand-off within one process: the worker calls the engine, and a claim is the hand-off.
package direct

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// New is the hand-off of the engine for workers of this process. Their sessions are marked as embedded: they end with the process. If the
// engine carries blobs, so does the hand-off.
func New(engine handoff.Handoff) handoff.Handoff {
	if carrier, ok := engine.(handoff.BlobCarrier); ok {
		return carrying{embedded{engine}, carrier}
	}
	return embedded{engine}
}

type carrying struct {
	embedded
	handoff.BlobCarrier
}

type embedded struct{ handoff.Handoff }

func (e embedded) Calls() int { return handoff.Calls(e.Handoff) }

func (e embedded) Open(ctx context.Context, s handoff.Session) (flow.ID, error) {
	s.Embedded = true
	return e.Handoff.Open(ctx, s)
}

func (e embedded) Resume(ctx context.Context, s handoff.Session, before flow.ID, keep []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	s.Embedded = true
	return e.Handoff.Resume(ctx, s, before, keep)
}
