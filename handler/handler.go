// Package handler lets a Go program run tasks of a Pawl server as functions with names.
//
// An action that names a handler ("handler: resize") is run by programs that serve a handler of that name, one attempt at a time per slot.
// Its executions wait in the queue with the handler's name ("resize"), unless the action, the task or the submission names another. A
// program serves the queues of its handlers, unless [Options.Queues] names others. From every queue it gets only executions of its
// handlers, so it can share a queue with the server's own workers and with programs that have other handlers.
//
// Handlers have everything that built-in tasks have: retries, timeouts, cancelling, concurrency keys, live logs. Every accepted execution
// is attempted at least once, so side effects may repeat: pass [Task.IdempotencyKey] on to the services that the handler calls.
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

// Handler runs one attempt and returns its output, which must have a JSON form of at most 16 MB. It must return soon after ctx ends: then
// the attempt was cancelled, has timed out, or no longer belongs to this program; context.Cause(ctx) says which. An error fails the
// attempt, with the code of [Fail] or "handler_error". A panic fails only the attempt.
type Handler func(ctx context.Context, t *Task) (any, error)

// Map holds the handlers of a program by the name that actions have in their "handler": at most 100 of lower-case letters, digits, "_", "-"
// and ".", with a letter or digit first and last. Names of built-in kinds (code, http, …) are refused.
type Map map[string]Handler

// Options selects what to serve. The zero value serves the handlers' own queues for the server in $PAWL_SERVER, with the token in
// $PAWL_TOKEN, one attempt at a time.
type Options struct {
	Server string            // URL; empty: $PAWL_SERVER, else DefaultServer
	Broker Broker            // instead of Server, for programs that can reach a message broker but no server; nil: none
	Token  string            // empty: $PAWL_TOKEN
	Queues []string          // empty: the queues with the handlers' names, where executions of their actions wait by default
	Labels map[string]string // executions can require them in their worker_labels, for example gpu=a100
	Slots  int               // attempts at once; 0: 1
	Name   string            // for people; empty: host and process id
	Grace  time.Duration     // how long running attempts may go on after ctx has ended
	Log    *slog.Logger      // nil: slog.Default
}

// Broker is a message broker that connects a program with the servers. Packages such as handler/redis and handler/rabbitmq make brokers, so
// that only programs that use one link its client library.
type Broker interface {
	// Connect is called by Serve. Packages of other modules cannot implement it.
	Connect(ctx context.Context, token string, log *slog.Logger) (servers handoff.Handoff, hangUp func(), err error)
}

// DefaultServer is the address at which a server listens by default.
const DefaultServer = "http://127.0.0.1:7411"

// nameForm is the form of queue names: each handler has a queue of its own.
var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$`)

// Serve runs handlers until ctx ends; then it takes no new attempts, gives the running ones Options.Grace, and hands back the rest for
// other programs to run. It waits for an unreachable server, and for a broker that fails later. An error means that nothing was served, for
// example because the broker could not be reached at the start, or that the server refuses the program's token or version, so that nothing
// is served any more.
func Serve(ctx context.Context, o Options, m Map) error {
	o.Log = cmp.Or(o.Log, slog.Default())
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

// adapter makes a Handler a handler of the worker.
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

// failed converts a handler's error to the worker's type, and keeps an output beside it.
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
	Details any // kept with the error; nil: none. At most 64 KB of JSON
}

func (f *Failure) Error() string { return f.Message }

// Fail returns a Failure with a code such as "quota_exceeded".
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
	Chain          string // send it as the header Pawl-Chain to services that may emit signals to Pawl; "" if no rule led to the execution

	task *task.Task
}

// Decode decodes the input into a value. If the handler returns its error, the attempt fails as "invalid_input".
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

// Log is the task's log; readers see what was written within about a tenth of a second. It is for one goroutine at a time.
func (t *Task) Log() io.Writer { return t.task.Log("log") }

// Logf writes a line to the log.
func (t *Task) Logf(format string, args ...any) {
	// If the log cannot be written any more, the attempt is over and its ctx says so.
	_, _ = fmt.Fprintf(t.Log(), format+"\n", args...)
}

// Progress adds an event with the value to the execution's history, for milestones that readers should find later, not for frequent
// updates. It fails after the end of the attempt, and for more than 64 KB of JSON.
func (t *Task) Progress(ctx context.Context, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	return t.task.Progress(ctx, raw)
}

// Func returns a Handler for a function with typed input and output.
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
