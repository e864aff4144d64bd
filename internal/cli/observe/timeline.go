package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// describeTimeline lists attempts by worker, in the order in which they were claimed; attempts without a worker come last.
func describeTimeline(ctx context.Context, a *app.App, s *app.Session, id string, f output.Format) error {
	whole, err := wholeTimeline(ctx, s, id)
	return output.Show(a.Out, f, whole, err, func() {
		all := slices.Clone(whole.Attempts)
		slices.SortStableFunc(all, func(x, y api.TimelineAttempt) int {
			if (x.Worker == "") != (y.Worker == "") {
				return -cmp.Compare(x.Worker, y.Worker)
			}
			return cmp.Or(cmp.Compare(x.Worker, y.Worker), x.ClaimedAt.Compare(y.ClaimedAt))
		})
		t := output.Titled("WORKER", "TASK", "ATTEMPT", "STATUS", "CLAIMED", "WAITED", "HELD", "ID")
		for i := range all {
			x := &all[i]
			task, state := x.Task, string(x.Status)
			if x.Index > 0 {
				task += fmt.Sprintf("[%d]", x.Index)
			}
			if x.Lost {
				state = "lost"
			}
			if x.Code != "" {
				state += ": " + x.Code
			}
			claimed, held := "", ""
			if !x.ClaimedAt.IsZero() {
				claimed, held = x.ClaimedAt.Local().Format("15:04:05.000"), between(x.ClaimedAt, x.FinishedAt)
			}
			waited := between(x.CreatedAt, cmp.Or(x.ClaimedAt, x.FinishedAt))
			t.Row(cmp.Or(x.Worker, "-"), task, fmt.Sprint(x.Attempt), state, claimed, waited, held, x.Execution)
		}
		t.Write(a.Out)
	})
}

func wholeTimeline(ctx context.Context, s *app.Session, id string) (*api.Timeline, error) {
	whole, err := s.Timeline(ctx, id, "", 1000)
	for err == nil && whole.NextCursor != "" {
		var next *api.Timeline
		if next, err = s.Timeline(ctx, id, whole.NextCursor, 1000); err == nil {
			next.Attempts = append(whole.Attempts, next.Attempts...)
			whole = next
		}
	}
	return whole, err
}

// between is the time from one moment to another, or until now if the second is missing.
func between(from, to time.Time) string {
	if to.IsZero() {
		to = time.Now()
	}
	return max(0, to.Sub(from)).Round(time.Millisecond).String()
}
