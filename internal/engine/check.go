package engine

import (
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

// Bounds of a submission.
const (
	rateLimit     = 100_000 // executions that a rate lets begin in its span
	priorityLimit = 1000
	holdersLimit  = 100_000
	attemptsLimit = 100
	codesLimit    = 100 // of error codes that are tried again
	codeLimit     = 100 // bytes of one
)

// submissionFaults collects what is wrong with a submission.
type submissionFaults struct{ fault.List }

// check says what is wrong with a submission in itself.
func (s *Submission) check() []problem.Problem {
	var f submissionFaults
	if s.Action == "" {
		f.Add("action", "", "is missing", "name a registered action or workflow, or a built-in kind")
	}
	f.Text("action", s.Action, fault.ActionLimit)
	f.Text("queue", s.Queue, 100)
	if flow.Narrow(s.Queue) {
		f.Add("queue", s.Queue, catalog.UnknownQueue(s.Queue), "name a queue of a-z, 0-9, '.', '_' and '-'; what else a worker needs is said by runtime and worker_labels")
	}
	f.Text("concurrency.key", s.Key, fault.KeyLimit)
	f.Text("idempotency_key", s.IdempotencyKey, fault.KeyLimit)
	if bad := fault.BadJSON(s.Input, fault.InputLimit); bad != "" {
		f.Add("input", fmt.Sprintf("%.60q", s.Input), bad, "give a JSON value")
	}
	f.labels(s)
	for _, span := range s.Spans() {
		f.Span(span.Name, *span.Value)
	}
	f.Span("start_in", s.StartIn)
	if s.StartIn != 0 && !s.NotBefore.IsZero() {
		f.Add("start_in", s.StartIn.String(), "says when it may start, and so does not_before", "leave one of them out")
	}
	if s.Priority != nil {
		f.Number("priority", *s.Priority, -priorityLimit, priorityLimit)
	}
	if s.Key != "" {
		f.Number("concurrency.limit", s.KeyLimit, 1, holdersLimit)
	}
	switch s.WhenFull {
	case "", flow.WhenFullQueue, flow.WhenFullCancelNew, flow.WhenFullCancelOldest:
	default:
		f.Add("concurrency.when_full", fault.Short(string(s.WhenFull)), "is unknown", "one of queue, cancel_new, cancel_oldest")
	}
	f.fair(s)
	f.cache(s)
	f.rate(s.Rate)
	if s.Retry != nil {
		f.retry(s.Retry)
	}
	return f.List
}

func (f *submissionFaults) cache(s *Submission) {
	if s.Cache == nil {
		return
	}
	if s.Cache.TTL <= 0 || s.Cache.TTL > flow.MaxCacheTime {
		f.Add("cache.ttl", s.Cache.TTL.String(), "is out of range: it says how old an outcome may be", "give a duration above 0 and up to 30 days")
	}
	if s.Cache.Key != nil {
		f.Text("cache.key", *s.Cache.Key, fault.KeyLimit)
	}
	if s.StartIn != 0 || !s.NotBefore.IsZero() {
		f.Add("cache", "", "is looked into when the submission is accepted, and this one is to start later", "leave out cache, or start_in and not_before")
	}
}

func (f *submissionFaults) fair(s *Submission) {
	switch {
	case s.Fair == (flow.Fair{}):
	case s.Key == "":
		f.Add("concurrency.key", "", "is missing", "name the key for which those that wait take turns")
	case s.Fair.By == "":
		f.Add("concurrency.weight", fmt.Sprint(s.Fair.Weight), "says how many turns one has for another's one, and there is no fair_by", "add fair_by, or leave it out")
	default:
		f.Text("concurrency.fair_by", s.Fair.By, fault.KeyLimit)
		f.Number("concurrency.weight", s.Fair.Weight, 1, flow.MostWeight)
	}
}

func (f *submissionFaults) rate(r *flow.Rate) {
	if r == nil {
		return
	}
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

func (f *submissionFaults) labels(s *Submission) {
	if len(s.WorkerLabels) > flow.SelectorLimit {
		f.Add(selectorField, fmt.Sprint(len(s.WorkerLabels)), fmt.Sprintf("are more than the %d allowed", flow.SelectorLimit), "leave some out")
		return
	}
	for k, v := range s.WorkerLabels {
		if flow.BadLabelKey(k) {
			f.Add(selectorField, fault.Short(k), fmt.Sprintf("%.80q is not the key of a worker's label", k), flow.LabelKeyForm)
		} else if flow.BadLabelValue(v) {
			f.Add(selectorField+"."+k, fault.Short(v), fmt.Sprintf("%.80q is not the value of a worker's label", v), flow.LabelValueForm)
		}
	}
	if len(s.Labels) > fault.LabelsLimit {
		f.Add("labels", fmt.Sprint(len(s.Labels)), fmt.Sprintf("are more than the %d allowed", fault.LabelsLimit), "leave some out")
		return
	}
	for k, v := range s.Labels {
		f.Text(fmt.Sprintf("labels.%.*s", fault.LabelLimit, k), k, fault.LabelLimit)
		f.Text(fmt.Sprintf("labels.%.*s", fault.LabelLimit, k), v, fault.LabelLimit)
	}
}

func (f *submissionFaults) retry(r *flow.Retry) {
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
