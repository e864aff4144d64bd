package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var signals = relation[*flow.Signal, *flow.Signal]{
	{"n", oidInt8, func(c *column, s *flow.Signal) { c.int(s.Number) }, func(r *rows, s *flow.Signal) { s.Number = r.int() }},
	{"id", oidUUID, func(c *column, s *flow.Signal) { c.id(s.ID) }, func(r *rows, s *flow.Signal) { s.ID = r.id() }},
	{"trigger", oidText, func(c *column, s *flow.Signal) { c.text(s.Trigger) }, func(r *rows, s *flow.Signal) { s.Trigger = r.text() }},
	{"key", oidText, func(c *column, s *flow.Signal) { c.textOrNull(s.Key) }, func(r *rows, s *flow.Signal) { s.Key = r.text() }},
	{"subject", oidText, func(c *column, s *flow.Signal) { c.textOrNull(s.Subject) }, func(r *rows, s *flow.Signal) { s.Subject = r.text() }},
	{"source", oidText, func(c *column, s *flow.Signal) { c.text(s.Source) }, func(r *rows, s *flow.Signal) { s.Source = r.text() }},
	{"at", oidInt8, func(c *column, s *flow.Signal) { c.int(row.Micros(s.At)) }, func(r *rows, s *flow.Signal) { s.At = r.time() }},
	{"state", oidInt2, func(c *column, s *flow.Signal) { c.int(int64(s.State)) }, func(r *rows, s *flow.Signal) { s.State = flow.SignalState(r.int()) }},
	{"hash", oidBytes, func(c *column, s *flow.Signal) { c.bytes(s.Hash[:]) }, func(r *rows, s *flow.Signal) { copy(s.Hash[:], r.peek()) }},
	{"detail", oidJSON, func(c *column, s *flow.Signal) { c.text(row.SignalDetail(&s.SignalDetail)) },
		func(r *rows, s *flow.Signal) { row.DecodeSignalDetail(s, r.peek()) }},
	{"data", oidText, func(c *column, s *flow.Signal) { c.text(string(s.Data)) }, func(r *rows, s *flow.Signal) { s.Data = json.RawMessage(r.bytes()) }},
	{"body", oidBytes, func(c *column, s *flow.Signal) { c.bytesOrNull(row.SignalBody(s)) }, func(r *rows, s *flow.Signal) { copy(s.Body[:], r.peek()) }},
}

var signalKeys = relation[store.SignalKey, none]{
	{"trigger", oidText, func(c *column, k store.SignalKey) { c.text(k.Trigger) }, nil},
	{"key", oidText, func(c *column, k store.SignalKey) { c.text(k.Key) }, nil},
}

var signalBodies = relation[[32]byte, none]{
	{"body", oidBytes, func(c *column, b [32]byte) { c.bytes(b[:]) }, nil},
}

var signalColumns = signals.names("")

// notHeld is the condition that no window holds signal k.
const notHeld = `(SELECT true FROM {s}.enforcements e WHERE e.signal = k.n AND e.state + 0 = 2 LIMIT 1) IS NULL`

var (
	qInsertSignals = sql(signals.insert("signals"))

	qSignal = sql(`SELECT ` + signalColumns + ` FROM {s}.signals WHERE id = $1`)

	qSignalled = sql(`SELECT s.trigger, s.key, s.id, s.hash FROM ` + signalKeys.rows() + ` AS v
		JOIN LATERAL (SELECT * FROM {s}.signals s WHERE s.trigger = v.trigger AND s.key = v.key OFFSET 0) s ON true`)

	qSignalBodies = sql(`SELECT v.body, s.at FROM ` + signalBodies.rows() + ` AS v
		JOIN LATERAL (SELECT at FROM {s}.signals s WHERE s.body = v.body ORDER BY s.at DESC LIMIT 1) s ON true`)

	// A window may take a signal between the snapshot of this statement and its lock, so the next statement checks again.
	qLockOld = sql(`SELECT n FROM {s}.signals k WHERE ` + from("trigger", "$3::text") + ` AND at < $1::bigint AND state = 2 AND ` + notHeld + ` ORDER BY trigger, at, n LIMIT $2 FOR UPDATE SKIP LOCKED`)

	qDropSignals = sql(`WITH old AS (SELECT k.n, k.at, octet_length(k.data) AS bytes FROM ` + numbered.rows() + ` AS v
			JOIN LATERAL (SELECT * FROM {s}.signals s WHERE s.n = v.n OFFSET 0) k ON ` + notHeld + `),
		sized AS (SELECT n, at, bytes, 1 + (SELECT count(*) FROM {s}.enforcements e WHERE e.signal = old.n) AS rows FROM old),
		part AS (SELECT n FROM (SELECT n, sum(bytes) OVER w - bytes AS bytes, sum(rows) OVER w - rows AS rows FROM sized
			WINDOW w AS (ORDER BY at, n ROWS UNBOUNDED PRECEDING)) x WHERE bytes < ` + fmt.Sprint(store.PageBytes) + ` AND rows < $2::bigint),
		gone AS (DELETE FROM {s}.signals k USING part WHERE ` + is("k.n", "part.n") + ` RETURNING k.n),
		too AS (DELETE FROM {s}.enforcements e USING gone WHERE ` + is("e.signal", "gone.n") + `),
		unmet AS (DELETE FROM {s}.unmet u USING gone WHERE ` + is("u.signal", "gone.n") + `)
		SELECT n FROM gone`)

	qOldestSignals = sql(`WITH RECURSIVE t AS ((SELECT trigger, at FROM {s}.signals WHERE trigger > $1 ORDER BY trigger, at LIMIT 1)
			UNION ALL SELECT s.trigger, s.at FROM t CROSS JOIN LATERAL (SELECT trigger, at FROM {s}.signals WHERE trigger > t.trigger ORDER BY trigger, at LIMIT 1) s)
		SELECT trigger, at FROM t LIMIT $2`)

	qNewSignals = sql(signalPage(`SELECT ` + signalColumns + ` FROM {s}.signals s WHERE state = 1 AND (at, n) > ($3::bigint, $4::bigint) AND ` + notAside(store.AsideMatching, "s.id", "$1") + `
		ORDER BY at, n LIMIT $2`))

	qLockSignals = sql(`SELECT ` + signalColumns + ` FROM {s}.signals WHERE n = ANY ($1::bigint[]) AND state + 0 = 1 ORDER BY n FOR UPDATE SKIP LOCKED`)

	qSignalsAbout = sql(signalPage(`SELECT ` + signalColumns + ` FROM {s}.signals WHERE trigger = $1 AND subject = $2 AND (at, n) > ($3::bigint, $4::bigint) ORDER BY at, n LIMIT $5`))
)

// notAside is the condition that a signal, or the wait of an execution, is not put aside beyond the time now.
func notAside(kind store.AsideKind, id, now string) string {
	return fmt.Sprintf(`(SELECT true FROM {s}.asides a WHERE a.kind = %d AND a.id = %s AND a.until + 0 > %s::bigint) IS NULL`, kind, id, now)
}

// signalPage are the signals of a query until a page is full, since their data may be large.
func signalPage(query string) string {
	return `SELECT ` + signalColumns + ` FROM (SELECT *, sum(octet_length(data)) OVER (ROWS UNBOUNDED PRECEDING) - octet_length(data) AS ahead FROM (` +
		query + `) x) y WHERE ahead < ` + fmt.Sprint(store.PageBytes)
}

// insertSignals writes signals, last and sorted by key: inserting one waits for a transaction that has written the same key.
func (t *tx) insertSignals() {
	if len(t.emitted) == 0 {
		return
	}
	slices.SortStableFunc(t.emitted, func(a, b flow.Signal) int {
		return cmp.Or(strings.Compare(a.Trigger, b.Trigger), strings.Compare(a.Key, b.Key))
	})
	t.put(qInsertSignals, columnsOf(signals, t.emitted))
	t.emitted = nil
}

// Signalled implements store.Signals.
func (t *tx) Signalled(ctx context.Context, keys []store.SignalKey) (map[store.SignalKey]store.KnownSignal, error) {
	found := make(map[store.SignalKey]store.KnownSignal, len(keys))
	for i := range t.emitted { // signals of this transaction that are not written yet
		if s := &t.emitted[i]; s.Key != "" {
			found[store.SignalKey{Trigger: s.Trigger, Key: s.Key}] = store.KnownSignal{ID: s.ID, Hash: s.Hash}
		}
	}
	err := t.ask(ctx, qSignalled, t.args().columns(signalKeys.columns(keys...)), func(r *rows) error {
		k := store.SignalKey{Trigger: r.text(), Key: r.text()}
		known := store.KnownSignal{ID: r.id()}
		copy(known.Hash[:], r.peek())
		found[k] = known
		return nil
	})
	return store.Result(found, err, "look up %d keys of signals", len(keys))
}

// SignalledBodies implements store.Signals.
func (t *tx) SignalledBodies(ctx context.Context, bodies [][32]byte) (map[[32]byte]time.Time, error) {
	found := make(map[[32]byte]time.Time, len(bodies))
	err := t.ask(ctx, qSignalBodies, t.args().columns(signalBodies.columns(bodies...)), func(r *rows) error {
		var b [32]byte
		copy(b[:], r.peek())
		found[b] = r.time()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look up %d bodies of signals: %w", len(bodies), err)
	}
	for i := range t.emitted { // signals of this transaction that are not written yet
		if s := &t.emitted[i]; s.Body != ([32]byte{}) && s.At.After(found[s.Body]) {
			found[s.Body] = s.At
		}
	}
	return found, nil
}

// LockSignals implements store.Signals.
func (t *tx) LockSignals(ctx context.Context, numbers []int64) (all []flow.Signal, err error) {
	err = t.ask(ctx, qLockSignals, t.args().columns(numbered.columns(numbers...)), readInto(&all, signals))
	return store.Result(all, err, "lock %d signals", len(numbers))
}

// DropSignals implements store.Signals.
func (t *tx) DropSignals(ctx context.Context, trigger string, before time.Time, n int) (dropped int, err error) {
	var old []int64
	err = t.ask(ctx, qLockOld, t.args().int(row.Micros(before)).int(int64(n)).text(trigger), readAll(&old, (*rows).int))
	if err == nil && len(old) > 0 {
		err = t.ask(ctx, qDropSignals, t.args().columns(numbered.columns(old...)).int(int64(n)), func(*rows) error {
			dropped++
			return nil
		})
	}
	return store.Result(dropped, err, "drop signals")
}

// OldestSignals implements store.SignalReader.
func (s *Store) OldestSignals(ctx context.Context, after string, n int) (all []store.OldestSignal, err error) {
	err = s.read(ctx, call{q: qOldestSignals, params: new(args).text(after).int(int64(n)).params, read: func(r *rows) error {
		all = append(all, store.OldestSignal{Trigger: r.text(), At: r.time()})
		return nil
	}})
	return store.Result(all, err, "look for the oldest signals")
}

// Signal implements store.SignalReader.
func (s *Store) Signal(ctx context.Context, id flow.ID) (flow.Signal, error) {
	return one(ctx, s, qSignal, new(args).id(id), signals, "signal %s", id.Text(flow.SignalPrefix))
}

// HasSignal implements store.SignalReader.
func (s *Store) HasSignal(ctx context.Context, key store.SignalKey) (has bool, err error) {
	err = s.read(ctx, call{q: qSignalled, params: new(args).columns(signalKeys.columns(key)).params, read: func(*rows) error {
		has = true
		return nil
	}})
	return store.Result(has, err, "look up signal %q of %s", key.Key, key.Trigger)
}

// Signals implements store.SignalReader.
func (s *Store) Signals(ctx context.Context, f store.SignalFilter) (all []flow.Signal, err error) {
	l := listing{schema: s.schema}
	for _, c := range []struct{ column, value string }{{"trigger", f.Trigger}, {"subject", f.Subject}, {"source", f.Source}} {
		if c.value != "" {
			l.and(c.column+` = ?::text`, func(a *args) { a.text(c.value) })
		}
	}
	l.and(`at >= ?::bigint`, func(a *args) { a.int(row.Micros(f.Since)) })
	at, number := int64(math.MaxInt64), int64(math.MaxInt64)
	if f.Before != (store.SignalPlace{}) {
		at, number = row.Micros(f.Before.At), f.Before.Number
	}
	l.and(`(at, n) < (?::bigint, ?::bigint)`, func(a *args) { a.int(at).int(number) })
	query := fmt.Sprintf(`SELECT %s FROM %s.signals WHERE %s ORDER BY at DESC, n DESC LIMIT %d`, signalColumns, s.schema, strings.Join(l.where, ` AND `), f.Limit)
	err = s.read(ctx, call{once: signalPage(query), params: l.args.params, read: readInto(&all, signals)})
	return store.Result(all, err, "list signals")
}

// NewSignals implements store.SignalReader.
func (s *Store) NewSignals(ctx context.Context, now time.Time, after store.SignalPlace, n int) (all []flow.Signal, err error) {
	return list(ctx, s, qNewSignals, new(args).int(row.Micros(now)).int(int64(n)).int(row.Micros(after.At)).int(after.Number), signals, "look for new signals")
}

// SignalsAbout implements store.SignalReader.
func (s *Store) SignalsAbout(ctx context.Context, trigger, subject string, after store.SignalPlace, n int) (all []flow.Signal, err error) {
	var a args
	params := a.text(trigger).text(subject).int(row.Micros(after.At)).int(after.Number).int(int64(n)).params
	err = s.read(ctx, call{q: qSignalsAbout, params: params, read: readInto(&all, signals)})
	return store.Result(all, err, "look for signals %s about %q", trigger, subject)
}
