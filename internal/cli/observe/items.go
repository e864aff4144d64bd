package observe

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/output"
)

func describeItems(ctx context.Context, a *app.App, s *app.Session, id, task string, statuses []string, f output.Format) error {
	var wanted []api.Status
	for _, name := range statuses {
		wanted = append(wanted, api.Status(name))
	}
	whole, err := s.TaskItems(ctx, id, task, wanted, "", 10_000)
	if err != nil {
		return err
	}
	for whole.NextCursor != "" {
		page, err := s.TaskItems(ctx, id, task, wanted, whole.NextCursor, 10_000)
		if err != nil {
			return err
		}
		whole.Items, whole.NextCursor = append(whole.Items, page.Items...), page.NextCursor
	}
	if f != output.AsTable {
		return output.WriteData(a.Out, f, whole)
	}
	t := output.Titled("INDEX", "STATUS", "ATTEMPT", "WAITED", "RAN", "ID")
	for i := range whole.Items {
		it := &whole.Items[i]
		t.Row(fmt.Sprint(it.Index), string(it.Status), fmt.Sprint(it.Attempt), milliseconds(&it.CreatedMS, it.StartedMS), milliseconds(it.StartedMS, it.FinishedMS), it.ID)
	}
	t.Write(a.Out)
	return nil
}

// milliseconds is the time between two moments; "" if either is missing.
func milliseconds(from, to *int64) string {
	if from == nil || to == nil {
		return ""
	}
	return (time.Duration(*to-*from) * time.Millisecond).String()
}
