package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Shared is for stores that several processes use at the same time. open returns two stores on the same data, initially empty, as two
// processes would have them.
func Shared(t *testing.T, open func(*testing.T) [2]store.Store) {
	for _, part := range []struct {
		name string
		test func(*shared)
	}{
		{"Seen", seen}, {"SharedTickets", sharedTickets}, {"Locked", locked}, {"SharedClaims", sharedClaims}, {"Lines",
			waitLists}, {"DoubleRecovery", doubleRecovery},
		{"DoubleFold", doubleFold}, {"TimesOfSteps", timesOfSteps}, {"DoubleDue", doubleDue}, {"DoubleSubmission", doubleSubmission}, {"DoubleDefinition", doubleDefinition},
		{"DoubleRemoval", doubleRemoval}, {"DoubleTick", doubleTick}, {"DoubleSignal", doubleSignal}, {"DoubleEnforcement", doubleEnforcement}, {"DoubleInquiry", doubleInquiry}, {"PassedSchedules", passedSchedules}, {"Notified", notified},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			both := open(t)
			s := &shared{bench: &bench{tester: t, tb: t, s: both[0], now: epoch}, both: both}
			part.test(s)
			if !t.Failed() {
				s.clean()
			}
		})
	}
}

// shared has one test's data and the two stores on it; the bench's own is the first.
type shared struct {
	*bench
	both [2]store.Store
}

// race runs work concurrently, n times on each store, and waits for all. An error of work fails the test.
func (s *shared) race(n int, work func(on store.Store, i int) error) {
	s.Helper()
	var wg sync.WaitGroup
	for i := range 2 * n {
		wg.Go(func() {
			if err := work(s.both[i%2], i); err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
}

// decided runs a decision until it is committed; after a conflict it reads again.
func decided(ctx context.Context, on store.Store, decide func(context.Context, store.Tx) error) error {
	for {
		if err := on.Update(ctx, decide); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// seen checks that each store sees the other's commits at once.
func seen(s *shared) {
	for i := range 20 {
		on, other := s.both[i%2], s.both[1-i%2]
		d := s.submit()
		must(s.bench, on.Update(s.ctx(), func(ctx context.Context, t store.Tx) error {
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
		}))
		x, err := other.Get(s.ctx(), d.ID)
		must(s.bench, err)
		equal(s.bench, "read elsewhere", x, d.Execution)
	}
}

// sharedTickets checks that tickets grow across stores, and that none is drawn twice.
func sharedTickets(s *shared) {
	var last int64
	draw := func(on store.Store, n int) (first int64, err error) {
		err = on.Update(s.ctx(), func(ctx context.Context, t store.Tx) (err error) {
			first, err = t.Tickets(ctx, n)
			return err
		})
		return first, err
	}
	for i := range 10 {
		first, err := draw(s.both[i%2], 1+1000*i)
		must(s.bench, err)
		if first <= last {
			s.Errorf("ticket %d was drawn after %d", first, last)
		}
		last = first + int64(1000*i)
	}
	var under int64
	must(s.bench, s.both[0].Update(s.ctx(), func(ctx context.Context, t store.Tx) (err error) {
		if _, err = t.Tickets(ctx, 1); err != nil {
			return err
		}
		if last, err = draw(s.both[1], 1); err != nil {
			return err
		}
		if _, err = t.LockKeys(ctx, []string{"k"}); err != nil {
			return err
		}
		under, err = t.Tickets(ctx, 1)
		return err
	}))
	if under <= last {
		s.Errorf("ticket %d was drawn under a key's lock; %d had been drawn before the lock", under, last)
	}
	type block struct{ from, to int64 }
	var mu sync.Mutex
	var all []block
	s.race(3, func(on store.Store, i int) error {
		for k := range 20 {
			n := 1 + 40_000*(k%3)
			first, err := draw(on, n)
			if err != nil {
				return err
			}
			mu.Lock()
			all = append(all, block{first, first + int64(n)})
			mu.Unlock()
		}
		return nil
	})
	slices.SortFunc(all, func(a, b block) int { return int(a.from - b.from) })
	for i := 1; i < len(all); i++ {
		if all[i].from < all[i-1].to {
			s.Errorf("tickets %v and %v overlap", all[i-1], all[i])
		}
	}
}

// locked checks that no other transaction changes what a transaction has loaded until it ends: its own change never conflicts.
func locked(s *shared) {
	session := flow.ID{1}
	load := map[string]func(context.Context, store.Tx, flow.ID) ([]*flow.Execution, error){
		"lock": func(ctx context.Context, t store.Tx, id flow.ID) ([]*flow.Execution, error) {
			return t.Lock(ctx, []flow.ID{id}, store.WithoutPayload)
		},
		"lock with payload": func(ctx context.Context, t store.Tx, id flow.ID) ([]*flow.Execution, error) {
			return t.Lock(ctx, []flow.ID{id}, store.WithPayload)
		},
		"take": func(ctx context.Context, t store.Tx, _ flow.ID) ([]*flow.Execution, error) {
			return t.Take(ctx, []string{"default"}, 1)
		},
		"due": func(ctx context.Context, t store.Tx, _ flow.ID) ([]*flow.Execution, error) {
			all, _, err := t.Due(ctx, s.now.Add(time.Hour), 1)
			return all, err
		},
		"holders": func(ctx context.Context, t store.Tx, _ flow.ID) ([]*flow.Execution, error) {
			return t.Holders(ctx, "k", 1)
		},
	}
	for what, read := range load {
		id := s.ready(int64(s.made+1), withKey("k", 1), func(r *flow.Request) { r.QueueTimeout = time.Minute })
		stale := s.load(id)
		must(s.bench, stale.Cancel(flow.Cancelled, flow.CodeCancelled, "", s.now))
		var meanwhile error
		var wg sync.WaitGroup
		err := s.both[0].Update(s.ctx(), func(ctx context.Context, t store.Tx) error {
			got, err := read(ctx, t, id)
			if err != nil {
				return err
			}
			wg.Go(func() {
				meanwhile = s.both[1].Update(s.ctx(), func(ctx context.Context, t store.Tx) error {
					return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{stale}})
				})
			})
			for range 50 { // long enough for a writer that is not blocked
				if _, err := t.Now(ctx); err != nil {
					return err
				}
			}
			d := flow.Load(got[0])
			if err := d.Claim(session, "w", s.now); err != nil {
				return err
			}
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
		})
		wg.Wait()
		if err != nil {
			s.Errorf("%s: %v; want no conflict with what another store writes meanwhile", what, err)
		}
		wantErr(s.bench, what+": the other's change", meanwhile, store.ErrConflict)
		s.report(id, flow.EvRunning, flow.EvCompleted)
	}
}

// sharedClaims lets claimers on both stores empty a queue while it is filled.
func sharedClaims(s *shared) {
	const n, claimers = 400, 3
	made := make([]*flow.Draft, n)
	for i := range made {
		made[i] = s.submit(priority(i % 3))
		must(s.bench, made[i].Schedule(int64(i+1), s.now))
	}
	var filled atomic.Bool
	var owner sync.Map
	var claims atomic.Int32
	var filling sync.WaitGroup
	filling.Go(func() {
		defer filled.Store(true)
		for part := range slices.Chunk(made, 20) {
			err := s.both[0].Update(s.ctx(), func(ctx context.Context, t store.Tx) error {
				return t.Apply(ctx, store.Delta{Drafts: part})
			})
			if err != nil {
				s.Error(err)
				return
			}
		}
	})
	s.race(claimers, func(on store.Store, i int) error {
		session := flow.ID{byte(i + 1)}
		for {
			last := filled.Load()
			var got []*flow.Execution
			err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) (err error) {
				if got, err = t.Take(ctx, []string{"default", "other"}, 7); err != nil {
					return err
				}
				var d store.Delta
				for _, x := range got {
					draft := flow.Load(x)
					if err := draft.Claim(session, "w", s.now); err != nil {
						return err
					}
					d.Drafts = append(d.Drafts, draft)
				}
				return t.Apply(ctx, d)
			})
			if err != nil {
				return err
			}
			for _, x := range got {
				claims.Add(1)
				if other, taken := owner.LoadOrStore(x.ID, session); taken {
					s.Errorf("%s was claimed by %v and by %v", x.ID, other, session)
				}
			}
			if len(got) == 0 && last && s.queueEmpty(on) {
				return nil
			}
		}
	})
	filling.Wait()
	equal(s.bench, "claims", claims.Load(), int32(n))
	for _, d := range made {
		want, _ := owner.Load(d.ID)
		equal(s.bench, "owner", any(s.get(d.ID).Owner), want)
	}
}

// queueEmpty reports whether a queue is empty; rows that other transactions have locked still count.
func (s *shared) queueEmpty(on store.Store) bool {
	queues, err := on.Queues(s.ctx())
	if err != nil {
		s.Error(err)
		return true
	}
	return len(queues) == 0
}

// notified checks the notifications about the other store's commits, if the store has them.
func notified(s *shared) {
	hears, ok := s.both[1].(store.Notifier)
	if !ok {
		s.tb.Skip("this store does not notify")
	}
	ctx, stop := context.WithTimeout(s.ctx(), time.Minute)
	defer stop()
	other, err := hears.Notifications(ctx)
	must(s.bench, err)
	own, err := s.both[0].(store.Notifier).Notifications(ctx)
	must(s.bench, err)
	id := s.ready(1, onQueue("gpu"))
	session := flow.ID{9}
	held := s.claimed(session)
	d := s.load(held)
	must(s.bench, d.Cancel(flow.Cancelled, flow.CodeCancelled, "stop", s.now))
	s.apply(d)
	var heard store.Notification
	for !slices.Contains(heard.Queues, "gpu") || !slices.Contains(heard.Sessions, session) ||
		!heard.All && (!slices.Contains(heard.Executions, id) || !slices.Contains(heard.Executions, held)) {
		n, ok := <-other
		if !ok {
			s.Fatalf("the channel was closed; heard %+v", heard)
		}
		heard.Queues = append(heard.Queues, n.Queues...)
		heard.Sessions = append(heard.Sessions, n.Sessions...)
		heard.Executions = append(heard.Executions, n.Executions...)
		heard.All = heard.All || n.All
	}
	// Executions for which a reader may be waiting are named: one with a piece of input, and one with logs.
	fed, wrote := s.claimed(session), s.claimed(session)
	for heard.Executions = nil; !slices.Contains(heard.Executions, wrote); { // the claimed one is notified as well
		n := <-other
		heard.Executions = append(heard.Executions, n.Executions...)
	}
	for what, write := range map[flow.ID]func() error{
		fed: func() error {
			return s.try(store.Delta{Input: []store.InputPiece{{Execution: fed, Number: 1, Data: []byte("in")}}})
		},
		wrote: func() error {
			return s.s.AppendLogs(ctx, []flow.LogChunk{{Execution: wrote, Attempt: 1, Seq: 1, Stream: "stdout", At: s.now, Data: []byte("out"), Size: 3, Prompt: true}})
		},
	} {
		must(s.bench, write())
		for n := range other {
			if slices.Contains(n.Executions, what) {
				break
			}
		}
	}
	if ctx.Err() != nil {
		s.Error("a piece of input or of output was not heard of")
	}
	select {
	case n := <-own:
		s.Errorf("it heard of its own commits: %+v", n)
	default:
	}
	stop()
	for range other { // the channel is closed when the context ends
	}
}
