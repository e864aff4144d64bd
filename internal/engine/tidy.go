package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/engine/loop"
)

// tidyAtMost bounds the pause of a loop that removes expired or unreferenced rows.
const tidyAtMost = 5 * time.Minute

// tidying is the pause of such a loop: it doubles while there is nothing to remove.
type tidying struct{ least, most, pause time.Duration }

func newTidying(least, most time.Duration) *tidying { return &tidying{least, max(least, most), least} }

// next is the pause after a round, which removed something or nothing.
func (p *tidying) next(removed bool) time.Duration {
	if removed {
		p.pause = p.least
	} else {
		p.pause = min(2*p.pause, p.most)
	}
	return p.pause
}

// tidy removes expired or unreferenced rows until ctx ends. drop returns how many rows it has removed. The first round comes after a pause.
func (e *Engine) tidy(ctx context.Context, what string, drop func(context.Context) (int, error)) {
	rest := newTidying(purgeEvery, tidyAtMost)
	if !loop.Sleep(ctx, e.jittered(rest.least), nil) {
		return
	}
	loop.Repeat(ctx, e.opts.Log, what, purgeEvery, nil, func(ctx context.Context) (time.Duration, error) {
		dropped, err := drop(ctx)
		return e.jittered(rest.next(dropped > 0 || err != nil)), err
	})
}
