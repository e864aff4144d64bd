package server

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
)

func submission(in *api.Submission) engine.Submission {
	s := engine.Submission{
		Action: in.Action, Input: in.Input, Queue: in.Queue, Priority: in.Priority, Labels: in.Labels, WorkerLabels: in.WorkerLabels,
		Settings:  flow.Settings{Timeout: time.Duration(in.Timeout), QueueTimeout: time.Duration(in.QueueTimeout), TotalTimeout: time.Duration(in.TotalTimeout)},
		NotBefore: in.NotBefore.UTC().Truncate(time.Microsecond), StartIn: time.Duration(in.StartIn), IdempotencyKey: in.IdempotencyKey, NoCache: in.NoCache,
	}
	if in.NotBefore.IsZero() {
		s.NotBefore = time.Time{}
	}
	if k := in.Concurrency; k != nil {
		s.Key, s.KeyLimit, s.WhenFull, s.Fair = k.Key, k.Limit, flow.WhenFull(k.WhenFull), flow.Fair{By: k.FairBy, Weight: k.Weight}
		if k.FairBy != "" && k.Weight == 0 {
			s.Fair.Weight = 1
		}
	}
	if k := in.Cache; k != nil {
		s.Cache = &engine.Cache{TTL: time.Duration(k.TTL), Key: k.Key}
	}
	if r := in.Rate; r != nil {
		s.Rate = &flow.Rate{Key: r.Key, Limit: r.Limit, Per: time.Duration(r.Per), Burst: r.Burst, Over: flow.Over(r.Over)}
	}
	if r := in.Retry; r != nil {
		s.Retry = &flow.Retry{
			MaxAttempts: r.MaxAttempts, Backoff: flow.Backoff(r.Backoff), Delay: time.Duration(r.Delay),
			MaxDelay: time.Duration(r.MaxDelay), Jitter: r.Jitter, On: r.On,
		}
	}
	return s
}

// evaluated returns the submission of an evaluation; code is its program.
func evaluated(in *api.Evaluation, code json.RawMessage) *api.Submission {
	return &api.Submission{
		Action: string(flow.KindCode), Input: code, Queue: in.Queue, Priority: in.Priority, Labels: in.Labels, WorkerLabels: in.WorkerLabels,
		Timeout: in.Timeout, QueueTimeout: in.QueueTimeout, TotalTimeout: in.TotalTimeout, Retry: in.Retry,
		Concurrency: in.Concurrency, Rate: in.Rate, IdempotencyKey: in.IdempotencyKey,
		NotBefore: in.NotBefore, StartIn: in.StartIn, Cache: in.Cache, NoCache: in.NoCache,
	}
}

// renderSettings adds the settings of a request to the API's form of its execution.
func renderSettings(out *api.Execution, x *flow.Request) {
	queue, needs := flow.NeedsOf(x.Queue)
	out.Queue, out.Runtime, out.WorkerLabels, out.Priority, out.Labels = queue, needs.Runtime, needs.Labels, x.Priority, x.Labels
	out.Timeout, out.QueueTimeout, out.TotalTimeout = api.Duration(x.Timeout), api.Duration(x.QueueTimeout), api.Duration(x.TotalTimeout)
	out.Key, out.KeyLimit, out.FairBy, out.Weight = x.Key, x.KeyLimit, x.Fair.By, x.Fair.Weight
	out.NotBefore, out.NoCache = x.NotBefore, x.NoCache
	if r := x.Rate; r.Key != "" {
		out.Rate = &api.Rate{Key: r.Key, Limit: r.Limit, Per: api.Duration(r.Per), Burst: r.Burst, Over: string(r.Over)}
	}
	if r := x.Retry; !reflect.ValueOf(r).IsZero() {
		out.Retry = &api.Retry{
			MaxAttempts: r.MaxAttempts, Backoff: string(r.Backoff), Delay: api.Duration(r.Delay),
			MaxDelay: api.Duration(r.MaxDelay), Jitter: r.Jitter, On: r.On,
		}
	}
}
