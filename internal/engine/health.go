package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/store"
)

// health remembers that the store could not write, which a read does not show. Its zero value is healthy.
type health struct {
	lastFailure atomic.Pointer[storeFailure]
	failures    atomic.Int64 // of commits, so far
}

type storeFailure struct {
	err error
	at  time.Time
}

const (
	// failsFor is how long a failed commit counts unless a later one succeeds: a replica that reports not-ready gets no traffic,
	// so no later commit could clear the error.
	failsFor = 10 * time.Second
	// probeFor is how long a probe of a failed store may take.
	probeFor = 2 * time.Second
)

// failed records a failed commit that is not the data's fault.
func (h *health) failed(err error) {
	if !fault.OfBatch(err) {
		h.failures.Add(1)
		h.lastFailure.Store(&storeFailure{err, time.Now()})
	}
}

// wrote records the success of a commit that wrote something.
func (h *health) wrote() {
	if h.lastFailure.Load() != nil {
		h.lastFailure.Store(nil)
	}
}

// Ready returns why this replica cannot work now; nil if it can.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.Closed(); err != nil {
		return err
	}
	if d := e.stalled(); d > e.opts.Lease {
		return fmt.Errorf("requests have waited for %s and no transaction has ended meanwhile: when one does, the log says what it was about", d.Round(time.Second))
	}
	if err := e.opts.Store.Ready(ctx); err != nil {
		return fmt.Errorf("the store does not answer or cannot be written: %w", err)
	}
	return e.refusedWrite(ctx)
}

// stalled is how long requests have waited while nothing was committed.
func (e *Engine) stalled() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.batcher.stalled(time.Now())
}

// refusedWrite is why the store refused the last write; nil if it did not, or takes writes again.
func (e *Engine) refusedWrite(ctx context.Context) error {
	if a := e.health.lastFailure.Load(); a != nil && time.Since(a.at) < failsFor && !e.writes(ctx) {
		return fmt.Errorf("the store did not take what was last to be written: %w", a.err)
	}
	return nil
}

// writes reports whether the store is known to take writes.
func (e *Engine) writes(ctx context.Context) bool {
	p, ok := e.opts.Store.(store.Prober)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	return p.Probe(ctx) == nil
}
