// Package loop is the common part of the engine's loops: how they pause and are woken, and how they take turns.
package loop

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawl-run/pawl/internal/telemetry"
)

// IdleAtMost bounds the pause of a loop that is woken when there is work.
const IdleAtMost = time.Hour

// Pass is one pass of a loop. It returns the pause until the next one.
type Pass = func(context.Context) (pause time.Duration, err error)

// Repeat makes passes until ctx ends. wake ends a pause early (nil: nothing does). After an error, which is logged with the loop's name
// what, the pause is again.
func Repeat(ctx context.Context, log *slog.Logger, what string, again time.Duration, wake <-chan struct{}, next Pass) {
	for {
		pause, err := next(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			pause = again
			log.Error(what+" failed; it will be tried again", telemetry.Err, err)
		}
		if pause > 0 && !Sleep(ctx, pause, wake) {
			return
		}
	}
}

// IdleUnless is the pause of a loop that commits wake, unless there is more to do.
func IdleUnless(more bool) time.Duration {
	if more {
		return 0
	}
	return IdleAtMost
}

// Sleep waits for d, or until wake signals work (nil: nothing does). It returns false if ctx has ended before.
func Sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-wake:
		return true
	case <-ctx.Done():
		return false
	}
}

// Wake puts a value into a channel of capacity 1, unless there is one already.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
