package sqlite

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store/row"
)

// draft is an execution on its way into rows.
type draft struct {
	*flow.Draft
	n      int64 // its number
	parent int64 // that of the workflow above it; 0: there is none
}

type executions = relation[draft, *flow.Execution]

// The columns of the three tables of executions. The list in which a column stands says what writes it; one with a get is loaded by
// every reader, and before those that stand behind it.
var (
	// requests are the columns of "executions". They never change, but for "detail" when an execution is given another lane (relane.go).
	requests = executions{
		{"n", func(s *stmt, x draft) { s.int(x.n) }, nil},
		{"id", func(s *stmt, x draft) { s.id(x.ID) }, func(s *stmt, x *flow.Execution) { x.ID = s.getID() }},
		{"parent", func(s *stmt, x draft) { s.intOrNull(x.parent) }, nil},
		{"created_at", func(s *stmt, x draft) { s.time(x.CreatedAt) }, func(s *stmt, x *flow.Execution) { x.CreatedAt = s.getTime() }},
		{"action", func(s *stmt, x draft) { s.text(x.Action) }, func(s *stmt, x *flow.Execution) { x.Action = s.getText() }},
		{"detail", putDetail, getDetail},
	}
	// payloads are the other columns of "executions", which are read where they are asked for.
	payloads = executions{
		{"input", func(s *stmt, x draft) { s.blob(x.Input) }, func(s *stmt, x *flow.Execution) { x.Input = s.getBlob() }},
		{"payload", func(s *stmt, x draft) { s.blob(x.With) }, func(s *stmt, x *flow.Execution) { x.With = s.getBlob() }},
	}

	// stepped are the columns of "live" that every change writes. None is in an index, so that a change of these alone spares the indexes.
	stepped = executions{
		{"stage", func(s *stmt, x draft) { s.int(int64(x.Stage)) }, func(s *stmt, x *flow.Execution) { x.Stage = flow.Stage(s.getInt()) }},
		{"next_seq", func(s *stmt, x draft) { s.int(x.NextSeq) }, func(s *stmt, x *flow.Execution) { x.NextSeq = s.getInt() }},
		{"queued_at", func(s *stmt, x draft) { s.timeOrNull(x.QueuedAt) }, func(s *stmt, x *flow.Execution) { x.QueuedAt = s.getTime() }},
		{"state", putState, getState},
	}
	// moved are those that are written where one of the others than stepped changes (staysPut).
	moved = executions{
		{"place", func(s *stmt, x draft) { s.int(int64(x.Place)) }, func(s *stmt, x *flow.Execution) { x.Place = flow.Place(s.getInt()) }},
		{"attempt", func(s *stmt, x draft) { s.int(int64(x.Attempt)) }, func(s *stmt, x *flow.Execution) { x.Attempt = int(s.getInt()) }},
		{"ticket", func(s *stmt, x draft) { s.int(x.Ticket) }, func(s *stmt, x *flow.Execution) { x.Ticket = s.getInt() }},
		{"owner", func(s *stmt, x draft) { s.id(x.Owner) }, func(s *stmt, x *flow.Execution) { x.Owner = s.getID() }},
		{"ordered", func(s *stmt, x draft) { s.intOrNull(truth(x.State.Cancel != nil)) }, nil},
		{"wake", func(s *stmt, x draft) { s.timeOrNull(x.Wake()) }, nil},
	}.with(stepped...)
	// live are all of "live".
	live = executions{
		{"n", func(s *stmt, x draft) { s.int(x.n) }, nil},
		{"priority", func(s *stmt, x draft) { s.int(int64(x.Priority)) }, nil},
		{"queue", func(s *stmt, x draft) { s.text(x.Queue) }, nil},
		{"key", func(s *stmt, x draft) { s.textOrNull(x.Key) }, nil},
	}.with(moved...)

	// ends are the columns of "ended", but for the outcome.
	ends = executions{
		{"n", func(s *stmt, x draft) { s.int(x.n) }, nil},
		{"stage", func(s *stmt, x draft) { s.int(int64(x.Stage)) }, func(s *stmt, x *flow.Execution) { x.Stage = flow.Stage(s.getInt()) }},
		{"finished_after", func(s *stmt, x draft) { s.int(row.Micros(x.FinishedAt) - row.Micros(x.CreatedAt)) },
			func(s *stmt, x *flow.Execution) { x.FinishedAt = row.FromMicros(row.Micros(x.CreatedAt) + s.getInt()) }},
		{"queue", func(s *stmt, x draft) { s.text(x.Queue) }, nil}, // for the view
		{"state", putState, getState},
	}
	failures = executions{{"error", putError, getError}}
	// outcomes are the error and the output.
	outcomes = failures.with(field[draft, *flow.Execution]{"output", putOutput, func(s *stmt, x *flow.Execution) { x.Outcome.Output = s.getBlob() }})

	// inserted and closed are what an execution has when it is submitted and when it has ended.
	inserted, closed = requests.with(payloads...), ends.with(outcomes...)

	// complete is the outcome and the payload.
	complete = outcomes.with(payloads...)

	// What readers load of each table.
	requestRead, liveRead, endedRead = requests.readable(), live.readable(), ends.readable()
)

// before binds the condition asRead.
func (s *stmt) before(x draft) *stmt {
	b := &x.Before
	return s.int(x.n).int(int64(b.Stage)).int(int64(b.Attempt)).int(b.NextSeq).int(int64(b.Place)).id(b.Owner)
}

// asRead is the condition that the row is still as the decision saw it.
const asRead = ` WHERE n = ? AND stage = ? AND attempt = ? AND next_seq = ? AND place = ? AND owner IS ?`

// staysPut reports whether a change leaves every column of moved as it was that is not one of stepped.
func staysPut(x draft) bool {
	b := &x.Before
	if b.Place != x.Place || b.Attempt != x.Attempt || b.Ticket != x.Ticket || b.Owner != x.Owner || (b.Cancel != nil) != (x.State.Cancel != nil) {
		return false
	}
	then := flow.Execution{Request: x.Request, State: *b}
	return then.Wake().Equal(x.Wake())
}

func putDetail(s *stmt, x draft)           { s.blob(s.c.enc.request(&x.Request)) }
func getDetail(s *stmt, x *flow.Execution) { s.failed(row.DecodeRequest(&x.Request, s.peekBlob())) }

func putState(s *stmt, x draft) {
	s.blob(s.c.enc.state(&x.State, row.Micros(x.CreatedAt), x.Place == flow.Finished))
}

// getState comes behind the place, the attempt and the time in the queue: of what has ended, the state has these as well.
func getState(s *stmt, x *flow.Execution) {
	s.failed(row.DecodeState(&x.State, s.peekBlob(), row.Micros(x.CreatedAt), x.Place == flow.Finished))
}

func putError(s *stmt, x draft) {
	var e *flow.Error
	if x.Outcome != nil {
		e = x.Outcome.Error
	}
	s.blob(s.c.enc.failure(e))
}

func getError(s *stmt, x *flow.Execution) {
	e, err := row.DecodeError(s.peekBlob())
	s.failed(err)
	x.Outcome = &flow.Outcome{Error: e}
}

func putOutput(s *stmt, x draft) {
	if x.Outcome == nil {
		s.null()
		return
	}
	s.blob(x.Outcome.Output)
}

// live reads requestRead, liveRead and, when wanted, payloads.
func (s *stmt) live(payload bool) (*flow.Execution, error) {
	x := new(flow.Execution)
	err := requestRead.read(s, x)
	if err == nil {
		err = liveRead.read(s, x)
	}
	if err == nil && payload {
		err = payloads.read(s, x)
	}
	if err != nil {
		return nil, fmt.Errorf("read execution %s: %w", x.ID, err)
	}
	return x, nil
}

// ended reads requestRead, endedRead and what the statement has behind them.
func (s *stmt) ended(more executions) (*flow.Execution, error) {
	x := &flow.Execution{State: flow.State{Place: flow.Finished}}
	err := requestRead.read(s, x)
	if err == nil {
		err = endedRead.read(s, x)
	}
	if err == nil {
		err = more.read(s, x)
	}
	if err != nil {
		return nil, fmt.Errorf("read execution %s: %w", x.ID, err)
	}
	return x, nil
}

// outcome reads outcomes.
func (s *stmt) outcome() (flow.Outcome, error) {
	var x flow.Execution
	err := outcomes.read(s, &x)
	return *x.Outcome, err
}
