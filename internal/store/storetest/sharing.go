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

// Shared is for stores that several processes use at once. open returns two stores on the same data, empty at first, as
// two processes would have them.
func Shared(t *testing.T, open func(*testing.T) [2]store.Store) {
	for _, part := range []struct {
		name string
		test func(*shared)
	}{
		{"Seen", seen}, {"SharedTickets", sharedTickets}, {"Locked", locked}, {"SharedClaims", sharedClaims}, {"Lines", lines}, {"DoubleRecovery", doubleRecovery},
		{"DoubleFold", doubleFold}, {"DoubleDue", doubleDue}, {"DoubleSubmission", doubleSubmission}, {"DoubleDefinition", doubleDefinition},
		{"DoubleRemoval", doubleRemoval}, {"Notified", notified},
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

// shared is one test's data and the two stores on it; the bench's own is the first.
type shared struct {
	*bench
	both [2]store.Store
}

// race runs work at once, n times on each store, and waits for all. What it returns is an error of the test.
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

// decided runs a decision until it is committed: what changed since it was read is read again.
func decided(ctx context.Context, on store.Store, decide func(context.Context, store.Tx) error) error {
	for {
		if err := on.Update(ctx, decide); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// seen checks that what one has committed the other sees at once.
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

// locked checks that nobody changes what a transaction has loaded until it ends: its own change never conflicts.
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
			for range 50 { // long enough for a writer that nothing holds up
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

// queueEmpty tells an empty queue from one whose rows others have locked just now.
func (s *shared) queueEmpty(on store.Store) bool {
	queues, err := on.Queues(s.ctx())
	if err != nil {
		s.Error(err)
		return true
	}
	return len(queues) == 0
}

// doubleRecovery lets both stores recover the same lost sessions at once: each execution gets one next attempt.
func doubleRecovery(s *shared) {
	var held []flow.ID
	for i := range 4 {
		lost := s.session(flow.ID{byte(i + 1)})
		for range 10 {
			held = append(held, s.claimed(lost.ID, attempts(3)))
		}
	}
	after := s.later(time.Hour)
	s.race(3, func(on store.Store, i int) error {
		for {
			var expired []store.Session
			err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) (err error) {
				if expired, err = t.Expired(ctx, after, 10); err != nil {
					return err
				}
				for _, lost := range expired {
					owned, err := t.OwnedBy(ctx, lost.ID, flow.ID{}, 100)
					if err != nil {
						return err
					}
					var d store.Delta
					for _, x := range owned {
						draft := flow.Load(x)
						if err := draft.Lose("lease ran out", after, 0); err != nil {
							return err
						}
						d.Drafts = append(d.Drafts, draft)
					}
					if err := errors.Join(t.Apply(ctx, d), t.DropSession(ctx, lost.ID)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil || len(expired) == 0 {
				return err
			}
		}
	})
	for _, id := range held {
		x := s.get(id)
		equal(s.bench, "after recovery", []any{x.Attempt, x.Stage, x.Place, x.Owner}, []any{2, flow.Requested, flow.Delayed, flow.ID{}})
		equal(s.bench, "events", len(s.events(id, 0, 100)), 5)
	}
}

// doubleFold lets both stores take a workflow's next step at once: it is taken once.
func doubleFold(s *shared) {
	wf := s.workflow()
	for i := range 5 {
		child := s.claimed(flow.ID{1}, under(wf, "first", i))
		s.report(child, flow.EvRunning, flow.EvCompleted)
	}
	ids := make([]flow.ID, 2*4)
	for i := range ids {
		ids[i] = s.id()
	}
	of := store.WorkflowAttempt{ID: wf, Attempt: 1}
	var steps atomic.Int32
	s.race(4, func(on store.Store, i int) error {
		took := false
		err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
			took = false
			locked, err := t.Lock(ctx, []flow.ID{wf}, store.WithoutPayload)
			if err != nil {
				return err
			}
			progress, err := t.Progress(ctx, []store.WorkflowAttempt{of})
			if err != nil {
				return err
			}
			tasks := byTask(progress[wf])
			if tasks["second"].Created > 0 {
				return nil
			}
			outcomes, err := t.Outcomes(ctx, of, []string{"first"})
			if err != nil {
				return err
			}
			if len(outcomes["first"]) != 5 {
				s.Errorf("%d outcomes of 5 children that have ended", len(outcomes["first"]))
			}
			d := flow.Load(locked[0])
			next := flow.Submit(ids[i], s.request(under(wf, "second", 0)))
			if err := errors.Join(d.Advance(raw(`{"started":["second"]}`), s.now), next.Schedule(int64(i+1), s.now)); err != nil {
				return err
			}
			took = true
			return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d, next}})
		})
		if err == nil && took {
			steps.Add(1)
		}
		return err
	})
	equal(s.bench, "steps taken", steps.Load(), int32(1))
	got := byTask(inTx(s.bench, func(ctx context.Context, t store.Tx) (map[flow.ID][]store.TaskProgress, error) {
		return t.Progress(ctx, []store.WorkflowAttempt{of})
	})[wf])
	equal(s.bench, "successors", got["second"].Created, 1)
}

// doubleDue lets both stores sweep what is due at once: each is decided once.
func doubleDue(s *shared) {
	var all []flow.ID
	for range 60 {
		all = append(all, s.ready(int64(s.made+1), func(r *flow.Request) { r.QueueTimeout = time.Minute }))
	}
	after := s.later(time.Hour)
	var ended atomic.Int32
	s.race(3, func(on store.Store, i int) error {
		for {
			n := 0
			err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
				due, _, err := t.Due(ctx, after, 7)
				if err != nil {
					return err
				}
				var d store.Delta
				for _, x := range due {
					draft := flow.Load(x)
					if err := draft.Finish(flow.TimedOut, flow.Outcome{Error: &flow.Error{Code: flow.CodeQueueTimeout, Message: "late"}}, after, 0); err != nil {
						return err
					}
					d.Drafts = append(d.Drafts, draft)
				}
				n = len(due)
				return t.Apply(ctx, d)
			})
			if err != nil || n == 0 {
				return err
			}
			ended.Add(int32(n))
		}
	})
	equal(s.bench, "deadlines decided about", ended.Load(), int32(len(all)))
	for _, id := range all {
		equal(s.bench, "stage", s.get(id).Stage, flow.TimedOut)
	}
}

// doubleSubmission lets both stores accept the same idempotency key at once: one execution comes of it.
func doubleSubmission(s *shared) {
	for k := range 10 {
		key := string(rune('a' + k))
		ids := []flow.ID{s.id(), s.id(), s.id(), s.id()}
		var winners sync.Map
		s.race(2, func(on store.Store, i int) error {
			return decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error {
				found, err := t.Submitted(ctx, []string{key})
				if err != nil {
					return err
				}
				if k, ok := found[key]; ok {
					winners.Store(k.Execution, true)
					return nil
				}
				d := flow.Submit(ids[i], s.request(func(r *flow.Request) { r.IdempotencyKey = key }))
				return t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}, Keys: []store.IdempotencyKey{{Key: key, Execution: d.ID}}})
			})
		})
		made := 0
		for _, id := range ids {
			if _, err := s.s.Get(s.ctx(), id); err == nil {
				made++
				winners.Delete(id)
			}
		}
		winners.Range(func(id, _ any) bool {
			s.Errorf("a submission was told of %v, which does not exist", id)
			return true
		})
		equal(s.bench, "executions of one key", made, 1)
	}
}

// doubleDefinition lets both stores define versions of one name at once: versions are dense, and none is lost.
func doubleDefinition(s *shared) {
	var versions sync.Map
	s.race(3, func(on store.Store, i int) error {
		for n := range 5 {
			var v int
			err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) (err error) {
				v, _, err = t.Define(ctx, store.Definition{Name: "d", Kind: "workflow", Hash: [32]byte{byte(i + 1), byte(n)},
					Document: raw(`{"by":%d,"n":%d}`, i, n), CreatedAt: s.now})
				return err
			})
			if err != nil {
				return err
			}
			if _, twice := versions.LoadOrStore(v, true); twice {
				s.Errorf("version %d was given twice", v)
			}
		}
		return nil
	})
	latest, err := s.s.Definition(s.ctx(), "d", 0)
	must(s.bench, err)
	equal(s.bench, "versions", latest.Version, 30)
}

// doubleRemoval lets both stores remove the same old executions at once, while others end.
func doubleRemoval(s *shared) {
	for range 30 {
		s.finished(withKey("k", 5))
	}
	stays := s.ready(1, withKey("k", 5))
	limit := s.later(time.Hour)
	s.race(2, func(on store.Store, i int) error {
		for {
			ids, err := on.FinishedBefore(s.ctx(), limit, 7)
			if err != nil || len(ids) == 0 {
				return err
			}
			if err := decided(s.ctx(), on, func(ctx context.Context, t store.Tx) error { return t.Remove(ctx, ids) }); err != nil {
				return err
			}
		}
	})
	all, err := s.s.List(s.ctx(), store.Filter{Limit: 100})
	must(s.bench, err)
	equal(s.bench, "what is left", ids(all), []flow.ID{stays})
}

// notified checks what one hears of the other's commits, where a store can tell.
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
	select {
	case n := <-own:
		s.Errorf("it heard of its own commits: %+v", n)
	default:
	}
	stop()
	for range other { // it ends with the context
	}
}
