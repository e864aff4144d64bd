// Package task holds the handlers: what runs an attempt once a worker holds it. The built-in ones are code, http, llm,
// webhook, input, output and noop; programs add their own through package handler.
package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
)

// Handler runs attempts of one kind. It is used by many goroutines at once.
type Handler interface {
	// Run does the work and returns its output as JSON. ctx ends when the attempt is to be stopped; Stopped then says
	// why, and Run returns once nothing of the work is left running. An error that is not an *Error fails the attempt as
	// handler_error.
	Run(ctx context.Context, t *Task) (json.RawMessage, error)
}

// Func is a Handler that is one function.
type Func func(ctx context.Context, t *Task) (json.RawMessage, error)

// Run calls f.
func (f Func) Run(ctx context.Context, t *Task) (json.RawMessage, error) { return f(ctx, t) }

// Instant is implemented by handlers that never wait for anything: the worker runs them where it stands and reports
// their beginning and their end together.
type Instant interface{ Instant() }

// Advertiser is implemented by handlers that can do more than the name of their kind says: the worker offers it to the
// engine beside the kinds.
type Advertiser interface{ Offers() []string }

// Lasting is implemented by handlers whose work may go on without the process that began it, for the next process of the
// same worker to take up again: it calls Run again, for a Task that is Resumed.
type Lasting interface {
	// Outlived names the attempts whose work is there to be taken up: it goes on, or has ended meanwhile.
	Outlived(ctx context.Context) ([]flow.AttemptID, error)
	// Settle says which of them will be; what there is of others is ended. It is called once, whether or not there was
	// anything.
	Settle(kept []flow.AttemptID)
}

// Handlers are the handlers of a worker, by the kind of execution that they run.
type Handlers map[flow.Kind]Handler

// Task is one attempt as its handler sees it.
type Task struct {
	Execution flow.ID
	Attempt   int // 1, 2, 3 …
	Action    string
	Kind      flow.Kind
	Payload   json.RawMessage
	Timeout   time.Duration // of this attempt, from its claim; 0: none was set
	Labels    map[string]string

	// Workflow, Name and Index tell where the work belongs; zero outside workflows.
	Workflow flow.ID
	Name     string
	Index    int

	// Resumed says that an earlier process of this worker began the attempt, and that its handler named it as Outlived.
	Resumed bool

	Traceparent string
	Chain       string // value of the header Pawl-Chain for what the work sends: the rules that have led to it; "": none
	Host        Host
	Blobs       blob.Access // for files too big for a row; nil: they are refused
}

// IdempotencyKey is the same for every attempt of the execution: pass it on to the services that the work calls.
func (t *Task) IdempotencyKey() string { return t.Execution.String() }

// SetChain adds to the headers of a request the rules that have led to the execution.
func (t *Task) SetChain(h http.Header) {
	if t.Chain != "" {
		h.Set("Pawl-Chain", t.Chain)
	}
}

// Log is where the handler writes what people should read while it works: "stdout" and "stderr" for a program's own
// output, "log" for anything else. Bytes are visible to readers within about a tenth of a second. Each stream is written
// by one goroutine at a time; a write waits when too much is on its way, and fails once the attempt is no longer this
// worker's.
func (t *Task) Log(stream string) io.Writer { return t.Host.Log(stream) }

// Input is what an interactive execution is given to read while it runs, from its beginning in every attempt. A read
// waits until something is given and ends with ctx. Asking for it makes what the attempt writes from then on go to its
// readers without delay.
func (t *Task) Input(ctx context.Context) io.Reader { return t.Host.Input(ctx) }

// Progress adds an event with the given JSON object to the history. It waits when too many are unacknowledged.
func (t *Task) Progress(ctx context.Context, data json.RawMessage) error {
	return t.Host.Progress(ctx, data)
}

// Host is the worker, seen from an attempt.
type Host interface {
	Log(stream string) io.Writer
	Input(ctx context.Context) io.Reader
	Progress(ctx context.Context, data json.RawMessage) error
}

// Error is the end of an attempt that did not complete.
type Error struct {
	As      flow.Stage      // Failed (also when zero), TimedOut or Cancelled
	Code    string          // a verdict or a code of the handler's own: what retry policies match
	Message string          // for people
	Details json.RawMessage // {"exit_code": 3}
	Output  json.RawMessage // what there is to keep all the same
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Errorf is a failure with the given code.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid is a failure because of a field of the payload.
func Invalid(path, value, message, fix string) *Error {
	return Errorf(flow.CodeInvalidInput, "%s: %s: %.60q (%s)", path, message, value, fix)
}

// Stop is why an attempt is being stopped: the cause of its context's end.
type Stop struct {
	As     flow.Stage // how the attempt ends: Cancelled or TimedOut; zero when the worker merely lets go of it
	Code   string
	Reason string
}

func (s *Stop) Error() string { return s.Reason }

// Stopped says why the attempt is being stopped, once it is.
func Stopped(ctx context.Context) (*Stop, bool) {
	if ctx.Err() == nil {
		return nil, false
	}
	if s, ok := errors.AsType[*Stop](context.Cause(ctx)); ok {
		return s, true
	}
	return &Stop{Reason: "the worker let go of the attempt"}, true
}
