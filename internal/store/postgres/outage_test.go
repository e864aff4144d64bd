package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/pgpool/pgpooltest"
	"github.com/pawl-run/pawl/internal/store"
)

func asTx(t store.Tx) *tx { return t.(*tx) }

func draft(n byte) *flow.Draft {
	return flow.Submit(flow.ID{1, 15: n}, flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", CreatedAt: time.UnixMicro(1e15).UTC()})
}

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	ctx, dsn, schema := context.Background(), server(t), emptySchema(t)
	direct := open(t, dsn, schema)
	w, through := pgpooltest.New(t, dsn)
	s := open(t, through, schema)

	// The answer to a commit is lost: it was committed, and the store must not report that it was not.
	d := draft(1)
	err := s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.Now(ctx); err != nil {
			return err
		}
		w.LoseAnswers(true)
		return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
	})
	if !errors.Is(err, store.ErrUnknown) {
		t.Errorf("a commit without an answer: %v, want %v", err, store.ErrUnknown)
	}
	until(t, func() bool { _, err := direct.Get(ctx, d.ID); return err == nil })
	w.LoseAnswers(false)

	// The connection is lost before the commit: nothing was committed, and a retry is safe.
	d = draft(2)
	err = s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}}); err != nil {
			return err
		}
		w.Cut()
		_, err := tx.Lock(ctx, []flow.ID{d.ID}, store.WithPayload)
		return err
	})
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
		t.Errorf("a lost connection: %v, want %v", err, store.ErrUnavailable)
	}
	if _, err := direct.Get(ctx, d.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get what was not committed: %v", err)
	}

	// The server is unreachable for a while: callers get errors, and then everything works again.
	w.Refuse(true)
	w.Cut()
	if _, err := s.Get(ctx, d.ID); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("get without a server: %v, want %v", err, store.ErrUnavailable)
	}
	if err := s.Ready(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("ping without a server: %v, want %v", err, store.ErrUnavailable)
	}
	w.Refuse(false)
	until(t, func() bool {
		return s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
		}) == nil
	})
	if _, err := s.Get(ctx, d.ID); err != nil {
		t.Errorf("get after the outage: %v", err)
	}
}

// TestKilledConnections makes the server end connections in the middle of transactions.
func TestKilledConnections(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server(t)
	s := open(t, dsn, emptySchema(t))
	d := draft(1)
	err := s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		var pid uint32
		if _, err := tx.Now(ctx); err != nil {
			return err
		}
		pid = asTx(tx).c.pg.PID()
		if err := tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}}); err != nil {
			return err
		}
		execute(t, dsn, `SELECT pg_terminate_backend(`+fmt.Sprint(pid)+`, 5000)`)
		return nil
	})
	if err == nil {
		t.Error("a transaction whose connection was ended was committed")
	}
	if _, err := s.Get(ctx, d.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get what was not committed: %v", err)
	}
	if err := s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
	}); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
}

// until waits for a condition.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it did not come true in 30 s")
		}
	}
}
