package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/automate"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// describable are the kinds of documents with more to show than their text.
var describable = []struct {
	prefix   string
	describe func(ctx context.Context, a *app.App, s *app.Session, name string, f output.Format) error
}{
	{"webhook:", automate.DescribeWebhook},
	{"schedule:", automate.DescribeSchedule},
	{"rule:", automate.DescribeRule},
}

// shownFailures is the number of failed executions listed per task.
const shownFailures = 5

// describeTasks lists the tasks of a workflow, and under each its failed executions.
func describeTasks(ctx context.Context, a *app.App, s *app.Session, x *api.Execution) error {
	tasks, err := s.Tasks(ctx, x.ID, 100)
	if err != nil {
		return err
	}
	failures, err := failuresOf(ctx, s, x)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, "\nTasks:")
	t := &output.Table{}
	for i := range tasks.Tasks {
		task := &tasks.Tasks[i]
		failed := failures[task.Name]
		progress, id, why := "", "", ""
		if task.Many() {
			progress = fmt.Sprintf("%d/%d", task.Ended, task.Most())
		} else if len(task.Executions) == 1 {
			id = task.Executions[0].ID
		}
		if task.Error != nil {
			why = task.Error.Error()
		} else if !task.Many() && len(failed) == 1 && failed[0].ID == id {
			if why, err = whyFailed(ctx, s, id); err != nil {
				return err
			}
		}
		why = cmp.Or(why, strings.Join(append(roundsOf(task), withoutRunning(task)...), ", "))
		t.Row("  "+task.Name, string(task.Status), progress, task.Action, id, why)
		if task.Repeat > 0 {
			if err := describeRounds(ctx, s, t, task, x.ID); err != nil {
				return err
			}
			continue
		}
		if !task.Foreach {
			continue
		}
		for _, f := range failed[:min(len(failed), shownFailures)] {
			why, err := whyFailed(ctx, s, f.ID)
			if err != nil {
				return err
			}
			t.Row(fmt.Sprintf("    %s[%d]", f.Task, f.Index), string(f.Status), "", "", f.ID, why)
		}
		if n := len(failed) - shownFailures; n > 0 {
			t.Row("    …", "", "", "", "", fmt.Sprintf("and %d more: pawl get executions --workflow %s --status failed,timed_out", n, x.ID))
		}
	}
	t.Write(a.Out)
	return nil
}

// shownRounds is the number of latest rounds listed per task.
const shownRounds = 10

// describeRounds lists the latest rounds of a task beneath it.
func describeRounds(ctx context.Context, s *app.Session, to *output.Table, task *api.Task, workflow string) error {
	rounds := task.Executions[max(0, len(task.Executions)-shownRounds):]
	if n := task.Created - len(rounds); n > 0 {
		to.Row("    …", "", "", "", "", fmt.Sprintf("%d before: pawl get executions --workflow %s", n, workflow))
	}
	for _, r := range rounds {
		why := ""
		switch {
		case r.Reused:
			why = "reused"
		case r.Given:
			why = "given"
		case r.Status == api.Failed || r.Status == api.TimedOut:
			var err error
			if why, err = whyFailed(ctx, s, r.ID); err != nil {
				return err
			}
		case !r.Status.Terminal() && r.StartedAt.IsZero() && !r.WakeAt.IsZero():
			why = "begins at " + r.WakeAt.UTC().Format("15:04:05") + "Z"
		}
		to.Row(fmt.Sprintf("    round %d", r.Index+1), string(r.Status), "", "", r.ID, why)
	}
	return nil
}

// failuresOf lists the tasks of a workflow's current attempt that did not complete, by task and in the order of items.
func failuresOf(ctx context.Context, s *app.Session, x *api.Execution) (map[string][]api.Execution, error) {
	all := map[string][]api.Execution{}
	f := client.Filter{Workflow: x.ID, Status: []api.Status{api.Failed, api.TimedOut}, Since: x.ClaimedAt, Limit: 1000}
	for child, err := range s.All(ctx, f) {
		if err != nil {
			return nil, err
		}
		all[child.Task] = append(all[child.Task], child)
	}
	for _, failed := range all {
		slices.SortFunc(failed, func(a, b api.Execution) int { return cmp.Compare(a.Index, b.Index) })
	}
	return all, nil
}

// whyFailed is the error of an execution; lists do not include it.
func whyFailed(ctx context.Context, s *app.Session, id string) (string, error) {
	x, err := s.Get(ctx, id)
	if err != nil || x.Error == nil {
		return "", err
	}
	return x.Error.Error(), nil
}

// withoutRunning says how many executions of a task ended without having run.
func withoutRunning(t *api.Task) (all []string) {
	for _, k := range []struct {
		n    int
		word string
	}{{t.Cached, "cached"}, {t.Reused, "reused"}, {t.Given, "given"}} {
		switch {
		case k.n == 0:
		case t.Many():
			all = append(all, fmt.Sprintf("%d %s", k.n, k.word))
		default:
			all = append(all, k.word)
		}
	}
	return all
}

// roundsOf is the progress of a task with a repeat.
func roundsOf(t *api.Task) []string {
	if t.Repeat == 0 || t.Created == 0 {
		return nil
	}
	said := fmt.Sprintf("round %d of at most %d", t.Created, t.Repeat)
	if len(t.Executions) > 0 && t.Status == api.Running {
		if last := t.Executions[len(t.Executions)-1]; last.StartedAt.IsZero() && !last.WakeAt.IsZero() {
			said += "; next at " + last.WakeAt.UTC().Format("15:04:05") + "Z"
		}
	}
	return []string{said}
}
