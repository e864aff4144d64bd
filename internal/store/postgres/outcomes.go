package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	// PostgreSQL knows the length of a value that is stored out of line without reading it, so outputs after the page are not read.
	qOutputs = sql(`SELECT s.output FROM (
			SELECT w.n, d.output, coalesce(sum(octet_length(d.output)) OVER (ORDER BY w.n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
			FROM unnest($1::uuid[]) WITH ORDINALITY AS w(id, n) LEFT JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = w.id OFFSET 0) d ON true) s
		WHERE s.before < $2::bigint ORDER BY s.n`)

	qHistoryEnds = sql(`SELECT s.history FROM (
			SELECT w.n, d.history, coalesce(sum(octet_length(d.history)) OVER (ORDER BY w.n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
			FROM unnest($1::uuid[]) WITH ORDINALITY AS w(id, n) LEFT JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = w.id OFFSET 0) d ON true) s
		WHERE s.before < $2::bigint ORDER BY s.n`)

	qInputsOf = sql(`SELECT s.input FROM (
			SELECT i.n, i.input, coalesce(sum(octet_length(i.input)) OVER (ORDER BY i.n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
			FROM (SELECT w.n, coalesce(l.input, d.input, p.input) AS input FROM unnest($1::uuid[]) WITH ORDINALITY AS w(id, n)
				LEFT JOIN LATERAL (SELECT * FROM {s}.live l WHERE l.id = w.id OFFSET 0) l ON true
				LEFT JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = w.id OFFSET 0) d ON true
				LEFT JOIN LATERAL (SELECT * FROM {s}.payloads p
					WHERE p.id = CASE WHEN l.payload_external OR d.payload_external THEN w.id END OFFSET 0) p ON true) i) s
		WHERE s.before < $2::bigint ORDER BY s.n`)

	// An execution with a number has ended, so its label row is enough. The newest come first, because the latest submissions usually end
	// last.
	qOpenLabelled = sql(`SELECT true FROM {s}.labels b CROSS JOIN LATERAL (SELECT * FROM {s}.live l WHERE l.id = b.id OFFSET 0) x
		WHERE ` + labelled + ` AND b.number IS NULL ORDER BY b.id DESC LIMIT 1`)

	qUnnumbered = sql(`SELECT b.id FROM {s}.labels b CROSS JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = b.id OFFSET 0) x
		WHERE ` + labelled + ` AND b.number IS NULL ORDER BY b.id LIMIT $4::bigint`)

	qEndedLabelled = sql(`SELECT ` + endedRead.names("x.") + `, ` + failure.names("x.") + `, b.number
		FROM {s}.labels b CROSS JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = b.id OFFSET 0) x
		WHERE ` + labelled + ` AND b.number > $4::bigint ORDER BY b.number LIMIT $5::bigint`)

	qLockLabel = sql(`SELECT pg_try_advisory_xact_lock(hashtextextended($1, $2))`)

	qNumberEnds = sql(`UPDATE {s}.labels b SET number = nextval('{s}.outcomes') WHERE b.name = $1 AND b.value = $2 AND b.id = ANY ($3::uuid[])
		AND b.number IS NULL AND (SELECT true FROM {s}.ended d WHERE d.id = b.id)`)
)

// labelled is the condition of a store.Label.
const labelled = `b.name = $1 AND b.value = $2 AND x.is_root AND ($3::text = '' OR x.action = $3)`

func (a *args) label(l store.Label) *args { return a.text(l.Name).text(l.Value).text(l.Action) }

func (s *Store) Documents(ctx context.Context, of store.Document, ids []flow.ID) (all []json.RawMessage, err error) {
	q := map[store.Document]*query{store.OutputOf: qOutputs, store.InputOf: qInputsOf, store.EndDataOf: qHistoryEnds}[of]
	err = s.read(ctx, call{q: q, params: new(args).ids(ids).int(store.PageBytes).params, read: func(r *rows) error {
		if of != store.EndDataOf {
			all = append(all, r.bytes())
			return nil
		}
		var last flow.Event
		events, err := row.DecodeHistory(nil, r.peek(), 0, 0, math.MaxInt64, 0, nil)
		if len(events) > 0 {
			last = events[len(events)-1]
		}
		all = append(all, last.Data)
		return err
	}})
	return store.Result(all, err, "read documents of %d executions", len(ids))
}

// tallied selects the code of an encoded error. The code follows its length, which has one byte, or two from 128 bytes on.
const tallied = `CASE WHEN octet_length(x.error) < 2 THEN x.error WHEN get_byte(x.error, 0) < 128 THEN substring(x.error FROM 1 FOR 1 + get_byte(x.error, 0))
	ELSE substring(x.error FROM 1 FOR 2 + get_byte(x.error, 0) - 128 + 128 * get_byte(x.error, 1)) END`

func (s *Store) Tally(ctx context.Context, f store.Filter) (all []store.Tally, more bool, err error) {
	by := min(len(selection(s.schema, f).sources), 1) - 1
	if f.Reach > 0 && by >= 0 {
		f.Rare = f.Reach
		rare, _, err := s.driver(ctx, f)
		if err != nil {
			return nil, false, fmt.Errorf("count executions: %w", err)
		}
		if more = rare < 0; !more {
			by = rare
		}
	}
	if !more {
		f.Reach = 0
	}
	text, params := s.tally(f, by)
	if text == "" {
		return nil, more, nil
	}
	err = s.read(ctx, call{once: text, params: params, read: func(r *rows) (err error) {
		t := store.Tally{Stage: flow.Stage(r.int())}
		if t.Code, err = row.DecodeErrorCode(r.peek()); err != nil {
			return err
		}
		t.Count = int(r.int())
		all = append(all, t)
		return nil
	}})
	return all, more, store.Failed(err, "count executions")
}

// tally returns the counting statement, which looks up the rows of source number by. It is "" if nothing can match. With f.Reach it counts
// all unfinished executions, but at most that many of the newest ended ones. One statement reads both tables in one snapshot, so an
// execution that ends at the same time is in exactly one of them.
func (s *Store) tally(f store.Filter, by int) (text string, params [][]byte) {
	l := selection(s.schema, f)
	live, ended := states(f)
	var halves []string
	half := func(table, code string, by int, also []string) {
		from, where := l.driven(by, table)
		q := `SELECT x.stage, ` + code + ` AS code, count(*) FROM ` + from
		if where = append(where, also...); len(where) > 0 {
			q += ` WHERE ` + strings.Join(where, ` AND `)
		}
		halves = append(halves, `(`+q+` GROUP BY 1, 2)`)
	}
	if live != nil && f.Reach > 0 {
		half("live", "NULL::bytea", -1, *live)
	} else if live != nil {
		half("live", "NULL::bytea", by, *live)
	}
	if ended != nil {
		if f.Reach > 0 {
			l.sources[by].newest = f.Reach
		}
		half("ended", tallied, by, *ended)
	}
	return strings.Join(halves, ` UNION ALL `), l.args.params
}

// Unnumbered implements store.OutcomeReader. An execution that ends between the two statements is open in the first, and the second may
// return it as well.
func (s *Store) Unnumbered(ctx context.Context, l store.Label, n int) (ended []flow.ID, open bool, err error) {
	var a, b args
	err = s.read(ctx,
		call{q: qOpenLabelled, params: a.label(l).params, read: func(*rows) error {
			open = true
			return nil
		}},
		call{q: qUnnumbered, params: b.label(l).int(int64(n)).params, read: readAll(&ended, (*rows).id)})
	return ended, open, store.Failed(err, "find ended executions with the label %s=%s", l.Name, l.Value)
}

func (s *Store) Ended(ctx context.Context, l store.Label, after int64, n int) (all []store.Ended, err error) {
	var page store.Page
	err = s.read(ctx, call{q: qEndedLabelled, params: new(args).label(l).int(after).int(int64(n)).params, read: func(r *rows) error {
		if page.Full() {
			return nil
		}
		x, err := r.ended(failure)
		if err != nil {
			return err
		}
		page.Execution(x)
		all = append(all, store.Ended{Execution: x, Number: r.int()})
		return nil
	}})
	return store.Result(all, err, "read ended executions with the label %s=%s", l.Name, l.Value)
}

// labelLock is the first half of the advisory locks of labels, which distinguishes them from others: "Lab=" in ASCII.
const labelLock = 0x4c61623d

// Number implements store.Numbering. The lock is held until the commit. Without it, a transaction with the numbers 7 and 8 could commit
// before one with 5 and 6, and a reader whose cursor is then at 8 would never see 5 and 6. The transaction only tries the lock and never
// waits for it, so it cannot be part of a deadlock.
func (t *tx) Number(ctx context.Context, l store.Label, ids []flow.ID) (bool, error) {
	locked := false
	lock := t.s.name + "\n" + l.Name + "\n" + l.Value
	err := t.ask(ctx, qLockLabel, t.args().text(lock).int(labelLock), readTo(&locked, (*rows).bool))
	if err == nil && locked {
		err = t.ask(ctx, qNumberEnds, t.args().text(l.Name).text(l.Value).ids(ids), nil)
	}
	return store.Result(locked, err, "number the ends with the label %s=%s", l.Name, l.Value)
}
