package server

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
)

func render(x *flow.Execution) api.Execution {
	again := x.AsRerun()
	out := api.Execution{
		ID: x.ID.String(), Action: x.Action, Version: x.Version, Alias: x.Alias, Kind: string(x.Kind),
		Status: status(x.Stage), Attempt: x.Attempt,
		Workflow: x.Parent.String(), Task: x.Task, Index: x.Index,
		CreatedAt: x.CreatedAt, QueuedAt: x.QueuedAt, ClaimedAt: x.ClaimedAt,
		StartedAt: x.StartedAt, FinishedAt: x.FinishedAt, WakeAt: x.WakeAt,
		RerunOf: x.RerunOf.String(), RetryOf: again.RetryOf.String(), Only: again.Only, GivenBy: again.OverriddenBy,
		ReusedOf: x.ReusedOf.String(), Cached: x.Cached(),
		Signal: x.Signal.Text(flow.SignalPrefix), Rules: x.Rules,
		Worker: x.Owner.Text(flow.SessionPrefix), Input: x.Input, Traceparent: x.Traceparent,
		Waiting: x.WaitsFor(), Seq: max(0, x.NextSeq-1),
	}
	renderSettings(&out, &x.Request)
	if o := x.State.Cancel; o != nil && !x.Stage.Terminal() {
		out.CancelOrder = &api.CancelOrder{As: status(o.As), Code: o.Code, Reason: o.Reason, At: o.At}
		if o.Cleaning && !o.Over {
			out.CancelOrder.CleanupUntil = o.Until
		}
	}
	out.Paused = renderExecutionPause(x)
	if x.Outcome != nil {
		out.Output, out.Error = x.Outcome.Output, renderError(x.Outcome.Error)
		renderRun(&out, x, x.Outcome.Output)
	}
	return out
}

// renderRun adds the summary of a run of code, from its output.
func renderRun(out *api.Execution, x *flow.Execution, output json.RawMessage) {
	if x.Kind != flow.KindCode {
		return
	}
	switch {
	case x.Stage == flow.Completed:
		out.Verdict = api.VerdictOK
	case x.Outcome.Error != nil:
		out.Verdict = x.Outcome.Error.Code
	}
	var run struct {
		ExitCode        *int    `json:"exit_code"`
		WallMS          float64 `json:"wall_ms"`
		CPUMS           float64 `json:"cpu_ms"`
		PeakMemoryBytes int64   `json:"peak_memory_bytes"`

		Summary *api.CaseSummary `json:"summary"`
	}
	if len(output) > 0 && json.Unmarshal(output, &run) == nil {
		out.ExitCode, out.WallMS, out.CPUMS, out.PeakMemoryBytes, out.Summary = run.ExitCode, run.WallMS, run.CPUMS, run.PeakMemoryBytes, run.Summary
	}
}

func caseVerdicts(output json.RawMessage) []api.CaseVerdict {
	var run struct {
		Cases []api.CaseVerdict `json:"cases"`
	}
	if json.Unmarshal(output, &run) != nil { // an output that is not code's has no cases
		return nil
	}
	return run.Cases
}

// moment returns a time for an optional field; nil if it is zero.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func status(s flow.Stage) api.Status { return api.Status(s.String()) }

func renderError(e *flow.Error) *api.Error {
	if e == nil {
		return nil
	}
	return &api.Error{Code: e.Code, Message: e.Message, Details: e.Details}
}

func renderEvent(e flow.Event) api.Event {
	return api.Event{Seq: e.Seq, Attempt: e.Attempt, Type: string(e.Type), At: e.At, Data: e.Data}
}

// renderChunk returns the API's form of a chunk. UTF-8 becomes Text, other bytes Data.
func renderChunk(l flow.LogChunk, data []byte) api.LogChunk {
	out := api.LogChunk{Attempt: l.Attempt, Seq: l.Seq, Stream: l.Stream, Offset: l.Offset, Size: l.Size, At: l.At}
	if utf8.Valid(data) {
		out.Text = string(data)
	} else {
		out.Data = data
	}
	return out
}
