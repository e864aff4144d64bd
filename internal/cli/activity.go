package cli

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// listActivity lists what the server has done in each of the latest minutes.
func listActivity(ctx context.Context, _ *app.App, c *client.Client, l *listing) (any, *output.Table, error) {
	if l.limit < 1 {
		return nil, nil, exit.Usagef("--limit %d: give a number of 1 or more", l.limit)
	}
	a, err := c.Activity(ctx, time.Minute, l.limit)
	if err != nil {
		return nil, nil, err
	}
	t := &output.Table{}
	t.Row("MINUTE", "SUBMITTED", "CLAIMED", string(api.Completed), string(api.Failed), string(api.TimedOut), string(api.Cancelled))
	for i := range a.Steps {
		s := &a.Steps[i]
		t.Row(s.At.Local().Format("15:04"), count(int(s.Submitted)), count(int(s.Claimed)), count(int(s.Completed)), count(int(s.Failed)), count(int(s.TimedOut)), count(int(s.Cancelled)))
	}
	return a, t, nil
}
