package why

import (
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// paused says that a pause keeps an execution from being claimed.
func (w *Answer) paused(p *store.Pause, then string) {
	w.Waiting, w.Until, w.Paused = "paused", p.Until, p
	w.Summary = pauseText(p) + then
	w.Unblock = []string{fmt.Sprintf("it is resumed: pawl resume %s %s", p.Of, p.Name)}
}

// pauseText is a sentence about a pause: the queue, worker or action that is paused, since when, by which person, until when, and the reason.
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

// pausedItself says of a workflow that is paused that it starts no tasks.
func (w *Answer) pausedItself(x *flow.Execution) {
	p := x.State.Pause
	if p == nil || x.State.Cancel != nil {
		return
	}
	say := "it is paused, and starts no tasks"
	if p.By != "" {
		say = "it was paused by " + p.By + ", and starts no tasks"
	}
	if p.Reason != "" {
		say += ": " + p.Reason
	}
	if x.Place == flow.Held {
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
	w.Unblock = append([]string{"it is resumed: pawl resume execution " + x.ID.String()}, w.Unblock...)
}
