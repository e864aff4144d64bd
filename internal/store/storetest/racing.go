package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// racingClaims lets many claimers empty a queue: each execution goes to one of them, in order of ticket.
func racingClaims(b *bench) {
	const n, claimers = 120, 6
	drafts := make([]*flow.Draft, n)
	for i := range drafts {
		drafts[i] = b.submit()
		must(b, drafts[i].Schedule(int64(i+1), b.now))
	}
	b.apply(drafts...)
	var mu sync.Mutex
	owners := make(map[flow.ID]flow.ID)
	var wg sync.WaitGroup
	for c := range claimers {
		session := flow.ID{byte(c + 1)}
		wg.Go(func() {
			for {
				var got []*flow.Execution
				err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) (err error) {
					if got, err = t.Take(ctx, []string{"default"}, 7); err != nil {
						return err
					}
					d := store.Delta{}
					for _, x := range got {
						draft := flow.Load(x)
						if err := draft.Claim(session, "w", b.now); err != nil {
							return err
						}
						d.Drafts = append(d.Drafts, draft)
					}
					return t.Apply(ctx, d)
				})
				if errors.Is(err, store.ErrConflict) {
					continue
				}
				if err != nil {
					b.Error(err)
					return
				}
				if len(got) == 0 {
					return
				}
				mu.Lock()
				for _, x := range got {
					if other, taken := owners[x.ID]; taken {
						b.Errorf("%s was claimed by %v and by %v", x.ID, other, session)
					}
					owners[x.ID] = session
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	equal(b, "claimed", len(owners), n)
	for id, session := range owners {
		equal(b, "owner", b.get(id).Owner, session)
	}
}

// racingWrites lets an owner's two reports and a recovery race for the same executions, with drafts that were read before: exactly one of
// them wins each.
func racingWrites(b *bench) {
	session := flow.ID{1}
	for range 25 {
		id := b.claimed(session, attempts(1))
		ended, stopped, lost := b.load(id), b.load(id), b.load(id)
		ended.Report(session, flow.Report{Execution: id, Attempt: 1, Events: []flow.Event{
			{Seq: 4, Attempt: 1, Type: flow.EvRunning, At: b.now}, {Seq: 5, Attempt: 1, Type: flow.EvCompleted, At: b.now}}}, nil, nil, b.now, 0)
		stopped.Report(session, flow.Report{Execution: id, Attempt: 1, Events: []flow.Event{
			{Seq: 4, Attempt: 1, Type: flow.EvCancelled, At: b.now}}}, nil, nil, b.now, 0)
		must(b, lost.Lose("lease ran out", b.now, 0))
		drafts := []*flow.Draft{ended, stopped, lost}
		won := b.winners(len(drafts), func(i int) error { return b.try(store.Delta{Drafts: drafts[i : i+1]}) })
		equal(b, "writers that won", won, 1)
	}
}

// winners lets n writers write concurrently and returns how many succeed. The others must get a conflict.
func (b *bench) winners(n int, write func(int) error) int {
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			switch err := write(i); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, store.ErrConflict):
				b.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	return int(won.Load())
}

// prefixes reads histories while they grow: every read returns a prefix without gaps, and no later one is shorter.
func prefixes(b *bench) {
	const executions, steps = 8, 40
	session := flow.ID{1}
	all := make([]flow.ID, executions)
	for i := range all {
		all[i] = b.claimed(session)
		b.report(all[i], flow.EvRunning)
	}
	done := make(chan struct{})
	var writer, watchers sync.WaitGroup
	writer.Go(func() {
		defer close(done)
		for range steps {
			err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
				got, err := t.Lock(ctx, all, store.WithoutPayload)
				if err != nil {
					return err
				}
				d := store.Delta{}
				for _, x := range got {
					draft := flow.Load(x)
					draft.Report(session, flow.Report{Execution: x.ID, Attempt: 1, Events: []flow.Event{
						{Seq: x.NextSeq, Attempt: 1, Type: flow.EvProgress, At: b.now}, {Seq: x.NextSeq + 1, Attempt: 1, Type: flow.EvProgress, At: b.now}}}, nil, nil, b.now, 0)
					d.Drafts = append(d.Drafts, draft)
				}
				return t.Apply(ctx, d)
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	for range 2 {
		watchers.Go(func() {
			seen := make(map[flow.ID]int)
			for running := true; running; {
				select {
				case <-done:
					running = false // one last read
				default:
				}
				for _, id := range all {
					events, err := b.s.Events(b.ctx(), id, 0, 1000)
					if err != nil {
						b.Error(err)
						return
					}
					for i, e := range events {
						if e.Seq != int64(i+1) {
							b.Errorf("event %d stands in place %d", e.Seq, i+1)
							return
						}
					}
					if len(events) < seen[id] || len(events)%2 != 0 {
						b.Errorf("%d events were read after %d: want no fewer, and never half a report", len(events), seen[id])
						return
					}
					seen[id] = len(events)
				}
			}
			for _, id := range all {
				equal(b, "events in the end", seen[id], 4+2*steps)
			}
		})
	}
	writer.Wait()
	watchers.Wait()
}

// cancelled checks that a caller whose context ends gets an answer, and that the store stays usable.
func cancelled(b *bench) {
	ctx, cancel := context.WithCancel(b.ctx())
	begun, free := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
			close(begun)
			<-free
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{b.submit()}})
		})
		if err != nil {
			b.Error(err)
		}
	})
	<-begun
	cancel()
	if err := b.s.Update(ctx, func(context.Context, store.Tx) error { return errors.New("ran") }); err == nil {
		b.Error("an update ran for a caller who is gone")
	}
	if _, err := b.s.Get(ctx, flow.ID{1}); !errors.Is(err, context.Canceled) {
		b.Errorf("get for a caller who is gone: %v, want context.Canceled", err)
	}
	if _, err := b.s.Get(b.ctx(), flow.ID{1}); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("reading waits for the writer or fails: %v", err)
	}
	close(free)
	wg.Wait()
	b.apply(b.submit())
}
