package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// slow is a reader of endless executions whose searches each take a while.
type slow struct {
	Reader
	takes time.Duration
}

func (s slow) Search(_ context.Context, f Filter) (Found, error) {
	time.Sleep(s.takes)
	all := make([]*flow.Execution, f.Limit)
	for i := range all {
		all[i] = &flow.Execution{ID: flow.ID{byte(i), 1}}
	}
	return Found{Executions: all}, nil
}

// A walk ends before the step that would exceed its time, reports how far it came, and makes its first step however slow the store is.
func TestWalkWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		takes, within time.Duration
		want          int // executions
	}{
		{0, 90 * time.Millisecond, 39_000},
		{time.Second, 0, 39_000},
		{40 * time.Millisecond, 90 * time.Millisecond, firstStep + nextStep},
		{60 * time.Millisecond, 90 * time.Millisecond, firstStep},
		{time.Minute, 90 * time.Millisecond, firstStep},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := 0
			searched, _, err := Walk(t.Context(), slow{takes: c.takes}, Filter{Reach: 39_000 * readCost, Within: c.within}, func(page []*flow.Execution) (bool, error) {
				got += len(page)
				return false, nil
			})
			if err != nil || searched.IsZero() || got != c.want {
				t.Errorf("steps of %s within %s: %d executions, searched to %s, %v", c.takes, c.within, got, searched, err)
			}
		})
	}
}
