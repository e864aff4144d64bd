package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// session opens a session and returns it as stored.
func (b *bench) session(id flow.ID, lease time.Duration, change ...func(*store.Session)) store.Session {
	b.Helper()
	s := store.Session{ID: id, Name: "worker-1", Queues: []string{"default", "gpu"}, Kinds: []string{"code"}, Slots: 8}
	for _, c := range change {
		c(&s)
	}
	b.update(func(ctx context.Context, t store.Tx) error { return t.OpenSession(ctx, s, lease) })
	kept, _ := b.seen(id)
	s.StartedAt, s.ExpiresAt = kept.StartedAt, kept.ExpiresAt
	equal(b, "session", kept, s)
	return s
}

// seen returns a session as a transaction sees it, with the remaining time of its lease.
func (b *bench) seen(id flow.ID) (s store.Session, left time.Duration) {
	b.Helper()
	b.update(func(ctx context.Context, t store.Tx) (err error) {
		s, left, err = t.LockSession(ctx, id)
		return err
	})
	return s, left
}

func (b *bench) expired(n int) []flow.ID {
	b.Helper()
	var all []flow.ID
	for _, s := range inTx(b, func(ctx context.Context, t store.Tx) ([]store.Session, error) { return t.Expired(ctx, n) }) {
		all = append(all, s.ID)
	}
	return asSet(all)
}

func (b *bench) live() []flow.ID {
	b.Helper()
	sessions, err := b.s.LiveSessions(b.ctx())
	must(b, err)
	all := []flow.ID{}
	for _, s := range sessions {
		all = append(all, s.ID)
	}
	return all
}

// brief is a lease that has expired when ranOut returns.
const brief = time.Millisecond

// ranOut waits until a session's lease has expired, by the store's clock.
func (b *bench) ranOut(id flow.ID) {
	b.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, left := b.seen(id); left <= 0 {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("the lease of %s still runs", id.Text(flow.SessionPrefix))
		}
	}
}

func sessions(b *bench) {
	one, two := b.session(flow.ID{1}, time.Hour), b.session(flow.ID{2}, time.Hour, func(s *store.Session) { s.Embedded, s.Kinds = true, nil })
	wantErr(b, "a session twice", b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error { return t.OpenSession(ctx, one, time.Hour) }), store.ErrConflict)
	wantErr(b, "an unknown session", b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		_, _, err := t.LockSession(ctx, flow.ID{3})
		return err
	}), store.ErrNotFound)
	for _, s := range []store.Session{one, two} {
		if _, left := b.seen(s.ID); left.Round(time.Minute) != time.Hour || s.ExpiresAt.Sub(s.StartedAt).Round(time.Minute) != time.Hour {
			b.Errorf("a lease of an hour runs for another %s, from %s to %s", left, s.StartedAt, s.ExpiresAt)
		}
	}
	short := b.session(flow.ID{3}, brief)
	b.ranOut(short.ID)
	equal(b, "live", b.live(), []flow.ID{one.ID, two.ID})
	equal(b, "expired", b.expired(9), []flow.ID{short.ID})
	renew := func(lease time.Duration, ids ...flow.ID) []flow.ID {
		return asSet(inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) { return t.RenewSessions(ctx, ids, lease) }))
	}
	equal(b, "renewal of what has run out, and of the unknown", len(renew(time.Hour, short.ID, flow.ID{9})), 0)
	equal(b, "renewal of several", renew(2*time.Hour, flow.ID{9}, one.ID, short.ID), []flow.ID{one.ID})
	if s, left := b.seen(one.ID); left.Round(time.Minute) != 2*time.Hour || s.ExpiresAt.Sub(one.ExpiresAt).Round(time.Minute) != time.Hour {
		b.Errorf("a lease until %s was renewed for two hours: it runs for another %s, until %s", one.ExpiresAt, left, s.ExpiresAt)
	}
	if s, _ := b.seen(two.ID); !s.ExpiresAt.Equal(two.ExpiresAt) {
		b.Errorf("a renewal of another session moved the end from %s to %s", two.ExpiresAt, s.ExpiresAt)
	}
	b.update(func(ctx context.Context, t store.Tx) error { return t.ExpireEmbedded(ctx) })
	equal(b, "live after the embedded ones were expired", b.live(), []flow.ID{one.ID})
	equal(b, "expired, the embedded ones among them", b.expired(9), []flow.ID{two.ID, short.ID})
	for range 2 {
		b.update(func(ctx context.Context, t store.Tx) error { return t.DropSession(ctx, two.ID) })
	}
	equal(b, "after the drop", b.expired(9), []flow.ID{short.ID})
}

// leases checks how leases end for good, and how leases that expired by a jump of the clock are restarted.
func leases(b *bench) {
	one, two, short, late := b.session(flow.ID{1}, time.Hour), b.session(flow.ID{2}, time.Hour), b.session(flow.ID{3}, brief), b.session(flow.ID{4}, brief)
	b.ranOut(short.ID)
	b.ranOut(late.ID)
	end := func(ids ...flow.ID) []flow.ID {
		return asSet(inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) { return t.EndLeases(ctx, ids) }))
	}
	equal(b, "leases that were ended while they ran", end(one.ID, short.ID, flow.ID{9}), []flow.ID{one.ID})
	equal(b, "leases that were ended twice", len(end(one.ID, short.ID)), 0)
	for _, id := range []flow.ID{one.ID, short.ID} {
		if s, left := b.seen(id); left > 0 || !s.ExpiresAt.IsZero() {
			b.Errorf("a lease that was ended runs for another %s, until %s", left, s.ExpiresAt)
		}
	}
	if s, left := b.seen(late.ID); left > 0 || s.ExpiresAt.IsZero() {
		b.Errorf("a lease that has run out runs for another %s, until %s", left, s.ExpiresAt)
	}
	equal(b, "renewal of ended leases", len(inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) {
		return t.RenewSessions(ctx, []flow.ID{one.ID, short.ID}, time.Hour)
	})), 0)
	equal(b, "expired", b.expired(9), []flow.ID{one.ID, short.ID, late.ID})
	equal(b, "expired, a page", len(b.expired(2)), 2)
	must(b, b.s.RestartLeases(b.ctx(), time.Minute))
	equal(b, "live after the leases were begun anew", b.live(), []flow.ID{two.ID, late.ID})
	equal(b, "expired after that", b.expired(9), []flow.ID{one.ID, short.ID})
	if s, _ := b.seen(two.ID); s.ExpiresAt.After(two.ExpiresAt.Add(-50 * time.Minute)) {
		b.Errorf("a lease until %s that was begun anew, for a minute, ends at %s", two.ExpiresAt, s.ExpiresAt)
	}
}

// ownership checks the executions found by their owner.
func ownership(b *bench) {
	mine, others := flow.ID{1}, flow.ID{2}
	var want, theirs []flow.ID
	for range 7 {
		want = append(want, b.claimed(mine))
		theirs = append(theirs, b.claimed(others))
		b.ready(int64(b.made))
	}
	wf := b.workflow() // held by the engine itself
	owned := func(after flow.ID, n int) []flow.ID {
		return ids(inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
			return t.OwnedBy(ctx, mine, after, n)
		}))
	}
	equal(b, "owned", owned(flow.ID{}, 100), want)
	equal(b, "a page of what is owned", owned(want[1], 3), want[2:5])
	equal(b, "beyond the last", len(owned(want[6], 3)), 0)

	unstarted := func(owner, id flow.ID, n int) []flow.ID {
		xs, err := b.s.Provisioning(b.ctx(), owner, id, n)
		must(b, err)
		return ids(xs)
	}
	all := append(slices.Clone(want), theirs...)
	equal(b, "what has not begun", unstarted(flow.ID{}, flow.ID{}, 100), all)
	equal(b, "a page of what has not begun", unstarted(mine, all[4], 4), all[5:9])
	equal(b, "another owner's page of what has not begun", unstarted(others, all[8], 3), all[9:12])
	b.report(all[0], flow.EvRunning)
	equal(b, "what has not begun without what has", unstarted(flow.ID{}, flow.ID{}, 2), all[1:3])

	ordered := func(sessions ...flow.ID) []flow.ID {
		return asSet(ids(inTx(b, func(ctx context.Context, t store.Tx) ([]*flow.Execution, error) {
			return t.CancelRequested(ctx, sessions)
		})))
	}
	equal(b, "no orders", len(ordered(mine, others)), 0)
	for _, id := range []flow.ID{want[3], want[5], theirs[2], wf} {
		d := b.load(id)
		must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "stop", b.now))
		b.apply(d)
	}
	equal(b, "orders", ordered(mine), []flow.ID{want[3], want[5]})
	equal(b, "orders to both", ordered(others, flow.ID{3}, mine), asSet([]flow.ID{want[3], want[5], theirs[2]}))
	b.report(want[3], flow.EvCancelled)
	equal(b, "orders after one was carried out", ordered(mine), want[5:6])
	equal(b, "owned after one has ended", len(owned(flow.ID{}, 100)), 6)
}
