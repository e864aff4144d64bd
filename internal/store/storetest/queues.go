package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func tickets(b *bench) {
	draw := func(n int) int64 {
		return inTx(b, func(ctx context.Context, t store.Tx) (int64, error) { return t.Tickets(ctx, n) })
	}
	last := draw(1)
	if last < 1 {
		b.Errorf("the first ticket is %d: 0 means none", last)
	}
	for _, n := range []int{1, 10, 5000, 1, 20000, 3} {
		first := draw(n)
		if first <= last {
			b.Errorf("ticket %d was drawn after %d", first, last)
		}
		last = first + int64(n) - 1
	}
	stop := errors.New("stop")
	wantErr(b, "update", b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		_, err := t.Tickets(ctx, 10_000)
		return errors.Join(stop, err)
	}), stop)
	if again := draw(1); again <= last {
		b.Errorf("after a rollback ticket %d was drawn; %d was before", again, last)
	}
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
					first, err := t.Tickets(ctx, 3)
					mu.Lock()
					defer mu.Unlock()
					all = append(all, first, first+1, first+2)
					return err
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 240 {
		b.Errorf("%d different tickets were drawn, want 240", n)
	}
}

func (b *bench) take(n int, queues ...string) []*flow.Execution {
	b.Helper()
	return inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) { return t.Take(ctx, queues, n) })
}

// take checks the order in which executions leave a queue, and that only executions in it do.
func take(b *bench) {
	late := b.ready(30)
	early := b.ready(10)
	urgent := b.ready(20, priority(5))
	lazy := b.ready(5, priority(-1))
	waiting := b.submit(withKey("k", 1))
	must(b, waiting.Wait(1, b.now))
	delayed := b.submit(func(r *flow.Request) { r.NotBefore = b.now.Add(time.Hour) })
	b.apply(waiting, delayed)
	b.claimed(flow.ID{1})
	b.finished()
	order := []flow.ID{urgent, early, late, lazy}
	for n := range 6 {
		equal(b, fmt.Sprintf("take %d", n), ids(b.take(n, "default")), order[:min(n, len(order))])
	}
	equal(b, "taking does not take away", ids(b.take(9, "default")), order)
	with := b.ready(40, func(r *flow.Request) { r.Input = raw(`{"x":1}`) })
	all := b.take(9, "default")
	equal(b, "payload", all[3].ID, with)
	equal(b, "payload", string(all[3].Input), `{"x":1}`)
}

func takeQueues(b *bench) {
	a1 := b.ready(1, onQueue("a"))
	b1 := b.ready(2, onQueue("b"))
	a2 := b.ready(3, onQueue("a"))
	b2 := b.ready(4, onQueue("b"), priority(1))
	b.ready(5, onQueue("c"))
	equal(b, "of two queues", ids(b.take(9, "a", "b")), []flow.ID{b2, a1, b1, a2})
	equal(b, "the first two of two queues", ids(b.take(2, "b", "a")), []flow.ID{b2, a1})
	equal(b, "a queue named twice", ids(b.take(9, "a", "a")), []flow.ID{a1, a2})
	equal(b, "an empty queue", len(b.take(9, "none")), 0)
	equal(b, "no queue", len(b.take(9)), 0)
}

// takeLarge checks that the payloads of one Take are limited in bytes, and that the next one continues after them.
func takeLarge(b *bench) {
	sized := func(ticket int64, size int) flow.ID {
		return b.ready(ticket, func(r *flow.Request) { r.Input = raw(`"%s"`, strings.Repeat("x", size-2)) })
	}
	const third = store.TakeBytes/3 + 1
	first := []flow.ID{sized(1, 100), sized(2, third), sized(3, third), sized(4, store.SmallPayload+1), sized(5, third)}
	second := []flow.ID{sized(6, 2*store.TakeBytes)}
	rest := []flow.ID{sized(7, 100), sized(8, 100)}
	for i, want := range [][]flow.ID{first, second, rest, nil} {
		b.update(func(ctx context.Context, t store.Tx) error {
			xs, err := t.Take(ctx, []string{"default"}, 10)
			must(b, err)
			equal(b, fmt.Sprintf("take %d", i), ids(xs), want)
			var drafts []*flow.Draft
			for _, x := range xs {
				if n := x.PayloadSize(); n < 100 {
					b.Errorf("%s came with a payload of %d bytes", x.ID, n)
				}
				d := flow.Load(x)
				must(b, d.Claim(flow.ID{1}, "w", b.now))
				drafts = append(drafts, d)
			}
			return t.Apply(ctx, store.Delta{Drafts: drafts})
		})
	}
}

func keys(b *bench) {
	h1 := b.claimed(flow.ID{1}, withKey("k", 3), createdAt(b.now.Add(-time.Hour)))
	h2 := b.ready(2, withKey("k", 3), createdAt(b.now.Add(-2*time.Hour)))
	var line []flow.ID
	for i, p := range []int{0, 0, 9, 0} {
		d := b.submit(withKey("k", 3), priority(p))
		must(b, d.Wait(int64(100-i), b.now)) // tickets in the opposite order of submission
		b.apply(d)
		line = append(line, d.ID)
	}
	// An execution that was put aside in its queue has a place in the wait list by its ticket, and stays scheduled.
	back := b.load(b.ready(4, withKey("k", 3)))
	back.PutAside("the rules refuse its claim", b.now)
	b.apply(back)
	back = b.load(back.ID)
	back.ClearAside()
	must(b, back.Wait(96, b.now))
	b.apply(back)
	equal(b, "the stage of one that was put aside and waits", b.get(back.ID).Stage, flow.Scheduled)
	line = []flow.ID{line[2], back.ID, line[3], line[1], line[0]}
	b.ready(3, withKey("other", 1))
	delayed := b.submit(withKey("k", 3), func(r *flow.Request) { r.NotBefore = b.now.Add(time.Hour) })
	b.apply(delayed)

	use := inTx(b, func(ctx context.Context, t store.Tx) (map[string]store.KeyUse, error) {
		return t.LockKeys(ctx, []string{"k", "other", "unused", "k"})
	})
	equal(b, "use", use, map[string]store.KeyUse{"k": {Holders: 2, Waiting: 5}, "other": {Holders: 1}, "unused": {}})
	for n := range 7 {
		got := inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) { return t.WaitList(ctx, "k", n) })
		equal(b, fmt.Sprintf("the first %d of the line", n), ids(got), line[:min(n, 5)])
	}
	holders := func(n int) []flow.ID {
		return ids(inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) { return t.Holders(ctx, "k", n) }))
	}
	equal(b, "holders", holders(9), []flow.ID{h2, h1})
	equal(b, "the oldest holder", holders(1), []flow.ID{h2})
	seen, err := b.s.KeyHolders(b.ctx(), "k", 9)
	must(b, err)
	equal(b, "holders for readers", ids(seen), []flow.ID{h2, h1})

	b.report(h1, flow.EvRunning)
	b.report(h1, flow.EvCompleted)
	equal(b, "holders after one ended", holders(9), []flow.ID{h2})

	crowd := make([]*flow.Draft, store.WaitingCounted+5)
	for i := range crowd {
		crowd[i] = b.submit(withKey("crowd", 1))
		must(b, crowd[i].Wait(int64(1000+i), b.now))
	}
	b.apply(crowd...)
	use = inTx(b, func(ctx context.Context, t store.Tx) (map[string]store.KeyUse, error) {
		return t.LockKeys(ctx, []string{"crowd"})
	})
	if n := use["crowd"].Waiting; n < store.WaitingCounted {
		b.Errorf("a line of %d counts as %d", len(crowd), n)
	}
	full, err := b.s.Keys(b.ctx(), 9)
	must(b, err)
	equal(b, "keys in use", full, map[string]store.KeyUse{"k": {Holders: 1, Waiting: 5}, "other": {Holders: 1}, "crowd": {Waiting: len(crowd)}})
	full, err = b.s.Keys(b.ctx(), 2)
	must(b, err)
	if _, ok := full["crowd"]; ok || len(full) != 2 {
		b.Errorf("the two fullest keys are %v", full)
	}
}

// due checks every reason to wake, in order of time.
func due(b *bench) {
	start := b.now
	at := func(d time.Duration) time.Time { return start.Add(d) }
	delayed := b.submit(func(r *flow.Request) { r.NotBefore = at(30 * time.Second) })
	b.apply(delayed)
	queued := b.ready(1, func(r *flow.Request) { r.QueueTimeout = 10 * time.Second })
	total := b.claimed(flow.ID{1}, func(r *flow.Request) { r.TotalTimeout = 20 * time.Second })
	b.ready(2)
	sleep := b.submit(func(r *flow.Request) { r.Action, r.Kind = "sleep", flow.KindSleep })
	must(b, sleep.Schedule(3, b.now))
	sleep.WakeAgainAt(at(40 * time.Second))
	b.apply(sleep)
	gap := b.claimed(flow.ID{1})
	d := b.load(gap)
	d.Report(flow.ID{1}, flow.Report{Execution: gap, Attempt: 1, Events: []flow.Event{
		{Seq: d.NextSeq + 5, Attempt: 1, Type: flow.EvProgress, At: b.now}}}, nil, nil, at(5*time.Second), 0)
	b.apply(d)

	type wake struct {
		id flow.ID
		at time.Duration
	}
	order := []wake{{queued, 10 * time.Second}, {gap, 15 * time.Second}, {total, 20 * time.Second}, {delayed.ID, 30 * time.Second}, {sleep.ID, 40 * time.Second}}
	find := func(now time.Time, n int) ([]flow.ID, time.Time) {
		var beyond time.Time
		got := inTx(b, func(ctx context.Context, t store.Tx) (all []*flow.Execution, err error) {
			all, beyond, err = t.Due(ctx, now, n)
			return all, err
		})
		return ids(got), beyond
	}
	for i := range len(order) + 1 {
		now, next := at(5*time.Second), time.Time{}
		var want []flow.ID
		for j, w := range order {
			switch {
			case j < i:
				want = append(want, w.id)
				now = at(w.at) // due exactly at its time
			case j == i:
				next = at(w.at)
			}
		}
		got, beyond := find(now, 10)
		equal(b, fmt.Sprintf("due after %s", now.Sub(start)), got, want)
		equal(b, fmt.Sprintf("beyond %s", now.Sub(start)), beyond, next)
	}
	got, beyond := find(at(time.Hour), 2)
	equal(b, "the first two", got, []flow.ID{queued, gap})
	equal(b, "what is due beyond them", beyond, at(20*time.Second))

	d = b.load(queued)
	must(b, d.Cancel(flow.TimedOut, flow.CodeQueueTimeout, "waited too long", at(10*time.Second)))
	b.apply(d)
	if got, _ = find(at(12*time.Second), 10); len(got) != 0 {
		b.Errorf("due after it has ended: %v", got)
	}
}

func idempotency(b *bench) {
	d := b.submit(func(r *flow.Request) { r.IdempotencyKey = "key-1" })
	k := store.IdempotencyKey{Key: "key-1", Execution: d.ID, Hash: [32]byte{0: 1, 31: 255}}
	b.delta(store.Delta{Drafts: []*flow.Draft{d}, Keys: []store.IdempotencyKey{k}})
	find := func(keys ...string) map[string]store.IdempotencyKey {
		return inTx(b, func(ctx context.Context, t store.Tx) (map[string]store.IdempotencyKey, error) {
			return t.Submitted(ctx, keys)
		})
	}
	equal(b, "submitted", find("key-1", "key-2", "key-1"), map[string]store.IdempotencyKey{"key-1": k})
	equal(b, "nothing asked", len(find()), 0)
	again := b.submit()
	k.Execution = again.ID
	wantErr(b, "the key again", b.try(store.Delta{Drafts: []*flow.Draft{again}, Keys: []store.IdempotencyKey{k}}), store.ErrConflict)
	_, err := b.s.Get(b.ctx(), again.ID)
	wantErr(b, "get the second submission", err, store.ErrNotFound)
	b.finishSubmitted(d.ID)
	equal(b, "after the end", find("key-1")["key-1"].Execution, d.ID)
	b.remove([]flow.ID{d.ID}...)
	equal(b, "after the removal", len(find("key-1")), 0)
	b.delta(store.Delta{Drafts: []*flow.Draft{again}, Keys: []store.IdempotencyKey{k}})
}

// finishSubmitted cancels a waiting execution.
func (b *bench) finishSubmitted(id flow.ID) {
	b.Helper()
	d := b.load(id)
	must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "enough", b.now))
	b.apply(d)
}

// reroute checks that an execution can be moved to another routing key, unchanged and with its place.
func reroute(b *bench) {
	const routingKey = "default@kind:resize"
	early, moved, late := b.ready(10), b.ready(20, func(r *flow.Request) { r.Priority, r.Labels = 3, map[string]string{"a": "b"} }), b.ready(30)
	b.ready(25, onQueue(routingKey))
	taken := func(t store.Tx, ctx context.Context, queues ...string) []*flow.Execution {
		b.Helper()
		xs, err := t.Take(ctx, queues, 9)
		must(b, err)
		return xs
	}
	want := b.get(moved)
	want.Queue = routingKey
	b.update(func(ctx context.Context, t store.Tx) error {
		expectEmpty(t, []string{routingKey})
		for _, x := range taken(t, ctx, "default") {
			if x.ID == moved {
				must(b, t.Reroute(ctx, x, routingKey))
				equal(b, "what was moved", x.Queue, routingKey)
			}
		}
		equal(b, "where it was, in the same transaction", ids(taken(t, ctx, "default")), []flow.ID{early, late})
		equal(b, "where it is, in the same transaction", taken(t, ctx, routingKey)[0].ID, moved)
		return nil
	})
	equal(b, "after the commit", b.get(moved), want)
	b.clean()
	xs := inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
		return t.Take(ctx, []string{routingKey, "default"}, 9)
	})
	equal(b, "the order of both routing keys", ids(xs)[0], moved)
	equal(b, "how many wait", len(xs), 4)
	d := b.load(moved)
	must(b, d.Claim(flow.ID{1}, "w", b.now))
	b.apply(d)
	b.report(moved, flow.EvRunning, flow.EvCompleted)
	equal(b, "the routing key of what has ended", b.get(moved).Queue, routingKey)
}

// expected checks that the results of announced calls are the same as without announcements, regardless of what the transaction does in
// between.
func expected(b *bench) {
	one, two, short := b.session(flow.ID{1}, time.Hour), b.session(flow.ID{2}, time.Hour), b.session(flow.ID{4}, brief)
	b.ranOut(short.ID)
	lock := func(t store.Tx, ctx context.Context, want store.Session, wantRuns bool, wantErr error) store.Session {
		b.Helper()
		s, left, err := t.LockSession(ctx, want.ID)
		if !errors.Is(err, wantErr) || (left > 0) != wantRuns || wantErr == nil && s.Name != want.Name {
			b.Errorf("session %v is %+v, its lease runs for %s, %v; want %+v, runs %t, %v", want.ID, s, left, err, want, wantRuns, wantErr)
		}
		return s
	}
	taken := func(t store.Tx, ctx context.Context, want []flow.ID, queues ...string) {
		b.Helper()
		xs, err := t.Take(ctx, queues, 9)
		must(b, err)
		equal(b, fmt.Sprintf("taken from %v", queues), ids(xs), want)
	}
	b.update(func(ctx context.Context, t store.Tx) error {
		for _, id := range []flow.ID{one.ID, two.ID, {3}, one.ID, short.ID} {
			expectSession(t, id)
		}
		lock(t, ctx, one, true, nil)
		lock(t, ctx, store.Session{ID: flow.ID{3}}, false, store.ErrNotFound)
		lock(t, ctx, short, false, nil)
		_, err := t.RenewSessions(ctx, []flow.ID{one.ID}, 2*time.Hour)
		must(b, err)
		must(b, t.DropSession(ctx, two.ID))
		if s := lock(t, ctx, one, true, nil); !s.ExpiresAt.After(one.ExpiresAt) {
			b.Errorf("a session that this transaction has renewed expires at %s, as before", s.ExpiresAt)
		}
		lock(t, ctx, two, false, store.ErrNotFound)
		_, err = t.EndLeases(ctx, []flow.ID{one.ID})
		must(b, err)
		lock(t, ctx, one, false, nil)
		return nil
	})
	there := b.ready(10)
	gpu := func(r *flow.Request) { r.Queue = "gpu" }
	b.update(func(ctx context.Context, t store.Tx) error {
		expectEmpty(t, []string{"default", "gpu"})
		taken(t, ctx, nil, "gpu")
		taken(t, ctx, []flow.ID{there}, "gpu", "default")
		d := b.submit(gpu)
		must(b, d.Schedule(20, b.now))
		must(b, t.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}}))
		taken(t, ctx, []flow.ID{d.ID}, "gpu")
		return nil
	})
	b.update(func(ctx context.Context, t store.Tx) error {
		expectEmpty(t, []string{"none"})
		taken(t, ctx, nil, "none")
		taken(t, ctx, []flow.ID{there}, "default")
		return nil
	})
}

// expectEmpty announces to an Expecter that queues are probably empty.
func expectEmpty(t store.Tx, queues []string) {
	if x, ok := t.(store.Expecter); ok {
		x.ExpectEmpty(queues)
	}
}

// expectSession announces to an Expecter that a session will be locked.
func expectSession(t store.Tx, id flow.ID) {
	if x, ok := t.(store.Expecter); ok {
		x.ExpectSession(id)
	}
}
