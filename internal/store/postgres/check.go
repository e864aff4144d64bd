package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
	"github.com/pawl-run/pawl/internal/store/row"
	"github.com/pawl-run/pawl/internal/store/verification"
)

// checkChunk is how many executions Check reads in one snapshot. PostgreSQL cannot vacuum rows while a snapshot could still see them, so a
// snapshot is short.
const checkChunk = 500

var (
	qSnapshot = sql(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)

	qPageIDs = sql(`SELECT id FROM ((SELECT id FROM {s}.live WHERE id > $1 ORDER BY id LIMIT $2)
		UNION ALL (SELECT id FROM {s}.ended WHERE id > $1 ORDER BY id LIMIT $2)) x ORDER BY id LIMIT $2`)

	qPageLive = sql(`SELECT ` + liveColumns + `, l.priority, l.queue, l.key, l.cancel_requested, l.wake, l.is_root, (SELECT count(*) FROM {s}.inbox i WHERE i.id = l.id)
		FROM {s}.live l WHERE l.id > $1 AND l.id <= $2`)

	qPageEnded = sql(`SELECT ` + endedColumns + outcomeColumns + `, NULL::bytea, NULL::bytea, d.is_root FROM {s}.ended d WHERE d.id > $1 AND d.id <= $2`)

	qPageHistory = sql(`SELECT id, first, history FROM (
		SELECT id, history_from AS first, history FROM {s}.live WHERE id > $1 AND id <= $2
		UNION ALL SELECT id, history_from, history FROM {s}.ended WHERE id > $1 AND id <= $2
		UNION ALL SELECT id, first, history FROM {s}.events WHERE id > $1 AND id <= $2) h ORDER BY id, first`)

	qParents = sql(`SELECT v.id, (SELECT true FROM {s}.live l WHERE l.id = v.workflow) IS NOT NULL,
			(SELECT true FROM {s}.ended d WHERE d.id = v.workflow) IS NOT NULL, c.id, c.ended_as
		FROM ` + children.rows() + ` AS v
		LEFT JOIN LATERAL (SELECT * FROM {s}.children c
			WHERE c.workflow = v.workflow AND c.attempt = v.attempt AND c.task = v.task AND c.idx = v.idx OFFSET 0) c ON true`)
)

// Check implements store.Store. It may run concurrently with everything else: each part reads one snapshot.
func (s *Store) Check(ctx context.Context) ([]store.Violation, error) {
	var f verification.Findings
	if err := f.ReadPauses(ctx, s); err != nil {
		return nil, err
	}
	for after, more := (flow.ID{}), true; more && !f.Full(); {
		var err error
		if after, more, err = s.checkPage(ctx, &f, after); err != nil {
			return f.All, fmt.Errorf("check executions: %w", err)
		}
	}
	if err := f.ReadPauses(ctx, s); err != nil {
		return f.All, err
	}
	f.Rates()
	for _, rule := range tableRules {
		if f.Full() {
			break
		}
		err := s.read(ctx, call{q: rule.q, params: nil, read: func(r *rows) error {
			f.All = append(f.All, store.Violation{Invariant: rule.invariant, Execution: r.id(), Say: r.text()})
			return nil
		}})
		if err != nil {
			return f.All, fmt.Errorf("check tables: %w", err)
		}
	}
	return f.All, store.Failed(f.Keys(ctx, s), "check keys")
}

// checked is one execution of a page with its events.
type checked struct {
	x      *flow.Execution
	events []flow.Event
}

func (s *Store) checkPage(ctx context.Context, f *verification.Findings, after flow.ID) (last flow.ID, more bool, err error) {
	var a args
	var page []flow.ID
	if err := s.read(ctx, call{q: qPageIDs, params: a.id(after).int(checkChunk).params, read: readAll(&page, (*rows).id)}); err != nil || len(page) == 0 {
		return after, false, err
	}
	last = page[len(page)-1]
	pc, err := s.readers.Acquire(ctx)
	if err != nil {
		return after, false, translate(err)
	}
	defer pc.Release()
	c, answer := s.conn(pc), s.readers.Limits().Answer
	var all []*checked
	byID := make(map[flow.ID]*checked)
	var items columns
	children.begin(&items)
	add := func(x *flow.Execution, isRoot bool) {
		if byID[x.ID] != nil {
			f.Add(16, x.ID, "it lives and has ended")
			return
		}
		k := &checked{x: x}
		all, byID[x.ID] = append(all, k), k
		if isRoot != x.Parent.IsZero() {
			f.Add(33, x.ID, "its row says wrongly whether it has a parent")
		}
		if !x.Parent.IsZero() {
			children.add(&items, item{Execution: x})
		}
	}
	var bounds args
	bounds.id(after).id(last)
	_, err = c.within(ctx, answer, []call{{q: qSnapshot},
		{q: qPageLive, params: bounds.params, read: func(r *rows) error {
			x, _, err := r.live(false)
			if err == nil {
				checkDerived(f, x, r)
				add(x, r.bool())
				verification.Inbox(f, x, int(r.int()))
			}
			return err
		}},
		{q: qPageEnded, params: bounds.params, read: func(r *rows) error {
			x, err := r.ended(complete)
			if err == nil {
				add(x, r.bool())
			}
			return err
		}},
		{q: qPageHistory, params: bounds.params, read: func(r *rows) (err error) {
			k := byID[r.id()]
			if k == nil {
				return nil // another rule reports it
			}
			first := r.int()
			k.events, err = row.DecodeHistory(k.events, r.peek(), first, 0, math.MaxInt64, row.Micros(k.x.CreatedAt), nil)
			return err
		}}})
	if waiting := idsOf(all, flow.KindWait); err == nil && len(waiting) > 0 {
		var found []flow.Wait
		found, err = relational.WaitsFor(ctx, snapshot{s, c, answer}, waiting)
		of := make(map[flow.ID]*flow.Wait, len(found))
		for i := range found {
			of[found[i].Execution] = &found[i]
		}
		for _, id := range waiting {
			verification.Wait(f, byID[id].x, of[id])
		}
	}
	if asks := idsOf(all, flow.KindAsk); err == nil && len(asks) > 0 {
		var found []*flow.Inquiry
		found, err = relational.InquiriesFor(ctx, snapshot{s, c, answer}, asks)
		of := make(map[flow.ID]*flow.Inquiry, len(found))
		for _, i := range found {
			of[i.Execution] = i
		}
		for _, id := range asks {
			verification.Inquiry(f, byID[id].x, of[id])
		}
	}
	if err == nil {
		err = checkReused(ctx, c, answer, f, byID)
	}
	if err == nil {
		err = checkLed(ctx, snapshot{s, c, answer}, f, all)
	}
	if err == nil && items.rows() > 0 {
		var a args
		_, err = c.within(ctx, answer, []call{{q: qParents, params: a.columns(&items).params, read: func(r *rows) error {
			x := byID[r.id()].x
			verification.Item(f, x, verification.Row{Lives: r.bool(), Ended: r.bool(), Names: r.id() == x.ID, As: flow.Stage(r.int())})
			return nil
		}}})
	}
	if _, e := c.within(ctx, answer, []call{{q: qRollback}}); err == nil {
		err = e
	}
	if err != nil {
		if ctx.Err() != nil {
			return after, false, ctx.Err()
		}
		return after, false, translate(err)
	}
	for _, k := range all {
		verification.Execution(f, k.x, k.events)
	}
	return last, true, nil
}

func idsOf(page []*checked, kind flow.Kind) (ids []flow.ID) {
	for _, k := range page {
		if k.x.Kind == kind {
			ids = append(ids, k.x.ID)
		}
	}
	return ids
}

// checkReused compares the executions of a page with those whose outcomes they reused, if these still exist.
func checkReused(ctx context.Context, c *conn, answer time.Duration, f *verification.Findings, page map[flow.ID]*checked) error {
	by := map[flow.ID][]*flow.Execution{}
	var of []flow.ID
	for _, k := range page {
		if id := k.x.ReusedOf; !id.IsZero() {
			if by[id] == nil {
				of = append(of, id)
			}
			by[id] = append(by[id], k.x)
		}
	}
	if len(of) == 0 {
		return nil
	}
	_, err := c.within(ctx, answer, []call{{q: qEndedPayload, params: new(args).ids(of).params, read: func(r *rows) error {
		x, err := r.ended(complete)
		if err != nil {
			return err
		}
		for _, reused := range by[x.ID] {
			verification.Reused(f, reused, x)
		}
		return nil
	}}})
	return err
}

// checkDerived compares the columns that are derived from other columns of an execution.
func checkDerived(f *verification.Findings, x *flow.Execution, r *rows) {
	same := r.int() == int64(x.Priority)
	same = r.text() == x.Queue && same
	same = r.text() == x.Key && same
	same = r.bool() == (x.State.Cancel != nil) && same
	if !(r.int() == row.Micros(x.Wake()) && same) {
		f.Add(33, x.ID, "its queue, key, priority, order or wake time is not what follows from its request and state")
	}
}

// tableRule is a query for rows that break an invariant. It returns an execution's id (or null) and a description of the error.
type tableRule struct {
	invariant int
	q         *query
}

const known = `(SELECT FROM {s}.live l WHERE l.id = v.id) AND NOT EXISTS (SELECT FROM {s}.ended d WHERE d.id = v.id)`

func sharedRules() (all []tableRule) {
	for _, r := range verification.TableRules {
		all = append(all, tableRule{r.Invariant, sql(r.SQL)})
	}
	return all
}

var tableRules = append(sharedRules(), []tableRule{
	{16, sql(`SELECT (min(id::text))::uuid, count(*) || ' executions have ticket ' || ticket || ' in queue ' || queue FROM {s}.live
		WHERE place = 3 GROUP BY queue, ticket HAVING count(*) > 1 LIMIT 1000`)},
	{17, sql(`SELECT id, 'it is item of ' || count(*) || ' tasks' FROM {s}.children GROUP BY id HAVING count(*) > 1 LIMIT 1000`)},
	{17, sql(`SELECT v.workflow, 'task ' || v.task || ' names an execution that does not exist' FROM {s}.children v
		WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{19, sql(`SELECT workflow, 'task ' || task || ' has ' || count(*) || ' items with indices ' || min(idx) || ' to ' || max(idx)
		FROM {s}.children GROUP BY workflow, attempt, task HAVING min(idx) <> 0 OR max(idx) <> count(*) - 1 LIMIT 1000`)},
	{25, sql(`SELECT v.id, 'idempotency key ' || v.key || ' names an execution that does not exist' FROM {s}.idempotency v
		WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{33, sql(`SELECT v.id, 'it runs another execution again and does not exist' FROM {s}.reruns v WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{33, sql(`SELECT v.id, 'it is a retry and does not exist' FROM {s}.retries v WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{60, sql(`SELECT DISTINCT v.workflow, 'it has ended, and outcomes are kept for it to reuse' FROM {s}.reuses v
		WHERE NOT EXISTS (SELECT FROM {s}.live l WHERE l.id = v.workflow) LIMIT 1000`)},
	{67, sql(`SELECT k.origin, 'an outcome is kept of it, and it has not completed with that' FROM {s}.kept k JOIN {s}.ended d ON d.id = k.origin
		WHERE d.stage <> 6 OR d.output IS DISTINCT FROM k.output LIMIT 1000`)},
	{33, sql(`SELECT DISTINCT v.id, 'a run of events belongs to no execution' FROM {s}.events v WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{33, sql(`SELECT DISTINCT v.id, 'a payload belongs to no execution' FROM {s}.payloads v WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{33, sql(`SELECT DISTINCT v.id, 'label ' || v.name || ' belongs to no execution' FROM {s}.labels v WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{33, sql(`SELECT DISTINCT v.id, 'a kept event belongs to an execution that does not live' FROM {s}.inbox v
		WHERE NOT EXISTS (SELECT FROM {s}.live l WHERE l.id = v.id) LIMIT 1000`)},
	{33, sql(`SELECT v.id, 'the pieces of its input do not follow one another at offset ' || min(v.start) FROM (
		SELECT id, start, start <> lag(start + octet_length(data), 1, 0::bigint) OVER w OR number <> row_number() OVER w
			OR lag(last, 1, false) OVER w AS wrong FROM {s}.inputs WINDOW w AS (PARTITION BY id ORDER BY start)) v
		WHERE v.wrong OR NOT EXISTS ` + known + ` GROUP BY v.id LIMIT 1000`)},
	{33, sql(`SELECT DISTINCT v.id, 'an upload is held for no execution' FROM {s}.holds v WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{38, sql(`SELECT v.id, 'an upload that it names is gone' FROM {s}.holds v
		WHERE NOT EXISTS (SELECT FROM {s}.uploads u WHERE u.id = v.upload AND NOT u.dropped) LIMIT 1000`)},
	{44, sql(`SELECT v.id, 'it does not exist, and an inquiry is open for it' FROM (SELECT execution AS id FROM {s}.inquiries WHERE state = 1) v
		WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{43, sql(`SELECT w.execution, 'signal ' || s.n || ' fits, and it waits' FROM {s}.waits w JOIN {s}.signals s ON s.trigger = w.trigger AND s.subject = w.subject AND s.at >= w.since
		WHERE w.signal IS NULL AND w.looked AND left(w.detail::text, 6) <> '{"if":' AND s.detail->>'replayed' IS NULL
			AND NOT EXISTS (SELECT FROM {s}.unmet u WHERE u.signal = s.n)
			AND NOT EXISTS (SELECT FROM {s}.waits o WHERE o.workflow = w.workflow AND o.attempt = w.attempt AND o.signal = s.n) LIMIT 1000`)},
	{44, sql(`SELECT v.id, 'it does not exist, and waits for a signal' FROM (SELECT execution AS id FROM {s}.waits WHERE signal IS NULL) v
		WHERE NOT EXISTS ` + known + ` LIMIT 1000`)},
	{33, sql(`SELECT NULL::uuid, 'blob ' || b.name || ' lacks pieces' FROM {s}.blobs b LEFT JOIN {s}.blob_pieces p USING (content)
		GROUP BY b.name HAVING count(p.number) = 0 OR max(p.number) <> count(p.number) - 1 LIMIT 1000`)},
	{33, sql(`SELECT DISTINCT NULL::uuid, 'the pieces of content ' || p.content || ' belong to no blob' FROM {s}.blob_pieces p
		WHERE NOT EXISTS (SELECT FROM {s}.blobs b WHERE b.content = p.content) AND NOT EXISTS (SELECT FROM {s}.blob_loose l WHERE l.content = p.content) LIMIT 1000`)},
}...)
