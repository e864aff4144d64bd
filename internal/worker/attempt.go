package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// attempt is one attempt that this session holds: its handler, and its events that the engine has not acknowledged.
type attempt struct {
	session *session
	task    task.Task
	handler task.Handler
	ctx     context.Context
	cancel  context.CancelCauseFunc
	log     *logWriter       // nil until something is written
	resumed *handoff.Resumed // nil for an attempt that this process began

	mu       sync.Mutex
	next     int64        // number of the next event
	unacked  []flow.Event // not yet acknowledged, in order
	stopped  *task.Stop
	returned bool // the handler has returned
	ended    bool // the last event has been added: it is in unacked or acknowledged
	gone     bool // given up: no event is reported any more
	spans    spans
	queued   bool // waits in the reporter's line; guarded by the reporter
	sending  bool // a report of its events is under way; guarded by the reporter
	acked    chan struct{}
	atOnce   chan struct{} // closed when there is no grace, or no more; nil if the handler never waits
	hurried  bool          // atOnce is closed
}

func newAttempt(s *session, w *handoff.Assignment) *attempt {
	a := &attempt{session: s, next: w.NextSeq, resumed: w.Resumed, handler: s.w.Handlers[w.Kind], task: task.Task{
		Execution: w.Execution, Attempt: w.Attempt, Action: w.Action, Kind: w.Kind, Payload: w.Payload, Timeout: w.Timeout,
		Labels: w.Labels, Workflow: w.Workflow, Name: w.Task, Index: w.Index, Traceparent: w.Traceparent, Chain: w.Chain,
		Resumed: w.Resumed != nil,
	}}
	a.task.Host = a
	a.spans.begin(s.w.Tracer, &a.task, w.ClaimedAt)
	if _, instant := a.handler.(task.Instant); instant {
		a.ctx = s.ctx
	} else {
		a.atOnce = make(chan struct{})
		a.task.AtOnce, a.task.Blobs = a.atOnce, a.blobs()
		a.ctx, a.cancel = context.WithCancelCause(context.Background())
	}
	return a
}

func (a *attempt) id() flow.AttemptID {
	return flow.AttemptID{Execution: a.task.Execution, Attempt: a.task.Attempt}
}

// begin adds the event that the attempt has begun.
func (a *attempt) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unacked = make([]flow.Event, 0, 2) // most attempts have this event and a last one
	a.addEvent(flow.EvRunning, nil, nil)
}

// addEvent adds an event to report. The caller holds a.mu.
func (a *attempt) addEvent(t flow.EventType, data json.RawMessage, o *flow.Outcome) {
	a.unacked = append(a.unacked, flow.Event{
		Seq: a.next, Attempt: a.task.Attempt, Type: t, At: time.Now().UTC().Truncate(time.Microsecond), Data: data, Outcome: o,
	})
	a.next++
}

// runInstant runs a handler that never waits.
func (a *attempt) runInstant() {
	a.begin()
	a.finish(a.call())
}

// endUnstarted ends an attempt whose order to end came before the attempt.
func (a *attempt) endUnstarted(s *task.Stop) {
	a.stop(s)
	a.finish(nil, s)
}

// run runs the handler in its own slot.
func (a *attempt) run() {
	defer a.session.w.release()
	defer a.cancel(nil)
	if left := a.task.Timeout; left > 0 {
		if a.resumed != nil {
			left -= a.resumed.Elapsed
		}
		defer time.AfterFunc(left, a.timeOut).Stop()
	}
	output, err := a.call()
	a.mu.Lock()
	a.returned = true
	log := a.log
	a.mu.Unlock()
	log.flush()
	a.finish(output, err)
	a.mu.Lock()
	gone := a.gone
	a.mu.Unlock()
	if gone { // the rest of the log has no reader
		log.release()
	}
	a.session.reports.add(a)
}

// timeOut ends the attempt at its deadline. The time is counted from when the attempt reached this process, which was after the
// claim, so it never ends early.
func (a *attempt) timeOut() {
	a.stop(&task.Stop{As: flow.TimedOut, Code: flow.CodeTimeout, Reason: fmt.Sprintf("the attempt took longer than its timeout of %s", a.task.Timeout)})
}

// call runs the handler; a panic is a failure of this attempt only.
func (a *attempt) call() (output json.RawMessage, err error) {
	run := a.spans.run(&a.task)
	defer func() {
		if p := recover(); p != nil {
			a.session.w.Log.Error("handler panicked", telemetry.Execution, a.task.Execution, telemetry.Attempt, a.task.Attempt, telemetry.Kind, a.task.Kind, telemetry.Panic, p, telemetry.Stack, string(debug.Stack()))
			output, err = nil, task.Errorf(flow.CodeHandlerError, "the handler panicked: %v", p)
		}
		if err != nil {
			run.Fail(err.Error())
		}
		run.End()
	}()
	return a.handler.Run(run.In(a.ctx), &a.task)
}

// finish adds the last event, with the outcome of the attempt. An attempt that was given up gets none, unless its handler has completed.
func (a *attempt) finish(output json.RawMessage, err error) {
	output, err = clean(output, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.gone || (err != nil && a.stopped != nil && a.stopped.As == 0) {
		a.gone = true
		a.unacked = nil
		a.session.forget(a)
		a.spans.end("given up")
		return
	}
	a.spans.reporting(err)
	if err == nil {
		a.addEvent(flow.EvCompleted, a.endData(nil, output), &flow.Outcome{Output: output})
		return
	}
	e, ok := errors.AsType[*task.Error](err)
	if !ok {
		e = &task.Error{Code: flow.CodeHandlerError, Message: err.Error()}
	}
	as := cmp.Or(e.As, flow.Failed)
	o := &flow.Outcome{Output: e.Output, Error: &flow.Error{Code: e.Code, Message: e.Message, Details: e.Details}}
	if s := a.stopped; s != nil {
		as, o.Error = s.As, &flow.Error{Code: s.Code, Message: s.Reason, Details: e.Details}
	}
	o.Error.Code, o.Error.Message = brief(o.Error.Code, mostCode), brief(o.Error.Message, mostMessage)
	a.addEvent(flow.EventType(as.String()), a.endData(o.Error, o.Output), o)
}

// endData is the data of the last event if code has cases; nil: there are none, and the engine writes the error into
// the event.
func (a *attempt) endData(e *flow.Error, output json.RawMessage) json.RawMessage {
	if a.task.Kind != flow.KindCode {
		return nil
	}
	if cases := task.CaseDigest(output); cases != nil {
		return flow.EndData(e, cases)
	}
	return nil
}

// stop begins to end the attempt. The first reason counts, except that giving up replaces an order of the engine. Once the handler has
// returned, its result counts, even if the log is still being sent.
func (a *attempt) stop(s *task.Stop) {
	a.mu.Lock()
	if a.returned || a.ended && s.As != 0 {
		a.mu.Unlock()
		return
	}
	if a.stopped == nil || (s.As == 0 && a.stopped.As != 0) {
		a.stopped = s
	}
	if !s.Graceful() && !a.hurried && a.atOnce != nil {
		a.hurried = true
		close(a.atOnce)
	}
	a.mu.Unlock()
	if a.cancel != nil {
		a.cancel(s)
	}
}

// discard gives up the attempt because another session owns it.
func (a *attempt) discard(reason string) {
	a.mu.Lock()
	done := a.ended
	a.gone, a.unacked = true, nil
	a.wake()
	if done {
		a.spans.end(reason)
	}
	a.mu.Unlock()
	if done {
		a.session.forget(a)
	} else {
		a.stop(&task.Stop{Reason: reason})
	}
}

func (a *attempt) Log(stream string) io.Writer {
	return a.logWriter().stream(stream)
}

func (a *attempt) logWriter() *logWriter {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.log == nil {
		a.log = newLogWriter(a)
	}
	return a.log
}

// mostUnacked is how many progress events may wait for their acknowledgement.
const mostUnacked = 64

func (a *attempt) Progress(ctx context.Context, data json.RawMessage) error {
	if err := check(data, flow.MostData); err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	for {
		a.mu.Lock()
		if a.gone || a.ended {
			a.mu.Unlock()
			return errors.New("progress: the attempt is over")
		}
		if len(a.unacked) < mostUnacked {
			a.addEvent(flow.EvProgress, data, nil)
			a.mu.Unlock()
			a.session.reports.add(a)
			return nil
		}
		if a.acked == nil {
			a.acked = make(chan struct{})
		}
		acked := a.acked
		a.mu.Unlock()
		select {
		case <-acked:
		case <-ctx.Done():
			return fmt.Errorf("progress: %w", context.Cause(ctx))
		}
	}
}

// wake wakes the goroutines that wait for an acknowledgement. The caller holds a.mu.
func (a *attempt) wake() {
	if a.acked != nil {
		close(a.acked)
		a.acked = nil
	}
}

// report returns all unacknowledged events; false if there are none.
func (a *attempt) report() (flow.Report, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.unacked) == 0 {
		return flow.Report{}, false
	}
	// The receiver keeps the slice: acknowledged events are cut off and new ones appended, but its elements never change.
	return flow.Report{Execution: a.task.Execution, Attempt: a.task.Attempt, Events: a.unacked[:len(a.unacked):len(a.unacked)]}, true
}

// acknowledge removes the events below next, and reports whether the last event of the attempt was among them.
func (a *attempt) acknowledge(next int64) (done bool, left int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.unacked) > 0 && a.unacked[0].Seq < next {
		a.unacked = a.unacked[1:]
	}
	a.wake()
	if done = a.ended && len(a.unacked) == 0; done {
		a.spans.end("")
	}
	return done, len(a.unacked)
}
