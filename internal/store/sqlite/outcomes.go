package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

var (
	qOutput = sql(`SELECT d.output FROM ids i JOIN ended d ON d.n = i.n WHERE i.id = ?`)

	qEndData = sql(`SELECT v.data FROM ids i JOIN ended d ON d.n = i.n
		JOIN events v ON v.k = (SELECT max(k) FROM events WHERE k >= i.n * 4194304 AND k < (i.n + 1) * 4194304) WHERE i.id = ?`)

	qInput = sql(`SELECT e.input FROM ids i JOIN executions e ON e.n = i.n WHERE i.id = ?`)

	// Executions with a number have ended, and are skipped by their label rows alone. From the newest on, because the latest submission
	// usually ends last.
	qOpenLabelled = sql(`SELECT 1 FROM labels b CROSS JOIN live l ON l.n = b.n CROSS JOIN executions e ON e.n = b.n
		WHERE ` + labelled + ` AND b.number IS NULL ORDER BY b.n DESC LIMIT 1`)

	qUnnumbered = sql(`SELECT e.id FROM labels b CROSS JOIN ended d ON d.n = b.n CROSS JOIN executions e ON e.n = b.n
		WHERE ` + labelled + ` AND b.number IS NULL ORDER BY b.n LIMIT ?`)

	qEndedLabelled = sql(`SELECT ` + requestRead.names("e.") + `, ` + endedRead.names("d.") + `, ` + failures.names("d.") + `, b.number
		FROM labels b INDEXED BY labels_number CROSS JOIN ended d ON d.n = b.n CROSS JOIN executions e ON e.n = b.n
		WHERE ` + labelled + ` AND b.number > ? ORDER BY b.number LIMIT ?`)

	qDrawNumbers = sql(`UPDATE counters SET next = next + ? WHERE name = 'outcome' RETURNING next`)

	qNumberEnd = sql(`UPDATE labels SET number = ? WHERE name = ? AND value = ? AND n = ? AND number IS NULL
		AND EXISTS (SELECT 1 FROM ended d WHERE d.n = labels.n)`)
)

// labelled is the condition of a store.Label.
const labelled = `b.name = ? AND b.value = ? AND e.parent IS NULL AND (? = '' OR e.action = ?)`

func (s *stmt) label(l store.Label) *stmt {
	return s.text(l.Name).text(l.Value).text(l.Action).text(l.Action)
}

func (s *Store) Documents(ctx context.Context, of store.Document, ids []flow.ID) (all []json.RawMessage, err error) {
	text := map[store.Document]*query{store.OutputOf: qOutput, store.InputOf: qInput, store.EndDataOf: qEndData}[of]
	err = s.read(ctx, func(c *conn) error {
		for page := store.Page(0); len(all) < len(ids) && !page.Full(); {
			q := c.use(text).id(ids[len(all)])
			var document json.RawMessage
			if q.next() {
				document = q.getBlob()
			}
			if err := q.done(); err != nil {
				return err
			}
			page.Output(document)
			all = append(all, document)
		}
		return nil
	})
	return store.Result(all, err, "read documents of %d executions", len(ids))
}

func (s *Store) Tally(ctx context.Context, f store.Filter) (all []store.Tally, more bool, err error) {
	counts := tallies{}
	f.Before = flow.ID{}
	err = s.read(ctx, func(c *conn) error {
		l, ok, err := c.listing(f)
		if err != nil || !ok {
			return err
		}
		by := -1
		if f.Reach > 0 {
			if by, err = c.beyond(l, f.Reach); err != nil {
				return err
			}
		}
		if more = by >= 0; !more {
			return counts.add(c, l, l.rows())
		}
		open, ended := *l, *l
		open.sources = append(slices.Clone(l.sources), source{rows: "SELECT n FROM live"})
		if err := counts.add(c, &open, open.among(len(l.sources))); err != nil {
			return err
		}
		ended.sources = slices.Clone(l.sources)
		ended.sources[by].rows += fmt.Sprintf(" ORDER BY n DESC LIMIT %d", f.Reach)
		return counts.add(c, &ended, ended.among(by)+" AND d.stage IS NOT NULL")
	})
	if err != nil {
		return nil, false, fmt.Errorf("count executions: %w", err)
	}
	for k, n := range counts {
		all = append(all, store.Tally{Stage: k.stage, Code: k.code, Count: n})
	}
	return all, more, nil
}

// tallies are counts by the stage and the code of the error.
type tallies map[tallied]int

type tallied struct {
	stage flow.Stage
	code  string
}

// add counts the rows that a listing selects.
func (t tallies) add(c *conn, l *listing, rows string) error {
	q := c.prepare("SELECT coalesce(l.stage, d.stage), d.error" + rows)
	defer q.free()
	l.bound(q)
	for q.next() {
		k := tallied{stage: flow.Stage(q.getInt())}
		var err error
		if k.code, err = row.DecodeErrorCode(q.peekBlob()); err != nil {
			return errors.Join(err, q.done())
		}
		t[k]++
	}
	return q.done()
}

// beyond returns the first source of a listing if each has more than many rows; -1: one has fewer, or there is no source.
func (c *conn) beyond(l *listing, many int) (by int, err error) {
	for _, s := range l.sources {
		rare, err := c.few(&s, many)
		if err != nil || rare {
			return -1, err
		}
	}
	return min(len(l.sources), 1) - 1, nil
}

// among returns rows in which one source is looked up, and the others are conditions on each of its rows.
func (l *listing) among(by int) string {
	var all []string
	for i, s := range l.sources {
		if i == by || s.probe == "" {
			all = append(all, "e.n IN ("+s.rows+")")
		} else {
			all = append(all, s.probe)
		}
	}
	return " FROM executions e CROSS JOIN ids i ON i.id = e.id" + joinStates + " WHERE " + strings.Join(append(all, l.where...), " AND ")
}

func (s *Store) Unnumbered(ctx context.Context, l store.Label, n int) (ended []flow.ID, open bool, err error) {
	err = s.read(ctx, func(c *conn) error {
		q := c.use(qOpenLabelled).label(l)
		open = q.next()
		if err := q.done(); err != nil {
			return err
		}
		q = c.use(qUnnumbered).label(l).int(int64(n))
		for q.next() {
			ended = append(ended, q.getID())
		}
		return q.done()
	})
	return ended, open, store.Failed(err, "find what has ended with the label %s=%s", l.Name, l.Value)
}

func (s *Store) Ended(ctx context.Context, l store.Label, after int64, n int) (all []store.Ended, err error) {
	err = s.read(ctx, func(c *conn) error {
		var bad error
		q := c.use(qEndedLabelled).label(l).int(after).int(int64(n))
		for page := store.Page(0); bad == nil && !page.Full() && q.next(); {
			var x store.Ended
			if x.Execution, bad = q.ended(failures); bad != nil {
				break
			}
			x.Number = q.getInt()
			page.Execution(x.Execution)
			all = append(all, x)
		}
		return cmp.Or(q.done(), bad)
	})
	return store.Result(all, err, "read what has ended with the label %s=%s", l.Name, l.Value)
}

func (t *tx) Number(_ context.Context, l store.Label, ids []flow.ID) (bool, error) {
	q := t.c.use(qDrawNumbers).int(int64(len(ids)))
	var next int64
	if q.next() {
		next = q.getInt() - int64(len(ids))
	}
	if err := q.done(); err != nil {
		return false, fmt.Errorf("draw numbers: %w", err)
	}
	for i, id := range ids {
		n, ok, err := t.number(id)
		if err == nil && ok {
			err = t.c.use(qNumberEnd).int(next + int64(i)).text(l.Name).text(l.Value).int(n).run()
		}
		if err != nil {
			return false, fmt.Errorf("number the end of %s: %w", id, err)
		}
	}
	return true, nil
}
