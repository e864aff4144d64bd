package sqlite

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/store"
)

// lastPause is the latest generation of pauses.
const lastPause = `(SELECT coalesce(max(generation), 0) FROM pauses)`

// pauses are the columns of what was paused and resumed.
var pauses = relation[*store.Pause, *store.Pause]{
	{"generation", func(s *stmt, x *store.Pause) { s.int(x.Generation) }, func(s *stmt, x *store.Pause) { x.Generation = s.getInt() }},
	{"kind", func(s *stmt, x *store.Pause) { s.int(int64(x.Of)) }, func(s *stmt, x *store.Pause) { x.Of = store.PauseKind(s.getInt()) }},
	{"name", func(s *stmt, x *store.Pause) { s.text(x.Name) }, func(s *stmt, x *store.Pause) { x.Name = s.getText() }},
	{"paused", func(s *stmt, x *store.Pause) { s.int(truth(x.Paused)) }, func(s *stmt, x *store.Pause) { x.Paused = s.getInt() == 1 }},
	{"at", func(s *stmt, x *store.Pause) { s.time(x.At) }, func(s *stmt, x *store.Pause) { x.At = s.getTime() }},
	{"until", func(s *stmt, x *store.Pause) { s.time(x.Until) }, func(s *stmt, x *store.Pause) { x.Until = s.getTime() }},
	{"who", func(s *stmt, x *store.Pause) { s.text(x.By) }, func(s *stmt, x *store.Pause) { x.By = s.getText() }},
	{"reason", func(s *stmt, x *store.Pause) { s.text(x.Reason) }, func(s *stmt, x *store.Pause) { x.Reason = s.getText() }},
}

var (
	qLastPause = sql(`SELECT ` + lastPause)

	qPauseOf = sql(`SELECT ` + pauses.names("") + ` FROM pauses WHERE kind = ? AND name = ? ORDER BY generation DESC LIMIT 1`)

	qAddPause = sql(pauses.insert("pauses"))

	qPauses = sql(`SELECT ` + pauses.names("") + ` FROM pauses WHERE paused = 1 AND generation IN (SELECT max(generation) FROM pauses GROUP BY kind, name)
		ORDER BY kind, name`)

	qPauseHistory = sql(`SELECT ` + pauses.names("") + ` FROM pauses WHERE generation < ? AND (? = 0 OR kind = ?) AND (? = '' OR name = ?)
		ORDER BY generation DESC LIMIT ?`)
)

// ChangePause implements store.Pausing. There is one transaction at a time, so it is alone.
func (s *Store) ChangePause(ctx context.Context, of store.PauseKind, name string, decide func(time.Time, store.Pause) *store.Pause) (latest store.Pause, err error) {
	err = s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		all, err := rowsOf(s.w.use(qPauseOf).int(int64(of)).text(name), pauses)
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
		return pauses.bind(s.w.use(qAddPause), &latest).run()
	})
	return store.Result(latest, err, "pause or resume %s %q", of, name)
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
	all, err := rowsOf(c.use(qPauses), pauses)
	return all, last, store.Failed(err, "read pauses")
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
		return rowsOf(c.use(qPauseHistory).int(below).int(int64(of)).int(int64(of)).text(name).text(name).int(int64(n)), pauses)
	}, "read the history of pauses")
}
