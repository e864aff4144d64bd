package why

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/schedule"
	"github.com/pawl-run/pawl/internal/store"
)

const ticksExplained = 10

// Schedule explains what a schedule waits for at a moment, its last times, and what would let it continue. failed is how many of its last
// executions have failed in a row.
func (e *Explainer) Schedule(ctx context.Context, k *store.Schedule, d *definition.Definition, failed int, now time.Time) (w api.ScheduleWhy, err error) {
	w = api.ScheduleWhy{Name: k.Name, Facts: []string{}, Unblock: []api.Advice{}}
	switch {
	case !k.PausedAt.IsZero():
		w.Waiting, w.Summary = "resume", fmt.Sprintf("it has been paused since %s", stamp(k.PausedAt))
		if k.Reason != "" {
			w.Summary += ": " + k.Reason
		}
		w.Unblock = append(w.Unblock, ResumeIt("schedule", k.Name, "pawl schedules resume "+k.Name))
	case k.Next.IsZero():
		w.Waiting, w.Summary = "nothing", "no time comes any more"
		w.Unblock = append(w.Unblock, api.Advice{Text: "a document with other times is applied"})
	case k.Due.After(now):
		w.Waiting, w.Summary = "time", fmt.Sprintf("its next time is %s, in %s", stamp(k.Next), span(now, k.Due))
	default:
		w.Waiting, w.Summary = "server", fmt.Sprintf("its time %s has been due for %s and is not decided about yet", stamp(k.Next), now.Sub(k.Due).Round(time.Second))
		w.Unblock = append(w.Unblock, api.Advice{Text: "a server runs: schedules fire while one does, and its log says when a schedule cannot be decided about"})
	}
	if err := e.explainTicks(ctx, &w, k); err != nil {
		return w, err
	}
	return w, e.explainLast(ctx, &w, k, d, failed)
}

// explainTicks adds the results of the last nominal times.
func (e *Explainer) explainTicks(ctx context.Context, w *api.ScheduleWhy, k *store.Schedule) error {
	ticks, err := e.Store.Ticks(ctx, k.Name, time.Time{}, ticksExplained)
	if err != nil {
		return err
	}
	words := map[string]string{schedule.MissedLate: "no server fired it in time", schedule.MissedPaused: "the schedule was paused",
		schedule.MissedBusy: "the execution before had not ended", schedule.MissedFault: "its execution was refused", schedule.MissedReplaced: "another version of the document was applied"}
	for i := range ticks {
		t := &ticks[i]
		if !t.Execution.IsZero() {
			w.Facts = append(w.Facts, fmt.Sprintf("%s was fired (%s) and started %s", stamp(t.Nominal), t.Why, t.Execution))
			return nil
		}
		say := fmt.Sprintf("%s was missed: %s", stamp(t.Nominal), words[t.Why])
		if t.Count > 1 {
			say = fmt.Sprintf("%d times from %s to %s were missed: %s", t.Count, stamp(t.Nominal), stamp(t.Last), words[t.Why])
		}
		if t.Message != "" {
			say += " (" + t.Message + ")"
		}
		w.Facts = append(w.Facts, say)
		if t.Why == schedule.MissedFault && i == 0 {
			w.Unblock = append(w.Unblock, api.Advice{Text: "what its execution was refused for is corrected: " + t.Message})
		}
	}
	return nil
}

// explainLast adds what the last execution, and the failed ones, mean for the next tick.
func (e *Explainer) explainLast(ctx context.Context, w *api.ScheduleWhy, k *store.Schedule, d *definition.Definition, failed int) error {
	if most := d.Schedule.PauseAfter; most > 0 {
		w.Facts = append(w.Facts, fmt.Sprintf("%d of its last executions failed in a row; it pauses itself after %d", failed, most))
	}
	if k.Execution.IsZero() || d.Schedule.Overlap != schedule.OverlapSkip {
		return nil
	}
	x, err := e.Store.Get(ctx, k.Execution)
	if errors.Is(err, store.ErrNotFound) || err == nil && x.Stage.Terminal() {
		return nil
	}
	if err != nil {
		return err
	}
	w.Facts = append(w.Facts, fmt.Sprintf("%s has not ended; a tick that comes meanwhile is missed (overlap: skip)", k.Execution))
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
