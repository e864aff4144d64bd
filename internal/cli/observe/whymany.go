package observe

import (
	"context"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/flow"
)

// whyMany prints one line per execution with what it waits for.
func whyMany(ctx context.Context, a *app.App, s *app.Session, ids []string, f output.Format) error {
	if len(ids) > api.WhyLimit {
		return exit.Usagef("%d executions: ask about %d at most", len(ids), api.WhyLimit)
	}
	for _, id := range ids {
		if _, err := flow.ParseID(flow.ExecutionPrefix, id); err != nil {
			return exit.Usagef("%v; of signals, rules and schedules ask one at a time", err)
		}
	}
	all, err := s.WhyMany(ctx, ids)
	return output.Show(a.Out, f, all, err, func() {
		t := output.Titled("ID", "STATUS", "WAITS FOR", "SUMMARY")
		for i, e := range all {
			if e.Problem != nil {
				t.Row(ids[i], "-", "-", e.Problem.Detail)
				continue
			}
			t.Row(e.Why.ID, string(e.Why.Status), e.Why.Waiting, e.Why.Summary)
		}
		t.Write(a.Out)
	})
}
