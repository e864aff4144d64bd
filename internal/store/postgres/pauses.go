package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
)

// A statement sees everything that was committed before it began, and pauses do not change while a transaction runs: see pauseLock.
var qLastPause = sql(`SELECT ` + relational.LastPause)

func (s *Store) ChangePause(ctx context.Context, of store.PauseKind, name string, decide func(time.Time, store.Pause) *store.Pause) (latest store.Pause, err error) {
	err = s.run(ctx, true, func(ctx context.Context, own store.Tx) error {
		t := own.(*tx)
		now, err := t.Now(ctx)
		if err == nil {
			latest, t.news.pauses, err = t.Tx.ChangePause(ctx, of, name, decide, now)
		}
		return err
	})
	return store.Result(latest, err, "pause or resume %s %q", of, name)
}

// paused is the latest generation of pauses. It is known after the round trip with the number trip.
type paused struct {
	trip int
	last int64
}

// ExpectLastPause implements store.Expecter. The row of a session also has the generation, so no statement is needed if a session is
// announced.
func (t *tx) ExpectLastPause() {
	if t.paused == nil && len(t.expected) == 0 {
		t.askLastPause()
	}
}

func (t *tx) askLastPause() {
	t.paused = &paused{trip: t.trips}
	t.add(qLastPause, nil, readTo(&t.paused.last, (*rows).int))
}

// LastPause implements store.Tx. Pauses do not change while the transaction runs, so the row of any session that it has locked has the
// generation.
func (t *tx) LastPause(ctx context.Context) (last int64, err error) {
	for _, x := range t.expected {
		if x.found != nil {
			return x.found.Pauses, nil
		}
	}
	if t.paused == nil {
		t.askLastPause()
	}
	if err := t.since(ctx, t.paused.trip); err != nil {
		return 0, fmt.Errorf("read the latest pause: %w", err)
	}
	return t.paused.last, nil
}
