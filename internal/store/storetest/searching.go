package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// BenchmarkSearches measures lists by each kind of filter, as the API asks for them, on a store in which twenty executions have the action "rare" and
// the label set=rare, half of the others the label set=half, and none has ended badly or is under way.
func BenchmarkSearches(b *testing.B, s store.Store) {
	for say, f := range map[string]store.Filter{
		"newest": {}, "top level": {TopLevel: true}, "action": {Action: "rare"}, "rare label": {Labels: map[string]string{"set": "rare"}},
		"half label": {Labels: map[string]string{"set": "half"}}, "half label, action": {Labels: map[string]string{"set": "half"}, Action: "rare"},
		"verdict": {Verdicts: []string{"oom"}}, "running": {Stages: []flow.Stage{flow.Provisioning, flow.Running}},
		"failed": {Stages: []flow.Stage{flow.Failed, flow.TimedOut}}, "time": {Until: time.Unix(1, 0)}, "oldest, action": {Oldest: true, Action: "rare", After: flow.ID{1}},
	} {
		b.Run(say, func(b *testing.B) {
			f.Limit, f.Reach = 100, 40_000
			measured(b, func() error {
				_, err := s.Search(b.Context(), f)
				return err
			})
		})
	}
}

// BenchmarkWalks measures searches by a condition that the store does not know: as far as one reaches, through everything and through what
// has a label that half of the executions have.
func BenchmarkWalks(b *testing.B, s store.Store) {
	for say, f := range map[string]store.Filter{"condition": {}, "condition, half label": {Labels: map[string]string{"set": "half"}}, "condition, rare label": {Labels: map[string]string{"set": "rare"}}} {
		b.Run(say, func(b *testing.B) {
			f.Reach, f.Within = 40_000, 75*time.Millisecond // as the server does
			looked := 0
			measured(b, func() error {
				looked = 0
				_, _, err := store.Walk(b.Context(), s, f, func(page []*flow.Execution) (bool, error) {
					looked += len(page)
					return slices.ContainsFunc(page, func(x *flow.Execution) bool { return x.Queue == "absent" || x.Version > 3 }), nil
				})
				return err
			})
			b.ReportMetric(float64(looked), "looked")
		})
	}
}

// measured reports how long the slowest hundredth of the calls takes at least.
func measured(b *testing.B, call func() error) {
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkCounts measures what is counted for a screen.
func BenchmarkCounts(b *testing.B, s store.Store) {
	for say, count := range map[string]func(context.Context) error{
		"counts of half label": func(ctx context.Context) error {
			_, _, err := s.Tally(ctx, store.Filter{Labels: map[string]string{"set": "half"}, Reach: 10_000})
			return err
		},
		"counts of rare label": func(ctx context.Context) error {
			_, _, err := s.Tally(ctx, store.Filter{Labels: map[string]string{"set": "rare"}, Reach: 10_000})
			return err
		},
		"queues": func(ctx context.Context) error { _, err := s.Queues(ctx); return err },
		"keys":   func(ctx context.Context) error { _, err := s.Keys(ctx, 200); return err },
		"size":   func(ctx context.Context) error { _, err := s.Size(ctx); return err },
		"survey": func(ctx context.Context) error { _, err := s.Survey(ctx); return err },
	} {
		b.Run(say, func(b *testing.B) {
			measured(b, func() error { return count(b.Context()) })
		})
	}
}
