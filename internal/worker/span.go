package worker

import (
	"errors"
	"log/slog"
	"time"

	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// spans are the spans of one attempt, all nil if it is not traced. The attempt's mutex guards report and the ends.
type spans struct{ attempt, report *telemetry.Span }

// begin starts the attempt's span at the end of its hand-off, by the engine's clock unless that is ahead of this process's.
func (s *spans) begin(t *telemetry.Tracer, a *task.Task, claimed time.Time) {
	if !t.Wanted(a.Traceparent) {
		return
	}
	now := time.Now()
	if claimed.IsZero() || claimed.After(now) {
		claimed = now
	}
	s.attempt = t.Start(a.Traceparent, telemetry.SpanAttempt, claimed, slog.String(telemetry.Execution, a.Execution.String()),
		slog.Int(telemetry.Attempt, a.Attempt), slog.String(telemetry.Action, a.Action), slog.String(telemetry.Kind, string(a.Kind)))
	if !a.Workflow.IsZero() {
		s.attempt.Set(slog.String(telemetry.Workflow, a.Workflow.String()), slog.String(telemetry.Task, a.Name), slog.Int(telemetry.Index, a.Index))
	}
}

// run starts the span of the handler's run and makes it the parent of the spans of the handler's calls.
func (s *spans) run(t *task.Task) *telemetry.Span {
	if s.attempt == nil {
		return nil
	}
	run := s.attempt.Child(telemetry.SpanRun, slog.String(telemetry.Kind, string(t.Kind)))
	t.Traceparent = run.Traceparent()
	return run
}

// reporting records how the attempt ended, and that its end is being reported.
func (s *spans) reporting(err error) {
	if s.attempt == nil {
		return
	}
	outcome := "completed"
	if err != nil {
		outcome = "failed"
		s.attempt.Fail(err.Error())
		if e, ok := errors.AsType[*task.Error](err); ok {
			s.attempt.Set(slog.String(telemetry.Code, e.Code))
		}
	}
	s.attempt.Set(slog.String(telemetry.Outcome, outcome))
	s.report = s.attempt.Child(telemetry.SpanReport)
}

// end ends the open spans; why is the reason if the attempt's end could not be recorded.
func (s *spans) end(why string) {
	if s.attempt == nil {
		return
	}
	if why != "" {
		s.report.Fail(why)
		s.attempt.Fail(why)
	}
	s.report.End()
	s.attempt.End()
}
