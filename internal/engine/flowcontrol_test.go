package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
)

// A submission may set its own rate and fair_by, even if its action sets others; the idempotency key covers them.
func TestFlowControlOfSubmissions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: a\naction: noop\nrate: {key: own, limit: 1, per: 1h}\n")
	rate := &flow.Rate{Key: "mails", Limit: 1, Per: time.Hour, Burst: 2}
	for i, want := range []flow.Stage{flow.Scheduled, flow.Scheduled, flow.Requested} {
		x := r.get(r.submit(Submission{Action: "a", Rate: rate, Key: "k", KeyLimit: 9, Fair: flow.Fair{By: "ada", Weight: 2}}))
		if x.Stage != want || x.Rate.Key != "mails" || x.Fair.By != "ada" {
			t.Errorf("%d: %s %+v %+v", i, x.Stage, x.Rate, x.Fair)
		}
	}
	other := *rate
	other.Limit = 2
	out, err := r.e.Submit(r.ctx, []Submission{{Action: "a", IdempotencyKey: "i", Rate: rate}, {Action: "a", IdempotencyKey: "i", Rate: rate}, {Action: "a", IdempotencyKey: "i", Rate: &other}})
	if err != nil || out[0].Err != nil || !out[1].Existing || !errors.Is(out[2].Err, ErrIdempotencyMismatch) {
		t.Errorf("%+v %v", out, err)
	}
	for want, s := range map[string]Submission{
		"rate.key":           {Rate: &flow.Rate{Limit: 1, Per: time.Hour}},
		"rate.limit":         {Rate: &flow.Rate{Key: "k", Per: time.Hour}},
		"rate.per":           {Rate: &flow.Rate{Key: "k", Limit: 1}},
		"rate.burst":         {Rate: &flow.Rate{Key: "k", Limit: 1, Per: time.Hour, Burst: -1}},
		"rate.over":          {Rate: &flow.Rate{Key: "k", Limit: 1, Per: time.Hour, Over: "x"}},
		"concurrency.key":    {Fair: flow.Fair{By: "ada", Weight: 1}},
		"concurrency.weight": {Key: "k", KeyLimit: 1, Fair: flow.Fair{Weight: 1}},
	} {
		s.Action = "noop"
		out, err := r.e.Submit(r.ctx, []Submission{s})
		var refused *fault.Invalid
		if err != nil || !errors.As(out[0].Err, &refused) || refused.Problems[0].Path != want {
			t.Errorf("%s: %v %v", want, fmt.Sprint(out), err)
		}
	}
}
