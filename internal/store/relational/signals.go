package relational

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var signals = Relation[flow.Signal]{
	number("n", Int8, func(s *flow.Signal) *int64 { return &s.Number }),
	id("id", func(s *flow.Signal) *flow.ID { return &s.ID }),
	text("trigger", func(s *flow.Signal) *string { return &s.Trigger }),
	textOrNull("key", func(s *flow.Signal) *string { return &s.Key }),
	textOrNull("subject", func(s *flow.Signal) *string { return &s.Subject }),
	text("source", func(s *flow.Signal) *string { return &s.Source }),
	moment("at", func(s *flow.Signal) *time.Time { return &s.At }),
	number("state", Int2, func(s *flow.Signal) *flow.SignalState { return &s.State }),
	sum("hash", func(s *flow.Signal) *[32]byte { return &s.Hash }),
	{"detail", JSON, func(a Args, s *flow.Signal) { a.Text(row.SignalDetail(&s.SignalDetail)) }, func(r Row, s *flow.Signal) error {
		row.DecodeSignalDetail(s, r.Peek())
		return nil
	}},
	{"data", Text, func(a Args, s *flow.Signal) { a.Text(string(s.Data)) }, func(r Row, s *flow.Signal) error {
		s.Data = bytesOf(r)
		return nil
	}},
	orNull(sum("body", func(s *flow.Signal) *[32]byte { return &s.Body }), func(s *flow.Signal) bool { return s.Body == [32]byte{} }),
}

var signalColumns = signals.names("")

// signalKeys are keys for look-ups, numbered are numbers of signals.
var (
	signalKeys = Relation[store.SignalKey]{
		text("trigger", func(k *store.SignalKey) *string { return &k.Trigger }),
		text("key", func(k *store.SignalKey) *string { return &k.Key }),
	}
	numbered = Relation[int64]{number("n", Int8, func(n *int64) *int64 { return n })}
)

// notBuffered is the condition that no window buffers signal k.
const notBuffered = `(SELECT true FROM {s}.enforcements e WHERE e.signal = k.n AND e.state + 0 = 2 LIMIT 1) IS NULL`

var (
	qInsertSignals = sql(func(d dialect) string { return signals.insert(d, "signals") })

	qSignal = same(`SELECT ` + signalColumns + ` FROM {s}.signals WHERE id = $1`)

	qSignalled = sql(func(d dialect) string {
		return `SELECT s.trigger, s.key, s.id, s.hash FROM ` + signalKeys.rows(d) + ` AS v` +
			d.lookUp("signals", "s", `s.trigger = v.trigger AND s.key = v.key`)
	})

	qSignalBodies = sql(func(d dialect) string {
		if d == sqlite {
			return `SELECT body, at FROM signals WHERE body = ?1 ORDER BY at DESC LIMIT 1`
		}
		return `SELECT v.hash, s.at FROM ` + hashes.rows(d) + ` AS v
			JOIN LATERAL (SELECT at FROM {s}.signals s WHERE s.body = v.hash ORDER BY s.at DESC LIMIT 1) s ON true`
	})

	// A window may buffer a signal between the snapshot of this statement and its lock, so the next statement checks again.
	qLockOld = sql(func(d dialect) string {
		return `SELECT n FROM {s}.signals k WHERE ` + d.from("trigger", "$1::text") + ` AND at < $2::bigint AND state = 2 AND ` + notBuffered +
			` ORDER BY trigger, at, n LIMIT $3` + d.skipLocked()
	})
	qSizesOfOld = sql(func(d dialect) string {
		return `SELECT k.n, octet_length(k.data), (SELECT count(*) FROM {s}.enforcements e WHERE e.signal = k.n)
			FROM ` + numbered.rows(d) + ` AS v` +
			d.lookUp("signals", "k", `k.n = v.n`) + ` WHERE ` + notBuffered + ` ORDER BY k.at, k.n`
	})
	qDropEnforced = sql(func(d dialect) string { return `DELETE FROM {s}.enforcements WHERE ` + d.in("signal", Int8) })
	qDropSignals  = sql(func(d dialect) string { return `DELETE FROM {s}.signals WHERE ` + d.in("n", Int8) })

	qOldestSignals = sql(func(d dialect) string {
		if d == sqlite { // a condition on the name of the trigger jumps from one name to the next in the index, and skips the signals of each
			return `WITH RECURSIVE t (name) AS (SELECT min(trigger) FROM signals WHERE trigger > ?1
					UNION ALL SELECT (SELECT min(s.trigger) FROM signals s WHERE s.trigger > t.name) FROM t WHERE t.name IS NOT NULL)
				SELECT name, (SELECT min(s.at) FROM signals s WHERE s.trigger = name) FROM t WHERE name IS NOT NULL LIMIT ?2`
		}
		return `WITH RECURSIVE t AS ((SELECT trigger, at FROM {s}.signals WHERE trigger > $1 ORDER BY trigger, at LIMIT 1)
				UNION ALL SELECT s.trigger, s.at FROM t CROSS JOIN LATERAL (SELECT trigger, at FROM {s}.signals WHERE trigger > t.trigger
					ORDER BY trigger, at LIMIT 1) s)
			SELECT trigger, at FROM t LIMIT $2`
	})

	qNewSignals = sql(func(d dialect) string {
		return signalPage(d, `SELECT `+signalColumns+` FROM {s}.signals s WHERE state = 1 AND (at, n) > ($1::bigint, $2::bigint) AND `+
			NotAside(store.AsideMatching, "s.id", "$3")+` ORDER BY at, n LIMIT $4`)
	})

	qLockSignals = sql(func(d dialect) string {
		return `SELECT ` + signalColumns + ` FROM {s}.signals WHERE ` + d.in("n", Int8) + ` AND state + 0 = 1 ORDER BY n` + d.skipLocked()
	})

	qSignalsAbout = sql(func(d dialect) string {
		return signalPage(d, `SELECT `+signalColumns+` FROM {s}.signals WHERE trigger = $1 AND subject = $2
			AND (at, n) > ($3::bigint, $4::bigint) ORDER BY at, n LIMIT $5`)
	})
)

// NotAside is the condition that a signal, or the wait of an execution, is not put aside beyond the time now.
func NotAside(kind store.AsideKind, id, now string) string {
	return fmt.Sprintf(`(SELECT true FROM {s}.asides a WHERE a.kind = %d AND a.id = %s AND a.until + 0 > %s::bigint)
		IS NULL`, kind, id, now)
}

// signalPage returns the signals of a query, in its order. PostgreSQL sends whole answers, so the statement itself ends where a page is
// full, because the data of signals may be large.
func signalPage(d dialect, query string) string {
	if d == sqlite {
		return `SELECT ` + signalColumns + ` FROM (` + query + `)`
	}
	return `SELECT ` + signalColumns + `
		FROM (SELECT *, sum(octet_length(data)) OVER (ROWS UNBOUNDED PRECEDING) - octet_length(data) AS ahead FROM (` +
		query + `) x) y WHERE ahead < ` + fmt.Sprint(store.PageBytes)
}

// readSignals reads signals until a page is full.
func readSignals(ctx context.Context, q Querier, c Call, what string, in ...any) (all []flow.Signal, err error) {
	var page store.Page
	read := into(&all, signals)
	c.Read = func(r Row) error {
		if page.Full() {
			return ErrEnough
		}
		err := read(r)
		page.Signal(&all[len(all)-1])
		return err
	}
	err = q.Run(ctx, c)
	return store.Result(all, err, what, in...)
}

// PutSignals writes signals, sorted by key, because a write waits for a transaction that has written the same key.
func (t Tx) PutSignals(ctx context.Context, all []flow.Signal) error {
	if len(all) == 0 {
		return nil
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b flow.Signal) int {
		return cmp.Or(strings.Compare(a.Trigger, b.Trigger), strings.Compare(a.Key, b.Key))
	})
	return queue(ctx, t, qInsertSignals, signals, all, "write %d signals")
}

func (t Tx) Signalled(ctx context.Context, of []store.SignalKey) (map[store.SignalKey]store.KnownSignal, error) {
	found := make(map[store.SignalKey]store.KnownSignal, len(of))
	err := t.Run(ctx, Call{Statement: qSignalled, Rows: signalKeys.input(of), Read: func(r Row) error {
		k := store.SignalKey{Trigger: textOf(r), Key: textOf(r)}
		known := store.KnownSignal{ID: idOf(r)}
		copy(known.Hash[:], r.Peek())
		found[k] = known
		return nil
	}})
	return store.Result(found, err, "look up %d keys of signals", len(of))
}

func (t Tx) SignalledBodies(ctx context.Context, of [][32]byte) (map[[32]byte]time.Time, error) {
	found := make(map[[32]byte]time.Time, len(of))
	err := t.Run(ctx, Call{Statement: qSignalBodies, Rows: hashes.input(of), Read: func(r Row) error {
		var b [32]byte
		copy(b[:], r.Peek())
		found[b] = row.FromMicros(r.Int())
		return nil
	}})
	return store.Result(found, err, "look up %d bodies of signals", len(of))
}

func (t Tx) LockSignals(ctx context.Context, of []int64) ([]flow.Signal, error) {
	return list(ctx, t, Call{Statement: qLockSignals, Rows: numbered.input(of)}, signals, "lock %d signals", len(of))
}

func (t Tx) DropSignals(ctx context.Context, trigger string, before time.Time, n int) (int, error) {
	var old, drop []int64
	err := t.Run(ctx, Call{Statement: qLockOld, Args: []any{trigger, before, n}, Read: func(r Row) error {
		old = append(old, r.Int())
		return nil
	}})
	if err == nil && len(old) > 0 {
		var page store.Page
		rows := 0
		err = t.Run(ctx, Call{Statement: qSizesOfOld, Rows: numbered.input(old), Read: func(r Row) error {
			if page.Full() || rows >= n {
				return ErrEnough
			}
			drop = append(drop, r.Int())
			page += store.Page(r.Int())
			rows += 1 + int(r.Int())
			return nil
		}})
	}
	if err == nil {
		in := numbered.input(drop)
		err = t.Run(ctx, Call{Statement: qDropEnforced, Rows: in}, Call{Statement: qDropUncorrelated, Rows: in},
			Call{Statement: qDropSignals, Rows: in})
	}
	return store.Result(len(drop), err, "drop signals")
}

func (s Reader) OldestSignals(ctx context.Context, after string, n int) (all []store.OldestSignal, err error) {
	err = s.Run(ctx, Call{Statement: qOldestSignals, Args: []any{after, n}, Read: func(r Row) error {
		all = append(all, store.OldestSignal{Trigger: textOf(r), At: row.FromMicros(r.Int())})
		return nil
	}})
	return store.Result(all, err, "look for the oldest signals")
}

func (s Reader) Signal(ctx context.Context, id flow.ID) (flow.Signal, error) {
	return one(ctx, s, Call{Statement: qSignal, Args: []any{id}}, signals, "signal %s", id.Text(flow.SignalPrefix))
}

func (s Reader) HasSignal(ctx context.Context, key store.SignalKey) (has bool, err error) {
	err = s.Run(ctx, Call{Statement: qSignalled, Rows: signalKeys.input([]store.SignalKey{key}), Read: func(Row) error {
		has = true
		return ErrEnough
	}})
	return store.Result(has, err, "look up signal %q of %s", key.Key, key.Trigger)
}

// Signals implements store.SignalReader. For each combination of conditions there is an index that also has the order.
func (s Reader) Signals(ctx context.Context, f store.SignalFilter) ([]flow.Signal, error) {
	var c filter
	for _, k := range []struct{ column, value string }{{"trigger", f.Trigger}, {"subject", f.Subject}, {"source", f.Source}} {
		if k.value != "" {
			c.and(k.column+` = ?::text`, k.value)
		}
	}
	at, n := int64(math.MaxInt64), int64(math.MaxInt64)
	if f.Before != (store.SignalPlace{}) {
		at, n = row.Micros(f.Before.At), f.Before.Number
	}
	c.and(`at >= ?::bigint`, f.Since)
	c.and(`(at, n) < (?::bigint, ?::bigint)`, at, n)
	query := `SELECT ` + signalColumns + ` FROM {s}.signals` + c.where() + ` ORDER BY at DESC, n DESC LIMIT ` + fmt.Sprint(f.Limit)
	return readSignals(ctx, s, Call{Statement: once(func(d dialect) string { return signalPage(d, query) }), Args: c.args}, "list signals")
}

func (s Reader) NewSignals(ctx context.Context, now time.Time, after store.SignalPlace, n int) ([]flow.Signal, error) {
	return readSignals(ctx, s, Call{Statement: qNewSignals, Args: []any{after.At, after.Number, now, n}}, "look for new signals")
}

func (s Reader) SignalsAbout(ctx context.Context, trigger, subject string, after store.SignalPlace, n int) ([]flow.Signal, error) {
	c := Call{Statement: qSignalsAbout, Args: []any{trigger, subject, after.At, after.Number, n}}
	return readSignals(ctx, s, c, "look for signals %s about %q", trigger, subject)
}
