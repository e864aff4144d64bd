package requests

import (
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
)

// Bounds of requests. Definitions have the same ones.
const (
	rateLimit     = 100_000 // executions that a rate allows in its span
	priorityLimit = 1000
	holdersLimit  = 100_000
	attemptsLimit = 100
	codesLimit    = 100 // of error codes that are retried
	codeLimit     = 100 // bytes of one
)

// Faults collects values out of bounds, in a submission or in an archived request.
type Faults struct{ fault.List }

// Check checks all that a rerun or a retry copies from a request.
func (f *Faults) Check(r *flow.Request) {
	f.Spans(&r.Settings)
	f.Priority(r.Priority)
	if r.Key != "" {
		f.Text("concurrency.key", r.Key, fault.KeyLimit)
		f.Holders(r.Key, r.KeyLimit, r.WhenFull)
		if r.Fair.By != "" { // an expression may have returned an empty text
			f.Turns(r.Fair)
		}
	}
	if r.Rate.Key != "" { // so here
		f.Rate(&r.Rate)
	}
	f.Retry(&r.Retry)
}

// Spans checks how long an execution may take.
func (f *Faults) Spans(s *flow.Settings) {
	for _, span := range s.Spans() {
		f.Span(span.Name, *span.Value)
	}
}

// Priority checks a given priority.
func (f *Faults) Priority(n int) { f.Number("priority", n, -priorityLimit, priorityLimit) }

// Holders checks the limit of a concurrency key, if there is one.
func (f *Faults) Holders(key string, limit int, full flow.WhenFull) {
	if key != "" {
		f.Number("concurrency.limit", limit, 1, holdersLimit)
	}
	switch full {
	case "", flow.WhenFullQueue, flow.WhenFullCancelNew, flow.WhenFullCancelOldest:
	default:
		f.Add("concurrency.when_full", fault.Short(string(full)), "is unknown", "one of queue, cancel_new, cancel_oldest")
	}
}

// Turns checks how executions that wait for a key take turns.
func (f *Faults) Turns(t flow.Fair) {
	f.Text("concurrency.fair_by", t.By, fault.KeyLimit)
	f.Number("concurrency.weight", t.Weight, 1, flow.MostWeight)
}

// Rate checks a rate.
func (f *Faults) Rate(r *flow.Rate) {
	if r.Key == "" {
		f.Add("rate.key", "", "is missing", "name what is limited, as in mails")
	}
	f.Text("rate.key", r.Key, fault.KeyLimit)
	f.Number("rate.limit", r.Limit, 1, rateLimit)
	if r.Per == 0 {
		f.Add("rate.per", "", "is missing", "give the span, as in 1m")
	}
	f.Span("rate.per", r.Per)
	if r.Limit > 0 && r.Per > 0 && r.Per/time.Duration(r.Limit) < time.Microsecond {
		f.Add("rate.per", r.Per.String(), fmt.Sprintf("%d in it is more often than once a microsecond", r.Limit), "leave the rate out: that often nothing begins")
	}
	if r.Burst != 0 {
		f.Number("rate.burst", r.Burst, 1, rateLimit)
	}
	switch r.Over {
	case "", flow.OverDelay, flow.OverDrop:
	default:
		f.Add("rate.over", fault.Short(string(r.Over)), "is unknown", "delay or drop")
	}
}

// Retry checks when a failure is retried.
func (f *Faults) Retry(r *flow.Retry) {
	if r.MaxAttempts != 0 {
		f.Number("retry.max_attempts", r.MaxAttempts, 1, attemptsLimit)
	}
	switch r.Backoff {
	case "", flow.Constant, flow.Exponential:
	default:
		f.Add("retry.backoff", fault.Short(string(r.Backoff)), "is unknown", "one of constant, exponential")
	}
	f.Span("retry.delay", r.Delay)
	f.Span("retry.max_delay", r.MaxDelay)
	if r.MaxDelay > 0 && r.MaxDelay < r.Delay && r.Delay <= fault.TimeoutLimit {
		f.Add("retry.max_delay", r.MaxDelay.String(), fmt.Sprintf("is less than the delay %s", r.Delay), "make it at least the delay")
	}
	if !(r.Jitter >= 0 && r.Jitter <= 1) { // NaN as well
		f.Add("retry.jitter", fmt.Sprint(r.Jitter), "is out of range", "give the share of the delay that is random, 0 to 1")
	}
	if len(r.On) > codesLimit {
		f.Add("retry.on", fmt.Sprint(len(r.On)), fmt.Sprintf("are more than the %d codes allowed", codesLimit), "leave some out, or all of them to retry every failure")
		return
	}
	for i, code := range r.On {
		if at := fmt.Sprintf("retry.on[%d]", i); code == "" {
			f.Add(at, "", "is empty", "write an error code such as timeout, oom or exit:75")
		} else {
			f.Text(at, code, codeLimit)
		}
	}
}

// RetryCodes refuses codes after which no attempt of the kind is retried.
func (f *Faults) RetryCodes(on []string, kind flow.Kind) {
	for i, code := range on {
		if message, fix := definition.BadRetryCode(code, kind); message != "" {
			f.Add(fmt.Sprintf("retry.on[%d]", i), fault.Short(code), fmt.Sprintf("%.60q %s", code, message), fix)
		}
	}
}
