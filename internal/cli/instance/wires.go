package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/server"
	"github.com/pawl-run/pawl/internal/server/compat"
	"github.com/pawl-run/pawl/internal/server/compat/judge0"
	"github.com/pawl-run/pawl/internal/server/compat/piston"
	"github.com/pawl-run/pawl/internal/server/compat/runcode"
	"github.com/pawl-run/pawl/internal/server/compat/testprogram"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/task/outgoing"
	"github.com/pawl-run/pawl/internal/worker"
)

// wire is the protocol of another evaluator.
type wire struct {
	name        string
	tokenHeader string
	open        func(compat.Options) http.Handler
}

// wires are the protocols that the setting compat accepts; config.Wires has their names.
var wires = []wire{
	{name: runcode.Name, open: runcode.New},
	{name: testprogram.Name, open: testprogram.New},
	{name: piston.Name, open: piston.New},
	{name: judge0.Name, tokenHeader: judge0.TokenHeader, open: judge0.New},
}

// wires are the protocols of the setting. They call the server as its own commands do, so its checks of submissions apply.
func (r *Instance) wires() []server.Wire {
	var named []server.Wire
	for _, w := range wires {
		if slices.Contains(r.Config.List("compat"), w.name) {
			named = append(named, server.Wire{Name: w.name, TokenHeader: w.tokenHeader, Outcomes: compat.Outcomes(),
				Handler: func(count func(string)) http.Handler { return w.open(r.compat(count)) }})
		}
	}
	return named
}

// compat are the options of a wire. Each of its calls has its own context, which ends before the client gives up.
func (r *Instance) compat(count func(string)) compat.Options {
	c := client.NewInProcess(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.server.Handler().ServeHTTP(w, req) }),
		client.WithUserAgent("pawl/"+r.Version), client.WithPatience(24*time.Hour), client.WithChain(""))
	known := language.BuiltIn()
	for _, name := range r.Config.Languages.Added() {
		known = known.With(language.Name{Name: name})
	}
	return compat.Options{Pawl: c, Count: count, Languages: known.Known()}
}

// callbackSlots is the number of callbacks of Judge0's protocol that are sent at the same time. A receiver that does not respond
// occupies a slot for 5 s.
const callbackSlots = 16

// callbacks reports whether this process sends the callbacks of Judge0's protocol.
func (o *Options) callbacks() bool {
	return o.Stays && slices.Contains(o.Config.List("compat"), judge0.Name)
}

// startCallbacks starts the worker that sends them. It is separate from the worker of this process, which may not exist, and whose slots
// may all be in use.
func (r *Instance) startCallbacks() error {
	egress, err := openEgress(r.Config)
	if err != nil {
		return err
	}
	body, send := judge0.Callback(r.compat(func(string) {})), outgoing.HTTP{Egress: egress}
	run := task.Func(func(ctx context.Context, t *task.Task) (_ json.RawMessage, err error) {
		token, request := t.Labels[judge0.CallbackLabel], map[string]json.RawMessage{}
		if t.Kind != flow.KindHTTP || token == "" {
			return nil, task.Errorf(flow.CodeInvalidInput, "the queue %s is for the callbacks of Judge0's protocol: name another queue", judge0.CallbackQueue)
		}
		if err := json.Unmarshal(t.Payload, &request); err != nil {
			return nil, task.Errorf(flow.CodeInvalidInput, "%v", err)
		}
		if request["body"], err = body(ctx, token); err != nil {
			return nil, err
		}
		if t.Payload, err = json.Marshal(request); err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		return send.Run(ctx, t)
	})
	handlers := task.Handlers{}
	for _, kind := range flow.Standard() { // a worker runs all of them or none
		handlers[kind] = run
	}
	w, err := worker.New(worker.Options{
		Handoff: direct.New(r.engine), Slots: callbackSlots, Queues: []string{judge0.CallbackQueue}, Labels: judge0.CallbackWorker(), Name: judge0.CallbackQueue,
		Log: r.Log, Tracer: r.tracer, Blobs: r.blobs, InlineLogs: r.blobs.InlineLogs, Grace: r.Grace, Handlers: handlers,
	})
	if err != nil {
		return err
	}
	r.stopCallbacks = r.parts.Start("the worker for callbacks", w.Run)
	return nil
}
