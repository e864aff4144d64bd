package verification_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/verification"
)

// The databases refuse these rows; rows that a damaged disk has left are found here.
func TestPlaces(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(1e15).UTC()
	for what, c := range map[string]struct {
		state     flow.State
		outcome   *flow.Outcome
		invariant int
	}{
		"owned in the queue":                     {flow.State{Place: flow.Ready, Stage: flow.Scheduled, Owner: flow.ID{1}}, nil, 3},
		"held, and owned by no session":          {flow.State{Place: flow.Held, Stage: flow.Provisioning}, nil, 3},
		"a slot held by what is not admitted":    {flow.State{Place: flow.Ready, Stage: flow.Requested}, nil, 13},
		"running, and in no place":               {flow.State{Stage: flow.Running}, nil, 13},
		"over, and in a stage that is not final": {flow.State{Place: flow.Finished, Stage: flow.Running, FinishedAt: now}, nil, 13},
		"over, without an outcome":               {flow.State{Place: flow.Finished, Stage: flow.Completed, FinishedAt: now}, nil, 2},
		"completed with an error":                {flow.State{Place: flow.Finished, Stage: flow.Completed, FinishedAt: now}, &flow.Outcome{Error: &flow.Error{Code: "c"}}, 2},
		"failed without an error":                {flow.State{Place: flow.Finished, Stage: flow.Failed, FinishedAt: now}, &flow.Outcome{}, 2},
	} {
		var f verification.Findings
		verification.Execution(&f, &flow.Execution{ID: flow.ID{7}, Request: flow.Request{Kind: flow.KindNoop, CreatedAt: now}, State: c.state, Outcome: c.outcome}, nil)
		if !slices.ContainsFunc(f.All, func(v store.Violation) bool { return v.Invariant == c.invariant && v.Execution == flow.ID{7} }) {
			t.Errorf("%s: found %v, want invariant %d broken", what, f.All, c.invariant)
		}
	}
}
