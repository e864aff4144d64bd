// Package task contains the handlers, which run an attempt once a worker holds it. The built-in kinds are code, http, llm,
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

// Handler runs attempts of one kind. Many goroutines use it at the same time.
type Handler interface {
	// Run does the work and returns its output as JSON. ctx ends when the attempt is to be stopped; Stopped then returns the reason, and Run
	// must return once no part of the work is running. An error that is not an *Error fails the attempt with the code handler_error.
	Run(ctx context.Context, t *Task) (json.RawMessage, error)
}

type Func func(ctx context.Context, t *Task) (json.RawMessage, error)

func (f Func) Run(ctx context.Context, t *Task) (json.RawMessage, error) { return f(ctx, t) }

// Instant is implemented by handlers that never wait: the worker runs them without a separate goroutine and without Blobs,
// and reports their start and their end together.
type Instant interface{ Instant() }

// Advertiser is implemented by handlers with capabilities beyond their kind, such as named runtimes. The worker sends these
// to the engine together with its kinds.
type Advertiser interface{ Offers() []string }

// Lasting is implemented by handlers whose work may outlive the process that started it. The next process of the same worker
// then calls Run again, with a Task that is Resumed.
type Lasting interface {
	// Outlived returns the attempts whose work still runs, or has ended with its result kept.
	Outlived(ctx context.Context) ([]flow.AttemptID, error)
	// Settle gets those of them that will be resumed; the handler ends the work of the others. It is called once, even if
	// Outlived returned none.
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
	Timeout   time.Duration // of this attempt, counted from its arrival at the worker; 0: none
	Labels    map[string]string

	// Workflow, Name and Index say which item of which task of which workflow this is; zero outside workflows.
	Workflow flow.ID
	Name     string
	Index    int

	// AtOnce is closed when the work must end at once, even if the attempt was stopped before and has a grace period: the worker has
	// lost the attempt, or a user does not want to wait. nil: never.
	AtOnce <-chan struct{}

	// Resumed is true if an earlier process of this worker started the attempt, and Outlived returned it.
	Resumed bool

	Traceparent string
	Chain       string // value of the header Pawl-Chain on the work's requests: the rules that led to it; "": none
	Host        Host
	Blobs       blob.Access // for files too large for a row; nil: such files are refused
}

// IdempotencyKey is the same for every attempt of the execution: pass it on to the services that the work calls.
func (t *Task) IdempotencyKey() string { return t.Execution.String() }

// SetChain adds the header with the rules that led to the execution.
func (t *Task) SetChain(h http.Header) {
	if t.Chain != "" {
		h.Set("Pawl-Chain", t.Chain)
	}
}

// Log returns a writer for output that people can read while the handler works: "stdout" and "stderr" for the streams of a program, "log"
// for anything else. Readers see bytes after about 0.1 s. Only one goroutine at a time may write to a stream. A write waits while too
// many bytes are on their way to the engine (but see Spooler), and fails once the worker has lost the attempt.
func (t *Task) Log(stream string) io.Writer { return t.Host.Log(stream) }

// Input is the input of an interactive execution; every attempt reads it from its beginning. A read waits for input, and
// ends with ctx. After the call of Input, the attempt's output is sent to its readers without delay.
func (t *Task) Input(ctx context.Context) io.Reader { return t.Host.Input(ctx) }

// Progress adds an event with the given JSON object to the history. It waits while too many events are unacknowledged.
func (t *Task) Progress(ctx context.Context, data json.RawMessage) error {
	return t.Host.Progress(ctx, data)
}

// Host is the worker as an attempt uses it.
type Host interface {
	Log(stream string) io.Writer
	Input(ctx context.Context) io.Reader
	Progress(ctx context.Context, data json.RawMessage) error
}

// Spooler is implemented by writers of a Log that can keep a program's output on the local disk: the program then never waits for
// the engine, and the engine's delays do not count as the program's time.
type Spooler interface {
	// Spool allows most more bytes in files in dir, which have no names and so disappear with the process. A Write fails when the disk
	// has no room for them.
	Spool(dir string, most int64)
}

// ErrSpool is wrapped by the error of a Write that a Spooler could not keep.
var ErrSpool = errors.New("the worker's disk cannot keep the program's output (free space there, or lower limits.output)")

// Error is the end of an attempt that did not complete.
type Error struct {
	As      flow.Stage      // Failed (also when zero), TimedOut or Cancelled
	Code    string          // a verdict, or the handler's own code; retry policies match it
	Message string          // for people
	Details json.RawMessage // {"exit_code": 3}
	Output  json.RawMessage // a partial output to keep
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns a failure because of a field of the payload.
func Invalid(path, value, message, fix string) *Error {
	return Errorf(flow.CodeInvalidInput, "%s: %s: %.60q (%s)", path, message, value, fix)
}

// Stop is the reason for which an attempt is stopped. It is the cause of its context's end.
type Stop struct {
	As     flow.Stage // how the attempt ends: Cancelled or TimedOut; zero if the worker gives it up
	Code   string
	Reason string
	AtOnce bool // without a grace
}

// Graceful reports whether the work may take some time to end.
func (s *Stop) Graceful() bool { return s.As != 0 && !s.AtOnce }

func (s *Stop) Error() string { return s.Reason }

// Stopped returns the reason for which the attempt is being stopped, if it is.
func Stopped(ctx context.Context) (*Stop, bool) {
	if ctx.Err() == nil {
		return nil, false
	}
	if s, ok := errors.AsType[*Stop](context.Cause(ctx)); ok {
		return s, true
	}
	return &Stop{Reason: "the worker gave the attempt up"}, true
}
