package why

import (
	"fmt"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// paused adds that a pause keeps an execution from being claimed.
func (w *answer) paused(p *store.Pause, then string) {
	w.Waiting, w.Until, w.Paused = "paused", p.Until, &api.PausedPart{Kind: p.Of.String(), Name: p.Name}
	w.Summary = pauseText(p) + then
	w.Unblock = []api.Advice{resumeIt(p.Of.String(), p.Name)}
}

// pauseText is a sentence about a pause: the queue, worker or action that is paused, since when, by which person, until
// when, and the reason.
func pauseText(p *store.Pause) string {
	text := fmt.Sprintf("%s %q is paused since %s", p.Of, p.Name, Clock(p.At))
	if p.By != "" {
		text += " by " + p.By
	}
	if !p.Until.IsZero() {
		text += " until " + p.Until.UTC().Format(time.RFC3339)
	}
	if p.Reason != "" {
		text += fmt.Sprintf(" (%s)", p.Reason)
	}
	return text
}

// pausedItself adds, for a paused workflow, that it starts no tasks, and for other executions that their timers are stopped.
func (w *answer) pausedItself(x *flow.Execution) {
	p := x.State.Pause
	if p == nil || x.State.Cancel != nil {
		return
	}
	then, resumed := "starts no tasks", x.ID
	if x.Kind != flow.KindWorkflow {
		then, resumed = "stands still with the workflow whose task it is", x.Parent
	}
	say := "it is paused, and " + then
	if p.By != "" {
		say = "it was paused by " + p.By + ", and " + then
	}
	if p.Reason != "" {
		say += ": " + p.Reason
	}
	if x.Place == flow.Held || p.Stops && x.Place == flow.Delayed && !x.WaitsForSlot() {
		w.Facts = append([]string{w.Summary}, w.Facts...)
		w.Until, w.Summary = p.Until, say
	} else {
		w.Facts = append(w.Facts, say)
	}
	since := "paused since " + Clock(p.At)
	if !p.Until.IsZero() {
		since += ", until " + Clock(p.Until)
	}
	w.Facts = append(w.Facts, since)
	if p.Stops {
		w.Facts = append(w.Facts, "its timers stand still; when it is resumed they go on by as long as that lasted")
	}
	w.Unblock = append([]api.Advice{resumeIt("execution", resumed.String())}, w.Unblock...)
}
