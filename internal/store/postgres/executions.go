package postgres

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/row"
)

// change is a draft with the encoded values of its rows.
type change struct {
	*flow.Draft
	created         int64  // its CreatedAt in microseconds, from which package row counts times
	input, with     []byte // its payload; nil if it is in the table "payloads"
	payloadExternal bool   // its payload is in the table "payloads"
	history         []byte // its events, encoded
	afresh          bool   // move the history out of its live row first
	known           bool   // its row was not read: see LockKnown
}

type executions = relation[*change, *flow.Execution]

// The columns of the two tables of executions. Each list has the columns that are written together. Every reader loads the columns with a
// get, in this order.
var (
	// identity are the columns of both tables that never change.
	identity = executions{
		{"id", oidUUID, putID, getID},
		{"created_at", oidInt8, putCreated, getCreated},
		{"action", oidText, func(c *column, x *change) { c.text(x.Action) }, func(r *rows, x *flow.Execution) { x.Action = r.text() }},
		{"detail", oidBytes, putDetail, getDetail},
	}

	// stepped are the columns of "live" that every change writes. None of them is in an index, so the indexes need no new entries.
	stepped = executions{
		{"stage", oidInt2, putStage, getStage},
		{"next_seq", oidInt8, func(c *column, x *change) { c.int(x.NextSeq) }, func(r *rows, x *flow.Execution) { x.NextSeq = r.int() }},
		{"queued_at", oidInt8, func(c *column, x *change) { c.int(row.Micros(x.QueuedAt)) }, func(r *rows, x *flow.Execution) { x.QueuedAt = r.time() }},
		{"state", oidBytes, putState, getState},
	}
	// moved are the columns of "live" that a change of place, attempt or owner writes.
	moved = executions{
		{"place", oidInt2, func(c *column, x *change) { c.int(int64(x.Place)) }, getPlace},
		{"attempt", oidInt4, func(c *column, x *change) { c.int(int64(x.Attempt)) }, func(r *rows, x *flow.Execution) { x.Attempt = int(r.int()) }},
		{"ticket", oidInt8, func(c *column, x *change) { c.int(x.Ticket) }, func(r *rows, x *flow.Execution) { x.Ticket = r.int() }},
		{"owner", oidUUID, func(c *column, x *change) { c.idOrNull(x.Owner) }, func(r *rows, x *flow.Execution) { x.Owner = r.id() }},
		{"wake", oidInt8, func(c *column, x *change) { c.intOrNull(row.Micros(x.Wake())) }, nil},
		{"cancel_requested", oidBool, func(c *column, x *change) { c.bool(x.State.Cancel != nil) }, nil},
	}.with(stepped...)
	history = executions{{"history", oidBytes, func(c *column, x *change) { c.bytes(x.history) }, nil}}
	// live are the columns of "live". Statements also compute "history_from".
	live = identity.with(moved...).with(history...).with(executions{
		{"priority", oidInt8, func(c *column, x *change) { c.int(int64(x.Priority)) }, nil},
		{"key", oidText, func(c *column, x *change) { c.textOrNull(x.Key) }, nil},
	}...).with(shared...)
	// shared are columns of both tables that come from the request. Only a few statements read them.
	shared = executions{
		{"is_root", oidBool, func(c *column, x *change) { c.bool(x.Parent.IsZero()) }, nil},
		{"payload_external", oidBool, func(c *column, x *change) { c.bool(x.payloadExternal) }, nil},
		{"queue", oidText, func(c *column, x *change) { c.text(x.Queue) }, nil},
		{"input", oidBytes, func(c *column, x *change) { c.bytesOrNull(x.input) }, nil},
		{"payload", oidBytes, func(c *column, x *change) { c.bytesOrNull(x.with) }, nil},
	}

	// ending are the columns of "ended" that are set when an execution ends, without the outcome.
	ending = executions{
		{"stage", oidInt2, putStage, getStage},
		{"finished_at", oidInt8, func(c *column, x *change) { c.int(row.Micros(x.FinishedAt)) }, func(r *rows, x *flow.Execution) { x.FinishedAt = r.time() }},
		{"state", oidBytes, putState, getState},
	}
	// failure is the error of an ended execution; outcome is the error and the output.
	failure = executions{{"error", oidBytes, putError, getError}}
	outcome = failure.with(field[*change, *flow.Execution]{"output", oidBytes, putOutput, func(r *rows, x *flow.Execution) { x.Outcome.Output = r.bytes() }})
	// closing are the columns that are set when an execution ends; the others of "ended" are copied from "live".
	closing = ending.with(outcome...)
	// ended are the columns of "ended". Statements also compute "history_from".
	ended = identity.with(closing...).with(history...).with(shared...)
)

// before is the state of a row of "live" that the decision read. Only rows that are still in it are changed.
var before = executions{
	{"id", oidUUID, putID, nil},
	{"was_stage", oidInt2, func(c *column, x *change) { c.int(int64(x.Before.Stage)) }, nil},
	{"was_attempt", oidInt4, func(c *column, x *change) { c.int(int64(x.Before.Attempt)) }, nil},
	{"was_seq", oidInt8, func(c *column, x *change) { c.int(x.Before.NextSeq) }, nil},
	{"was_place", oidInt2, func(c *column, x *change) { c.int(int64(x.Before.Place)) }, nil},
	{"was_owner", oidUUID, func(c *column, x *change) { c.idOrNull(x.Before.Owner) }, nil},
	{"was_state", oidBytes, func(c *column, x *change) {
		if !x.known {
			c.null()
			return
		}
		c.encode(func(b []byte) []byte { return row.AppendState(b, &x.Before, x.created, false) })
	}, nil},
}

// asRead is the condition that a row of "live" (l) is still in the state of before (v). It compares the encoded state of a row that was
// not read: a cancel order, for example, changes none of the other columns.
var asRead = is("l.id", "v.id") + ` AND l.stage = v.was_stage AND l.attempt = v.was_attempt AND l.next_seq = v.was_seq AND l.place = v.was_place
	AND l.owner IS NOT DISTINCT FROM v.was_owner AND (v.was_state IS NULL OR l.state = v.was_state)`

var (
	// grown are the columns of history that is added to a live row.
	grown = history.with(field[*change, *flow.Execution]{"afresh", oidBool, func(c *column, x *change) { c.bool(x.afresh) }, nil})

	moves, steps = before.with(moved...).with(grown...), before.with(stepped...).with(grown...)
	ends         = before.with(closing...).with(history...)
)

const setHistory = `history = CASE WHEN v.afresh THEN v.history ELSE l.history || v.history END,
	history_from = CASE WHEN v.afresh THEN v.was_seq ELSE l.history_from END`

// asEnded returns the columns of "ended" for a row that is deleted from "live" (l) by a row of ends (v).
func asEnded() string {
	text := ""
	for i, f := range ended {
		if i > 0 {
			text += ", "
		}
		switch {
		case closing.has(f.name):
			text += "v." + f.name
		case f.name == "history":
			text += "l.history || v.history AS history"
		default:
			text += "l." + f.name
		}
	}
	return text
}

var (
	// liveRead and endedRead are the columns of the two tables that readers load, without payload and outcome.
	liveRead, endedRead = live.readable(), identity.with(ending...)
	complete            = outcome.with(payloadRead...)
	// listed are the columns that lists load of both tables.
	listed = liveRead.with(ending.only("finished_at")...).with(failure...)
)

// listedFrom returns the columns "listed" of one of the tables, as x. Columns that the table does not have are null.
func listedFrom(table executions) string {
	text := ""
	for i, f := range listed {
		if i > 0 {
			text += ", "
		}
		if table.has(f.name) {
			text += "x." + f.name
		} else {
			text += fmt.Sprintf("NULL::%s AS %s", f.of, f.name)
		}
	}
	return text
}

// payloadRead reads livePayload or endedPayload.
var payloadRead = executions{
	{"input", oidBytes, nil, func(r *rows, x *flow.Execution) { x.Input = r.bytes() }},
	{"payload", oidBytes, nil, func(r *rows, x *flow.Execution) { x.With = r.bytes() }},
}

func putID(c *column, x *change)      { c.id(x.ID) }
func putCreated(c *column, x *change) { c.int(x.created) }
func putStage(c *column, x *change)   { c.int(int64(x.Stage)) }

func putDetail(c *column, x *change) {
	c.encode(func(b []byte) []byte { return row.AppendRequest(b, &x.Request) })
}

func putState(c *column, x *change) {
	c.encode(func(b []byte) []byte { return row.AppendState(b, &x.State, x.created, x.Place == flow.Finished) })
}

func putError(c *column, x *change) {
	if x.Outcome == nil || x.Outcome.Error == nil {
		c.null()
		return
	}
	c.encode(func(b []byte) []byte { return row.AppendError(b, x.Outcome.Error) })
}

func putOutput(c *column, x *change) {
	if x.Outcome == nil {
		c.null()
		return
	}
	c.bytesOrNull(x.Outcome.Output)
}

func getID(r *rows, x *flow.Execution)      { x.ID = r.id() }
func getCreated(r *rows, x *flow.Execution) { x.CreatedAt = r.time() }
func getStage(r *rows, x *flow.Execution)   { x.Stage = flow.Stage(r.int()) }
func getDetail(r *rows, x *flow.Execution)  { r.failed(row.DecodeRequest(&x.Request, r.peek())) }

// getPlace reads a place. In a list of both tables it is null for ended executions.
func getPlace(r *rows, x *flow.Execution) {
	x.Place = flow.Finished
	if !r.null() {
		x.Place = flow.Place(r.int())
	}
}

// getState reads the state. In a live row, place, attempt and the time in the queue have their own columns, which were read before; for an
// ended execution they are part of the state.
func getState(r *rows, x *flow.Execution) {
	r.failed(row.DecodeState(&x.State, r.peek(), row.Micros(x.CreatedAt), x.Place == flow.Finished))
}

// getError reads the error of an ended execution, without its output.
func getError(r *rows, x *flow.Execution) {
	e, err := row.DecodeError(r.peek())
	r.failed(err)
	if x.Place == flow.Finished {
		x.Outcome = &flow.Outcome{Error: e}
	}
}

// live reads liveRead, the length of the history and, if requested, the payload. With an error it returns an execution that has only the
// id.
func (r *rows) live(payload bool) (x *flow.Execution, history int, err error) {
	x = new(flow.Execution)
	if err := liveRead.read(r, x); err != nil {
		return &flow.Execution{ID: x.ID}, 0, fmt.Errorf("read execution %s: %w", x.ID, err)
	}
	history = int(r.int())
	if payload {
		err = payloadRead.read(r, x)
	}
	return x, history, err
}

// ended reads endedRead and the columns that follow in the statement: none (nil), failure or complete.
func (r *rows) ended(more executions) (*flow.Execution, error) {
	x := &flow.Execution{State: flow.State{Place: flow.Finished}}
	err := endedRead.read(r, x)
	if err == nil {
		err = more.read(r, x)
	}
	if err != nil {
		return nil, fmt.Errorf("read execution %s: %w", x.ID, err)
	}
	return x, nil
}

func (r *rows) outcome() (flow.Outcome, error) {
	x := flow.Execution{State: flow.State{Place: flow.Finished}}
	err := outcome.read(r, &x)
	return *x.Outcome, err
}

// item is an execution as an item of a task.
type item struct {
	*flow.Execution
	endedAs flow.Stage // 0: it is unfinished, or the statement does not select it
}

// children are the columns of the table of that name.
var children = relation[item, none]{
	{"workflow", oidUUID, func(c *column, x item) { c.id(x.Parent) }, nil},
	{"id", oidUUID, func(c *column, x item) { c.id(x.ID) }, nil},
	{"attempt", oidInt4, func(c *column, x item) { c.int(int64(x.ParentAttempt)) }, nil},
	{"idx", oidInt4, func(c *column, x item) { c.int(int64(x.Index)) }, nil},
	{"ended_as", oidInt2, func(c *column, x item) { c.int(int64(x.endedAs)) }, nil},
	{"task", oidText, func(c *column, x item) { c.text(x.Task) }, nil},
}

// childOf is the condition that row c is the row of item v.
var childOf = is("c.workflow", "v.workflow") + ` AND c.attempt = v.attempt AND c.task = v.task AND c.idx = v.idx AND c.id = v.id`

type label struct {
	of          flow.ID
	name, value string
}

var (
	labels = relation[label, none]{
		{"id", oidUUID, func(c *column, l label) { c.id(l.of) }, nil},
		{"name", oidText, func(c *column, l label) { c.text(l.name) }, nil},
		{"value", oidText, func(c *column, l label) { c.text(l.value) }, nil},
	}

	payloads = executions{
		{"id", oidUUID, putID, nil},
		{"input", oidBytes, func(c *column, x *change) { c.bytesOrNull(x.Input) }, nil},
		{"payload", oidBytes, func(c *column, x *change) { c.bytesOrNull(x.With) }, nil},
	}

	// dropped are executions whose events below a number are deleted from the inbox.
	dropped = executions{
		{"id", oidUUID, putID, nil},
		{"below", oidInt8, func(c *column, x *change) { c.int(x.InboxBelow) }, nil},
	}
)

// earlyEvent is an event that arrived before an earlier one, and waits in the inbox.
type earlyEvent struct {
	of flow.ID
	*flow.Event
}

var inbox = relation[earlyEvent, none]{
	{"id", oidUUID, func(c *column, e earlyEvent) { c.id(e.of) }, nil},
	{"seq", oidInt8, func(c *column, e earlyEvent) { c.int(e.Seq) }, nil},
	{"event", oidBytes, func(c *column, e earlyEvent) {
		c.encode(func(b []byte) []byte { return row.AppendKept(b, e.Event) })
	}, nil},
}

type idempotencyKeys = relation[*store.IdempotencyKey, *store.IdempotencyKey]

var (
	idempotency = idempotencyKeys{
		{"key", oidText, func(c *column, k *store.IdempotencyKey) { c.text(k.Key) }, func(r *rows, k *store.IdempotencyKey) { k.Key = r.text() }},
		{"id", oidUUID, func(c *column, k *store.IdempotencyKey) { c.id(k.Execution) }, func(r *rows, k *store.IdempotencyKey) { k.Execution = r.id() }},
		{"hash", oidBytes, func(c *column, k *store.IdempotencyKey) { c.bytes(k.Hash[:]) }, func(r *rows, k *store.IdempotencyKey) { copy(k.Hash[:], r.peek()) }},
	}
	submittedWith = idempotency.only("key", "id")
)
