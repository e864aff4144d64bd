// Package handler lets a Go program run tasks for a Pawl server: write functions, name them, and serve them.
//
// An action that names a handler ("handler: resize") is run by the programs that serve a handler of that name, one attempt
// at a time per slot. It waits in the queue that is named like its handler ("resize"), unless the action, the task or the
// submission names another. A program serves the queues of its handlers, unless [Options.Queues] names others. In every
// queue it is given the executions of its handlers and no others, so it can share a queue with the server's own workers
// and with programs that have other handlers.
//
// Everything a built-in task has holds for a handler's: retries, timeouts, cancelling,
// concurrency keys, live logs. Every accepted execution is attempted at least once, so side effects may repeat: pass
// [Task.IdempotencyKey] on to whatever the handler calls.
package handler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/remote"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// Handler runs one attempt and returns its output, which must have a JSON form of at most 16 MB. It returns soon after ctx ends: then the
// attempt has been cancelled, has timed out, or is no longer this program's; context.Cause(ctx) says which. An error
// fails the attempt, with the code of [Fail] or "handler_error". A panic fails the attempt and nothing else.
type Handler func(ctx context.Context, t *Task) (any, error)

// Map is the handlers of a program, by the name that actions have in their "handler": lower-case letters, digits, "_", "-"
// and ".", a letter or digit first and last, at most 100. The built-in kinds (code, http, …) are not among them.
type Map map[string]Handler

// Options says what to serve. The zero value serves the handlers' own queues at the server that $PAWL_SERVER names, with the
// token in $PAWL_TOKEN, one attempt at a time.
type Options struct {
	Server string            // URL; empty: $PAWL_SERVER, else DefaultServer
	Broker Broker            // the way to the servers in the place of Server, for programs that reach a message broker and no server; nil: none
	Token  string            // empty: $PAWL_TOKEN
	Queues []string          // empty: those named like the handlers, which actions use that name no queue
	Labels map[string]string // what executions may ask for with their worker_labels, such as gpu=a100
	Slots  int               // attempts at once; 0: 1
	Name   string            // for people; empty: host and process id
	Grace  time.Duration     // how long running attempts may go on after ctx has ended
	Log    *slog.Logger      // nil: slog.Default
}

// Broker is a message broker through which a program and the servers talk to each other. Packages beside this one make brokers, such as
// handler/redis and handler/rabbitmq: only programs that use one carry its client library.
type Broker interface {
	// Connect is called by Serve. Packages of other modules cannot implement it.
	Connect(ctx context.Context, token string, log *slog.Logger) (servers handoff.Handoff, hangUp func(), err error)
}

// DefaultServer is where a server listens unless it was told otherwise.
const DefaultServer = "http://127.0.0.1:7411"

// nameForm is that of queues: each handler has one of its own.
var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$`)

// Serve runs handlers until ctx ends; then it takes nothing new, gives what is running Options.Grace, and hands back
// the rest for others to run. A server that is away is waited for, and a broker that goes away later. An error means
// that nothing was served, as with a broker that cannot be reached at the start, or that the server refuses the
// program, by its token or its version, and nothing is served any more.
func Serve(ctx context.Context, o Options, m Map) error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	handlers := task.Handlers{}
	names := slices.Sorted(maps.Keys(m))
	for _, name := range names {
		switch {
		case flow.Kind(name).BuiltIn():
			return fmt.Errorf("serve handlers: %q cannot name a handler: it is a built-in kind, which pawl worker and the server's own workers run; choose another name", name)
		case !nameForm.MatchString(name):
			return fmt.Errorf("serve handlers: %.110q cannot name a handler: use 1 to 100 lower-case letters, digits, \"_\", \"-\" and \".\", a letter or digit first and last", name)
		case m[name] == nil:
			return fmt.Errorf("serve handlers: %q has no function", name)
		}
		handlers[flow.Kind(name)] = adapter(m[name])
	}
	if len(o.Queues) == 0 {
		o.Queues = names
	}
	servers, hangUp, err := o.connect(ctx)
	if err != nil {
		return fmt.Errorf("serve handlers: %w", err)
	}
	defer hangUp()
	w, err := worker.New(worker.Options{Handoff: servers, Handlers: handlers, Slots: o.Slots, Queues: o.Queues, Labels: o.Labels, Name: o.Name, Log: o.Log, Grace: o.Grace})
	if err != nil {
		return fmt.Errorf("serve handlers: %w", err)
	}
	return w.Run(ctx)
}

// connect finds the way to the servers.
func (o *Options) connect(ctx context.Context) (servers handoff.Handoff, hangUp func(), err error) {
	token := cmp.Or(o.Token, os.Getenv("PAWL_TOKEN"))
	switch {
	case o.Broker != nil && o.Server != "":
		return nil, nil, errors.New("Options name a server and a broker: leave one of them empty")
	case o.Broker != nil:
		return o.Broker.Connect(ctx, token, o.Log)
	}
	servers, err = remote.Dial(cmp.Or(o.Server, os.Getenv("PAWL_SERVER"), DefaultServer), token)
	return servers, func() {}, err
}

// adapter is a Handler as the worker sees it.
type adapter Handler

func (h adapter) Run(ctx context.Context, t *task.Task) (json.RawMessage, error) {
	out, err := h(ctx, &Task{
		ID: t.Execution.String(), Attempt: t.Attempt, Action: t.Action, Kind: string(t.Kind), Input: t.Payload, Timeout: t.Timeout,
		Labels: t.Labels, IdempotencyKey: t.IdempotencyKey(), Traceparent: t.Traceparent, Chain: t.Chain, task: t,
	})
	if err != nil {
		return nil, failed(err, out)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, task.Errorf(flow.CodeHandlerError, "the output has no JSON form: %v", err)
	}
	return raw, nil
}

// failed is the end of an attempt in the worker's words; an output beside the error is kept.
func failed(err error, out any) error {
	e := &task.Error{Code: flow.CodeHandlerError, Message: err.Error()}
	if f, ok := errors.AsType[*Failure](err); ok {
		e.Code = f.Code
		if f.Details != nil {
			if raw, merr := json.Marshal(f.Details); merr == nil {
				e.Details = raw
			}
		}
	}
	if out != nil {
		if raw, merr := json.Marshal(out); merr == nil {
			e.Output = raw
		}
	}
	return e
}

// Failure is an error with a code that retry policies can match ("retry: {on: [quota_exceeded]}").
type Failure struct {
	Code    string
	Message string
	Details any // kept with the error; nil: nothing. At most 64 KB of JSON
}

func (f *Failure) Error() string { return f.Message }

// Fail is a Failure with a code such as "quota_exceeded".
func Fail(code, format string, args ...any) error {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Task is one attempt.
type Task struct {
	ID             string // of the execution
	Attempt        int    // 1, 2, 3 …
	Action         string
	Kind           string
	Input          json.RawMessage
	Timeout        time.Duration // of this attempt; 0: none
	Labels         map[string]string
	IdempotencyKey string // the same for every attempt of the execution
	Traceparent    string // W3C trace context, when the submitter gave one
	Chain          string // send it as header Pawl-Chain to what may emit signals to Pawl; "" where no rule has led to the execution

	task *task.Task
}

// Decode reads the input into a value. Its error fails the attempt as "invalid_input" when it is returned.
func (t *Task) Decode(into any) error {
	in := t.Input
	if len(in) == 0 {
		in = json.RawMessage("null")
	}
	if err := json.Unmarshal(in, into); err != nil {
		return Fail(flow.CodeInvalidInput, "the input does not fit: %v", err)
	}
	return nil
}

// Log is the task's log: what is written is visible to readers within about a tenth of a second. It is for one goroutine
// at a time.
func (t *Task) Log() io.Writer { return t.task.Log("log") }

// Logf writes a line to the log.
func (t *Task) Logf(format string, args ...any) {
	// A log that cannot be written any more belongs to an attempt that is over, and its ctx says so.
	_, _ = fmt.Fprintf(t.Log(), format+"\n", args...)
}

// Progress adds an event with the value to the execution's history, for what readers should find later: milestones, not
// ticks. It fails once the attempt is over, and for more than 64 KB of JSON.
func (t *Task) Progress(ctx context.Context, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	return t.task.Progress(ctx, raw)
}

// Func makes a Handler of a function with typed input and output.
func Func[In, Out any](f func(ctx context.Context, t *Task, in In) (Out, error)) Handler {
	return func(ctx context.Context, t *Task) (any, error) {
		var in In
		if err := t.Decode(&in); err != nil {
			return nil, err
		}
		out, err := f(ctx, t, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}
