package sqlite

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store/row"
)

// draft is an execution to write.
type draft struct {
	*flow.Draft
	n      int64 // its number, which is the primary key
	parent int64 // number of its workflow; 0: there is none
}

type executions = relation[draft, *flow.Execution]

// The columns of the three tables of executions. Each list has the columns that are written together. Every reader loads the columns with a
// get, in this order.
var (
	// requests are the columns of "executions". They never change, except "detail" when an execution is moved to another
	// routing key (reroute.go).
	requests = executions{
		{"n", func(s *stmt, x draft) { s.int(x.n) }, nil},
		{"id", func(s *stmt, x draft) { s.id(x.ID) }, func(s *stmt, x *flow.Execution) { x.ID = s.getID() }},
		{"parent", func(s *stmt, x draft) { s.intOrNull(x.parent) }, nil},
		{"created_at", func(s *stmt, x draft) { s.time(x.CreatedAt) }, func(s *stmt, x *flow.Execution) { x.CreatedAt = s.getTime() }},
		{"action", func(s *stmt, x draft) { s.text(x.Action) }, func(s *stmt, x *flow.Execution) { x.Action = s.getText() }},
		{"detail", putDetail, getDetail},
	}
	// payloads are the other columns of "executions", which only some statements read.
	payloads = executions{
		{"input", func(s *stmt, x draft) { s.blob(x.Input) }, func(s *stmt, x *flow.Execution) { x.Input = s.getBlob() }},
		{"payload", func(s *stmt, x draft) { s.blob(x.With) }, func(s *stmt, x *flow.Execution) { x.With = s.getBlob() }},
	}

	// stepped are the columns of "live" that every change writes. None of them is in an index, so a change of only these updates no index.
	stepped = executions{
		{"stage", func(s *stmt, x draft) { s.int(int64(x.Stage)) }, func(s *stmt, x *flow.Execution) { x.Stage = flow.Stage(s.getInt()) }},
		{"next_seq", func(s *stmt, x draft) { s.int(x.NextSeq) }, func(s *stmt, x *flow.Execution) { x.NextSeq = s.getInt() }},
		{"queued_at", func(s *stmt, x draft) { s.timeOrNull(x.QueuedAt) }, func(s *stmt, x *flow.Execution) { x.QueuedAt = s.getTime() }},
		{"state", putState, getState},
	}
	// moved are written if one of them that is not in stepped has changed (staysPut).
	moved = executions{
		{"place", func(s *stmt, x draft) { s.int(int64(x.Place)) }, func(s *stmt, x *flow.Execution) { x.Place = flow.Place(s.getInt()) }},
		{"attempt", func(s *stmt, x draft) { s.int(int64(x.Attempt)) }, func(s *stmt, x *flow.Execution) { x.Attempt = int(s.getInt()) }},
		{"ticket", func(s *stmt, x draft) { s.int(x.Ticket) }, func(s *stmt, x *flow.Execution) { x.Ticket = s.getInt() }},
		{"owner", func(s *stmt, x draft) { s.id(x.Owner) }, func(s *stmt, x *flow.Execution) { x.Owner = s.getID() }},
		{"cancel_requested", func(s *stmt, x draft) { s.intOrNull(truth(x.State.Cancel != nil)) }, nil},
		{"wake", func(s *stmt, x draft) { s.timeOrNull(x.Wake()) }, nil},
	}.with(stepped...)
	live = executions{
		{"n", func(s *stmt, x draft) { s.int(x.n) }, nil},
		{"priority", func(s *stmt, x draft) { s.int(int64(x.Priority)) }, nil},
		{"queue", func(s *stmt, x draft) { s.text(x.Queue) }, nil},
		{"key", func(s *stmt, x draft) { s.textOrNull(x.Key) }, nil},
	}.with(moved...)

	// ends are the columns of "ended", without the outcome.
	ends = executions{
		{"n", func(s *stmt, x draft) { s.int(x.n) }, nil},
		{"stage", func(s *stmt, x draft) { s.int(int64(x.Stage)) }, func(s *stmt, x *flow.Execution) { x.Stage = flow.Stage(s.getInt()) }},
		{"finished_after", func(s *stmt, x draft) { s.int(row.Micros(x.FinishedAt) - row.Micros(x.CreatedAt)) },
			func(s *stmt, x *flow.Execution) { x.FinishedAt = row.FromMicros(row.Micros(x.CreatedAt) + s.getInt()) }},
		{"queue", func(s *stmt, x draft) { s.text(x.Queue) }, nil}, // for the view
		{"state", putState, getState},
	}
	failures = executions{{"error", putError, getError}}
	outcomes = failures.with(field[draft, *flow.Execution]{"output", putOutput, func(s *stmt, x *flow.Execution) { x.Outcome.Output = s.getBlob() }})

	// inserted and closed are the columns that are written when an execution is submitted and when it ends.
	inserted, closed = requests.with(payloads...), ends.with(outcomes...)

	complete = outcomes.with(payloads...)

	// The columns that readers load of each table.
	requestRead, liveRead, endedRead = requests.readable(), live.readable(), ends.readable()
)

// before binds the condition asRead.
func (s *stmt) before(x draft) *stmt {
	b := &x.Before
	return s.int(x.n).int(int64(b.Stage)).int(int64(b.Attempt)).int(b.NextSeq).int(int64(b.Place)).id(b.Owner)
}

// asRead is the condition that the row is as the decision read it.
const asRead = ` WHERE n = ? AND stage = ? AND attempt = ? AND next_seq = ? AND place = ? AND owner IS ?`

// staysPut reports whether a change leaves the columns of moved that are not in stepped unchanged.
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

// getState reads the state. In a live row, place, attempt and the time in the queue have their own columns, which were read before; for an
// ended execution they are part of the state.
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

// live reads requestRead, liveRead and, if requested, payloads.
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

// ended reads requestRead, endedRead and the columns "more" of the statement.
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

func (s *stmt) outcome() (flow.Outcome, error) {
	var x flow.Execution
	err := outcomes.read(s, &x)
	return *x.Outcome, err
}
