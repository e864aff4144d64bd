package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// An execution that a transaction inserts and then changes keeps its history in one row: only a long history is moved out.
func TestRunOfWhatIsNew(t *testing.T) {
	t.Parallel()
	s := open(t, server(t), emptySchema(t))
	now := time.Now().UTC().Truncate(time.Microsecond)
	d := flow.Submit(flow.ID{1}, flow.Request{Action: "w", Kind: flow.KindWorkflow, Queue: "default", CreatedAt: now})
	advance := func(times int) func(context.Context, store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			for range times {
				if err := errors.Join(d.Advance([]byte(`{"started":{"a-task-with-a-name":1}}`), now), tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})); err != nil {
					return err
				}
				d.Before, d.Events = d.State, nil
			}
			return nil
		}
	}
	err := s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := errors.Join(d.Schedule(1, now), tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})); err != nil {
			return err
		}
		d.Before, d.New, d.Events = d.State, false, nil
		return advance(3)(ctx, tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	moved := func() (n int) {
		if err := s.read(t.Context(), call{once: `SELECT count(*) FROM ` + s.schema + `.events`, read: func(r *rows) error {
			n = int(r.int())
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := moved(); n != 0 {
		t.Errorf("%d runs of a short history were moved out", n)
	}
	err = s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.Lock(ctx, []flow.ID{d.ID}, store.WithoutPayload); err != nil {
			return err
		}
		return advance(40)(ctx, tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := moved(); n == 0 {
		t.Error("no run of a long history was moved out")
	}
	events, err := s.Events(t.Context(), d.ID, 0, 100)
	if err != nil || len(events) != int(d.NextSeq)-1 {
		t.Errorf("%d events, want %d: %v", len(events), d.NextSeq-1, err)
	}
}
