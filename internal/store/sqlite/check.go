package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/relational"
	"github.com/pawl-run/pawl/internal/store/row"
	"github.com/pawl-run/pawl/internal/store/verification"
)

// checkChunk is how many executions Check reads in one snapshot. A write-ahead log cannot be moved into the file while a snapshot needs it,
// so a snapshot is kept short.
const checkChunk = 500

// Check implements store.Store. It may run concurrently with everything else: each part reads one snapshot.
func (s *Store) Check(ctx context.Context) ([]store.Violation, error) {
	var f verification.Findings
	if err := f.ReadPauses(ctx, s); err != nil {
		return nil, err
	}
	for after, more := int64(0), true; more && !f.Full(); {
		err := s.read(ctx, func(c *conn) (err error) {
			after, more, err = c.checkExecutions(&f, after)
			return err
		})
		if err != nil {
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
		if err := s.read(ctx, func(c *conn) error { return c.checkTable(&f, rule) }); err != nil {
			return f.All, fmt.Errorf("check tables: %w", err)
		}
	}
	return f.All, store.Failed(f.Keys(ctx, s), "check keys")
}

var qNumbersBeyond = sql(`SELECT n FROM executions WHERE n > ? ORDER BY n LIMIT ?`)

func (c *conn) checkExecutions(f *verification.Findings, after int64) (last int64, more bool, err error) {
	numbers, err := c.use(qNumbersBeyond).int(after).int(checkChunk).numbers()
	if err != nil || len(numbers) == 0 {
		return after, false, err
	}
	for _, n := range numbers {
		if err := c.checkExecution(f, n); err != nil {
			return after, false, err
		}
	}
	return numbers[len(numbers)-1], true, nil
}

func (c *conn) checkExecution(f *verification.Findings, n int64) error {
	x, err := c.load(n, store.WithPayload)
	if err != nil {
		return err
	}
	if x == nil {
		f.Add(16, flow.ID{}, "execution number %d is in no place: it neither lives nor has ended", n)
		return nil
	}
	events, err := c.events(n, 0, maxEvents, -1, nil)
	if err != nil {
		return err
	}
	verification.Execution(f, x, events)
	if x.Place != flow.Finished {
		if err := c.checkLive(f, n, x); err != nil {
			return err
		}
	}
	if x.Kind == flow.KindAsk {
		found, err := relational.InquiriesFor(context.Background(), c, []flow.ID{x.ID})
		if err != nil {
			return err
		}
		verification.Inquiry(f, x, append(found, nil)[0])
	}
	if x.Kind == flow.KindWait {
		found, err := relational.WaitsFor(context.Background(), c, []flow.ID{x.ID})
		if err != nil {
			return err
		}
		var w *flow.Wait
		if len(found) > 0 {
			w = &found[0]
		}
		verification.Wait(f, x, w)
	}
	if !x.ReusedOf.IsZero() {
		if err := c.checkReused(f, x); err != nil {
			return err
		}
	}
	if !x.Parent.IsZero() {
		return c.checkChild(f, n, x)
	}
	return relational.CheckLed(context.Background(), c, f, []*flow.Execution{x})
}

// checkReused compares an execution with the one whose outcome it reused, if that still exists.
func (c *conn) checkReused(f *verification.Findings, x *flow.Execution) error {
	n, ok, err := c.number(x.ReusedOf)
	if err != nil || !ok {
		return err
	}
	of, err := c.load(n, store.WithPayload)
	if err == nil && of != nil {
		verification.Reused(f, x, of)
	}
	return err
}

var (
	qDerived = sql(`SELECT priority, queue, key, cancel_requested, wake, (SELECT count(*) FROM inbox i WHERE i.n = l.n) FROM live l WHERE n = ?`)

	qChildRow = sql(`SELECT c.n, CASE c.ended WHEN 2 THEN 0 ELSE c.ended END, l.n IS NOT NULL, d.n IS NOT NULL FROM (SELECT 1)
		LEFT JOIN children c ON c.workflow = ? AND c.attempt = ? AND c.task = ? AND c.idx = ? LEFT JOIN live l ON l.n = ? LEFT JOIN ended d ON d.n = ?`)
)

// checkLive recomputes the columns that are derived from other columns of an execution.
func (c *conn) checkLive(f *verification.Findings, n int64, x *flow.Execution) error {
	s := c.use(qDerived).int(n)
	if s.next() {
		same := s.getInt() == int64(x.Priority) && s.getText() == x.Queue && s.getText() == x.Key &&
			s.getInt() == truth(x.Cancel != nil) && s.getInt() == row.Micros(x.Wake())
		if !same {
			f.Add(33, x.ID, "its queue, key, priority, order or wake time is not what follows from its request and state")
		}
	}
	s.column = 4
	verification.Inbox(f, x, int(s.getInt()))
	return s.done()
}

// checkChild compares an execution with its row in its workflow.
func (c *conn) checkChild(f *verification.Findings, n int64, x *flow.Execution) error {
	parent, _, err := c.number(x.Parent)
	if err != nil {
		return err
	}
	var r verification.Row
	s := c.use(qChildRow).int(parent).int(int64(x.ParentAttempt)).text(x.Task).int(int64(x.Index)).int(parent).int(parent)
	if s.next() {
		r = verification.Row{Names: s.getInt() == n, As: flow.Stage(s.getInt()), Lives: s.getInt() == 1, Ended: s.getInt() == 1}
	}
	verification.Item(f, x, r)
	return s.done()
}

// tableRule is a query for rows that break an invariant. It returns an execution's id (or null) and a description of the error.
type tableRule struct {
	invariant int
	q         *query
}

func sharedRules() (all []tableRule) {
	for _, r := range verification.TableRules {
		all = append(all, tableRule{r.Invariant, sql(strings.ReplaceAll(r.SQL, "{s}.", ""))})
	}
	return all
}

var tableRules = append(sharedRules(), []tableRule{
	{16, sql(`SELECT e.id, 'it lives and has ended' FROM live l JOIN ended d ON d.n = l.n JOIN executions e ON e.n = l.n`)},
	{16, sql(`SELECT min(e.id), count(*) || ' executions have ticket ' || l.ticket || ' in queue ' || l.queue FROM live l
		JOIN executions e ON e.n = l.n WHERE l.place = 3 GROUP BY l.queue, l.ticket HAVING count(*) > 1`)},
	{17, sql(`SELECT min(e.id), 'it is item of ' || count(*) || ' tasks' FROM children c JOIN executions e ON e.n = c.n
		GROUP BY c.n HAVING count(*) > 1`)},
	{17, sql(`SELECT e.id, 'task ' || c.task || ' names an execution that does not exist' FROM children c
		JOIN executions e ON e.n = c.workflow LEFT JOIN executions k ON k.n = c.n WHERE k.n IS NULL`)},
	{19, sql(`SELECT e.id, 'task ' || c.task || ' has ' || count(*) || ' items with indices ' || min(c.idx) || ' to ' || max(c.idx)
		FROM children c JOIN executions e ON e.n = c.workflow GROUP BY c.workflow, c.attempt, c.task
		HAVING min(c.idx) <> 0 OR max(c.idx) <> count(*) - 1`)},
	{25, sql(`SELECT e.id, 'idempotency key ' || i.key || ' names an execution that does not exist' FROM idempotency i
		LEFT JOIN executions e ON e.n = i.n WHERE e.n IS NULL`)},
	{33, sql(`SELECT i.id, 'its number leads to another execution or to none' FROM ids i LEFT JOIN executions e ON e.n = i.n
		WHERE e.id IS NOT i.id`)},
	{33, sql(`SELECT e.id, 'it cannot be found by its id' FROM executions e LEFT JOIN ids i ON i.id = e.id WHERE i.n IS NOT e.n`)},
	{33, sql(`SELECT NULL, 'number ' || l.n || ' lives and was never submitted' FROM live l LEFT JOIN executions e ON e.n = l.n WHERE e.n IS NULL`)},
	{33, sql(`SELECT NULL, 'number ' || d.n || ' has ended and was never submitted' FROM ended d LEFT JOIN executions e ON e.n = d.n WHERE e.n IS NULL`)},
	{33, sql(`SELECT DISTINCT NULL, 'event ' || (v.k & 4194303) || ' is of number ' || (v.k >> 22) || ', which was never submitted' FROM events v
		WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.n = v.k >> 22)`)},
	{33, sql(`SELECT NULL, 'a kept event is of number ' || i.n || ', which does not live' FROM inbox i LEFT JOIN live l ON l.n = i.n WHERE l.n IS NULL`)},
	{33, sql(`SELECT NULL, 'label ' || b.name || ' is of number ' || b.n || ', which was never submitted' FROM labels b
		LEFT JOIN executions e ON e.n = b.n WHERE e.n IS NULL`)},
	{33, sql(`SELECT e.id, 'the pieces of its input do not follow one another at offset ' || min(i.start) FROM (
		SELECT n, start, start <> lag(start + coalesce(length(data), 0), 1, 0) OVER w OR number <> row_number() OVER w
			OR lag(last, 1, 0) OVER w <> 0 AS wrong FROM inputs WINDOW w AS (PARTITION BY n ORDER BY start)) i
		LEFT JOIN executions e ON e.n = i.n WHERE i.wrong OR e.n IS NULL GROUP BY i.n`)},
	{33, sql(`SELECT NULL, 'an upload is held for number ' || h.n || ', which was never submitted' FROM holds h
		LEFT JOIN executions e ON e.n = h.n WHERE e.n IS NULL`)},
	{38, sql(`SELECT e.id, 'an upload that it names is gone' FROM holds h JOIN executions e ON e.n = h.n
		LEFT JOIN uploads u ON u.id = h.upload AND u.dropped = 0 WHERE u.id IS NULL`)},
	{33, sql(`SELECT NULL, 'number ' || r.n || ' runs another execution again and was never submitted' FROM reruns r
		LEFT JOIN executions e ON e.n = r.n WHERE e.n IS NULL`)},
	{33, sql(`SELECT NULL, 'number ' || r.n || ' is a retry and was never submitted' FROM retries r LEFT JOIN executions e ON e.n = r.n WHERE e.n IS NULL`)},
	{60, sql(`SELECT e.id, 'it has ended, and outcomes are kept for it to reuse' FROM (SELECT DISTINCT workflow FROM reuses) u
		LEFT JOIN executions e ON e.n = u.workflow LEFT JOIN live l ON l.n = u.workflow WHERE l.n IS NULL`)},
	{67, sql(`SELECT k.origin, 'an outcome is kept of it, and it has not completed with that' FROM kept k JOIN ids i ON i.id = k.origin
		LEFT JOIN ended d ON d.n = i.n WHERE d.n IS NULL OR d.stage <> 6 OR d.output IS NOT k.output`)},
	{44, sql(`SELECT i.execution, 'it does not exist, and an inquiry is open for it' FROM inquiries i LEFT JOIN ids d ON d.id = i.execution
		WHERE i.state = 1 AND d.n IS NULL`)},
	{43, sql(`SELECT w.execution, 'signal ' || s.n || ' fits, and it waits' FROM waits w JOIN signals s ON s.trigger = w.trigger AND s.subject = w.subject AND s.at >= w.since
		WHERE w.signal IS NULL AND w.looked = 1 AND json_extract(w.detail, '$.if') IS NULL AND json_extract(s.detail, '$.replayed') IS NULL
			AND NOT EXISTS (SELECT 1 FROM unmet u WHERE u.signal = s.n)
			AND NOT EXISTS (SELECT 1 FROM waits o WHERE o.workflow = w.workflow AND o.attempt = w.attempt AND o.signal = s.n)`)},
	{44, sql(`SELECT w.execution, 'it does not exist, and waits for a signal' FROM waits w LEFT JOIN ids d ON d.id = w.execution WHERE w.signal IS NULL AND d.n IS NULL`)},
	{33, sql(`SELECT NULL, quick_check FROM pragma_quick_check WHERE quick_check <> 'ok'`)},
}...)

func (c *conn) checkTable(f *verification.Findings, rule tableRule) error {
	s := c.use(rule.q)
	for !f.Full() && s.next() {
		f.All = append(f.All, store.Violation{Invariant: rule.invariant, Execution: s.getID(), Say: s.getText()})
	}
	return s.done()
}
