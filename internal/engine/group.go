package engine

import (
	"context"
	"sync/atomic"
)

// group waits for several requests of one caller, which may end up in different transactions.
type group struct {
	left atomic.Int64
	over chan struct{}
}

func newGroup(n int) *group {
	g := &group{over: make(chan struct{})}
	g.left.Store(int64(n))
	return g
}

func (g *group) done() {
	if g.left.Add(-1) == 0 {
		close(g.over)
	}
}

// wait returns when every request has been answered, or when ctx ends: then the requests may still be committed.
func (g *group) wait(ctx context.Context) error {
	select {
	case <-g.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
