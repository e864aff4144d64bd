package wire

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Asking has the methods of a handoff.Handoff that make one call for a session, over any transport.
type Asking struct {
	// Do makes one call. A server without a result within the time for which it holds a call answers with nothing.
	Do func(ctx context.Context, session flow.ID, name string, in Asked) (Answer, error)
}

func (c Asking) Missed(ctx context.Context, session flow.ID, have []flow.AttemptID) ([]handoff.Assignment, error) {
	out, err := c.Do(ctx, session, Missed, Asked{Attempts: have})
	return out.Work, err
}

func (c Asking) Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	out, err := c.Do(ctx, session, Report, Asked{Reports: reports})
	return out.Receipts, err
}

func (c Asking) Decline(ctx context.Context, session flow.ID, attempts []flow.AttemptID) error {
	_, err := c.Do(ctx, session, Decline, Asked{Attempts: attempts})
	return err
}

func (c Asking) Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error {
	_, err := c.Do(ctx, session, Log, Asked{Chunks: chunks})
	return err
}

func (c Asking) Input(ctx context.Context, session flow.ID, q handoff.InputQuery) (handoff.Input, error) {
	for {
		out, err := c.Do(ctx, session, Input, Asked{Input: &q})
		if err != nil {
			return handoff.Input{}, err
		}
		if out.Input != nil {
			return *out.Input, nil
		}
	}
}

func (c Asking) Renew(ctx context.Context, session flow.ID) (handoff.Renewal, error) {
	out, err := c.Do(ctx, session, Renew, Asked{})
	return handoff.Renewal{Orders: out.Orders, Lease: out.Lease}, err
}

func (c Asking) Orders(ctx context.Context, session flow.ID) ([]handoff.Order, error) {
	for {
		out, err := c.Do(ctx, session, Orders, Asked{})
		if err != nil || len(out.Orders) > 0 {
			return out.Orders, err
		}
	}
}
