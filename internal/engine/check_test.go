package engine

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
)

// The retries of a submission have the bounds of definitions.
func TestRetryOfASubmission(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	many := make([]string, 101)
	for i := range many {
		many[i] = "timeout"
	}
	for path, retries := range map[string][]flow.Retry{
		"retry.max_attempts": {{MaxAttempts: -1}, {MaxAttempts: 101}},
		"retry.backoff":      {{Backoff: "linear"}},
		"retry.delay":        {{Delay: -1}, {Delay: 367 * 24 * time.Hour}},
		"retry.max_delay":    {{MaxDelay: -1}, {MaxDelay: math.MaxInt64}, {Delay: time.Minute, MaxDelay: time.Second}},
		"retry.jitter":       {{Jitter: -0.1}, {Jitter: 1.1}, {Jitter: math.NaN()}, {Jitter: math.Inf(1)}},
		"retry.on":           {{On: many}},
		"retry.on[1]": {{On: []string{"timeout", ""}}, {On: []string{"timeout", "a\x00b"}}, {On: []string{"timeout", "\xff"}},
			{On: []string{"timeout", strings.Repeat("x", 101)}}},
	} {
		for _, retry := range retries {
			out := r.verdict(Submission{Action: "noop", Retry: &retry})
			var invalid *fault.Invalid
			if !errors.As(out.Err, &invalid) || invalid.Problems[0].Path != path || invalid.Problems[0].Fix == "" {
				t.Errorf("%+v: %v, not about %s", retry, out.Err, path)
			}
		}
	}
	good := flow.Retry{MaxAttempts: 100, Backoff: flow.Constant, Delay: time.Hour, MaxDelay: 366 * 24 * time.Hour, Jitter: 1, On: []string{"timeout", "exit:75", "oom", "http_503"}}
	if out := r.verdict(Submission{Action: "noop", Retry: &good}); out.Err != nil {
		t.Errorf("%+v: %v", good, out.Err)
	}
}
