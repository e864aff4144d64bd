package sqlite

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

const lastPause = `(SELECT coalesce(max(generation), 0) FROM pauses)`

var qLastPause = sql(`SELECT ` + lastPause)

// ChangePause implements store.Pausing. There is one transaction at a time, so it is exclusive.
func (s *Store) ChangePause(ctx context.Context, of store.PauseKind, name string, decide func(time.Time, store.Pause) *store.Pause) (latest store.Pause, err error) {
	err = s.Update(ctx, func(ctx context.Context, _ store.Tx) error {
		now, err := s.tx.Now(ctx)
		if err == nil {
			latest, _, err = s.tx.ChangePause(ctx, of, name, decide, now)
		}
		return err
	})
	return store.Result(latest, err, "pause or resume %s %q", of, name)
}

func (t *tx) LastPause(context.Context) (last int64, err error) {
	s := t.c.use(qLastPause)
	if s.next() {
		last = s.getInt()
	}
	return last, s.done()
}
