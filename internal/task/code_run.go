package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// startWithin bounds the start of a program; a busy host is slow.
const startWithin = 30 * time.Second

// fetchWithin bounds the start of a container; its image may have to be pulled first.
const fetchWithin = 15 * time.Minute

// start runs one program to its end. Its output goes to the log, and its files go into a directory.
func (e *evaluation) start(ctx context.Context, spec runtime.Spec, into string) (*api.CodeResult, []runtime.Collected, error) {
	spec.CollectInto = filepath.Join(e.dir, into)
	stdout, stderr := e.logged("stdout", spec.Limits), e.logged("stderr", spec.Limits)
	spec.Stdout, spec.Stderr = stdout, stderr
	res, err := e.launch(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	if err := cmp.Or(stdout.err, stderr.err); errors.Is(err, ErrSpool) {
		return nil, nil, err
	}
	return e.result(ctx, res, spec.Limits, stdout, stderr), res.Files, nil
}

// logged keeps the beginning of a stream, and sends all of it to the log through the local disk.
func (e *evaluation) logged(stream string, limits runtime.Limits) *head {
	log := e.task.Log(stream)
	if s, ok := log.(Spooler); ok {
		s.Spool(filepath.Join(e.Dir, "runs"), limits.Or(runtime.DefaultLimits()).Output)
	}
	return &head{most: blob.InlineLimit, then: log, came: e.active}
}

// launch runs one program to its end.
func (e *evaluation) launch(ctx context.Context, spec runtime.Spec) (runtime.Result, error) {
	if s, stopped := Stopped(ctx); stopped && !e.task.Resumed { // a run to be resumed must be found before it can be ended
		return runtime.Result{}, s
	}
	spec.Name = fmt.Sprintf("%s-%d", e.task.Execution, e.task.Attempt)
	spec.Labels = labelsOf(flow.AttemptID{Execution: e.task.Execution, Attempt: e.task.Attempt})
	spec.Note = e.note(ctx)
	span := telemetry.StartIn(ctx, telemetry.SpanRuntime, slog.String(telemetry.Runtime, e.runtime.Name()))
	defer span.End()
	// A stop during Start must not lose output that the program has already written: the run is started, then ended,
	// and its output kept. The pull of an image is given up at once.
	from, within, start := context.WithoutCancel(ctx), startWithin, e.runtime.Start
	if e.task.Resumed {
		start = e.resume
	} else if e.series != nil {
		start = e.series.Start
	} else if _, imaged := e.runtime.(runtime.Imaged); imaged {
		from, within = ctx, fetchWithin
	}
	if e.task.Timeout > 0 && spec.Limits.Wall == e.task.Timeout && e.KillGrace > 0 {
		spec.Limits.Wall += e.KillGrace + startWithin // the attempt's timeout ends the run with a grace; this limit would end it at once
	}
	starting, cancel := context.WithTimeout(from, within)
	run, err := start(starting, spec)
	cancel()
	if s, stopped := Stopped(ctx); err != nil && stopped {
		return runtime.Result{}, s
	}
	if err != nil {
		span.Fail(err.Error())
		return runtime.Result{}, fmt.Errorf("start: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { e.end(ctx, run) })
	res := run.Wait()
	stop()
	if stderr, ok := spec.Stderr.(*head); ok {
		e.lang.outOfMemory(&res, stderr.end())
	}
	span.Set(slog.String(telemetry.Verdict, string(res.Verdict)))
	if res.Verdict != runtime.OK {
		span.Fail(string(res.Verdict))
	}
	return res, nil
}

// end ends the run of an attempt that is stopped. During the grace period the run is killed when the attempt is given up, because
// another worker may be about to start the next one, and at a second cancel.
func (e *evaluation) end(ctx context.Context, run runtime.Run) {
	s, _ := Stopped(ctx)
	if !s.Graceful() {
		run.Kill(s.Reason)
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run.Wait()
	}()
	run.Terminate(s.Reason, e.KillGrace)
	select {
	case <-ended:
	case <-e.task.AtOnce:
		run.Kill(s.Reason)
	}
}

// mostNotes bounds the notes about waiting that one run may add to the history.
const mostNotes = 10

// note adds the reason why a run waits to the history, for pawl why. A note that cannot be recorded is dropped.
func (e *evaluation) note(ctx context.Context) func(string) {
	last, said := "", 0
	return func(waiting string) {
		if waiting == last || waiting != "" && said == mostNotes {
			return
		}
		last = waiting
		said++
		data, err := json.Marshal(flow.Note{Waiting: waiting})
		if err == nil {
			_ = e.task.Progress(ctx, data)
		}
	}
}

// resume takes up a run that an earlier process of this worker started.
func (e *evaluation) resume(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	k, ok := e.runtime.(runtime.Keeper)
	if !ok {
		return nil, fmt.Errorf("%w: runtime %s cannot resume a run of an earlier process", runtime.ErrUnavailable, e.runtime.Name())
	}
	return k.Resume(ctx, spec)
}
