package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// The statements that write. Each takes its rows as one array per column, and checks with the function "expect" that it changed as many
// rows. Rows that must, or must not, exist are looked up by scalar subqueries. The planner could turn EXISTS into a hash of the whole
// table, because it plans without knowing how large the table will be.
var (
	qInsertLive = sql(`WITH v AS ` + live.rows() + `,
		made AS (INSERT INTO {s}.live (` + live.names("") + `, history_from) SELECT ` + live.names("") + `, 1
			FROM v WHERE (SELECT true FROM {s}.ended d WHERE d.id = v.id) IS NULL RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM made), cardinality($1), 'PW409', 'executions exist already and have ended')`)

	qInsertEnded = sql(`INSERT INTO {s}.ended (` + ended.names("") + `, history_from) SELECT v.*, 1 FROM ` + ended.rows() + ` AS v`)

	qInsertPayload = sql(payloads.insert("payloads"))

	qInsertLabels = sql(labels.insert("labels"))

	qInsertChildren = sql(`WITH v AS ` + children.rows() + `,
		made AS (INSERT INTO {s}.children (` + children.names("") + `) SELECT ` + children.names("") + ` FROM v
			WHERE coalesce((SELECT true FROM {s}.live l WHERE l.id = v.workflow), (SELECT true FROM {s}.ended d WHERE d.id = v.workflow)) RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM made), cardinality($1), 'PW404', 'the workflow of an execution does not exist')`)

	qEndChildren = sql(`UPDATE {s}.children c SET ended_as = v.ended_as FROM ` + children.rows() + ` AS v WHERE ` + childOf)

	qSpill = sql(`INSERT INTO {s}.events (id, first, history)
		SELECT l.id, l.history_from, l.history FROM {s}.live l WHERE l.id = ANY ($1::uuid[]) AND octet_length(l.history) > 0`)

	qMove = sql(update(moves, moved))
	qStep = sql(update(steps, stepped))

	qEnd = sql(`WITH v AS ` + ends.rows() + `,
		gone AS (DELETE FROM {s}.live l USING v WHERE ` + asRead + ` RETURNING ` + asEnded() + `, l.history_from),
		written AS (INSERT INTO {s}.ended (` + ended.names("") + `, history_from) SELECT ` + ended.names("") + `, history_from FROM gone RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM written), cardinality($1), 'PW409', 'executions are no longer as they were read')`)

	qDropKept = sql(`DELETE FROM {s}.inbox i USING ` + dropped.rows() + ` AS v WHERE ` + is("i.id", "v.id") + ` AND i.seq < v.below`)

	qKeep = sql(inbox.insert("inbox") + ` ON CONFLICT (id, seq) DO UPDATE SET event = excluded.event`)

	qMark = sql(marks.insert("marks") + ` ON CONFLICT (workflow, attempt, task)
		DO UPDATE SET state = excluded.state, total = excluded.total, error = excluded.error`)

	qInsertKeys = sql(idempotency.insert("idempotency"))
)

// update returns a statement that changes live rows. It takes the rows from v, changes those that are still as the decision read them
// (asRead), and assigns the columns in "to".
func update(what, to executions) string {
	return `WITH v AS ` + what.rows() + `,
		moved AS (UPDATE {s}.live l SET ` + to.sets() + `, ` + setHistory + ` FROM v WHERE ` + asRead + ` RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM moved), cardinality($1), 'PW409', 'executions are no longer as they were read')`
}

const (
	// externalFrom is the size in bytes from which a payload has its own row, in the table "payloads".
	externalFrom = 1500
	// runLimit is how many bytes of history a live row contains. Every change rewrites the row, so older history is moved out of it.
	runLimit = 1000
)

// writes has the columns that Apply fills. A transaction reuses those of the previous one, with their memory.
type writes struct {
	insert, ended, payloads, labels, children, endChildren, move, step, end, dropKept, keep, keys, changes, marks, reruns, retries columns

	x change // the draft that is being added
}

// Apply implements store.Tx. The statements are sent with the next one that needs an answer, or with the commit, and their errors appear
// only then.
func (t *tx) Apply(ctx context.Context, d store.Delta) error {
	if t.failed != nil {
		return t.failed
	}
	t.keepExpected(&d)
	drafts := d.Drafts
	if !slices.IsSortedFunc(drafts, byID) { // rows are locked in a fixed order
		drafts = slices.SortedFunc(slices.Values(drafts), byID)
	}
	w := &t.w
	w.begin()
	var spill, reran []flow.ID
	for _, x := range drafts {
		if err := representable(x); err != nil {
			return err
		}
		if x.Place == flow.Ready {
			delete(t.expectedEmpty.queues, x.Queue)
		}
		switch {
		case x.New:
			t.addNew(x)
		case x.Changed():
			if t.addChange(x) {
				spill = append(spill, x.ID)
			}
		default:
			continue
		}
		if !x.RerunOf.IsZero() {
			if x.New {
				reruns.add(&w.reruns, x.Execution)
			} else if x.Place == flow.Finished {
				reran = append(reran, x.ID)
			}
		}
		if x.New && !x.RetryOf().IsZero() {
			retries.add(&w.retries, x.Execution)
		}
		w.addInbox(x)
		t.news.add(x)
	}
	t.idem = append(t.idem, d.Keys...)
	t.put(qInsertLive, &w.insert)
	t.put(qInsertEnded, &w.ended)
	t.put(qInsertPayload, &w.payloads)
	t.put(qInsertLabels, &w.labels)
	t.put(qInsertChildren, &w.children)
	if len(spill) > 0 {
		t.add(qSpill, t.args().ids(spill), nil)
	}
	t.put(qMove, &w.move)
	t.put(qStep, &w.step)
	t.put(qEnd, &w.end)
	t.put(qEndChildren, &w.endChildren)
	t.put(qDropKept, &w.dropKept)
	t.put(qKeep, &w.keep)
	for _, m := range d.Workflows.Marks {
		marks.begin(&w.marks)
		marks.add(&w.marks, &m)
		t.put(qMark, &w.marks)
	}
	t.putChanges(d.Workflows.Changes)
	if err := t.AddInput(ctx, d.Input); err != nil {
		return err
	}
	for i := range d.Input {
		t.news.merge(news{executions: []flow.ID{d.Input[i].Execution}})
	}
	if err := t.AddUploadReferences(ctx, d.UploadReferences); err != nil {
		return err
	}
	t.put(qInsertReruns, &w.reruns)
	t.put(qInsertRetries, &w.retries)
	if err := t.Reuse(ctx, d.Workflows.Reuses); err != nil {
		return err
	}
	if err := t.DropReuses(ctx, reran); err != nil {
		return err
	}
	if err := t.applySignals(ctx, &d); err != nil {
		return err
	}
	if err := t.PutRest(ctx, &d); err != nil {
		return err
	}
	t.switched = append(t.switched, d.Rules.Switches...)
	t.outcomes = append(t.outcomes, d.Kept...)
	if len(t.a.b) > sendBeyond {
		return t.flush(ctx)
	}
	return nil
}

func (t *tx) putChanges(all []store.WorkflowChange) {
	changes.begin(&t.w.changes)
	for i := range all {
		changes.add(&t.w.changes, &all[i])
	}
	t.put(qInsertChanges, &t.w.changes)
}

// insertKeys writes the idempotency keys, last and sorted, because inserting a key waits for a transaction that has written the same key.
func (t *tx) insertKeys() {
	slices.SortFunc(t.idem, func(a, b store.IdempotencyKey) int { return strings.Compare(a.Key, b.Key) })
	idempotency.begin(&t.w.keys)
	for i := range t.idem {
		idempotency.add(&t.w.keys, &t.idem[i])
	}
	t.put(qInsertKeys, &t.w.keys)
	t.idem = nil
}

// sendBeyond is how many bytes of parameters may wait for the commit. Above it the statements are sent earlier.
const sendBeyond = 4 << 20

func byID(a, b *flow.Draft) int { return slices.Compare(a.ID[:], b.ID[:]) }

// put queues a statement, if there are rows for it.
func (t *tx) put(q *query, c *columns) {
	if c.rows() > 0 {
		t.add(q, t.args().columns(c), nil)
	}
}

// representable refuses a draft whose numbers do not fit into their columns.
func representable(x *flow.Draft) error {
	if most := max(x.Attempt, x.Index, x.ParentAttempt); most > math.MaxInt32 {
		return fmt.Errorf("write execution %s: attempt or item %d is beyond what can be stored", x.ID, most)
	}
	return nil
}

func (w *writes) begin() {
	live.begin(&w.insert)
	ended.begin(&w.ended)
	payloads.begin(&w.payloads)
	labels.begin(&w.labels)
	children.begin(&w.children)
	children.begin(&w.endChildren)
	moves.begin(&w.move)
	steps.begin(&w.step)
	ends.begin(&w.end)
	dropped.begin(&w.dropKept)
	inbox.begin(&w.keep)
	reruns.begin(&w.reruns)
	retries.begin(&w.retries)
}

// change prepares the rows of a draft whose first new event has number next. The next call overwrites the result.
func (w *writes) change(x *flow.Draft, next int64) *change {
	c := &w.x
	*c = change{Draft: x, created: row.Micros(x.CreatedAt), history: c.history[:0]}
	c.history = row.AppendHistory(c.history, x.Events, next, c.created)
	return c
}

// addNew adds a new execution: its row, its labels and the other rows that belong to it.
func (t *tx) addNew(x *flow.Draft) {
	w := &t.w
	c := w.change(x, 1)
	if c.payloadExternal = len(x.Input)+len(x.With) > externalFrom; c.payloadExternal {
		payloads.add(&w.payloads, c)
	} else {
		c.input, c.with = x.Input, x.With
	}
	if x.Place == flow.Finished {
		ended.add(&w.ended, c)
	} else {
		live.add(&w.insert, c)
		t.runs[x.ID] = len(c.history)
	}
	for name, value := range x.Labels {
		labels.add(&w.labels, label{x.ID, name, value})
	}
	if !x.Parent.IsZero() {
		children.add(&w.children, itemOf(x))
	}
}

// itemOf returns a draft as the item of a task, after the decision.
func itemOf(x *flow.Draft) item {
	if x.Place == flow.Finished {
		return item{x.Execution, x.Stage}
	}
	return item{Execution: x.Execution}
}

// addChange adds a change of an execution, and reports whether the history in its row must be moved out first.
func (t *tx) addChange(x *flow.Draft) (spill bool) {
	b, w := &x.Before, &t.w
	c := w.change(x, b.NextSeq)
	c.known = t.known[x.ID]
	if x.Place == flow.Finished {
		ends.add(&w.end, c)
		if !x.Parent.IsZero() {
			children.add(&w.endChildren, itemOf(x))
		}
		delete(t.runs, x.ID)
		return false
	}
	c.afresh = t.grow(x, len(c.history))
	if b.Place == x.Place && b.Attempt == x.Attempt && b.Ticket == x.Ticket && b.Owner == x.Owner &&
		(b.Cancel == nil) == (x.State.Cancel == nil) && wakeOf(x.Execution, b).Equal(x.Wake()) {
		steps.add(&w.step, c)
	} else {
		moves.add(&w.move, c)
	}
	return c.afresh
}

// grow reports whether the history in a live row must be moved out before more is added. It is also moved out if this transaction has not
// read the row, because its length is then unknown.
func (t *tx) grow(x *flow.Draft, more int) bool {
	if more == 0 {
		return false
	}
	size, known := t.runs[x.ID]
	if known && (size == 0 || size+more <= runLimit) {
		t.runs[x.ID] = size + more
		return false
	}
	t.runs[x.ID] = more
	return true
}

// wakeOf returns the wake-up time of x in an earlier state.
func wakeOf(x *flow.Execution, s *flow.State) time.Time {
	then := flow.Execution{Request: x.Request, State: *s}
	return then.Wake()
}

func (w *writes) addInbox(x *flow.Draft) {
	if x.InboxBelow > 0 {
		w.x.Draft = x
		dropped.add(&w.dropKept, &w.x)
	}
	for i := range x.InboxAdd {
		inbox.add(&w.keep, earlyEvent{x.ID, &x.InboxAdd[i]})
	}
}
