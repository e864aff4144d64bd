package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// whoHolds names the executions in the slots of sessions, the longest running first.
func (e *Explainer) whoHolds(ctx context.Context, serving []store.Session) (string, error) {
	names := make(map[flow.ID]string, len(serving))
	slots := 0
	for _, s := range serving {
		names[s.ID] = s.Name
		slots += s.Slots
	}
	const pages, page = 5, 1000
	var holders []*flow.Execution
	f := store.Filter{Stages: []flow.Stage{flow.Provisioning, flow.Running}, Limit: page}
	for range pages {
		xs, err := store.List(ctx, e.Store, f)
		if err != nil {
			return "", fmt.Errorf("list what is running: %w", err)
		}
		if len(xs) == 0 {
			break
		}
		f.Before = xs[len(xs)-1].ID
		for _, x := range xs {
			if _, serves := names[x.Owner]; serves {
				holders = append(holders, x)
			}
		}
	}
	if len(holders) == 0 {
		return "", nil
	}
	slices.SortFunc(holders, func(a, b *flow.Execution) int { return a.ClaimedAt.Compare(b.ClaimedAt) })
	var shown []string
	for _, x := range holders[:min(len(holders), shownTasks)] {
		shown = append(shown, fmt.Sprintf("%s (%s, on worker %s since %s)", x.ID, x.Action, names[x.Owner], Clock(x.ClaimedAt)))
	}
	text := fmt.Sprintf("%d of %d slots %s held: ", len(holders), slots, are(len(holders)))
	if len(holders) >= slots {
		text = fmt.Sprintf("all %d slots are held: ", slots)
	}
	text += strings.Join(shown, ", ")
	if n := len(holders) - len(shown); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text, nil
}
