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

// listing is a query under construction: conditions with their parameters, in order.
type listing struct {
	sources []source
	where   []string
	bind    []func(*stmt)
}

// source is a table from which the numbers of executions with some property can be read.
type source struct {
	rows  string // query for the numbers
	probe string // the same condition for one row of executions e, live l and ended d; "": there are always few rows
	bind  []func(*stmt)
}

func (l *listing) text(v string)   { l.bind = append(l.bind, func(s *stmt) { s.text(v) }) }
func (l *listing) int(v int64)     { l.bind = append(l.bind, func(s *stmt) { s.int(v) }) }
func (l *listing) blob(v []byte)   { l.bind = append(l.bind, func(s *stmt) { s.blob(v) }) }
func (l *listing) and(cond string) { l.where = append(l.where, cond) }

func (l *listing) from(rows, probe string, bind ...func(*stmt)) {
	l.sources = append(l.sources, source{rows, probe, bind})
}

func (s *Store) Search(ctx context.Context, f store.Filter) (found store.Found, err error) {
	err = s.read(ctx, func(c *conn) error {
		l, ok, err := c.listing(f)
		if err != nil || !ok {
			return err
		}
		from, err := c.bounds(l, f)
		if err != nil {
			return err
		}
		q := c.prepare("SELECT l.n IS NOT NULL, " + requestRead.names("e.") + ", " + liveRead.names("l.") + ", " + endedRead.names("d.") + ", " + failures.names("d.") + from.sql + " ORDER BY i.id" + from.order + " LIMIT ?")
		defer q.free()
		for _, bind := range from.bind {
			bind(q)
		}
		q.int(int64(f.Limit))
		var bad error
		page := store.Page(0)
		for !page.Full() && q.next() {
			x, err := q.either()
			if err != nil {
				bad = err
				break
			}
			page.Execution(x)
			found.Executions = append(found.Executions, x)
		}
		if err := q.done(); err != nil {
			return err
		}
		if bad == nil && !page.Full() && len(found.Executions) < f.Limit {
			found.Searched, found.At = from.last, from.at
		}
		return bad
	})
	return found, store.Failed(err, "list executions")
}

// bounded is a search with its limits, without the columns that it reads.
type bounded struct {
	sql   string
	bind  []func(*stmt)
	order string    // DESC, or empty if the oldest come first
	last  flow.ID   // the last execution that it examines; zero: it examines all
	at    time.Time // creation time of that execution
}

// bounds limits a search. If a condition has few rows, only these are examined. Otherwise executions are examined in the order of ids, and
// the search ends after f.Looks of them.
func (c *conn) bounds(l *listing, f store.Filter) (b bounded, err error) {
	var conditions []string
	few := false
	for _, s := range l.sources {
		rare := s.probe == ""
		if !rare {
			if rare, err = c.few(&s, f.Few()); err != nil {
				return b, err
			}
		}
		if few = few || rare; rare {
			conditions = append(conditions, "e.n IN ("+s.rows+")")
		} else {
			conditions = append(conditions, s.probe)
		}
		b.bind = append(b.bind, s.bind...)
	}
	conditions = append(conditions, l.where...)
	b.bind = append(b.bind, l.bind...)
	if !f.Before.IsZero() {
		conditions = append(conditions, "i.id < ?")
		b.bind = append(b.bind, func(s *stmt) { s.id(f.Before) })
	}
	if !f.After.IsZero() {
		conditions = append(conditions, "i.id > ?")
		b.bind = append(b.bind, func(s *stmt) { s.id(f.After) })
	}
	b.sql = " FROM executions e CROSS JOIN ids i ON i.id = e.id" + joinStates
	if !few {
		b.sql = " FROM ids i CROSS JOIN executions e ON e.n = i.n" + joinStates
		if len(l.sources)+len(l.where) > 0 {
			if b.last, b.at, err = c.last(f); err != nil {
				return b, err
			}
		}
	}
	within := "i.id >= ?"
	if b.order = " DESC"; f.Oldest {
		b.order, within = "", "i.id <= ?"
	}
	if !b.last.IsZero() {
		conditions = append(conditions, within)
		b.bind = append(b.bind, func(s *stmt) { s.id(b.last) })
	}
	if len(conditions) > 0 {
		b.sql += " WHERE " + strings.Join(conditions, " AND ")
	}
	return b, nil
}

// few reports whether a source has at most "most" rows.
func (c *conn) few(s *source, most int) (bool, error) {
	q := c.prepare("SELECT count(*) FROM (" + s.rows + " LIMIT ?)")
	defer q.free()
	for _, bind := range s.bind {
		bind(q)
	}
	rare := q.int(int64(most+1)).next() && q.getInt() <= int64(most)
	return rare, q.done()
}

var (
	qLast       = sql(`SELECT id, created_at FROM executions WHERE n = (SELECT n FROM ids ORDER BY id DESC LIMIT 1 OFFSET ?)`)
	qLastBefore = sql(`SELECT id, created_at FROM executions WHERE n = (SELECT n FROM ids WHERE id < ? ORDER BY id DESC LIMIT 1 OFFSET ?)`)
	qLastAfter  = sql(`SELECT id, created_at FROM executions WHERE n = (SELECT n FROM ids WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?)`)
)

// last returns the id at which a search ends after f.Looks executions; zero: there are fewer.
func (c *conn) last(f store.Filter) (id flow.ID, at time.Time, err error) {
	var q *stmt
	switch {
	case f.Oldest:
		q = c.use(qLastAfter).blob(f.After[:]) // id would bind NULL for a zero id
	case !f.Before.IsZero():
		q = c.use(qLastBefore).id(f.Before)
	default:
		q = c.use(qLast)
	}
	q.int(int64(f.Looks() - 1))
	if q.next() {
		id, at = q.getID(), row.FromMicros(q.getInt())
	}
	if err := q.done(); err != nil || f.Ends(id) {
		return flow.ID{}, time.Time{}, err
	}
	return id, at, nil
}

// listing converts a filter into conditions, without the cursor; false means that nothing can match.
func (c *conn) listing(f store.Filter) (*listing, bool, error) {
	l := &listing{}
	if !f.Workflow.IsZero() {
		n, ok, err := c.number(f.Workflow)
		if err != nil || !ok {
			return nil, false, err
		}
		l.from("SELECT n FROM children WHERE workflow = ?", "e.parent = ?", func(s *stmt) { s.int(n) })
	}
	if !f.RerunOf.IsZero() {
		l.from("SELECT n FROM reruns WHERE original = ?", "", func(s *stmt) { s.id(f.RerunOf) })
	}
	if !f.RetryOf.IsZero() {
		l.from("SELECT n FROM retries WHERE original = ?", "", func(s *stmt) { s.id(f.RetryOf) })
	}
	if len(f.IDs) > 0 {
		l.from("SELECT n FROM ids WHERE id IN (?"+strings.Repeat(", ?", len(f.IDs)-1)+")", "", func(s *stmt) {
			for _, id := range f.IDs {
				s.id(id)
			}
		})
	}
	for name, value := range f.Labels {
		l.from("SELECT n FROM labels WHERE name = ? AND value = ?", "EXISTS (SELECT 1 FROM labels b WHERE b.name = ? AND b.value = ? AND b.n = e.n)",
			func(s *stmt) { s.text(name).text(value) })
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
	return l, true, nil
}

// verdicts adds the condition on the verdict. An encoded error begins with its code.
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
	if len(l.sources) == 0 && !slices.Contains(verdicts, store.VerdictOK) {
		l.from("SELECT n FROM ended WHERE stage > 6", "d.stage > 6")
	}
}

// stages adds the condition on the stage. Unfinished executions, and those that ended without completing, are looked up by their own rows,
// which are few however many executions have completed.
func (l *listing) stages(stages []flow.Stage) {
	var numbers []string
	for _, s := range stages {
		numbers = append(numbers, fmt.Sprint(uint8(s)))
	}
	in := " IN (" + strings.Join(numbers, ", ") + ")"
	switch {
	case !slices.ContainsFunc(stages, flow.Stage.Terminal):
		l.from("SELECT n FROM live WHERE stage"+in, "l.stage"+in)
	case !slices.ContainsFunc(stages, func(s flow.Stage) bool { return s <= flow.Completed }):
		l.from("SELECT n FROM ended WHERE stage > 6 AND stage"+in, "d.stage"+in)
	default:
		l.and("(l.stage" + in + " OR d.stage" + in + ")")
	}
}

const joinStates = " LEFT JOIN live l ON l.n = e.n LEFT JOIN ended d ON d.n = e.n"

// rows selects all rows of the listing, as FROM and WHERE clauses.
func (l *listing) rows() string {
	from := " FROM ids i CROSS JOIN executions e ON e.n = i.n"
	if len(l.sources) > 0 {
		from = " FROM executions e CROSS JOIN ids i ON i.id = e.id"
	}
	var all []string
	for _, s := range l.sources {
		all = append(all, "e.n IN ("+s.rows+")")
	}
	if all = append(all, l.where...); len(all) > 0 {
		return from + joinStates + " WHERE " + strings.Join(all, " AND ")
	}
	return from + joinStates
}

// bound binds the parameters of the conditions.
func (l *listing) bound(s *stmt) *stmt {
	for _, source := range l.sources {
		for _, bind := range source.bind {
			bind(s)
		}
	}
	for _, bind := range l.bind {
		bind(s)
	}
	return s
}

// either reads a row of a search: whether it is live, then requestRead, liveRead, endedRead and the error. The columns of the other table
// are NULL.
func (s *stmt) either() (*flow.Execution, error) {
	if s.getInt() == 1 {
		return s.live(false)
	}
	x := &flow.Execution{State: flow.State{Place: flow.Finished}}
	err := requestRead.read(s, x)
	s.skip(int32(len(liveRead)))
	if err == nil {
		err = endedRead.read(s, x)
	}
	if err == nil {
		err = failures.read(s, x)
	}
	if err != nil {
		return nil, fmt.Errorf("read execution %s: %w", x.ID, err)
	}
	return x, nil
}

var (
	qOld = sql(`SELECT i.id, d.n, e.parent IS NULL, e.created_at, e.created_at + d.finished_after
		FROM ids i JOIN ended d ON d.n = i.n JOIN executions e ON e.n = i.n WHERE i.id > ? ORDER BY i.id`)

	// Later items of a task come first, and later tasks and attempts.
	qBeneath = sql(`SELECT c.n, e.id FROM children c JOIN executions e ON e.n = c.n WHERE c.workflow = ?
		ORDER BY c.attempt DESC, c.task DESC, c.idx DESC LIMIT ?`)

	// SQLite knows the length of a blob without reading it. Events are counted, with an estimate of 400 bytes each.
	qWeight = sql(`SELECT coalesce(length(e.input), 0) + coalesce(length(e.payload), 0) + coalesce(length(d.output), 0)
		+ (SELECT count(*) * 400 FROM events WHERE k >= ? AND k < ?) + (SELECT coalesce(sum(length(data)), 0) FROM inputs WHERE n = ?)
		FROM executions e JOIN ended d ON d.n = e.n WHERE e.n = ?`)
)

// lookBeyond is the number of consecutive executions, all created too late to have ended before the given time, after which the search
// ends. Ids are nearly in order of submission, but a clock may have been set back.
const lookBeyond = 1000

// oldMost is how many executions one call examines. A workflow that runs for months may have a million ended children, which are kept while
// it runs.
const oldMost = 40_000

// old is an execution that retention may remove.
type old struct {
	n  int64
	id flow.ID
}

// Removable implements store.Reader. It walks through executions in order of id, so it needs no index of its own, which every execution
// would have to update.
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
	return r, store.Failed(err, "find old executions")
}

func named(all []old) []flow.ID {
	ids := make([]flow.ID, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	return ids
}

// oldTops finds executions without a parent that ended before a time, and where the walk continues after them.
func (c *conn) oldTops(q store.RemovableQuery) (tops []old, walk store.Removable, err error) {
	walk.After = q.After
	limit := row.Micros(q.Before)
	s := c.use(qOld).blob(q.After[:]) // id would bind NULL for a zero id
	for late, seen := 0, 0; late < lookBeyond; seen++ {
		if walk.More = len(tops) == q.Count || seen == oldMost; walk.More || !s.next() {
			break
		}
		x := old{id: s.getID(), n: s.getInt()}
		walk.After = x.id
		isRoot := s.getInt() == 1
		if s.getInt() >= limit {
			late++
			continue
		}
		late = 0
		if finished := s.getInt(); isRoot && finished < limit {
			tops = append(tops, x)
		}
	}
	return tops, walk, s.done()
}

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

// within returns the first executions that have together at most the given bytes, but at least one.
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
