package postgres

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

var listLive, listEnded = listedFrom(live), listedFrom(ended)

// List implements store.Reader.
func (s *Store) List(ctx context.Context, f store.Filter) (all []*flow.Execution, err error) {
	l := selection(s.schema, f)
	live, ended := states(f)
	var halves []string
	if live != nil {
		halves = append(halves, l.half("live", listLive, f.Limit, *live...))
	}
	if ended != nil {
		halves = append(halves, l.half("ended", listEnded, f.Limit, *ended...))
	}
	if len(halves) == 0 {
		return nil, nil
	}
	var page store.Page
	// An execution that ends meanwhile is in one of the halves: they are read from one state.
	err = s.read(ctx, call{
		once:   fmt.Sprintf(`SELECT * FROM (%s) x ORDER BY x.id DESC LIMIT %d`, strings.Join(halves, ` UNION ALL `), f.Limit),
		params: l.args.params,
		read: func(r *rows) error {
			if page.Full() {
				return nil
			}
			x := new(flow.Execution)
			if err := listed.read(r, x); err != nil {
				return fmt.Errorf("read execution %s: %w", x.ID, err)
			}
			page.Execution(x)
			all = append(all, x)
			return nil
		}})
	if err != nil {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	return all, nil
}

// states is the condition on the stage and the verdict for each of the two tables; nil: nothing in it can match.
func states(f store.Filter) (live, ended *[]string) {
	var alive, over, badly []string
	for _, stage := range f.Stages {
		switch n := fmt.Sprint(uint8(stage)); {
		case !stage.Terminal():
			alive = append(alive, n)
		case stage > flow.Completed:
			badly = append(badly, n)
			over = append(over, n)
		default:
			over = append(over, n)
		}
	}
	if len(f.Verdicts) == 0 && (len(f.Stages) == 0 || len(alive) > 0) {
		live = &[]string{}
		if len(alive) > 0 {
			*live = append(*live, `x.stage IN (`+strings.Join(alive, `, `)+`)`)
		}
	}
	if len(f.Stages) > 0 && len(over) == 0 {
		return live, nil
	}
	ended = &[]string{}
	if len(over) > 0 {
		*ended = append(*ended, `x.stage IN (`+strings.Join(over, `, `)+`)`)
	}
	if len(over) > 0 && len(badly) == len(over) || len(f.Verdicts) > 0 && !slices.Contains(f.Verdicts, store.VerdictOK) {
		*ended = append(*ended, `x.stage > 6`) // these have an index
	}
	return live, ended
}

// selection turns a filter into conditions that hold for both tables; that on the stage is left out, and that on the verdict
// is for the table of what has ended.
func selection(schema string, f store.Filter) *listing {
	l := &listing{schema: schema}
	if !f.Workflow.IsZero() {
		l.and(`x.id IN (SELECT c.id FROM `+schema+`.children c WHERE c.workflow = ?)`, func(a *args) { a.id(f.Workflow) })
	}
	if !f.RerunOf.IsZero() {
		l.and(`x.id IN (SELECT r.id FROM `+schema+`.reruns r WHERE r.original = ?)`, func(a *args) { a.id(f.RerunOf) })
	}
	for name, value := range f.Labels {
		l.and(`x.id IN (SELECT b.id FROM `+schema+`.labels b WHERE b.name = ? AND b.value = ?)`, func(a *args) { a.text(name).text(value) })
	}
	if len(f.Verdicts) > 0 {
		l.verdicts(f.Verdicts)
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

// verdicts adds the condition on the end. The error's encoding begins with its code.
func (l *listing) verdicts(verdicts []string) {
	var any []string
	var codes [][]byte
	for _, v := range verdicts {
		if v == store.VerdictOK {
			any = append(any, `x.stage = 6`)
			continue
		}
		code := row.AppendErrorCode(nil, v)
		any = append(any, fmt.Sprintf(`x.stage > 6 AND substring(x.error FROM 1 FOR %d) = ?`, len(code)))
		codes = append(codes, code)
	}
	l.and(`(`+strings.Join(any, ` OR `)+`)`, func(a *args) {
		for _, code := range codes {
			a.bytes(code)
		}
	})
}

// lookBeyond is how many executions in a row, none of which is old enough, end the search for old ones. Ids are in order
// of submission, more or less: clocks differ, and what was submitted early may have ended late.
const lookBeyond = 1000

// oldPage is how many executions one statement looks at.
const oldPage = 2000

// oldPages is how many such pages one call looks at: a workflow that runs for months may have a million ended children,
// which stay.
const oldPages = 20

var (
	qOld = sql(`SELECT d.id, d.created_at, d.finished_at, d.top FROM {s}.ended d WHERE d.id > $1 ORDER BY d.id LIMIT $2`)

	// The last items of a task come first, and so do later tasks and attempts.
	qBeneath = sql(`SELECT c.id FROM unnest($1::uuid[]) WITH ORDINALITY AS w(id, n) CROSS JOIN LATERAL
		(SELECT c.id, c.attempt, c.task, c.idx FROM {s}.children c WHERE c.workflow = w.id
			ORDER BY c.attempt DESC, c.task DESC, c.idx DESC LIMIT $2) c
		ORDER BY w.n, c.attempt DESC, c.task DESC, c.idx DESC LIMIT $2`)

	// The length of what is stored out of line is known without reading it.
	qWeights = sql(`SELECT coalesce(octet_length(d.history), 0) + coalesce(octet_length(d.input), 0) + coalesce(octet_length(d.payload), 0)
			+ coalesce(octet_length(d.output), 0) + coalesce(octet_length(p.input), 0) + coalesce(octet_length(p.payload), 0)
			+ (SELECT coalesce(sum(octet_length(e.history)), 0) FROM {s}.events e WHERE e.id = d.id)
			+ (SELECT coalesce(sum(octet_length(i.data)), 0) FROM {s}.inputs i WHERE i.id = d.id)
		FROM unnest($1::uuid[]) WITH ORDINALITY AS w(id, n) LEFT JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = w.id OFFSET 0) d ON true` +
		joinEnded + ` ORDER BY w.n`)
)

// Removable implements store.Reader. It walks what has ended in order of id, so it needs no index that every execution
// would pay for.
func (s *Store) Removable(ctx context.Context, q store.RemovableQuery) (r store.Removable, err error) {
	tops, r, err := s.oldTops(ctx, q)
	if err != nil {
		return r, fmt.Errorf("find old executions: %w", err)
	}
	if len(tops) == 0 {
		return r, nil
	}
	all := tops
	for level := tops; len(level) > 0; {
		var below []flow.ID
		var a args
		if err := s.read(ctx, call{q: qBeneath, params: a.ids(level).int(int64(q.Count)).params, read: readID(&below)}); err != nil {
			return r, fmt.Errorf("find what hangs on old executions: %w", err)
		}
		all, level = append(below, all...), below
	}
	all = all[:min(len(all), q.Count)]
	n, err := s.within(ctx, all, q.Bytes)
	if err != nil {
		return r, fmt.Errorf("measure old executions: %w", err)
	}
	return r.Cut(q, all[:n], tops), nil
}

// oldTops finds executions without a parent that ended before a time, and where the walk goes on behind them.
func (s *Store) oldTops(ctx context.Context, q store.RemovableQuery) (tops []flow.ID, walk store.Removable, err error) {
	limit := row.Micros(q.Before)
	walk.After = q.After
	for late, pages := 0, 0; pages < oldPages; pages++ {
		seen := 0
		var a args
		err := s.read(ctx, call{q: qOld, params: a.id(walk.After).int(oldPage).params, read: func(r *rows) error {
			seen++
			id, created, finished, top := r.id(), r.int(), r.int(), r.bool()
			if late >= lookBeyond || len(tops) >= q.Count {
				return nil
			}
			walk.After = id
			if created >= limit {
				late++
				return nil
			}
			late = 0
			if top && finished < limit {
				tops = append(tops, id)
			}
			return nil
		}})
		if err != nil {
			return nil, walk, err
		}
		if len(tops) >= q.Count {
			break
		}
		if late >= lookBeyond || seen < oldPage {
			return tops, walk, nil
		}
	}
	walk.More = true
	return tops, walk, nil
}

// within is how many of the executions, from the first on, have no more than so many bytes together: one at least.
func (s *Store) within(ctx context.Context, ids []flow.ID, bytes int64) (n int, err error) {
	var a args
	var sum int64
	full := false
	err = s.read(ctx, call{q: qWeights, params: a.ids(ids).params, read: func(r *rows) error {
		if sum += r.int(); n > 0 && sum > bytes {
			full = true
		}
		if !full {
			n++
		}
		return nil
	}})
	return n, err
}
