package sqlite_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/sqlite"
)

// Leases run by elapsed time: a step of the wall clock in either direction neither ends nor prolongs them.
func TestLeasesBesideTheWallClock(t *testing.T) {
	t.Parallel()
	wall, up := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), time.Duration(0)
	s, err := sqlite.Open(t.Context(), sqlite.InMemory, sqlite.Options{
		Now: func() time.Time { return wall }, Uptime: func() time.Duration { return up },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	session := store.Session{ID: flow.ID{1}, Name: "w", Queues: []string{"default"}, Slots: 1}
	err = s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error { return tx.OpenSession(ctx, session, 30*time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	runs := func(what string, want bool) {
		t.Helper()
		live, err := s.LiveSessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, left, err := tx.LockSession(ctx, session.ID)
			if err != nil {
				return err
			}
			over, err := tx.Expired(ctx, 9)
			if (left > 0) != want || (len(over) == 0) != want || (len(live) == 1) != want {
				t.Errorf("%s: the lease runs: %t, %d sessions are live and %d expired; want %t", what, left > 0, len(live), len(over), want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	runs("at the beginning", true)
	wall = wall.Add(time.Hour)
	runs("after the wall clock was set forwards by an hour", true)
	up += 20 * time.Second
	err = s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		renewed, err := tx.RenewSessions(ctx, []flow.ID{session.ID}, 30*time.Second)
		if len(renewed) != 1 {
			t.Error("the lease was not renewed after the wall clock was set")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wall = wall.Add(-2 * time.Hour)
	up += 29 * time.Second
	runs("a second before the end, after the wall clock was set back", true)
	up += time.Second
	runs("at the end, after the wall clock was set back", false)
	if err := s.RestartLeases(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	runs("after a new beginning", true)
}
