package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
func (l *listing) blob(v []byte)   { l.bind = append(l.bind, func(s *stmt) { s.blob(v) }) }
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
		l.bound(q).int(int64(f.Limit))
		var bad error
		for page := store.Page(0); !page.Full() && q.next(); {
			x, err := q.either()
			if err != nil {
				bad = err
				break
			}
			page.Execution(x)
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
	if !f.RerunOf.IsZero() {
		l.from("SELECT n FROM reruns WHERE original = ?")
		l.id(f.RerunOf)
	}
	for name, value := range f.Labels {
		l.from("SELECT n FROM labels WHERE name = ? AND value = ?")
		l.text(name)
		l.text(value)
	}
	if len(f.Stages) > 0 {
		l.stages(f.Stages)
	}
	if len(f.Verdicts) > 0 {
		l.verdicts(f.Verdicts)
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

// verdicts adds the condition on the end. The error's encoding begins with its code.
func (l *listing) verdicts(verdicts []string) {
	var any []string
	for _, v := range verdicts {
		if v == store.VerdictOK {
			any = append(any, "d.stage = 6")
			continue
		}
		code := row.AppendErrorCode(nil, v)
		any = append(any, "d.stage > 6 AND substr(d.error, 1, ?) = ?")
		l.int(int64(len(code)))
		l.blob(code)
	}
	l.and("(" + strings.Join(any, " OR ") + ")")
	if len(l.narrow) == 0 && !slices.Contains(verdicts, store.VerdictOK) {
		l.from("SELECT n FROM ended WHERE stage > 6")
	}
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
	return "SELECT " + requestColumns + noPayload + liveColumns + endedColumns + ", d.error" + l.rows() + " ORDER BY i.id DESC LIMIT ?"
}

// rows are the rows that the listing selects, as FROM and WHERE.
func (l *listing) rows() string {
	const states = " LEFT JOIN live l ON l.n = e.n LEFT JOIN ended d ON d.n = e.n"
	from := " FROM ids i CROSS JOIN executions e ON e.n = i.n"
	if len(l.narrow) > 0 {
		from = " FROM executions e CROSS JOIN ids i ON i.id = e.id"
	}
	if all := append(l.narrow, l.where...); len(all) > 0 {
		return from + states + " WHERE " + strings.Join(all, " AND ")
	}
	return from + states
}

// bound gives the statement the parameters of the conditions.
func (l *listing) bound(s *stmt) *stmt {
	for _, bind := range l.bind {
		bind(s)
	}
	return s
}

// either reads a row of liveColumns and endedColumns with the error, of which one half is NULL.
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
	if err := s.endedState(x); err != nil {
		return x, err
	}
	return x, s.failure(x)
}

var (
	qOld = sql(`SELECT i.id, d.n, e.parent IS NULL, e.created_at, e.created_at + d.finished_after
		FROM ids i JOIN ended d ON d.n = i.n JOIN executions e ON e.n = i.n WHERE i.id > ? ORDER BY i.id`)

	// The last items of a task come first, and so do later tasks and attempts.
	qBeneath = sql(`SELECT c.n, e.id FROM children c JOIN executions e ON e.n = c.n WHERE c.workflow = ?
		ORDER BY c.attempt DESC, c.task DESC, c.idx DESC LIMIT ?`)

	// The length of a blob is known without reading it. Events are counted, at about so many bytes each.
	qWeight = sql(`SELECT coalesce(length(e.input), 0) + coalesce(length(e.payload), 0) + coalesce(length(d.output), 0)
		+ (SELECT count(*) * 400 FROM events WHERE k >= ? AND k < ?) + (SELECT coalesce(sum(length(data)), 0) FROM inputs WHERE n = ?)
		FROM executions e JOIN ended d ON d.n = e.n WHERE e.n = ?`)
)

// lookBeyond is how many executions in a row, all created too late to have ended before the time asked for, end the
// search for older ones. Ids are in order of submission, more or less: clocks may have been set back.
const lookBeyond = 1000

// oldMost is how many executions one call looks at: a workflow that runs for months may have a million ended children, which
// stay.
const oldMost = 40_000

// old is an execution that may be removed.
type old struct {
	n  int64
	id flow.ID
}

// Removable implements store.Reader. It walks executions in order of id, so it needs no index that every one of them would
// pay for.
func (s *Store) Removable(ctx context.Context, q store.RemovableQuery) (r store.Removable, err error) {
	err = s.read(ctx, func(c *conn) error {
		var tops []old
		if tops, r, err = c.oldTops(q); err != nil || len(tops) == 0 {
			return err
		}
		all := tops
		for level := tops; len(level) > 0; {
			below, err := c.beneath(level, q.Count)
			if err != nil {
				return err
			}
			all, level = append(below, all...), below
		}
		ids, err := c.within(all[:min(len(all), q.Count)], q.Bytes)
		if err != nil {
			return err
		}
		r = r.Cut(q, ids, named(tops))
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("find old executions: %w", err)
	}
	return r, nil
}

func named(all []old) []flow.ID {
	ids := make([]flow.ID, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	return ids
}

// oldTops finds executions without a parent that ended before a time, and where the walk goes on behind them.
func (c *conn) oldTops(q store.RemovableQuery) (tops []old, walk store.Removable, err error) {
	walk.After = q.After
	limit := row.Micros(q.Before)
	s := c.use(qOld).blob(q.After[:]) // a zero id would be null
	for late, seen := 0, 0; late < lookBeyond; seen++ {
		if walk.More = len(tops) == q.Count || seen == oldMost; walk.More || !s.next() {
			break
		}
		x := old{id: s.getID(), n: s.getInt()}
		walk.After = x.id
		top := s.getInt() == 1
		if s.getInt() >= limit {
			late++
			continue
		}
		late = 0
		if top && s.getInt() < limit {
			tops = append(tops, x)
		}
	}
	return tops, walk, s.done()
}

// beneath returns the children of workflows, at most so many.
func (c *conn) beneath(workflows []old, most int) ([]old, error) {
	var all []old
	for _, w := range workflows {
		s := c.use(qBeneath).int(w.n).int(int64(most - len(all)))
		for s.next() {
			all = append(all, old{n: s.getInt(), id: s.getID()})
		}
		if err := s.done(); err != nil {
			return nil, err
		}
		if len(all) == most {
			break
		}
	}
	return all, nil
}

// within returns, from the first on, executions that have no more than so many bytes together: one at least.
func (c *conn) within(all []old, bytes int64) ([]flow.ID, error) {
	for i, x := range all {
		s := c.use(qWeight).int(eventKey(x.n, 0)).int(eventKey(x.n+1, 0)).int(x.n).int(x.n)
		if s.next() {
			bytes -= s.getInt()
		}
		if err := s.done(); err != nil {
			return nil, err
		}
		if bytes < 0 && i > 0 {
			return named(all[:i]), nil
		}
	}
	return named(all), nil
}
