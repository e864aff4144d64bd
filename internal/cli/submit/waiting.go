package submit

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/instance"
)

// patienceWithWork is how long an execution may wait for a worker before that is reported.
const patienceWithWork = 3 * time.Second

// waiting reports why executions do not start, each reason once.
type waiting struct {
	say   func(line string)
	asked map[string]time.Time // by id, when to ask about a waiting execution next
	said  map[string]bool      // reasons without their figures
}

func newWaiting(say func(string)) *waiting {
	return &waiting{say: say, asked: map[string]time.Time{}, said: map[string]bool{}}
}

// figures matches the parts in which texts with the same reason differ.
var figures = regexp.MustCompile(`ex_[0-9a-z]+|[0-9]+(st|nd|rd|th)?`)

// look asks about an execution that has not started and does not wait for a time.
func (w *waiting) look(ctx context.Context, c *client.Client, id, name string, status api.Status, wake time.Time) {
	if !wake.IsZero() || status != api.Requested && status != api.Scheduled {
		return
	}
	now := time.Now()
	if w.asked[id].IsZero() {
		w.asked[id] = now.Add(patienceWithWork)
	}
	if now.Before(w.asked[id]) {
		return
	}
	w.asked[id] = now.Add(2 * patienceWithWork)
	why, err := c.Why(ctx, id)
	if err != nil || why.Status.Terminal() || why.Waiting == "nothing" {
		return
	}
	reason := figures.ReplaceAllString(why.Summary, "")
	if w.said[reason] {
		return
	}
	w.said[reason] = true
	line := fmt.Sprintf("pawl: %s has not started: %s", name, why.Summary)
	for i, advice := range why.Unblock {
		line += []string{"; what would unblock it: ", "; or "}[min(i, 1)] + advice.String()
	}
	w.say(line)
}

// lookAtTasks asks about one execution of each task without a running one.
func (w *waiting) lookAtTasks(ctx context.Context, c *client.Client, tasks *api.Tasks) {
	for _, t := range tasks.Tasks {
		var first *api.TaskExecution
		for i, x := range t.Executions {
			if x.Status == api.Running || x.Status == api.Provisioning {
				first = nil
				break
			}
			if first == nil && !x.Status.Terminal() {
				first = &t.Executions[i]
			}
		}
		if first != nil {
			w.look(ctx, c, first.ID, "task "+t.Name, first.Status, first.WakeAt)
		}
	}
}

// sayWhileItWaits reports why a program does not start, until it does.
func sayWhileItWaits(ctx context.Context, a *app.App, s *app.Session, id string) {
	w := newWaiting(func(line string) { a.Say("%s", line) })
	for instance.WaitFor(ctx, time.Second) == nil {
		x, err := s.Current().Get(ctx, id)
		if err != nil {
			continue // the reader of the output reports a server that is gone for good
		}
		if x.Status.Terminal() || x.Status == api.Running {
			return
		}
		w.look(ctx, s.Current(), id, "the program", x.Status, x.WakeAt)
	}
}
