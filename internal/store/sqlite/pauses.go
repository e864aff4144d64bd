package sqlite

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

const (
	pauseColumns = `generation, kind, name, paused, at, until, who, reason`
	// lastPause is the latest generation of pauses.
	lastPause = `(SELECT coalesce(max(generation), 0) FROM pauses)`
)

var (
	qLastPause = sql(`SELECT ` + lastPause)

	qPauseOf = sql(`SELECT ` + pauseColumns + ` FROM pauses WHERE kind = ? AND name = ? ORDER BY generation DESC LIMIT 1`)

	qAddPause = sql(`INSERT INTO pauses (` + pauseColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)

	qPauses = sql(`SELECT ` + pauseColumns + ` FROM pauses WHERE paused = 1 AND generation IN (SELECT max(generation) FROM pauses GROUP BY kind, name)
		ORDER BY kind, name`)

	qPauseHistory = sql(`SELECT ` + pauseColumns + ` FROM pauses WHERE generation < ? AND (? = 0 OR kind = ?) AND (? = '' OR name = ?)
		ORDER BY generation DESC LIMIT ?`)
)

// ChangePause implements store.Pausing. There is one transaction at a time, so it is alone.
func (s *Store) ChangePause(ctx context.Context, of store.PauseKind, name string, decide func(time.Time, store.Pause) *store.Pause) (latest store.Pause, err error) {
	err = s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		all, err := s.w.use(qPauseOf).int(int64(of)).text(name).pauses()
		if err != nil {
			return err
		}
		if latest = (store.Pause{}); len(all) > 0 {
			latest = all[0]
		}
		last, err := s.w.lastPause()
		if err != nil {
			return err
		}
		p := decide(now, latest)
		if p == nil {
			return nil
		}
		latest = *p
		latest.Generation, latest.Of, latest.Name = last+1, of, name
		paused := int64(0)
		if latest.Paused {
			paused = 1
		}
		return s.w.use(qAddPause).int(latest.Generation).int(int64(of)).text(name).int(paused).int(row.Micros(latest.At)).int(row.Micros(latest.Until)).
			text(latest.By).text(latest.Reason).run()
	})
	if err != nil {
		return store.Pause{}, fmt.Errorf("pause or resume %s %q: %w", of, name, err)
	}
	return latest, nil
}

// pauses reads rows of pauseColumns.
func (s *stmt) pauses() ([]store.Pause, error) {
	var all []store.Pause
	for s.next() {
		all = append(all, store.Pause{Generation: s.getInt(), Of: store.PauseKind(s.getInt()), Name: s.getText(), Paused: s.getInt() == 1,
			At: row.FromMicros(s.getInt()), Until: row.FromMicros(s.getInt()), By: s.getText(), Reason: s.getText()})
	}
	return all, s.done()
}

func (c *conn) lastPause() (last int64, err error) {
	s := c.use(qLastPause)
	if s.next() {
		last = s.getInt()
	}
	return last, s.done()
}

func (c *conn) pauses() ([]store.Pause, int64, error) {
	last, err := c.lastPause()
	if err != nil {
		return nil, 0, fmt.Errorf("read pauses: %w", err)
	}
	all, err := c.use(qPauses).pauses()
	if err != nil {
		return nil, 0, fmt.Errorf("read pauses: %w", err)
	}
	return all, last, nil
}

// LastPause implements store.Tx.
func (t *tx) LastPause(context.Context) (int64, error) { return t.c.lastPause() }

// Pauses implements store.Pauses.
func (t *tx) Pauses(context.Context) ([]store.Pause, int64, error) { return t.c.pauses() }

// Pauses implements store.PauseReader.
func (s *Store) Pauses(ctx context.Context) (all []store.Pause, last int64, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		all, last, err = c.pauses()
		return err
	})
	return all, last, err
}

// PauseHistory implements store.PauseReader.
func (s *Store) PauseHistory(ctx context.Context, of store.PauseKind, name string, below int64, n int) (all []store.Pause, err error) {
	if below == 0 {
		below = math.MaxInt64
	}
	return list(ctx, s, func(c *conn) ([]store.Pause, error) {
		return c.use(qPauseHistory).int(below).int(int64(of)).int(int64(of)).text(name).text(name).int(int64(n)).pauses()
	}, "read the history of pauses")
}
