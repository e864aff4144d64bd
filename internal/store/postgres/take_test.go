package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// In a crowd, what somebody has laid hands on is passed over even when he has let it go, but not when there is too little
// besides, nor for long; and who lets it go himself knows it.
func TestTakeInACrowd(t *testing.T) {
	t.Parallel()
	dsn := ownDatabase(t)
	one, other := open(t, dsn, ""), open(t, dsn, "")
	now := time.Now().UTC().Truncate(time.Microsecond)
	var made []*flow.Draft
	for i := range 30 {
		d := flow.Submit(flow.ID{1: 1, 15: byte(i)}, flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "q", CreatedAt: now})
		if err := d.Schedule(int64(i+1), now); err != nil {
			t.Fatal(err)
		}
		made = append(made, d)
	}
	err := one.Update(t.Context(), func(ctx context.Context, tx store.Tx) error { return tx.Apply(ctx, store.Delta{Drafts: made}) })
	if err != nil {
		t.Fatal(err)
	}
	// take claims n for good, unless it is given an error to end with.
	take := func(s *Store, n int, end error, want ...int) {
		t.Helper()
		var got []int
		err := s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			xs, err := tx.Take(ctx, []string{"q"}, n)
			if err != nil {
				return err
			}
			var ds []*flow.Draft
			for _, x := range xs {
				got = append(got, int(x.Ticket))
				d := flow.Load(x)
				if err := d.Claim(flow.ID{2}, "w", now); err != nil {
					return err
				}
				ds = append(ds, d)
			}
			return errors.Join(tx.Apply(ctx, store.Delta{Drafts: ds}), end)
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("took %v, want %v", got, want)
		}
	}
	crowd := func(left time.Duration) {
		other.crowds.mu.Lock()
		defer other.crowds.mu.Unlock()
		if other.crowds.until["q"].IsZero() {
			t.Error("a full take does not make a crowd")
		}
		other.crowds.until["q"] = time.Now().Add(left)
	}
	stop := errors.New("stop")
	take(other, 3, nil, 1, 2, 3)
	take(one, 3, stop, 4, 5, 6)
	crowd(time.Hour)
	take(other, 3, nil, 7, 8, 9)
	crowd(0)
	take(other, 2, nil, 4, 5)
	take(one, 3, stop, 6, 10, 11)
	take(one, 3, nil, 6, 10, 11)
	crowd(time.Hour)
	take(other, 2, stop, 12, 13)
	take(other, 3, nil, 12, 13, 14)
	take(one, 2, stop, 15, 16)
	crowd(time.Hour)
	take(other, 20, nil, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
	if other.crowds.in("q") {
		t.Error("an empty queue is crowded")
	}
}
