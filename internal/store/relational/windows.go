package relational

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var windows = Relation[store.Window]{
	text("rule", func(w *store.Window) *string { return &w.Rule }),
	text("key", func(w *store.Window) *string { return &w.Key }),
	moment("opened", func(w *store.Window) *time.Time { return &w.Opened }),
	moment("wake", func(w *store.Window) *time.Time { return &w.Wake }),
	number("count", Int4, func(w *store.Window) *int { return &w.Count }),
	number("bytes", Int8, func(w *store.Window) *int64 { return &w.Bytes }),
	number("first", Int8, func(w *store.Window) *int64 { return &w.First }),
	number("last", Int8, func(w *store.Window) *int64 { return &w.Last }),
}

var windowKeys = Relation[store.WindowKey]{
	text("rule", func(k *store.WindowKey) *string { return &k.Rule }),
	text("key", func(k *store.WindowKey) *string { return &k.Key }),
}

// closed are signals that a window buffers, with their new state.
var closed = Relation[flow.Enforcement]{
	number("signal", Int8, func(e *flow.Enforcement) *int64 { return &e.Number }),
	text("rule", func(e *flow.Enforcement) *string { return &e.Rule }),
	text("held_in", func(e *flow.Enforcement) *string { return &e.Window }),
	enforcements[3], enforcements[5], enforcements[6], // state, execution, reason
}

const ofWindow = `rule = $1 AND held_in = $2 AND state = 2`

var (
	qWindows = sql(func(d dialect) string {
		return `SELECT ` + windows.names("w.") + ` FROM ` + windowKeys.rows(d) + ` AS v` +
			d.lookUp("windows", "w", `w.rule = v.rule AND w.key = v.key`)
	})

	qPutWindows = sql(func(d dialect) string { return windows.upsert(d, "windows", "rule", "key") })

	qDropWindows = sql(func(d dialect) string {
		if d == sqlite {
			return `DELETE FROM windows WHERE rule = ?1 AND key = ?2`
		}
		return `DELETE FROM {s}.windows w USING ` + windowKeys.rows(d) + ` AS v WHERE ` + d.is("w.rule", "v.rule") + ` AND w.key = v.key`
	})

	qDueWindows = same(`SELECT ` + windows.names("") + ` FROM {s}.windows WHERE wake <= $1::bigint ORDER BY wake LIMIT $2`)
	qNextWindow = same(`SELECT wake FROM {s}.windows WHERE wake > $1::bigint ORDER BY wake LIMIT 1`)

	qFoldBuffered = same(`UPDATE {s}.enforcements SET state = $3::bigint, execution = $4::uuid, reason = $5::json WHERE ` + ofWindow)

	qCloseBuffered = sql(func(d dialect) string {
		return `UPDATE {s}.enforcements AS e SET state = v.state, execution = v.execution, reason = v.reason
			FROM ` + closed.rows(d) + ` AS v
			WHERE ` + d.is("e.signal", "v.signal") + ` AND e.rule || '' = v.rule AND e.held_in = v.held_in AND e.state + 0 = 2`
	}).exactly(store.ErrConflict, "signals are not held any more")

	qBufferedIn = same(`SELECT at, signal FROM {s}.enforcements WHERE ` + ofWindow + ` ORDER BY at, signal LIMIT $3`)

	qBufferedSignals = sql(func(d dialect) string {
		if d == sqlite {
			return `SELECT ` + signals.names("s.") + ` FROM (SELECT signal, at AS held_at FROM enforcements
				WHERE ` + ofWindow + ` ORDER BY at, signal LIMIT ?3) held
				CROSS JOIN signals s ON s.n = held.signal ORDER BY held.held_at, s.n`
		}
		return signalPage(d, `SELECT s.* FROM (SELECT * FROM {s}.enforcements WHERE `+ofWindow+` ORDER BY at, signal LIMIT $3) e
			JOIN LATERAL (SELECT * FROM {s}.signals s WHERE s.n = e.signal OFFSET 0) s ON true ORDER BY e.at, e.signal`)
	})
)

func (t Tx) Windows(ctx context.Context, of []store.WindowKey) (map[store.WindowKey]store.Window, error) {
	found, err := list(ctx, t, Call{Statement: qWindows, Rows: windowKeys.input(of)}, windows, "read %d windows", len(of))
	if err != nil {
		return nil, err
	}
	all := make(map[store.WindowKey]store.Window, len(found))
	for _, w := range found {
		all[w.WindowKey] = w
	}
	return all, nil
}

func (t Tx) BufferedIn(ctx context.Context, key store.WindowKey, n int) (all []store.SignalPlace, err error) {
	err = t.Run(ctx, Call{Statement: qBufferedIn, Args: []any{key.Rule, key.Key, n}, Read: func(r Row) error {
		all = append(all, store.SignalPlace{At: row.FromMicros(r.Int()), Number: r.Int()})
		return nil
	}})
	return store.Result(all, err, "read the signals that window %q of rule %s holds", key.Key, key.Rule)
}

// StateIn returns the state that a closing gives to the enforcement of a signal.
func StateIn(k *store.Closing, signal int64) flow.EnforcementState {
	if signal == k.Lead {
		return k.State
	}
	return row.StateOfFolded(k.State)
}

// Written returns the signals of a closing whose enforcements refer to them one by one, the leading one first.
func Written(k *store.Closing) []int64 {
	all := []int64{k.Lead}
	for _, n := range k.Signals {
		if n != k.Lead {
			all = append(all, n)
		}
	}
	return all
}

// CloseWindow closes a window. written are those of k.Signals, or the leading one, whose enforcements are in the database: the caller has
// changed the other enforcements, which are not written yet.
func (t Tx) CloseWindow(ctx context.Context, k *store.Closing, written []int64) error {
	ends := make([]flow.Enforcement, len(written))
	for i, n := range written {
		ends[i] = flow.Enforcement{Number: n, Rule: k.Rule, Window: k.Key, State: StateIn(k, n), Execution: k.Execution, Reason: k.Reason}
	}
	calls := []Call{{Statement: qCloseBuffered, Rows: closed.input(ends)}}
	if k.Signals == nil {
		var execution, reason any
		if !k.Execution.IsZero() {
			execution = k.Execution
		}
		if text := row.Reason(&k.Reason); text != "" {
			reason = text
		}
		calls = append(calls, Call{Statement: qFoldBuffered, Args: []any{k.Rule, k.Key, int(row.StateOfFolded(k.State)), execution, reason}})
	}
	if k.Rest == nil {
		calls = append(calls, Call{Statement: qDropWindows, Rows: windowKeys.input([]store.WindowKey{k.WindowKey})})
	} else {
		calls = append(calls, Call{Statement: qPutWindows, Rows: windows.input([]store.Window{*k.Rest})})
	}
	return store.Failed(t.Queue(ctx, calls...), "close window %q of rule %s", k.Key, k.Rule)
}

func (s Reader) DueWindows(ctx context.Context, now time.Time, n int) ([]store.Window, time.Time, error) {
	return due(ctx, s, qDueWindows, qNextWindow, windows, now, n, "look for due windows")
}

func (s Reader) Window(ctx context.Context, key store.WindowKey) (store.Window, error) {
	c := Call{Statement: qWindows, Rows: windowKeys.input([]store.WindowKey{key})}
	return one(ctx, s, c, windows, "window %q of rule %s", key.Key, key.Rule)
}

func (s Reader) BufferedSignals(ctx context.Context, key store.WindowKey, n int) ([]flow.Signal, error) {
	c := Call{Statement: qBufferedSignals, Args: []any{key.Rule, key.Key, n}}
	return readSignals(ctx, s, c, "read what window %q of rule %s holds", key.Key, key.Rule)
}
