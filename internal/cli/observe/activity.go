package observe

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func listActivity(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	a, err := c.Activity(ctx, time.Minute, l.Limit)
	if err != nil {
		return nil, nil, err
	}
	t := output.Titled("MINUTE", "SUBMITTED", "CLAIMED", string(api.Completed), string(api.Failed), string(api.TimedOut), string(api.Cancelled))
	for i := range a.Steps {
		s := &a.Steps[i]
		t.Row(s.At.Local().Format("15:04"), output.Count(int(s.Submitted)), output.Count(int(s.Claimed)), output.Count(int(s.Completed)), output.Count(int(s.Failed)), output.Count(int(s.TimedOut)), output.Count(int(s.Cancelled)))
	}
	return a, t, nil
}
