package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// health remembers that the store could not write: whoever reads it does not see that. Its zero value is well.
type health struct{ ailing atomic.Pointer[ailment] }

type ailment struct {
	err error
	at  time.Time
}

// ailsFor is how long a failed commit counts unless a later one succeeds: who hears that this replica is not ready sends it
// nothing that could.
const ailsFor = 10 * time.Second

// failed notes the failure of a commit that is not the data's fault.
func (h *health) failed(err error) {
	if !spoiled(err) {
		h.ailing.Store(&ailment{err, time.Now()})
	}
}

// wrote notes the success of a commit that wrote something.
func (h *health) wrote() {
	if h.ailing.Load() != nil {
		h.ailing.Store(nil)
	}
}

// Ready says why this replica cannot do its work just now; nil when it can.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.Closed(); err != nil {
		return err
	}
	if s, ok := e.opts.Store.(interface{ Ping(context.Context) error }); ok {
		if err := s.Ping(ctx); err != nil {
			return fmt.Errorf("the store does not answer or cannot be written: %w", err)
		}
	}
	if _, err := e.opts.Store.Definitions(ctx, "", 1); err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	if a := e.health.ailing.Load(); a != nil && time.Since(a.at) < ailsFor {
		return fmt.Errorf("the store did not take what was last to be written: %w", a.err)
	}
	return nil
}
