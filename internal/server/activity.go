package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
)

// activityKept is how many minutes are kept: one day takes 80 KB.
const activityKept = 24 * 60

// activity is the work of this server's engine in each minute of the last day. It is kept in memory only and, like the counters that it is
// computed from, starts anew with the process.
type activity struct {
	mu      sync.Mutex
	minutes []api.ActivityStep // the oldest first
	last    engine.Stats       // the counters at the end of the latest minute
}

// start reads the counters and then notes each minute until ctx ends. It reads them before it returns, so that the first request counts.
func (a *activity) start(ctx context.Context, stats func() engine.Stats) {
	a.mu.Lock()
	a.last = stats()
	a.mu.Unlock()
	go a.run(ctx, stats)
}

func (a *activity) run(ctx context.Context, stats func() engine.Stats) {
	for {
		now := time.Now()
		ends := now.Truncate(time.Minute).Add(time.Minute)
		select {
		case <-time.After(ends.Sub(now)):
			a.note(ends.Add(-time.Minute), stats())
		case <-ctx.Done():
			return
		}
	}
}

// note adds the minute that has ended.
func (a *activity) note(minute time.Time, s engine.Stats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.minutes = append(a.minutes[max(0, len(a.minutes)-activityKept+1):], between(minute, &a.last, &s))
	a.last = s
}

// between is the work between two readings of the counters.
func between(at time.Time, from, to *engine.Stats) api.ActivityStep {
	ended := func(s flow.Stage) int64 { return to.Ended[s] - from.Ended[s] }
	return api.ActivityStep{
		At: at.UTC(), Submitted: to.Submitted - from.Submitted, Claimed: to.Claimed - from.Claimed,
		Completed: ended(flow.Completed), Failed: ended(flow.Failed), Cancelled: ended(flow.Cancelled), TimedOut: ended(flow.TimedOut),
	}
}

// steps returns the latest n spans of a whole number of minutes, oldest first. The last span is not over yet and has the work up to now.
func (a *activity) steps(now time.Time, s engine.Stats, length time.Duration, n int) []api.ActivityStep {
	a.mu.Lock()
	defer a.mu.Unlock()
	current := now.Truncate(length)
	first := current.Add(-time.Duration(n-1) * length)
	out := make([]api.ActivityStep, n)
	for i := range out {
		out[i].At = first.Add(time.Duration(i) * length).UTC()
	}
	open := between(now, &a.last, &s)
	for _, m := range append(a.minutes[:len(a.minutes):len(a.minutes)], open) {
		if at := int(m.At.Sub(first) / length); !m.At.Before(first) && at < n {
			out[at].Add(&m)
		}
	}
	return out
}

func (c *call) activity() error {
	const least, most, fix = time.Minute, 24 * time.Hour, "give whole minutes, 1m to 24h, as 5m"
	step := c.duration("step", least, fix)
	if step < least && step != 0 || step > most || step%least != 0 {
		c.fault("step", step.String(), "it is not a number of whole minutes of a day", fix)
	}
	step = max(step, least)
	n := int(c.number("limit", 60, 1, activityKept))
	if err := c.checked(); err != nil {
		return err
	}
	return c.json(http.StatusOK, api.Activity{Since: c.started.UTC(), Step: api.Duration(step), Steps: c.done.steps(time.Now(), c.Engine.Stats(), step, n)})
}
