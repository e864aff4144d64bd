package observe

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/flow"
)

// listLine lists the executions that wait in a queue, or that hold a concurrency key or wait for it.
func listLine(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	t := &output.Table{}
	switch {
	case (l.Key == "") == (l.Queue == ""):
		return nil, nil, exit.Usagef("name what the line is of: --queue NAME or --key KEY")
	case l.Key != "":
		line, err := c.KeyLine(ctx, l.Key, l.Labels, min(l.Limit, 1000))
		if err != nil {
			return nil, nil, err
		}
		t.Row("ID", "PLACE", "STATUS", "ACTION", "PRIORITY", "SINCE", "LABELS")
		for i := range line.Holders {
			x := &line.Holders[i]
			t.Row(lineRow(x, "holds", cmp.Or(x.ClaimedAt, x.QueuedAt, x.CreatedAt))...)
		}
		for i := range line.Line {
			s := &line.Line[i]
			t.Row(lineRow(&s.Execution, strconv.Itoa(s.Place), s.Execution.CreatedAt)...)
		}
		return line, t, nil
	}
	line, err := c.QueueLine(ctx, l.Queue, l.Labels, min(l.Limit, 1000))
	if err != nil {
		return nil, nil, err
	}
	t.Row("ID", "PLACE", "STATUS", "ACTION", "PRIORITY", "SINCE", "LABELS", "FOR WORKERS WITH")
	for i := range line.Lanes {
		lane := &line.Lanes[i]
		needs := laneNeeds(lane)
		for j := range lane.Line {
			s := &lane.Line[j]
			t.Row(append(lineRow(&s.Execution, strconv.Itoa(s.Place), cmp.Or(s.Execution.QueuedAt, s.Execution.CreatedAt)), needs)...)
		}
	}
	return line, t, nil
}

func lineRow(x *api.Execution, place string, since time.Time) []string {
	return []string{x.ID, place, string(x.Status), x.Action, strconv.Itoa(x.Priority), output.Ago(since), flow.LabelText(x.Labels)}
}

// laneNeeds lists what workers need to get an execution of a lane.
func laneNeeds(l *api.Lane) string {
	var all []string
	if l.PausedAction != "" {
		all = append(all, "paused: "+l.PausedAction)
	}
	for _, need := range []string{l.Handler, l.Runtime, flow.LabelText(l.WorkerLabels)} {
		if need != "" {
			all = append(all, need)
		}
	}
	return strings.Join(all, " ")
}

func listWorkers(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	all, lost, err := c.BusyWorkers(ctx)
	if l.Lost {
		t := &output.Table{}
		t.Row("SESSION", "NAME", "QUEUES", "SLOTS", "STARTED", "LOST", "ATTEMPTS")
		for i := range lost {
			w := &lost[i]
			t.Row(w.Session, w.Name, strings.Join(w.Queues, ","), strconv.Itoa(w.Slots), output.Ago(w.StartedAt), output.Ago(w.LostAt), strconv.Itoa(w.Attempts))
		}
		return lost, t, err
	}
	t := output.Listing(l.Format, 8, "SESSION", "NAME", "QUEUES", "LABELS", "SLOTS", "BUSY", "STARTED", "STATE", "KINDS", "LEASE UNTIL", "EXECUTIONS")
	for i := range all {
		w := &all[i]
		var ids []string
		for j := range w.Executions {
			ids = append(ids, w.Executions[j].ID)
		}
		t.Row(w.Session, w.Name, strings.Join(w.Queues, ","), flow.LabelText(w.Labels), strconv.Itoa(w.Slots), strconv.Itoa(w.Holds), output.Ago(w.StartedAt), output.Pause(w.Paused),
			cmp.Or(strings.Join(w.Kinds, ","), "built-in"), w.ExpiresAt.Local().Format(time.TimeOnly), strings.Join(ids, ","))
	}
	return all, t, err
}
