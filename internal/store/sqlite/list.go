package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// listing is a query under construction: conditions with their parameters in order.
type listing struct {
	narrow, where []string
	bind          []func(*stmt)
}

func (l *listing) text(v string)   { l.bind = append(l.bind, func(s *stmt) { s.text(v) }) }
func (l *listing) int(v int64)     { l.bind = append(l.bind, func(s *stmt) { s.int(v) }) }
func (l *listing) id(v flow.ID)    { l.bind = append(l.bind, func(s *stmt) { s.id(v) }) }
func (l *listing) and(cond string) { l.where = append(l.where, cond) }

// from adds a condition that names the rows themselves, so that they are looked up and not searched for.
func (l *listing) from(rows string) { l.narrow = append(l.narrow, "e.n IN ("+rows+")") }

// List implements store.Reader.
func (s *Store) List(ctx context.Context, f store.Filter) (all []*flow.Execution, err error) {
	err = s.read(ctx, func(c *conn) error {
		l, ok, err := c.listing(f)
		if err != nil || !ok {
			return err
		}
		q := c.prepare(l.query())
		defer q.free()
		for _, bind := range l.bind {
			bind(q)
		}
		q.int(int64(f.Limit))
		var bad error
		for q.next() {
			x, err := q.either()
			if err != nil {
				bad = err
				break
			}
			all = append(all, x)
		}
		if err := q.done(); err != nil {
			return err
		}
		return bad
	})
	if err != nil {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	return all, nil
}

// listing turns a filter into conditions; false means that nothing can match.
func (c *conn) listing(f store.Filter) (*listing, bool, error) {
	l := &listing{}
	if !f.Workflow.IsZero() {
		n, ok, err := c.number(f.Workflow)
		if err != nil || !ok {
			return nil, false, err
		}
		l.from("SELECT n FROM children WHERE workflow = ?")
		l.int(n)
	}
	for name, value := range f.Labels {
		l.from("SELECT n FROM labels WHERE name = ? AND value = ?")
		l.text(name)
		l.text(value)
	}
	if len(f.Stages) > 0 {
		l.stages(f.Stages)
	}
	if f.TopLevel {
		l.and("e.parent IS NULL")
	}
	if f.Action != "" {
		l.and("e.action = ?")
		l.text(f.Action)
	}
	if !f.Since.IsZero() {
		l.and("e.created_at >= ?")
		l.int(row.Micros(f.Since))
	}
	if !f.Until.IsZero() {
		l.and("e.created_at < ?")
		l.int(row.Micros(f.Until))
	}
	if !f.Before.IsZero() {
		l.and("i.id < ?")
		l.id(f.Before)
	}
	return l, true, nil
}

// stages adds the condition on the stage. What has not ended, and what did not end well, is found by rows that are few
// however many executions have completed.
func (l *listing) stages(stages []flow.Stage) {
	var numbers []string
	for _, s := range stages {
		numbers = append(numbers, fmt.Sprint(uint8(s)))
	}
	in := " IN (" + strings.Join(numbers, ", ") + ")"
	switch {
	case !slices.ContainsFunc(stages, flow.Stage.Terminal):
		l.from("SELECT n FROM live WHERE stage" + in)
	case !slices.ContainsFunc(stages, func(s flow.Stage) bool { return s <= flow.Completed }):
		l.from("SELECT n FROM ended WHERE stage > 6 AND stage" + in)
	default:
		l.and("(l.stage" + in + " OR d.stage" + in + ")")
	}
}

func (l *listing) query() string {
	const columns = "SELECT " + requestColumns + noPayload + liveColumns + endedColumns
	const states = " LEFT JOIN live l ON l.n = e.n LEFT JOIN ended d ON d.n = e.n"
	from := " FROM ids i CROSS JOIN executions e ON e.n = i.n"
	if len(l.narrow) > 0 {
		from = " FROM executions e CROSS JOIN ids i ON i.id = e.id"
	}
	q := columns + from + states
	if all := append(l.narrow, l.where...); len(all) > 0 {
		q += " WHERE " + strings.Join(all, " AND ")
	}
	return q + " ORDER BY i.id DESC LIMIT ?"
}

// either reads a row of liveColumns and endedColumns, of which one half is NULL.
func (s *stmt) either() (*flow.Execution, error) {
	const placeColumn, endedColumn = 7, 15
	s.column = placeColumn - 1
	isLive := s.getInt() != 0
	s.column = -1
	x, err := s.request()
	if err != nil {
		return nil, err
	}
	if isLive {
		return x, s.liveState(x)
	}
	s.column = endedColumn - 1
	return x, s.endedState(x)
}

var (
	qEndedInOrder = sql(`SELECT d.n, e.id, e.parent IS NULL, e.created_at, e.created_at + d.finished_after
		FROM ended d JOIN executions e ON e.n = d.n ORDER BY d.n`)

	qBeneath = sql(`SELECT c.n, e.id FROM children c JOIN executions e ON e.n = c.n WHERE c.workflow = ?`)
)

// lookBeyond is how many executions in a row, all created too late to have ended before the time asked for, end the
// search for older ones. Executions are numbered in order of submission, but their clocks may have been set back.
const lookBeyond = 1000

// FinishedBefore implements store.Reader. It walks from the oldest submission on, so it needs no index that every
// execution would pay for.
func (s *Store) FinishedBefore(ctx context.Context, t time.Time, limit int) (all []flow.ID, err error) {
	type old struct {
		n, finished int64
		id          flow.ID
	}
	err = s.read(ctx, func(c *conn) error {
		var found []old
		q := c.use(qEndedInOrder)
		for late := 0; late < lookBeyond && len(found) < limit && q.next(); {
			o := old{n: q.getInt(), id: q.getID()}
			top := q.getInt() == 1
			if q.getInt() >= row.Micros(t) {
				late++
				continue
			}
			late = 0
			if o.finished = q.getInt(); top && o.finished < row.Micros(t) {
				found = append(found, o)
			}
		}
		if err := q.done(); err != nil {
			return err
		}
		slices.SortFunc(found, func(a, b old) int { return int(a.finished - b.finished) })
		for _, o := range found {
			if all, err = c.beneath(all, o.n); err != nil {
				return err
			}
			all = append(all, o.id)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find old executions: %w", err)
	}
	return all, nil
}

// beneath appends the descendants of an execution, the deepest first.
func (c *conn) beneath(all []flow.ID, n int64) ([]flow.ID, error) {
	var numbers []int64
	var ids []flow.ID
	q := c.use(qBeneath).int(n)
	for q.next() {
		numbers = append(numbers, q.getInt())
		ids = append(ids, q.getID())
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	for i, child := range numbers {
		var err error
		if all, err = c.beneath(all, child); err != nil {
			return nil, err
		}
		all = append(all, ids[i])
	}
	return all, nil
}
