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

// The statements that write. Each takes whole columns and checks, with "expect", that it did what it was to do. What must
// exist, or must not, is looked up by a scalar subquery: of EXISTS the planner, which knows nothing of how full the tables
// will be, makes a hash of the whole table.
var (
	qInsertLive = sql(`WITH v AS ` + rowsOf("id uuid, created_at bigint, next_seq bigint, ticket bigint, priority bigint, queued_at bigint, wake bigint, "+
		"owner uuid, attempt integer, place smallint, stage smallint, ordered boolean, top boolean, apart boolean, "+
		"queue text, key text, action text, detail bytea, state bytea, history bytea, input bytea, payload bytea") + `,
		made AS (INSERT INTO {s}.live (id, created_at, next_seq, history_from, ticket, priority, queued_at, wake, owner, attempt, place, stage,
			ordered, top, apart, queue, key, action, detail, state, history, input, payload)
			SELECT id, created_at, next_seq, 1, ticket, priority, queued_at, wake, owner, attempt, place, stage,
			ordered, top, apart, queue, key, action, detail, state, history, input, payload
			FROM v WHERE (SELECT true FROM {s}.ended d WHERE d.id = v.id) IS NULL RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM made), cardinality($1), 'PW409', 'executions exist already and have ended')`)

	qInsertEnded = sql(`INSERT INTO {s}.ended (id, created_at, history_from, finished_at, stage, top, apart, action, detail, state, history, error,
			input, payload, output)
		SELECT id, created_at, 1, finished_at, stage, top, apart, action, detail, state, history, error, input, payload, output
		FROM ` + rowsOf("id uuid, created_at bigint, finished_at bigint, stage smallint, top boolean, apart boolean, action text, "+
		"detail bytea, state bytea, history bytea, error bytea, input bytea, payload bytea, output bytea") + ` AS v`)

	qInsertPayload = sql(`INSERT INTO {s}.payloads (id, input, payload) SELECT * FROM ` + rowsOf("id uuid, input bytea, payload bytea") + ` AS v`)

	qInsertLabels = sql(`INSERT INTO {s}.labels (id, name, value) SELECT * FROM ` + rowsOf("id uuid, name text, value text") + ` AS v`)

	qInsertChildren = sql(`WITH v AS ` + rowsOf("workflow uuid, id uuid, attempt integer, idx integer, ended smallint, task text") + `,
		made AS (INSERT INTO {s}.children (workflow, id, attempt, idx, ended_as, task) SELECT workflow, id, attempt, idx, ended, task FROM v
			WHERE coalesce((SELECT true FROM {s}.live l WHERE l.id = v.workflow), (SELECT true FROM {s}.ended d WHERE d.id = v.workflow)) RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM made), cardinality($1), 'PW404', 'the workflow of an execution does not exist')`)

	qEndChildren = sql(`UPDATE {s}.children c SET ended_as = v.ended
		FROM ` + rowsOf("workflow uuid, id uuid, attempt integer, idx integer, ended smallint, task text") + ` AS v
		WHERE ` + childOf)

	qSpill = sql(`INSERT INTO {s}.events (id, first, history)
		SELECT l.id, l.history_from, l.history FROM {s}.live l WHERE l.id = ANY ($1::uuid[]) AND octet_length(l.history) > 0`)

	qMove = sql(`WITH v AS ` + rowsOf("id uuid, was_stage smallint, was_attempt integer, was_seq bigint, was_place smallint, was_owner uuid, "+
		"stage smallint, attempt integer, next_seq bigint, place smallint, owner uuid, ticket bigint, ordered boolean, "+
		"wake bigint, queued_at bigint, state bytea, history bytea, afresh boolean") + `,
		moved AS (UPDATE {s}.live l SET stage = v.stage, attempt = v.attempt, next_seq = v.next_seq, place = v.place, owner = v.owner,
			ticket = v.ticket, ordered = v.ordered, wake = v.wake, queued_at = v.queued_at, state = v.state,
			history = CASE WHEN v.afresh THEN v.history ELSE l.history || v.history END,
			history_from = CASE WHEN v.afresh THEN v.was_seq ELSE l.history_from END
			FROM v WHERE ` + asRead + ` RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM moved), cardinality($1), 'PW409', 'executions are no longer as they were read')`)

	// What leaves every indexed column alone is kept out of the indexes, too.
	qStep = sql(`WITH v AS ` + rowsOf("id uuid, was_stage smallint, was_attempt integer, was_seq bigint, was_place smallint, was_owner uuid, "+
		"stage smallint, next_seq bigint, queued_at bigint, state bytea, history bytea, afresh boolean") + `,
		moved AS (UPDATE {s}.live l SET stage = v.stage, next_seq = v.next_seq, queued_at = v.queued_at, state = v.state,
			history = CASE WHEN v.afresh THEN v.history ELSE l.history || v.history END,
			history_from = CASE WHEN v.afresh THEN v.was_seq ELSE l.history_from END
			FROM v WHERE ` + asRead + ` RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM moved), cardinality($1), 'PW409', 'executions are no longer as they were read')`)

	qEnd = sql(`WITH v AS ` + rowsOf("id uuid, was_stage smallint, was_attempt integer, was_seq bigint, was_place smallint, was_owner uuid, "+
		"stage smallint, finished_at bigint, state bytea, history bytea, error bytea, output bytea") + `,
		gone AS (DELETE FROM {s}.live l USING v WHERE ` + asRead + `
			RETURNING l.id, l.created_at, l.history_from, v.finished_at, v.stage, l.top, l.apart, l.action, l.detail, v.state,
			l.history || v.history AS history, v.error, l.input, l.payload, v.output),
		kept AS (INSERT INTO {s}.ended (id, created_at, history_from, finished_at, stage, top, apart, action, detail, state, history, error,
			input, payload, output) SELECT * FROM gone RETURNING 1)
		SELECT {s}.expect((SELECT count(*) FROM kept), cardinality($1), 'PW409', 'executions are no longer as they were read')`)

	qDropKept = sql(`DELETE FROM {s}.inbox i USING ` + rowsOf("id uuid, below bigint") + ` AS v WHERE ` + is("i.id", "v.id") + ` AND i.seq < v.below`)

	qKeep = sql(`INSERT INTO {s}.inbox (id, seq, event) SELECT * FROM ` + rowsOf("id uuid, seq bigint, event bytea") + ` AS v
		ON CONFLICT (id, seq) DO UPDATE SET event = excluded.event`)

	qMark = sql(`INSERT INTO {s}.marks (workflow, attempt, task, state, total, error) VALUES ($1, $2::bigint, $3, $4, $5, $6)
		ON CONFLICT (workflow, attempt, task) DO UPDATE SET state = excluded.state, total = excluded.total, error = excluded.error`)

	qInsertKeys = sql(`INSERT INTO {s}.idempotency (key, id, hash) SELECT * FROM ` + rowsOf("key text, id uuid, hash bytea") + ` AS v`)
)

// asRead is the condition that the row is still as the decision saw it.
var asRead = is("l.id", "v.id") + ` AND l.stage = v.was_stage AND l.attempt = v.was_attempt AND l.next_seq = v.was_seq AND l.place = v.was_place
	AND l.owner IS NOT DISTINCT FROM v.was_owner`

// childOf is the condition that the row is that of a task's item.
var childOf = is("c.workflow", "v.workflow") + ` AND c.attempt = v.attempt AND c.task = v.task AND c.idx = v.idx AND c.id = v.id`

const (
	// apartFrom is the size of a payload that is kept in a row of its own.
	apartFrom = 1500
	// runLimit is how much history a live row carries: more is moved out of what every change rewrites.
	runLimit = 1000
)

// writes are the columns that Apply fills, kept for the next time.
type writes struct {
	insert, ended, payloads, labels, children, endChildren, move, step, end, dropKept, keep, keys, changes columns
}

// Apply implements store.Tx. What it writes is sent with the next statement that needs an answer, or with the commit, and
// whatever is wrong with it shows there.
func (t *tx) Apply(ctx context.Context, d store.Delta) error {
	if t.failed != nil {
		return t.failed
	}
	drafts := d.Drafts
	if !slices.IsSortedFunc(drafts, byID) { // rows are locked in a fixed order
		drafts = slices.SortedFunc(slices.Values(drafts), byID)
	}
	w := &t.w
	w.begin()
	var spill []flow.ID
	for _, x := range drafts {
		if err := representable(x); err != nil {
			return err
		}
		if x.Place == flow.Ready {
			delete(t.looked.empty, x.Queue)
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
	for _, m := range d.Marks {
		a := t.args().id(m.Workflow).int(int64(m.Attempt)).text(m.Task).text(m.State).int(int64(m.Total))
		if m.Error == nil {
			a.null()
		} else {
			a.bytes(row.AppendError(nil, m.Error))
		}
		t.add(qMark, a, nil)
	}
	t.putChanges(d.Changes)
	t.feed(d.Input)
	t.putHolds(d.Holds)
	if len(t.a.b) > sendBeyond {
		return t.flush(ctx)
	}
	return nil
}

func (t *tx) putChanges(all []store.WorkflowChange) {
	c := t.w.changes.begin(oidUUID, oidInt4, oidInt8, oidBytes)
	for i := range all {
		c[0].id(all[i].ID)
		c[1].int(int64(all[i].Attempt))
		c[2].int(all[i].Number)
		c[3].bytes(all[i].Change)
	}
	t.put(qInsertChanges, &t.w.changes)
}

// insertKeys writes the idempotency keys, last and in order: whoever has written the same one is waited for.
func (t *tx) insertKeys() {
	slices.SortFunc(t.idem, func(a, b store.IdempotencyKey) int { return strings.Compare(a.Key, b.Key) })
	c := t.w.keys.begin(oidText, oidUUID, oidBytes)
	for _, k := range t.idem {
		c[0].text(k.Key)
		c[1].id(k.Execution)
		c[2].bytes(k.Hash[:])
	}
	t.put(qInsertKeys, &t.w.keys)
	t.idem = nil
}

// sendBeyond is how many bytes of parameters may wait for the commit.
const sendBeyond = 4 << 20

func byID(a, b *flow.Draft) int { return slices.Compare(a.ID[:], b.ID[:]) }

// put puts a statement in line when there are rows for it.
func (t *tx) put(q *query, c *columns) {
	if c.rows() > 0 {
		t.add(q, t.args().columns(c), nil)
	}
}

// representable refuses what a column cannot hold.
func representable(x *flow.Draft) error {
	if most := max(x.Attempt, x.Index, x.ParentAttempt); most > math.MaxInt32 {
		return fmt.Errorf("write execution %s: attempt or item %d is beyond what can be stored", x.ID, most)
	}
	return nil
}

func (w *writes) begin() {
	const id, i8, i4, i2, yes, text, bytes = oidUUID, oidInt8, oidInt4, oidInt2, oidBool, oidText, oidBytes
	w.insert.begin(id, i8, i8, i8, i8, i8, i8, id, i4, i2, i2, yes, yes, yes, text, text, text, bytes, bytes, bytes, bytes, bytes)
	w.ended.begin(id, i8, i8, i2, yes, yes, text, bytes, bytes, bytes, bytes, bytes, bytes, bytes)
	w.payloads.begin(id, bytes, bytes)
	w.labels.begin(id, text, text)
	w.children.begin(id, id, i4, i4, i2, text)
	w.endChildren.begin(id, id, i4, i4, i2, text)
	w.move.begin(id, i2, i4, i8, i2, id, i2, i4, i8, i2, id, i8, yes, i8, i8, bytes, bytes, yes)
	w.step.begin(id, i2, i4, i8, i2, id, i2, i8, i8, bytes, bytes, yes)
	w.end.begin(id, i2, i4, i8, i2, id, i2, i8, bytes, bytes, bytes, bytes)
	w.dropKept.begin(id, i8)
	w.keep.begin(id, i8, bytes)
}

// addNew adds a new execution: its row, and what hangs on it.
func (t *tx) addNew(x *flow.Draft) {
	w, created := &t.w, row.Micros(x.CreatedAt)
	input, with := []byte(x.Input), []byte(x.With)
	apart := len(input)+len(with) > apartFrom
	if apart {
		c := w.payloads.all
		c[0].id(x.ID)
		c[1].bytes(input)
		c[2].bytes(with)
		input, with = nil, nil
	}
	request := func(b []byte) []byte { return row.AppendRequest(b, &x.Request) }
	history := func(b []byte) []byte { return row.AppendHistory(b, x.Events, 1, created) }
	ended := int64(0)
	if x.Place == flow.Finished {
		ended = int64(x.Stage)
		c := w.ended.all
		c[0].id(x.ID)
		c[1].int(created)
		c[2].int(row.Micros(x.FinishedAt))
		c[3].int(int64(x.Stage))
		c[4].bool(x.Parent.IsZero())
		c[5].bool(apart)
		c[6].text(x.Action)
		c[7].encode(false, request)
		c[8].encode(false, func(b []byte) []byte { return row.AppendState(b, &x.State, created, true) })
		c[9].encode(false, history)
		addOutcome(&c[10], &c[13], x.Outcome)
		c[11].bytes(input)
		c[12].bytes(with)
	} else {
		c := w.insert.all
		c[0].id(x.ID)
		c[1].int(created)
		c[2].int(x.NextSeq)
		c[3].int(x.Ticket)
		c[4].int(int64(x.Priority))
		c[5].int(row.Micros(x.QueuedAt))
		c[6].intOrNull(row.Micros(x.Wake()))
		c[7].idOrNull(x.Owner)
		c[8].int(int64(x.Attempt))
		c[9].int(int64(x.Place))
		c[10].int(int64(x.Stage))
		c[11].bool(x.State.Cancel != nil)
		c[12].bool(x.Parent.IsZero())
		c[13].bool(apart)
		c[14].text(x.Queue)
		c[15].textOrNull(x.Key)
		c[16].text(x.Action)
		c[17].encode(false, request)
		c[18].encode(false, func(b []byte) []byte { return row.AppendState(b, &x.State, created, false) })
		at := len(c[19].b)
		c[19].encode(false, history)
		t.runs[x.ID] = run{len(c[19].b) - at - 4}
		c[20].bytes(input)
		c[21].bytes(with)
	}
	for name, value := range x.Labels {
		c := w.labels.all
		c[0].id(x.ID)
		c[1].text(name)
		c[2].text(value)
	}
	if !x.Parent.IsZero() {
		addChild(w.children.all, x, ended)
	}
}

func addOutcome(failure, output *column, o *flow.Outcome) {
	if o == nil {
		failure.null()
		output.null()
		return
	}
	failure.encode(true, func(b []byte) []byte { return row.AppendError(b, o.Error) })
	output.bytes(o.Output)
}

func addChild(c []column, x *flow.Draft, ended int64) {
	c[0].id(x.Parent)
	c[1].id(x.ID)
	c[2].int(int64(x.ParentAttempt))
	c[3].int(int64(x.Index))
	c[4].int(ended)
	c[5].text(x.Task)
}

// addChange adds a change of an execution, and reports whether the run of its history must be moved out before.
func (t *tx) addChange(x *flow.Draft) (spill bool) {
	b, w, created := &x.Before, &t.w, row.Micros(x.CreatedAt)
	history := func(to []byte) []byte { return row.AppendHistory(to, x.Events, b.NextSeq, created) }
	was := func(c []column) {
		c[0].id(x.ID)
		c[1].int(int64(b.Stage))
		c[2].int(int64(b.Attempt))
		c[3].int(b.NextSeq)
		c[4].int(int64(b.Place))
		c[5].idOrNull(b.Owner)
	}
	if x.Place == flow.Finished {
		c := w.end.all
		was(c)
		c[6].int(int64(x.Stage))
		c[7].int(row.Micros(x.FinishedAt))
		c[8].encode(false, func(to []byte) []byte { return row.AppendState(to, &x.State, created, true) })
		c[9].encode(false, history)
		addOutcome(&c[10], &c[11], x.Outcome)
		if !x.Parent.IsZero() {
			addChild(w.endChildren.all, x, int64(x.Stage))
		}
		delete(t.runs, x.ID)
		return false
	}
	state := func(to []byte) []byte { return row.AppendState(to, &x.State, created, false) }
	if b.Place == x.Place && b.Attempt == x.Attempt && b.Ticket == x.Ticket && b.Owner == x.Owner &&
		(b.Cancel == nil) == (x.State.Cancel == nil) && wakeOf(x.Execution, b).Equal(x.Wake()) {
		c := w.step.all
		was(c)
		c[6].int(int64(x.Stage))
		c[7].int(x.NextSeq)
		c[8].int(row.Micros(x.QueuedAt))
		c[9].encode(false, state)
		at := len(c[10].b)
		c[10].encode(false, history)
		spill = t.grow(x, len(c[10].b)-at-4)
		c[11].bool(spill)
		return spill
	}
	c := w.move.all
	was(c)
	c[6].int(int64(x.Stage))
	c[7].int(int64(x.Attempt))
	c[8].int(x.NextSeq)
	c[9].int(int64(x.Place))
	c[10].idOrNull(x.Owner)
	c[11].int(x.Ticket)
	c[12].bool(x.State.Cancel != nil)
	c[13].intOrNull(row.Micros(x.Wake()))
	c[14].int(row.Micros(x.QueuedAt))
	c[15].encode(false, state)
	at := len(c[16].b)
	c[16].encode(false, history)
	spill = t.grow(x, len(c[16].b)-at-4)
	c[17].bool(spill)
	return spill
}

// grow reports whether a live row's run of history must be moved out before more is added. Of what was not read in this
// transaction nobody knows how long the run is: then it is moved.
func (t *tx) grow(x *flow.Draft, more int) bool {
	if more == 0 {
		return false
	}
	r, known := t.runs[x.ID]
	if known && (r.size == 0 || r.size+more <= runLimit) {
		t.runs[x.ID] = run{r.size + more}
		return false
	}
	t.runs[x.ID] = run{more}
	return true
}

// wakeOf is the moment at which x would have woken in an earlier state.
func wakeOf(x *flow.Execution, s *flow.State) time.Time {
	then := flow.Execution{Request: x.Request, State: *s}
	return then.Wake()
}

func (w *writes) addInbox(x *flow.Draft) {
	if x.InboxBelow > 0 {
		c := w.dropKept.all
		c[0].id(x.ID)
		c[1].int(x.InboxBelow)
	}
	for i := range x.InboxAdd {
		e := &x.InboxAdd[i]
		c := w.keep.all
		c[0].id(x.ID)
		c[1].int(e.Seq)
		c[2].encode(false, func(b []byte) []byte { return row.AppendKept(b, e) })
	}
}
