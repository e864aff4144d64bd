// Package attempt runs one recorded attempt in this process. A worker gets it as if from an engine: it prepares, runs
// and ends the attempt like any other. The worker's reports are kept in this process.
package attempt

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// Recorded is an attempt as it was recorded. Assignment, Handler and Blobs are required.
type Recorded struct {
	Assignment handoff.Assignment
	Handler    task.Handler // of the attempt's kind
	// Blobs opens an input blob of the attempt at an offset. Its errors are handoff's: ErrNoBlob, ErrUnavailable.
	Blobs func(ctx context.Context, name string, from int64) (io.ReadCloser, error)
	Stdin io.Reader                     // the attempt's live input until an end of file; nil: no input and no end of file
	Out   func(stream string) io.Writer // destination of the attempt's output, by stream: stdout, stderr, log; nil: discarded
	Log   *slog.Logger                  // the worker's log; nil: none
}

type End struct {
	Stage flow.Stage
	flow.Outcome
}

// Run runs an attempt to its end. If ctx ends first, the run is stopped without leaving anything, and the error is the cause.
func Run(ctx context.Context, r *Recorded) (*End, error) {
	if r.Assignment.Kind.ByEngine() {
		return nil, fmt.Errorf("run an attempt: no worker runs executions of kind %s", r.Assignment.Kind)
	}
	handlers := task.Handlers{r.Assignment.Kind: r.Handler}
	if r.Assignment.Kind.BuiltIn() {
		handlers = task.Passes(handlers) // a worker needs all built-in kinds; it gets one execution of this kind
	}
	h := newHandOff(r)
	w, err := worker.New(worker.Options{Handoff: h, Handlers: handlers, Slots: 1, Log: r.Log})
	if err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-h.ended:
			stop()
		case <-working.Done():
		}
	}()
	if err := w.Run(working); err != nil {
		return nil, err
	}
	if end := h.outcome(); end != nil {
		return end, nil
	}
	return nil, context.Cause(ctx)
}
