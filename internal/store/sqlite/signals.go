package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// signals are the columns of signals.
var signals = relation[*flow.Signal, *flow.Signal]{
	{"n", func(s *stmt, x *flow.Signal) { s.int(x.Number) }, func(s *stmt, x *flow.Signal) { x.Number = s.getInt() }},
	{"id", func(s *stmt, x *flow.Signal) { s.id(x.ID) }, func(s *stmt, x *flow.Signal) { x.ID = s.getID() }},
	{"trigger", func(s *stmt, x *flow.Signal) { s.text(x.Trigger) }, func(s *stmt, x *flow.Signal) { x.Trigger = s.getText() }},
	{"key", func(s *stmt, x *flow.Signal) { s.textOrNull(x.Key) }, func(s *stmt, x *flow.Signal) { x.Key = s.getText() }},
	{"subject", func(s *stmt, x *flow.Signal) { s.textOrNull(x.Subject) }, func(s *stmt, x *flow.Signal) { x.Subject = s.getText() }},
	{"source", func(s *stmt, x *flow.Signal) { s.text(x.Source) }, func(s *stmt, x *flow.Signal) { x.Source = s.getText() }},
	{"at", func(s *stmt, x *flow.Signal) { s.time(x.At) }, func(s *stmt, x *flow.Signal) { x.At = s.getTime() }},
	{"state", func(s *stmt, x *flow.Signal) { s.int(int64(x.State)) }, func(s *stmt, x *flow.Signal) { x.State = flow.SignalState(s.getInt()) }},
	{"hash", func(s *stmt, x *flow.Signal) { s.blob(x.Hash[:]) }, func(s *stmt, x *flow.Signal) { copy(x.Hash[:], s.peekBlob()) }},
	{"detail", func(s *stmt, x *flow.Signal) { s.text(row.SignalDetail(&x.SignalDetail)) }, func(s *stmt, x *flow.Signal) { row.DecodeSignalDetail(x, s.peekBlob()) }},
	{"data", func(s *stmt, x *flow.Signal) { s.text(string(x.Data)) }, func(s *stmt, x *flow.Signal) { x.Data = s.getBlob() }},
	{"body", func(s *stmt, x *flow.Signal) { s.blob(row.SignalBody(x)) }, func(s *stmt, x *flow.Signal) { copy(x.Body[:], s.peekBlob()) }},
}

// notAside is the condition that a signal, or the wait of an execution, is not put aside beyond a time.
func notAside(kind store.AsideKind, id string) string {
	return fmt.Sprintf(`NOT EXISTS (SELECT 1 FROM asides a WHERE a.kind = %d AND a.id = %s AND a.until > ?)`, kind, id)
}

var (
	qInsertSignal = sql(signals.insert("signals"))
	qSignal       = sql(`SELECT ` + signals.names("") + ` FROM signals WHERE id = ?`)
	qSignalled    = sql(`SELECT id, hash FROM signals WHERE trigger = ? AND key = ?`)
	qSignalBody   = sql(`SELECT max(at) FROM signals WHERE body = ?`)
	qOldSignals   = sql(`SELECT n, length(data), (SELECT count(*) FROM enforcements e WHERE e.signal = n) FROM signals WHERE trigger = ? AND at < ? AND state = 2
		AND NOT EXISTS (SELECT 1 FROM enforcements e WHERE e.signal = n AND e.state = 2) ORDER BY at, n LIMIT ?`)
	// A condition on the trigger's name goes from one to the next in the index, and skips the signals of each.
	qOldestSignals = sql(`WITH RECURSIVE t (name) AS (SELECT min(trigger) FROM signals WHERE trigger > ?
			UNION ALL SELECT (SELECT min(s.trigger) FROM signals s WHERE s.trigger > t.name) FROM t WHERE t.name IS NOT NULL)
		SELECT name, (SELECT min(s.at) FROM signals s WHERE s.trigger = name) FROM t WHERE name IS NOT NULL LIMIT ?`)
	qDropEnforced = sql(`DELETE FROM enforcements WHERE signal = ?`)
	qDropSignal   = sql(`DELETE FROM signals WHERE n = ?`)
	qNewSignals   = sql(`SELECT ` + signals.names("") + ` FROM signals s WHERE state = 1 AND (at, n) > (?, ?) AND ` + notAside(store.AsideMatching, "s.id") + ` ORDER BY at, n LIMIT ?`)
	qNewSignal    = sql(`SELECT ` + signals.names("") + ` FROM signals WHERE n = ? AND state = 1`)
	qSignalsAbout = sql(`SELECT ` + signals.names("") + ` FROM signals WHERE trigger = ? AND subject = ? AND (at, n) > (?, ?) ORDER BY at, n LIMIT ?`)
)

// signals reads rows of signals until a page is full.
func (s *stmt) signals() (all []flow.Signal, bad error) {
	var page store.Page
	for !page.Full() && s.next() {
		var k flow.Signal
		if err := signals.read(s, &k); err != nil {
			bad = err
		}
		page.Signal(&k)
		all = append(all, k)
	}
	return all, cmp.Or(s.done(), bad)
}

func (t *tx) putSignal(s *flow.Signal) error {
	return taken(signals.bind(t.c.use(qInsertSignal), s).run())
}

// Signalled implements store.Signals.
func (t *tx) Signalled(_ context.Context, keys []store.SignalKey) (map[store.SignalKey]store.KnownSignal, error) {
	found := make(map[store.SignalKey]store.KnownSignal, len(keys))
	for _, k := range keys {
		s := t.c.use(qSignalled).text(k.Trigger).text(k.Key)
		if s.next() {
			known := store.KnownSignal{ID: s.getID()}
			copy(known.Hash[:], s.peekBlob())
			found[k] = known
		}
		if err := s.done(); err != nil {
			return nil, fmt.Errorf("look up signal %q of %s: %w", k.Key, k.Trigger, err)
		}
	}
	return found, nil
}

// SignalledBodies implements store.Signals.
func (t *tx) SignalledBodies(_ context.Context, bodies [][32]byte) (map[[32]byte]time.Time, error) {
	found := make(map[[32]byte]time.Time, len(bodies))
	for _, b := range bodies {
		s := t.c.use(qSignalBody).blob(b[:])
		if s.next() {
			if at := s.getInt(); at != 0 { // without rows the maximum is NULL
				found[b] = row.FromMicros(at)
			}
		}
		if err := s.done(); err != nil {
			return nil, fmt.Errorf("look up the body of a signal: %w", err)
		}
	}
	return found, nil
}

// LockSignals implements store.Signals. There is one transaction at a time, so reading locks them.
func (t *tx) LockSignals(_ context.Context, numbers []int64) (all []flow.Signal, err error) {
	for _, n := range numbers {
		found, err := t.c.use(qNewSignal).int(n).signals()
		if err != nil {
			return nil, fmt.Errorf("lock signal number %d: %w", n, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// DropSignals implements store.Signals.
func (t *tx) DropSignals(_ context.Context, trigger string, before time.Time, n int) (int, error) {
	var old []int64
	var page store.Page
	s := t.c.use(qOldSignals).text(trigger).int(row.Micros(before)).int(int64(n))
	for rows := 0; rows < n && !page.Full() && s.next(); {
		old = append(old, s.getInt())
		page += store.Page(s.getInt())
		rows += 1 + int(s.getInt())
	}
	if err := s.done(); err != nil {
		return 0, fmt.Errorf("look for old signals: %w", err)
	}
	for _, number := range old {
		for _, q := range []*query{qDropEnforced, qDropUnmet, qDropSignal} {
			if err := t.c.use(q).int(number).run(); err != nil {
				return 0, fmt.Errorf("drop signal number %d: %w", number, err)
			}
		}
	}
	return len(old), nil
}

// OldestSignals implements store.SignalReader.
func (s *Store) OldestSignals(ctx context.Context, after string, n int) (all []store.OldestSignal, err error) {
	err = s.read(ctx, func(c *conn) error {
		q := c.use(qOldestSignals).text(after).int(int64(n))
		for q.next() {
			all = append(all, store.OldestSignal{Trigger: q.getText(), At: row.FromMicros(q.getInt())})
		}
		return q.done()
	})
	return store.Result(all, err, "look for the oldest signals")
}

// Signal implements store.SignalReader.
func (s *Store) Signal(ctx context.Context, id flow.ID) (flow.Signal, error) {
	return one(ctx, s, func(c *conn) ([]flow.Signal, error) { return c.use(qSignal).id(id).signals() }, "signal %s", id.Text(flow.SignalPrefix))
}

// HasSignal implements store.SignalReader.
func (s *Store) HasSignal(ctx context.Context, key store.SignalKey) (has bool, err error) {
	err = s.read(ctx, func(c *conn) error {
		k := c.use(qSignalled).text(key.Trigger).text(key.Key)
		has = k.next()
		return k.done()
	})
	return store.Result(has, err, "look up signal %q of %s", key.Key, key.Trigger)
}

// Signals implements store.SignalReader.
func (s *Store) Signals(ctx context.Context, f store.SignalFilter) (all []flow.Signal, err error) {
	l := signalListing(f)
	err = s.read(ctx, func(c *conn) (err error) {
		q := c.prepare(`SELECT ` + signals.names("") + ` FROM signals WHERE ` + strings.Join(l.where, " AND ") + ` ORDER BY at DESC, n DESC LIMIT ?`)
		defer q.free()
		for _, bind := range l.bind {
			bind(q)
		}
		all, err = q.int(int64(f.Limit)).signals()
		return err
	})
	return store.Result(all, err, "list signals")
}

// signalListing turns a filter into conditions. Each combination has an index that has the order as well.
func signalListing(f store.SignalFilter) *listing {
	l := &listing{}
	for _, c := range []struct{ column, value string }{{"trigger", f.Trigger}, {"subject", f.Subject}, {"source", f.Source}} {
		if c.value != "" {
			l.and(c.column + ` = ?`)
			l.text(c.value)
		}
	}
	l.and(`at >= ?`)
	l.int(row.Micros(f.Since))
	at, number := int64(math.MaxInt64), int64(math.MaxInt64)
	if f.Before != (store.SignalPlace{}) {
		at, number = row.Micros(f.Before.At), f.Before.Number
	}
	l.and(`(at, n) < (?, ?)`)
	l.int(at)
	l.int(number)
	return l
}

// NewSignals implements store.SignalReader.
func (s *Store) NewSignals(ctx context.Context, now time.Time, after store.SignalPlace, n int) (all []flow.Signal, err error) {
	return list(ctx, s, func(c *conn) ([]flow.Signal, error) {
		return c.use(qNewSignals).int(row.Micros(after.At)).int(after.Number).int(row.Micros(now)).int(int64(n)).signals()
	}, "look for new signals")
}

// SignalsAbout implements store.SignalReader.
func (s *Store) SignalsAbout(ctx context.Context, trigger, subject string, after store.SignalPlace, n int) (all []flow.Signal, err error) {
	return list(ctx, s, func(c *conn) ([]flow.Signal, error) {
		return c.use(qSignalsAbout).text(trigger).text(subject).int(row.Micros(after.At)).int(after.Number).int(int64(n)).signals()
	}, "look for signals %s about %q", trigger, subject)
}
