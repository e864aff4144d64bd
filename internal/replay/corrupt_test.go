package replay

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// corruption is one way in which a record may contradict the rules. apply changes a record, and reports whether it could: some records have
// nothing to change.
type corruption struct {
	name     string
	workflow bool
	apply    func(g *generator, r *Record) bool
}

// at is an event that a corruption may change.
func at(g *generator, r *Record, want func(i int, e *flow.Event) bool) int {
	var all []int
	for i := range r.Events {
		if want(i, &r.Events[i]) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return -1
	}
	return all[g.IntN(len(all))]
}

func ofType(types ...flow.EventType) func(int, *flow.Event) bool {
	return func(_ int, e *flow.Event) bool { return slices.Contains(types, e.Type) }
}

func renumber(r *Record) {
	for i := range r.Events {
		r.Events[i].Seq = int64(i + 1)
	}
	r.Execution.NextSeq = int64(len(r.Events) + 1)
}

// edit changes a wanted event, if there is one.
func edit(want func(int, *flow.Event) bool, change func(g *generator, r *Record, i int) bool) func(*generator, *Record) bool {
	return func(g *generator, r *Record) bool {
		i := at(g, r, want)
		return i >= 0 && change(g, r, i)
	}
}

func set(e *flow.Event, name string, value any) {
	var all map[string]any
	if json.Unmarshal(e.Data, &all) != nil || all == nil {
		all = map[string]any{}
	}
	all[name] = value
	var err error
	if e.Data, err = json.Marshal(all); err != nil {
		panic(err)
	}
}

// retried are the events that open an attempt after a failure.
func retried(r *Record) func(int, *flow.Event) bool {
	return func(i int, e *flow.Event) bool {
		return i > 0 && e.Type == flow.EvRequested && (r.Events[i-1].Type == flow.EvFailed || r.Events[i-1].Type == flow.EvTimedOut)
	}
}

// retriedByPolicy finds a failure that the policy retried: an attempt that its host ended is followed by another without the policy.
func retriedByPolicy(r *Record) func(flow.Event) bool {
	return func(e flow.Event) bool {
		return e.Type == flow.EvFailed && e.Seq < int64(len(r.Events)) && flow.HostTook(textOf(e.Data, "code"), e.Data) == ""
	}
}

func reopened(i int, e *flow.Event) bool { return i > 0 && e.Type == flow.EvRequested }

func anyEvent(int, *flow.Event) bool { return true }

func ended(r *Record) bool { return r.Execution.Stage.Terminal() }

var corruptions = []corruption{
	{"an event dropped", false, edit(anyEvent, func(_ *generator, r *Record, i int) bool {
		r.Events = slices.Delete(r.Events, i, i+1)
		return true
	})},
	{"an event doubled", false, edit(anyEvent, func(_ *generator, r *Record, i int) bool {
		r.Events = slices.Insert(r.Events, i, r.Events[i])
		return true
	})},
	{"an event doubled, and all numbered anew", false, edit(ofType(flow.EvScheduled, flow.EvProvisioning, flow.EvRunning, flow.EvLost, flow.EvCompleted, flow.EvCancelled), func(_ *generator, r *Record, i int) bool {
		r.Events = slices.Insert(r.Events, i, r.Events[i])
		renumber(r)
		return true
	})},
	{"two events exchanged", false, edit(func(i int, _ *flow.Event) bool { return i > 0 }, func(_ *generator, r *Record, i int) bool {
		r.Events[i-1], r.Events[i] = r.Events[i], r.Events[i-1]
		return true
	})},
	{"two events exchanged, and numbered anew", false, edit(func(i int, _ *flow.Event) bool { return i > 0 }, func(_ *generator, r *Record, i int) bool {
		if r.Events[i-1].Type == r.Events[i].Type {
			return false
		}
		r.Events[i-1], r.Events[i] = r.Events[i], r.Events[i-1]
		r.Events[i-1].At, r.Events[i].At = r.Events[i].At, r.Events[i-1].At
		r.Events[i-1].Attempt, r.Events[i].Attempt = r.Events[i].Attempt, r.Events[i-1].Attempt
		if p := r.Events[i-1].Type; p == flow.EvProgress || r.Events[i].Type == flow.EvProgress {
			return false // progress may come anywhere while a worker has the attempt
		}
		renumber(r)
		return true
	})},
	{"a hand-off dropped, and all numbered anew", false, edit(ofType(flow.EvProvisioning), func(_ *generator, r *Record, i int) bool {
		r.Events = slices.Delete(r.Events, i, i+1)
		renumber(r)
		return true
	})},
	{"the number of an attempt changed", false, edit(anyEvent, func(g *generator, r *Record, i int) bool {
		r.Events[i].Attempt += pick(g, -1, 1)
		return true
	})},
	{"time running backwards", false, edit(func(i int, _ *flow.Event) bool { return i > 0 }, func(_ *generator, r *Record, i int) bool {
		r.Events[i].At = r.Events[i-1].At.Add(-time.Microsecond)
		return true
	})},
	{"an event later than its commit", false, edit(reopened, func(_ *generator, r *Record, i int) bool {
		if r.Events[i-1].Type != flow.EvLost {
			return false
		}
		r.Events[i].At = r.Events[i].At.Add(time.Microsecond)
		return true
	})},
	{"an end behind the end", false, func(_ *generator, r *Record) bool {
		if !ended(r) {
			return false
		}
		r.Events = append(r.Events, r.Events[len(r.Events)-1])
		renumber(r)
		return true
	}},
	{"an attempt behind a success", false, func(_ *generator, r *Record) bool {
		if r.Execution.Stage != flow.Completed {
			return false
		}
		e := r.Events[len(r.Events)-1]
		e.Type, e.Attempt = flow.EvRequested, e.Attempt+1
		r.Events = append(r.Events, e)
		renumber(r)
		r.Execution.Attempt, r.Execution.Stage = e.Attempt, flow.Requested
		return true
	}},
	{"a retry beyond the policy", false, func(_ *generator, r *Record) bool {
		if !slices.ContainsFunc(r.Events, retriedByPolicy(r)) {
			return false
		}
		r.Execution.Retry.MaxAttempts = 1
		return true
	}},
	{"a retry of what the policy does not name", false, func(_ *generator, r *Record) bool {
		if !slices.ContainsFunc(r.Events, retriedByPolicy(r)) {
			return false
		}
		r.Execution.Retry.On = []string{"another"}
		return true
	}},
	{"a reason of an attempt changed", false, edit(reopened, func(_ *generator, r *Record, i int) bool {
		set(&r.Events[i], "after", "another")
		return true
	})},
	{"a pause too short", false, func(g *generator, r *Record) bool {
		i := at(g, r, retried(r))
		if i < 0 {
			return false
		}
		set(&r.Events[i], "not_before", r.Events[i].At.Add(time.Millisecond))
		return true
	}},
	{"a pause too long", false, func(g *generator, r *Record) bool {
		i := at(g, r, retried(r))
		if i < 0 || r.Execution.Kind != flow.KindCode {
			return false
		}
		set(&r.Events[i], "not_before", r.Events[i].At.Add(20*time.Minute))
		return true
	}},
	{"a pause after a shutdown", false, edit(reopened, func(_ *generator, r *Record, i int) bool {
		if !bytes.Contains(r.Events[i-1].Data, []byte("shut down")) {
			return false
		}
		set(&r.Events[i], "not_before", r.Events[i].At.Add(time.Second))
		return true
	})},
	{"an attempt that begins before its time", false, func(g *generator, r *Record) bool {
		i := at(g, r, func(i int, e *flow.Event) bool {
			return reopened(i, e) && i+1 < len(r.Events) && r.Events[i+1].Type == flow.EvScheduled
		})
		if i < 0 || !notBefore(r.Events[i].Data).After(r.Events[i].At) {
			return false
		}
		r.Events[i+1].At = r.Events[i].At
		return true
	}},
	{"a sleep that begins later than it was scheduled, though its action was not paused", false, edit(ofType(flow.EvScheduled), func(_ *generator, r *Record, i int) bool {
		if !flow.IsSuspension(&r.Events[i]) || i+1 == len(r.Events) || r.Events[i+1].Type != flow.EvProvisioning {
			return false
		}
		r.Events[i].Data = nil
		return true
	})},
	{"a wait for a key that it does not have", false, edit(ofType(flow.EvWaiting), func(_ *generator, r *Record, _ int) bool {
		r.Execution.Key = ""
		return true
	})},
	{"a wait for another key", false, edit(ofType(flow.EvWaiting), func(_ *generator, r *Record, i int) bool {
		set(&r.Events[i], "key", "another")
		return true
	})},
	{"a queue_timeout before its time", false, func(_ *generator, r *Record) bool {
		if o := r.Execution.Outcome; o == nil || o.Error == nil || o.Error.Code != flow.CodeQueueTimeout {
			return false
		}
		r.Execution.QueueTimeout += time.Hour
		return true
	}},
	{"a total_timeout without any", false, func(_ *generator, r *Record) bool {
		if o := r.Execution.Outcome; o == nil || o.Error == nil || o.Error.Code != flow.CodeTotalTimeout {
			return false
		}
		r.Execution.TotalTimeout = 0
		return true
	}},
	{"a sleep over too early", false, func(_ *generator, r *Record) bool {
		r.Sleeps += time.Hour
		return r.Execution.Kind == flow.KindSleep && r.Execution.Stage == flow.Completed
	}},
	{"work of the engine claimed by a worker", false, edit(ofType(flow.EvProvisioning), func(_ *generator, r *Record, i int) bool {
		set(&r.Events[i], "worker", "w1")
		return r.Execution.Kind.ByEngine()
	})},
	{"another end", false, func(_ *generator, r *Record) bool {
		if r.Execution.Stage != flow.Completed {
			return false
		}
		r.Events[len(r.Events)-1].Type = flow.EvFailed
		return true
	}},
	{"another status stored", false, func(g *generator, r *Record) bool {
		r.Execution.Stage = pick(g, slices.DeleteFunc(flow.Stages(), func(s flow.Stage) bool { return s == r.Execution.Stage })...)
		return true
	}},
	{"another error stored", false, func(_ *generator, r *Record) bool {
		if r.Execution.Stage != flow.Cancelled || r.Execution.Kind != flow.KindSleep {
			return false
		}
		r.Events[len(r.Events)-1].Data = json.RawMessage(`{"code":"another","message":"x"}`)
		return true
	}},
	{"another time of its end stored", false, func(_ *generator, r *Record) bool {
		r.Execution.FinishedAt = r.Execution.FinishedAt.Add(time.Second)
		return ended(r)
	}},
	{"a loss that nothing follows", false, func(g *generator, r *Record) bool {
		i := at(g, r, ofType(flow.EvLost))
		if i < 0 {
			return false
		}
		r.Events = r.Events[:i+1]
		r.Execution.NextSeq = int64(i + 2)
		return true
	}},
	{"a step of an execution without tasks", false, edit(ofType(flow.EvRunning), func(_ *generator, r *Record, i int) bool {
		e := r.Events[i]
		e.Type = flow.EvAdvanced
		r.Events = slices.Insert(r.Events, i+1, e)
		renumber(r)
		return true
	})},
}

// Corrupted histories of each kind are found.
func TestCorruptedHistoriesAreFound(t *testing.T) {
	t.Parallel()
	const each = 200
	for _, c := range slices.Concat(corruptions, workflowCorruptions) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, done := newGenerator(7), 0
			for try := 0; done < each; try++ {
				if try > 400*each {
					t.Fatalf("only %d of %d histories could be corrupted so", done, try)
				}
				r := g.single()
				if c.workflow {
					r = g.workflow()
				}
				before := describe(r, &Result{})
				if !c.apply(g, r) {
					continue
				}
				done++
				if res := Replay(r, 0); res.Follows() {
					t.Fatalf("it was not found (unknown: %+v):%s\n\nbefore:%s", res.Unknown, describe(r, res), before)
				}
			}
		})
	}
}
