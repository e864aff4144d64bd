package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// listing is a query under construction: conditions with their parameters in order.
type listing struct {
	schema  string
	sources []source
	where   []string
	args    args
}

// source is a table in which the ids of executions with some property (for example a label) can be looked up.
type source struct {
	table, cond string // condition on the table, as b
	bind        func(*args)
	newest      int  // look up only this many of its newest rows; 0: all
	always      bool // it drives the search with any number of rows, because the execution itself does not show that it belongs to it
}

// with replaces the question marks of a condition by the next parameters, which bind adds.
func (l *listing) with(cond string, bind func(*args)) string {
	n := len(l.args.params)
	bind(&l.args)
	for n++; strings.Contains(cond, "?"); n++ {
		cond = strings.Replace(cond, "?", fmt.Sprintf("$%d", n), 1)
	}
	return cond
}

func (l *listing) and(cond string, bind func(*args)) { l.where = append(l.where, l.with(cond, bind)) }

func (l *listing) from(table, cond string, always bool, bind func(*args)) {
	l.sources = append(l.sources, source{table: table, cond: cond, bind: bind, always: always})
}

// driven returns the FROM clause for one of the two tables, as x. With the index of a source, the rows of that source are looked up in the
// table; with -1 the whole table is read. The other sources become conditions. If the statement only required that an id is among those
// with a label, the planner would read the whole table.
func (l *listing) driven(by int, table string) (from string, where []string) {
	where = slices.Clone(l.where)
	for i, s := range l.sources {
		if i != by { // the planner cannot turn a scalar subquery into a join
			where = append(where, fmt.Sprintf(`(SELECT true FROM %s.%s b WHERE %s AND b.id = x.id LIMIT 1)`, l.schema, s.table, l.with(s.cond, s.bind)))
		}
	}
	if by < 0 {
		return l.schema + `.` + table + ` x`, where
	}
	s, bound := l.sources[by], ""
	if s.newest > 0 {
		bound = fmt.Sprintf(` ORDER BY b.id DESC LIMIT %d`, s.newest)
	}
	return fmt.Sprintf(`(SELECT b.id FROM %[1]s.%[2]s b WHERE %[3]s%[5]s) b CROSS JOIN LATERAL (SELECT * FROM %[1]s.%[4]s t WHERE t.id = b.id OFFSET 0) x`,
		l.schema, s.table, l.with(s.cond, s.bind), table, bound), where
}

var listLive, listEnded = listedFrom(live), listedFrom(ended)

// firstLook is how many executions a search examines first. Most pages are full by then; finding the end of 40,000 executions takes 40 ms.
const firstLook = 1000

func (s *Store) Search(ctx context.Context, f store.Filter) (found store.Found, err error) {
	by, bounded, err := s.driver(ctx, f)
	limit := f.Limit
	for look, left := firstLook, f.Looks(); err == nil; look = left {
		f.Limit = limit - len(found.Executions)
		if f.Reach = 0; bounded {
			f.Reach = min(look, left)
		}
		var next store.Found
		var full bool
		if next, full, err = s.look(ctx, f, by); err != nil {
			break
		}
		found.Executions = append(found.Executions, next.Executions...)
		left -= f.Reach
		if full || next.Searched.IsZero() {
			return found, nil
		}
		if f = f.Beyond(next.Searched); left <= 0 {
			found.Searched, found.At = next.Searched, next.At
			return found, nil
		}
	}
	return found, fmt.Errorf("list executions: %w", err)
}

// driver chooses the source that drives a search: one with few rows, or -1 for none. Without a source the search is bounded, unless it has
// no condition.
func (s *Store) driver(ctx context.Context, f store.Filter) (by int, bounded bool, err error) {
	if len(f.IDs) > 0 {
		return -1, false, nil
	}
	l := selection(s.schema, f)
	if by = slices.IndexFunc(l.sources, func(s source) bool { return s.always }); by >= 0 {
		return by, false, nil
	}
	if len(l.sources) > 0 {
		var columns []string
		ask := listing{schema: l.schema}
		for _, s := range l.sources {
			columns = append(columns, fmt.Sprintf(`(SELECT count(*) FROM (SELECT 1 FROM %s.%s b WHERE %s LIMIT %d) b)`, l.schema, s.table, ask.with(s.cond, s.bind), f.Few()+1))
		}
		err = s.read(ctx, call{once: `SELECT ` + strings.Join(columns, `, `), params: ask.args.params, read: func(r *rows) error {
			for i := range l.sources {
				if n := r.int(); n <= int64(f.Few()) && by < 0 {
					by = i
				}
			}
			return nil
		}})
	}
	return by, by < 0 && len(l.sources)+len(l.where)+len(f.Stages) > 0, err
}

// look finds matching executions among the rows of a source, or among the next f.Reach executions of each of the two tables. It
// reports whether the page is full.
func (s *Store) look(ctx context.Context, f store.Filter, by int) (found store.Found, full bool, err error) {
	l := selection(s.schema, f)
	if !f.Before.IsZero() {
		l.and(`x.id < ?`, func(a *args) { a.id(f.Before) })
	}
	if !f.After.IsZero() {
		l.and(`x.id > ?`, func(a *args) { a.id(f.After) })
	}
	order, within := ` DESC`, `x.id >= ?`
	if f.Oldest {
		order, within = ``, `x.id <= ?`
	}
	beyond := func(id, of flow.ID) bool { return (bytes.Compare(id[:], of[:]) > 0) == f.Oldest } // for ids that differ
	live, ended := states(f)
	var halves []string
	half := func(table, columns string, also *[]string) error {
		if also == nil {
			return nil
		}
		from, where := l.driven(by, table)
		where = append(where, *also...)
		if f.Reach > 0 {
			at, err := s.last(ctx, table, f, slices.Contains(*also, endedBadly))
			if err != nil {
				return err
			}
			if !at.id.IsZero() {
				where = append(where, l.with(within, func(a *args) { a.id(at.id) }))
				if found.Searched.IsZero() || beyond(found.Searched, at.id) {
					found.Searched, found.At = at.id, at.at
				}
			}
		}
		q := `SELECT ` + columns + ` FROM ` + from
		if len(where) > 0 {
			q += ` WHERE ` + strings.Join(where, ` AND `)
		}
		halves = append(halves, fmt.Sprintf(`(%s ORDER BY x.id%s LIMIT %d)`, q, order, f.Limit))
		return nil
	}
	if err := errors.Join(half("live", listLive, live), half("ended", listEnded, ended)); err != nil || len(halves) == 0 {
		return found, false, err
	}
	var page store.Page
	// One statement reads both tables in one snapshot, so an execution that ends at the same time is in exactly one of them.
	err = s.read(ctx, call{
		once:   fmt.Sprintf(`SELECT * FROM (%s) x ORDER BY x.id%s LIMIT %d`, strings.Join(halves, ` UNION ALL `), order, f.Limit),
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
			found.Executions = append(found.Executions, x)
			return nil
		}})
	n := len(found.Executions)
	full = page.Full() || n == f.Limit
	if !found.Searched.IsZero() {
		// The search got further in one table than in the other. Executions beyond the end of the shorter search are left to the next call,
		// because the other table may have rows between them.
		found.Executions = slices.DeleteFunc(found.Executions, func(x *flow.Execution) bool { return x.ID != found.Searched && beyond(x.ID, found.Searched) })
	}
	return found, full && len(found.Executions) == n, err
}

// last is the execution at which a search step ends, and its creation time.
type last struct {
	id flow.ID
	at time.Time
}

// last finds the execution at which a search step ends after f.Reach rows of a table. It is zero if there are fewer.
func (s *Store) last(ctx context.Context, table string, f store.Filter, badly bool) (at last, err error) {
	l := listing{schema: s.schema}
	if badly {
		l.where = append(l.where, endedBadly)
	}
	order := ` DESC`
	if f.Oldest {
		order = ``
		l.and(`x.id > ?`, func(a *args) { a.id(f.After) })
	} else if !f.Before.IsZero() {
		l.and(`x.id < ?`, func(a *args) { a.id(f.Before) })
	}
	q := `SELECT x.id, x.created_at FROM ` + s.schema + `.` + table + ` x`
	if len(l.where) > 0 {
		q += ` WHERE ` + strings.Join(l.where, ` AND `)
	}
	err = s.read(ctx, call{once: fmt.Sprintf(`%s ORDER BY x.id%s OFFSET %d LIMIT 1`, q, order, f.Reach-1), params: l.args.params, read: func(r *rows) error {
		at.id = r.id()
		at.at = r.time()
		return nil
	}})
	if f.Ends(at.id) {
		return last{}, err
	}
	return at, err
}

// endedBadly is the condition on executions that ended without completing, which has an index.
const endedBadly = `x.stage > 6`

// states returns the condition on stage and verdict for each of the two tables, or nil for a table in which nothing can match.
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
		*ended = append(*ended, endedBadly)
	}
	return live, ended
}

// selection converts a filter into conditions that hold for both tables. It leaves out the conditions on the stage and the cursor; the one
// on the verdict is for ended executions.
func selection(schema string, f store.Filter) *listing {
	l := &listing{schema: schema}
	if !f.Workflow.IsZero() {
		l.from("children", `b.workflow = ?`, true, func(a *args) { a.id(f.Workflow) })
	}
	if !f.RerunOf.IsZero() {
		l.from("reruns", `b.original = ?`, true, func(a *args) { a.id(f.RerunOf) })
	}
	if !f.RetryOf.IsZero() {
		l.from("retries", `b.original = ?`, true, func(a *args) { a.id(f.RetryOf) })
	}
	if len(f.IDs) > 0 {
		l.and(`x.id = ANY (?::uuid[])`, func(a *args) { a.ids(f.IDs) })
	}
	for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
		l.from("labels", `b.name = ? AND b.value = ?`, false, func(a *args) { a.text(name).text(f.Labels[name]) })
	}
	if len(f.Verdicts) > 0 {
		l.verdicts(f.Verdicts)
	}
	if f.TopLevel {
		l.where = append(l.where, `x.is_root`)
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
	return l
}

// verdicts adds the condition on the verdict. An encoded error begins with its code.
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

// lookBeyond is the number of consecutive executions that are not old enough after which the search for old ones ends. Ids are only nearly
// in order of submission, because clocks differ, and an execution that was submitted early may have ended late.
const lookBeyond = 1000

// oldPage is how many executions one statement examines.
const oldPage = 2000

// oldPages is how many such pages one call examines. A workflow that runs for months may have a million ended children, which are kept
// while it runs.
const oldPages = 20

var (
	qOld = sql(`SELECT d.id, d.created_at, d.finished_at, d.is_root FROM {s}.ended d WHERE d.id > $1 ORDER BY d.id LIMIT $2`)

	// Later items of a task come first, and later tasks and attempts.
	qBeneath = sql(`SELECT c.id FROM unnest($1::uuid[]) WITH ORDINALITY AS w(id, n) CROSS JOIN LATERAL
		(SELECT c.id, c.attempt, c.task, c.idx FROM {s}.children c WHERE c.workflow = w.id
			ORDER BY c.attempt DESC, c.task DESC, c.idx DESC LIMIT $2) c
		ORDER BY w.n, c.attempt DESC, c.task DESC, c.idx DESC LIMIT $2`)

	// PostgreSQL knows the length of a value that is stored out of line without reading it.
	qWeights = sql(`SELECT coalesce(octet_length(d.history), 0) + coalesce(octet_length(d.input), 0) + coalesce(octet_length(d.payload), 0)
			+ coalesce(octet_length(d.output), 0) + coalesce(octet_length(p.input), 0) + coalesce(octet_length(p.payload), 0)
			+ (SELECT coalesce(sum(octet_length(e.history)), 0) FROM {s}.events e WHERE e.id = d.id)
			+ (SELECT coalesce(sum(octet_length(i.data)), 0) FROM {s}.inputs i WHERE i.id = d.id)
		FROM unnest($1::uuid[]) WITH ORDINALITY AS w(id, n) LEFT JOIN LATERAL (SELECT * FROM {s}.ended d WHERE d.id = w.id OFFSET 0) d ON true` +
		joinEnded + ` ORDER BY w.n`)
)

// Removable implements store.Reader. It walks through the ended executions in order of id, so it needs no index of its own, which every
// execution would have to update.
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
		if err := s.read(ctx, call{q: qBeneath, params: new(args).ids(level).int(int64(q.Count)).params, read: readAll(&below, (*rows).id)}); err != nil {
			return r, fmt.Errorf("find the children of old executions: %w", err)
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

// oldTops finds executions without a parent that ended before a time, and where the walk continues after them.
func (s *Store) oldTops(ctx context.Context, q store.RemovableQuery) (tops []flow.ID, walk store.Removable, err error) {
	limit := row.Micros(q.Before)
	walk.After = q.After
	for late, pages := 0, 0; pages < oldPages; pages++ {
		seen := 0
		err := s.read(ctx, call{q: qOld, params: new(args).id(walk.After).int(oldPage).params, read: func(r *rows) error {
			seen++
			id, created, finished, isRoot := r.id(), r.int(), r.int(), r.bool()
			if late >= lookBeyond || len(tops) >= q.Count {
				return nil
			}
			walk.After = id
			if created >= limit {
				late++
				return nil
			}
			late = 0
			if isRoot && finished < limit {
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

// within returns how many of the first executions have together at most the given bytes, but at least one.
func (s *Store) within(ctx context.Context, ids []flow.ID, bytes int64) (n int, err error) {
	var sum int64
	full := false
	err = s.read(ctx, call{q: qWeights, params: new(args).ids(ids).params, read: func(r *rows) error {
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
