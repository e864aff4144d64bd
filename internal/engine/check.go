package engine

import (
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

// farthest is the latest start of a submission, from now. Spans of more than 292 years do not fit into a time.Duration, with which the
// engine computes how long an execution still waits.
const farthest = 100 * 365 * 24 * time.Hour

// submissionFaults collects what is wrong with a submission.
type submissionFaults struct{ requests.Faults }

// check returns the faults of a submission that can be found without the store, such as a start in 200 years.
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
	if len(s.WorkerLabels)+len(s.Labels) > 0 {
		f.labels(s)
	}
	f.Spans(&s.Settings)
	f.Span("start_in", s.StartIn)
	if !s.NotBefore.IsZero() && time.Until(s.NotBefore) > farthest {
		f.Add("not_before", s.NotBefore.Format(time.RFC3339), "is more than 100 years from now", "give a time within 100 years")
	}
	if s.StartIn != 0 && !s.NotBefore.IsZero() {
		f.Add("start_in", s.StartIn.String(), "says when it may start, and so does not_before", "leave one of them out")
	}
	if s.Priority != nil {
		f.Priority(*s.Priority)
	}
	f.Holders(s.Key, s.KeyLimit, s.WhenFull)
	f.fair(s)
	f.cache(s)
	if s.Rate != nil {
		f.Rate(s.Rate)
	}
	if s.Retry != nil {
		f.Retry(s.Retry)
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
		f.Turns(s.Fair)
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
		if k == "" {
			f.Add("labels", fault.Short(v), "is the value of a label without a name", "name it, as in {team: storage}")
		}
		for _, text := range [...]string{k, v} {
			if fault.BadText(text, fault.LabelLimit) != "" { // to write the place of each label took longer than all other checks
				f.Text(fmt.Sprintf("labels.%.*s", fault.LabelLimit, k), text, fault.LabelLimit)
			}
		}
	}
}
