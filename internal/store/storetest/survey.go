package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// survey checks the sums over unfinished executions.
func survey(b *bench) {
	look := func() store.Survey {
		v, err := b.s.Survey(b.ctx())
		must(b, err)
		slices.SortFunc(v.Unfinished, func(x, y store.Unfinished) int {
			if c := strings.Compare(x.Queue, y.Queue); c != 0 {
				return c
			}
			return int(x.Stage) - int(y.Stage)
		})
		if v.OldestTransaction < 0 {
			b.Errorf("the oldest transaction began in %s", -v.OldestTransaction)
		}
		v.OldestTransaction = 0 // other tests' transactions are on the same server
		return v
	}
	equal(b, "an empty store", look(), store.Survey{})
	b.finished()
	b.later(time.Hour)
	oldest := b.now
	b.ready(1, onQueue("a"))
	b.later(time.Hour)
	b.ready(2, onQueue("a"))
	b.claimed(flow.ID{1}, onQueue("a"))
	gap := b.claimed(flow.ID{1}, onQueue("b"))
	b.apply(b.submit(func(r *flow.Request) { r.NotBefore = b.now.Add(time.Hour) }))
	d := b.load(gap)
	d.Report(flow.ID{1}, flow.Report{Execution: gap, Attempt: 1, Events: []flow.Event{
		{Seq: 6, Attempt: 1, Type: flow.EvProgress, At: b.now}, {Seq: 8, Attempt: 1, Type: flow.EvProgress, At: b.now},
	}}, nil, nil, b.now, 0)
	b.apply(d)
	equal(b, "sums", look(), store.Survey{
		Unfinished: []store.Unfinished{
			{Queue: "a", Stage: flow.Scheduled, Count: 2}, {Queue: "a", Stage: flow.Provisioning, Count: 1},
			{Queue: "b", Stage: flow.Provisioning, Count: 1}, {Queue: "default", Stage: flow.Requested, Count: 1},
		},
		OldestCreated: oldest, Unapplied: 2,
	})
}
