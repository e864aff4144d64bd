package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var pauses = relation[*store.Pause, *store.Pause]{
	{"generation", oidInt8, func(c *column, p *store.Pause) { c.int(p.Generation) }, func(r *rows, p *store.Pause) { p.Generation = r.int() }},
	{"kind", oidInt2, func(c *column, p *store.Pause) { c.int(int64(p.Of)) }, func(r *rows, p *store.Pause) { p.Of = store.PauseKind(r.int()) }},
	{"name", oidText, func(c *column, p *store.Pause) { c.text(p.Name) }, func(r *rows, p *store.Pause) { p.Name = r.text() }},
	{"paused", oidBool, func(c *column, p *store.Pause) { c.bool(p.Paused) }, func(r *rows, p *store.Pause) { p.Paused = r.bool() }},
	{"at", oidInt8, func(c *column, p *store.Pause) { c.int(row.Micros(p.At)) }, func(r *rows, p *store.Pause) { p.At = r.time() }},
	{"until", oidInt8, func(c *column, p *store.Pause) { c.int(row.Micros(p.Until)) }, func(r *rows, p *store.Pause) { p.Until = r.time() }},
	{"who", oidText, func(c *column, p *store.Pause) { c.text(p.By) }, func(r *rows, p *store.Pause) { p.By = r.text() }},
	{"reason", oidText, func(c *column, p *store.Pause) { c.text(p.Reason) }, func(r *rows, p *store.Pause) { p.Reason = r.text() }},
}

// lastPause is the latest generation of pauses. A statement sees everything that was committed before it began, and pauses do
// not change while a transaction runs: see pauseLock.
const lastPause = `coalesce((SELECT generation FROM {s}.pauses WHERE generation > 0 ORDER BY generation DESC LIMIT 1), 0)`

var (
	qLastPause = sql(`SELECT ` + lastPause)

	qPauseOf = sql(`SELECT ` + pauses.names("") + ` FROM {s}.pauses WHERE kind = $1::bigint AND name = $2 ORDER BY generation DESC LIMIT 1`)

	qAddPause = sql(pauses.insert("pauses"))

	qPauses = sql(`SELECT p.* FROM (SELECT DISTINCT ON (kind, name) ` + pauses.names("") + ` FROM {s}.pauses WHERE kind > 0
		ORDER BY kind, name, generation DESC) p WHERE p.paused`)

	qPauseHistory = sql(`SELECT ` + pauses.names("") + ` FROM {s}.pauses WHERE generation < $1 ORDER BY generation DESC LIMIT $2`)

	qPauseHistoryOf = sql(`SELECT ` + pauses.names("") + ` FROM {s}.pauses WHERE generation < $1 AND kind = $3::bigint AND ($4 = '' OR name = $4) ORDER BY generation DESC LIMIT $2`)
)

// ChangePause implements store.Pausing.
func (s *Store) ChangePause(ctx context.Context, of store.PauseKind, name string, decide func(time.Time, store.Pause) *store.Pause) (latest store.Pause, err error) {
	err = s.run(ctx, true, func(ctx context.Context, own store.Tx) error {
		t := own.(*tx)
		now, err := t.Now(ctx)
		if err != nil {
			return err
		}
		latest = store.Pause{}
		var last int64
		t.add(qPauseOf, t.args().int(int64(of)).text(name), func(r *rows) error { return pauses.read(r, &latest) })
		err = t.ask(ctx, qLastPause, nil, readTo(&last, (*rows).int))
		if err != nil {
			return err
		}
		p := decide(now, latest)
		if p == nil {
			return nil
		}
		latest = *p
		latest.Generation, latest.Of, latest.Name = last+1, of, name
		t.news.pauses = true
		return t.ask(ctx, qAddPause, t.args().columns(pauses.columns(&latest)), nil)
	})
	return store.Result(latest, err, "pause or resume %s %q", of, name)
}

// paused is the latest generation of pauses. It is known once the round trip with the number trip has been made.
type paused struct {
	trip int
	last int64
}

// ExpectLastPause implements store.Expecter. The row of a session has the generation too, so nothing is asked when one is
// expected.
func (t *tx) ExpectLastPause() {
	if t.paused == nil && len(t.expected) == 0 {
		t.askLastPause()
	}
}

func (t *tx) askLastPause() {
	t.paused = &paused{trip: t.trips}
	t.add(qLastPause, nil, readTo(&t.paused.last, (*rows).int))
}

// LastPause implements store.Tx. Pauses do not change while the transaction is under way, so the row of any session that it has
// locked has the generation.
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

// Pauses implements store.Pauses.
func (t *tx) Pauses(ctx context.Context) (all []store.Pause, last int64, err error) {
	t.add(qPauses, nil, readInto(&all, pauses))
	err = t.ask(ctx, qLastPause, nil, readTo(&last, (*rows).int))
	return all, last, store.Failed(err, "read pauses")
}

// Pauses implements store.PauseReader. The generation is read first: pauses that are made after that only make the list newer
// than the generation says.
func (s *Store) Pauses(ctx context.Context) (all []store.Pause, last int64, err error) {
	generation := call{q: qLastPause, read: readTo(&last, (*rows).int)}
	err = s.read(ctx, generation, call{q: qPauses, read: readInto(&all, pauses)})
	return all, last, store.Failed(err, "read pauses")
}

// PauseHistory implements store.PauseReader.
func (s *Store) PauseHistory(ctx context.Context, of store.PauseKind, name string, below int64, n int) (all []store.Pause, err error) {
	if below == 0 {
		below = math.MaxInt64
	}
	var a args
	a.int(below).int(int64(n))
	q := qPauseHistory
	if of != 0 {
		q = qPauseHistoryOf
		a.int(int64(of)).text(name)
	}
	return list(ctx, s, q, &a, pauses, "read the history of pauses")
}
