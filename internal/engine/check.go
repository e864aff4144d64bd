package engine

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/flow"
)

// Bounds of a submission.
const (
	inputLimit    = 16 << 20 // bytes; larger input belongs into a blob
	actionLimit   = 200      // bytes of the name of an action or workflow
	labelsLimit   = 64
	labelLimit    = 256     // bytes of a label's name and of its value
	reasonLimit   = 4096    // bytes of why something is cancelled: it is shown in lists
	rateLimit     = 100_000 // executions that a rate lets begin in its span
	keyLimit      = 512     // bytes of a concurrency or idempotency key
	timeoutLimit  = 366 * 24 * time.Hour
	priorityLimit = 1000
	holdersLimit  = 100_000
	attemptsLimit = 100
	codesLimit    = 100 // of error codes that are tried again
	codeLimit     = 100 // bytes of one
	depthLimit    = 20  // workflows in workflows
)

// faults collects what is wrong with a submission.
type faults []Problem

func (f *faults) add(path, value, message, fix string) {
	*f = append(*f, Problem{Path: path, Value: value, Message: message, Fix: fix})
}

func (f *faults) text(path, value string, limit int) {
	if bad := badText(value, limit); bad != "" {
		f.add(path, shortText(value), bad, "shorten it, or remove the byte")
	}
}

func (f *faults) number(path string, n, least, most int) {
	if n < least || n > most {
		f.add(path, fmt.Sprint(n), "is out of range", fmt.Sprintf("give %d to %d", least, most))
	}
}

func (f *faults) span(path string, d time.Duration) {
	if d < 0 || d > timeoutLimit {
		f.add(path, d.String(), "is out of range", "give a duration above 0 and up to 366 days")
	}
}

// check says what is wrong with a submission in itself.
func (s *Submission) check() []Problem {
	var f faults
	if s.Action == "" {
		f.add("action", "", "is missing", "name a registered action or workflow, or a built-in kind")
	}
	f.text("action", s.Action, actionLimit)
	f.text("queue", s.Queue, 100)
	if flow.Narrow(s.Queue) {
		f.add("queue", s.Queue, unknownQueue(s.Queue), "name a queue of a-z, 0-9, '.', '_' and '-'; what else a worker needs is said by runtime and worker_labels")
	}
	f.text("concurrency.key", s.Key, keyLimit)
	f.text("idempotency_key", s.IdempotencyKey, keyLimit)
	if bad := badJSON(s.Input, inputLimit); bad != "" {
		f.add("input", fmt.Sprintf("%.60q", s.Input), bad, "give a JSON value")
	}
	f.labels(s)
	f.span("timeout", s.Timeout)
	f.span("queue_timeout", s.QueueTimeout)
	f.span("total_timeout", s.TotalTimeout)
	f.span("start_in", s.StartIn)
	if s.StartIn != 0 && !s.NotBefore.IsZero() {
		f.add("start_in", s.StartIn.String(), "says when it may start, and so does not_before", "leave one of them out")
	}
	if s.Priority != nil {
		f.number("priority", *s.Priority, -priorityLimit, priorityLimit)
	}
	if s.Key != "" {
		f.number("concurrency.limit", s.KeyLimit, 1, holdersLimit)
	}
	switch s.WhenFull {
	case "", flow.WhenFullQueue, flow.WhenFullCancelNew, flow.WhenFullCancelOldest:
	default:
		f.add("concurrency.when_full", shortText(string(s.WhenFull)), "is unknown", "one of queue, cancel_new, cancel_oldest")
	}
	f.fair(s)
	f.cache(s)
	f.rate(s.Rate)
	if s.Retry != nil {
		f.retry(s.Retry)
	}
	return f
}

func (f *faults) cache(s *Submission) {
	if s.Cache == nil {
		return
	}
	if s.Cache.TTL <= 0 || s.Cache.TTL > flow.MaxCacheTime {
		f.add("cache.ttl", s.Cache.TTL.String(), "is out of range: it says how old an outcome may be", "give a duration above 0 and up to 30 days")
	}
	if s.Cache.Key != nil {
		f.text("cache.key", *s.Cache.Key, keyLimit)
	}
	if s.StartIn != 0 || !s.NotBefore.IsZero() {
		f.add("cache", "", "is looked into when the submission is accepted, and this one is to start later", "leave out cache, or start_in and not_before")
	}
}

func (f *faults) fair(s *Submission) {
	switch {
	case s.Fair == (flow.Fair{}):
	case s.Key == "":
		f.add("concurrency.key", "", "is missing", "name the key for which those that wait take turns")
	case s.Fair.By == "":
		f.add("concurrency.weight", fmt.Sprint(s.Fair.Weight), "says how many turns one has for another's one, and there is no fair_by", "add fair_by, or leave it out")
	default:
		f.text("concurrency.fair_by", s.Fair.By, keyLimit)
		f.number("concurrency.weight", s.Fair.Weight, 1, flow.MostWeight)
	}
}

func (f *faults) rate(r *flow.Rate) {
	if r == nil {
		return
	}
	if r.Key == "" {
		f.add("rate.key", "", "is missing", "name what is limited, as in mails")
	}
	f.text("rate.key", r.Key, keyLimit)
	f.number("rate.limit", r.Limit, 1, rateLimit)
	if r.Per == 0 {
		f.add("rate.per", "", "is missing", "give the span, as in 1m")
	}
	f.span("rate.per", r.Per)
	if r.Limit > 0 && r.Per > 0 && r.Per/time.Duration(r.Limit) < time.Microsecond {
		f.add("rate.per", r.Per.String(), fmt.Sprintf("%d in it is more often than once a microsecond", r.Limit), "leave the rate out: that often nothing begins")
	}
	if r.Burst != 0 {
		f.number("rate.burst", r.Burst, 1, rateLimit)
	}
	switch r.Over {
	case "", flow.OverDelay, flow.OverDrop:
	default:
		f.add("rate.over", shortText(string(r.Over)), "is unknown", "delay or drop")
	}
}

func (f *faults) labels(s *Submission) {
	if len(s.WorkerLabels) > flow.SelectorLimit {
		f.add(selectorField, fmt.Sprint(len(s.WorkerLabels)), fmt.Sprintf("are more than the %d allowed", flow.SelectorLimit), "leave some out")
		return
	}
	for k, v := range s.WorkerLabels {
		if flow.BadLabelKey(k) {
			f.add(selectorField, shortText(k), fmt.Sprintf("%.80q is not the key of a worker's label", k), flow.LabelKeyForm)
		} else if flow.BadLabelValue(v) {
			f.add(selectorField+"."+k, shortText(v), fmt.Sprintf("%.80q is not the value of a worker's label", v), flow.LabelValueForm)
		}
	}
	if len(s.Labels) > labelsLimit {
		f.add("labels", fmt.Sprint(len(s.Labels)), fmt.Sprintf("are more than the %d allowed", labelsLimit), "leave some out")
		return
	}
	for k, v := range s.Labels {
		f.text(fmt.Sprintf("labels.%.*s", labelLimit, k), k, labelLimit)
		f.text(fmt.Sprintf("labels.%.*s", labelLimit, k), v, labelLimit)
	}
}

func (f *faults) retry(r *flow.Retry) {
	if r.MaxAttempts != 0 {
		f.number("retry.max_attempts", r.MaxAttempts, 1, attemptsLimit)
	}
	switch r.Backoff {
	case "", flow.Constant, flow.Exponential:
	default:
		f.add("retry.backoff", shortText(string(r.Backoff)), "is unknown", "one of constant, exponential")
	}
	f.span("retry.delay", r.Delay)
	f.span("retry.max_delay", r.MaxDelay)
	if r.MaxDelay > 0 && r.MaxDelay < r.Delay && r.Delay <= timeoutLimit {
		f.add("retry.max_delay", r.MaxDelay.String(), fmt.Sprintf("is less than the delay %s", r.Delay), "make it at least the delay")
	}
	if !(r.Jitter >= 0 && r.Jitter <= 1) { // NaN as well
		f.add("retry.jitter", fmt.Sprint(r.Jitter), "is out of range", "give the share of the delay that is random, 0 to 1")
	}
	if len(r.On) > codesLimit {
		f.add("retry.on", fmt.Sprint(len(r.On)), fmt.Sprintf("are more than the %d codes allowed", codesLimit), "leave some out, or all of them to retry every failure")
		return
	}
	for i, code := range r.On {
		if at := fmt.Sprintf("retry.on[%d]", i); code == "" {
			f.add(at, "", "is empty", "write an error code such as timeout, oom or exit:75")
		} else {
			f.text(at, code, codeLimit)
		}
	}
}

// badText says what is wrong with a text; "" when nothing is.
func badText(s string, limit int) string {
	switch {
	case len(s) > limit:
		return fmt.Sprintf("has %d bytes, more than the %d allowed", len(s), limit)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return "has a NUL byte or is not UTF-8"
	}
	return ""
}

// shortText shows a text in a problem.
func shortText(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%.*q…", most, s)
	}
	return fmt.Sprintf("%q", s)
}
