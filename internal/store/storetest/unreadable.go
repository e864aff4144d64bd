package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Unreadable checks that a live execution whose row cannot be decoded does not hide others from reads of the first executions of an order.
// damage makes the states of executions undecodable, bypassing the store.
func Unreadable(t *testing.T, s store.Store, damage func(ids ...flow.ID)) {
	b := &bench{tester: t, tb: t, s: s, now: epoch}
	mine := b.session(flow.ID{1}, time.Hour).ID
	line := func(ticket int64) flow.ID {
		d := b.submit(withKey("k", 1))
		must(b, d.Wait(ticket, b.now))
		b.apply(d)
		return d.ID
	}
	due := func(in time.Duration) flow.ID {
		d := b.submit(func(r *flow.Request) { r.NotBefore = b.now.Add(in) })
		b.apply(d)
		return d.ID
	}
	ordered := func() flow.ID {
		id := b.claimed(mine)
		d := b.load(id)
		must(b, d.Cancel(flow.Cancelled, flow.CodeCancelled, "enough", b.now))
		b.apply(d)
		return id
	}
	queued := []flow.ID{b.ready(1), b.ready(2), b.ready(3)}
	waiting := []flow.ID{line(11), line(12), line(13)}
	delayed := []flow.ID{due(time.Second), due(2 * time.Second), due(3 * time.Second)}
	holding := []flow.ID{b.claimed(mine, withKey("held", 3)), b.claimed(mine, withKey("held", 3)), b.claimed(mine, withKey("held", 3))}
	ordering := []flow.ID{ordered(), ordered(), ordered()}
	equal(b, "rows that cannot be read", s.Unreadable(), 0)
	damage(queued[0], waiting[0], delayed[0], holding[0], ordering[0])

	after := b.now.Add(time.Minute)
	owned := slices.Concat(holding[1:], ordering[1:])
	slices.SortFunc(owned, func(a, b flow.ID) int { return slices.Compare(a[:], b[:]) })
	for _, read := range []struct {
		name string
		of   func(context.Context, store.Tx, int) ([]*flow.Execution, error)
		want []flow.ID
	}{
		{"Take", func(ctx context.Context, t store.Tx, n int) ([]*flow.Execution, error) {
			return t.Take(ctx, []string{"default"}, n)
		}, queued[1:]},
		{"Take of two queues", func(ctx context.Context, t store.Tx, n int) ([]*flow.Execution, error) {
			return t.Take(ctx, []string{"default", "other"}, n)
		}, queued[1:]},
		{"Line", func(ctx context.Context, t store.Tx, n int) ([]*flow.Execution, error) {
			return t.WaitList(ctx, "k", n)
		}, waiting[1:]},
		{"Holders", func(ctx context.Context, t store.Tx, n int) ([]*flow.Execution, error) {
			return t.Holders(ctx, "held", n)
		}, holding[1:]},
		{"Due", func(ctx context.Context, t store.Tx, n int) ([]*flow.Execution, error) {
			xs, _, err := t.Due(ctx, after, n)
			return xs, err
		}, delayed[1:]},
		{"OwnedBy", func(ctx context.Context, t store.Tx, n int) ([]*flow.Execution, error) {
			return t.OwnedBy(ctx, mine, flow.ID{}, n)
		}, owned},
	} {
		for _, n := range []int{len(read.want), 1} {
			var got []flow.ID
			// Each undecodable row may fail the first read that meets it.
			for range 6 {
				err := s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
					xs, err := read.of(ctx, t, n)
					got = ids(xs)
					return err
				})
				if err == nil {
					break
				}
				got = nil
			}
			equal(b, read.name, got, read.want[:n])
		}
	}
	xs, err := s.Provisioning(b.ctx(), flow.ID{}, flow.ID{}, 1)
	must(b, err)
	equal(b, "Provisioning", len(xs), 1)
	equal(b, "rows that cannot be read", s.Unreadable(), 5)
	b.update(func(ctx context.Context, t store.Tx) error {
		xs, err := t.CancelRequested(ctx, []flow.ID{mine})
		equal(b, "Ordered", asSet(ids(xs)), asSet(ordering[1:]))
		return err
	})
	if _, err := s.Get(b.ctx(), queued[0]); err == nil {
		b.Error("a row that cannot be decoded was read")
	}
}
