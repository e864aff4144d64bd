package postgres

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
	schema string
	where  []string
	args   args
}

// and adds a condition, in which each ? stands for the next parameter; bind adds them.
func (l *listing) and(cond string, bind func(*args)) {
	n := len(l.args.params)
	bind(&l.args)
	for n++; strings.Contains(cond, "?"); n++ {
		cond = strings.Replace(cond, "?", fmt.Sprintf("$%d", n), 1)
	}
	l.where = append(l.where, cond)
}

// half is the listing of one of the two tables.
func (l *listing) half(from, columns string, limit int, also ...string) string {
	q := `SELECT ` + columns + ` FROM ` + l.schema + `.` + from + ` x`
	if all := append(l.where, also...); len(all) > 0 {
		q += ` WHERE ` + strings.Join(all, ` AND `)
	}
	return fmt.Sprintf(`(%s ORDER BY x.id DESC LIMIT %d)`, q, limit)
}

// Both tables' columns are those of a live execution, with what only the other has behind.
const (
	listLive  = `x.id, x.created_at, x.action, x.detail, x.place, x.stage, x.attempt, x.next_seq, x.ticket, x.owner, x.queued_at, x.state, 0, 0::bigint AS finished_at`
	listEnded = `x.id, x.created_at, x.action, x.detail, 5::smallint, x.stage, 0, 0::bigint, 0::bigint, NULL::uuid, 0::bigint, x.state, 0, x.finished_at`
)

// List implements store.Reader.
func (s *Store) List(ctx context.Context, f store.Filter) (all []*flow.Execution, err error) {
	l := selection(s.schema, f)
	var live, ended, badly []string
	for _, stage := range f.Stages {
		switch n := fmt.Sprint(uint8(stage)); {
		case !stage.Terminal():
			live = append(live, n)
		case stage > flow.Completed:
			badly = append(badly, n)
			ended = append(ended, n)
		default:
			ended = append(ended, n)
		}
	}
	var halves []string
	switch {
	case len(f.Stages) == 0:
		halves = append(halves, l.half("live", listLive, f.Limit), l.half("ended", listEnded, f.Limit))
	case len(live) > 0:
		halves = append(halves, l.half("live", listLive, f.Limit, `x.stage IN (`+strings.Join(live, `, `)+`)`))
	}
	if len(ended) > 0 {
		also := []string{`x.stage IN (` + strings.Join(ended, `, `) + `)`}
		if len(badly) == len(ended) {
			also = append(also, `x.stage > 6`) // these have an index
		}
		halves = append(halves, l.half("ended", listEnded, f.Limit, also...))
	}
	// An execution that ends meanwhile is in one of the halves: they are read from one state.
	err = s.read(ctx, call{
		once:   fmt.Sprintf(`SELECT * FROM (%s) x ORDER BY x.id DESC LIMIT %d`, strings.Join(halves, ` UNION ALL `), f.Limit),
		params: l.args.params,
		read: func(r *rows) error {
			x, err := r.listed()
			all = append(all, x)
			return err
		}})
	if err != nil {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	return all, nil
}

// selection turns a filter into conditions that hold for both tables; that on the stage is left out.
func selection(schema string, f store.Filter) *listing {
	l := &listing{schema: schema}
	if !f.Workflow.IsZero() {
		l.and(`x.id IN (SELECT c.id FROM `+schema+`.children c WHERE c.workflow = ?)`, func(a *args) { a.id(f.Workflow) })
	}
	for name, value := range f.Labels {
		l.and(`x.id IN (SELECT b.id FROM `+schema+`.labels b WHERE b.name = ? AND b.value = ?)`, func(a *args) { a.text(name).text(value) })
	}
	if f.TopLevel {
		l.where = append(l.where, `x.top`)
	}
	if f.Action != "" {
		l.and(`x.action = ?`, func(a *args) { a.text(f.Action) })
	}
	if !f.Since.IsZero() {
		l.and(`x.created_at >= ?`, func(a *args) { a.int(row.Micros(f.Since)) })
	}
	if !f.Until.IsZero() {
		l.and(`x.created_at < ?`, func(a *args) { a.int(row.Micros(f.Until)) })
	}
	if !f.Before.IsZero() {
		l.and(`x.id < ?`, func(a *args) { a.id(f.Before) })
	}
	return l
}

// listed reads a row of listLive or listEnded.
func (r *rows) listed() (*flow.Execution, error) {
	const placeColumn, stateColumn = 4, 11
	r.i = placeColumn
	if flow.Place(r.int()) != flow.Finished {
		r.i = 0
		x, _, err := r.live(false)
		return x, err
	}
	state := r.values[stateColumn]
	finished := r.values[len(r.values)-1]
	ended := rows{values: append(append(append([][]byte{}, r.values[:placeColumn]...), r.values[placeColumn+1], finished), state)}
	return ended.ended(false)
}

// lookBeyond is how many executions in a row, none of which is old enough, end the search for old ones. Ids are in order
// of submission, more or less: clocks differ, and what was submitted early may have ended late.
const lookBeyond = 1000

// oldPage is how many executions one statement looks at.
const oldPage = 2000

var (
	qOld = sql(`SELECT d.id, d.created_at, d.finished_at, d.top FROM {s}.ended d WHERE d.id > $1 ORDER BY d.id LIMIT $2`)

	qBeneath = sql(`WITH RECURSIVE tree AS (SELECT id, ARRAY[n] AS path FROM unnest($1::uuid[]) WITH ORDINALITY AS t(id, n)
			UNION ALL SELECT c.id, tree.path || c.n FROM tree CROSS JOIN LATERAL
				(SELECT id, row_number() OVER (ORDER BY attempt, task, idx) AS n FROM {s}.children WHERE workflow = tree.id) c)
		SELECT id FROM tree ORDER BY path[1], cardinality(path) DESC, path`)
)

// FinishedBefore implements store.Reader. It walks what has ended from the oldest id on, so it needs no index that every
// execution would pay for.
func (s *Store) FinishedBefore(ctx context.Context, t time.Time, limit int) ([]flow.ID, error) {
	type old struct {
		id       flow.ID
		finished int64
	}
	var found []old
	var after flow.ID
	limitAt := row.Micros(t)
	for late, seen := 0, oldPage; seen == oldPage && late < lookBeyond && len(found) < limit; {
		seen = 0
		var a args
		err := s.read(ctx, call{q: qOld, params: a.id(after).int(oldPage).params, read: func(r *rows) error {
			seen++
			o := old{id: r.id()}
			after = o.id
			created := r.int()
			o.finished = r.int()
			switch top := r.bool(); {
			case late >= lookBeyond || len(found) >= limit:
			case created >= limitAt:
				late++
			default:
				late = 0
				if top && o.finished < limitAt {
					found = append(found, o)
				}
			}
			return nil
		}})
		if err != nil {
			return nil, fmt.Errorf("find old executions: %w", err)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(found, func(a, b old) int { return int(a.finished - b.finished) })
	ids := make([]flow.ID, len(found))
	for i, o := range found {
		ids[i] = o.id
	}
	var all []flow.ID
	var a args
	if err := s.read(ctx, call{q: qBeneath, params: a.ids(ids).params, read: readID(&all)}); err != nil {
		return nil, fmt.Errorf("find what hangs on old executions: %w", err)
	}
	return all, nil
}
