// Package replay proves that a recorded history follows from the rules. It is pure: it takes the record of an execution, lets the rules of
// packages flow and orchestration decide everything again, at the recorded times and with the recorded outcomes, and compares each decision
// with the recorded one. Facts that the record does not have are reported as unknown, and never invented.
package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// MostEvents bounds a replayed history: all of its events are in memory, about 0.5 KB each.
const MostEvents = 250_000

// Record is the record of one execution. It is not changed.
type Record struct {
	Execution *flow.Execution // as stored: request, state and outcome
	Events    []flow.Event    // all of its history, in order
	// Sleeps is the requested length of a sleep.
	Sleeps time.Duration
	// Workflow is the part that only a workflow has; nil: the decisions about its tasks cannot be replayed, for the reason in Without.
	Workflow *Workflow
	Without  string
}

// Workflow is the record of a workflow beside its own history.
type Workflow struct {
	Definition *definition.Workflow // as it was recorded
	// Children are the executions of its tasks, of all attempts, in any order. The request, the stage, the time of the end and the outcome of
	// each are used.
	Children []*flow.Execution
	// Request is the request that the rules make for a child: that of its execution. recorded is the one that was started. If the task leaves
	// the version of an action open, it is the recorded one: the record does not have what was the latest then. An error is why the request is
	// unknown.
	Request func(c *orchestration.Child, recorded *flow.Execution) (flow.Request, error)
}

// Finding is a recorded decision that does not follow from the rules.
type Finding struct {
	Seq      int64  // number of the event; 0: the execution as a whole
	Task     string // of a workflow, if it is about one
	Index    int    // of the task's item
	Rules    string // what follows from the rules
	Recorded string // what was recorded instead
	Why      string
}

// Unknown is something that the record does not have, so that nothing follows about it.
type Unknown struct {
	Seq   int64
	Task  string
	Index int
	What  string
}

// Result is the result of a replay. The history follows from the rules, as far as is known, if there are no Findings.
type Result struct {
	Events   int // that were replayed
	Findings []Finding
	Unknown  []Unknown
	// State is the state at the end of the replayed part.
	State State
}

// Follows reports whether everything known follows from the rules.
func (r *Result) Follows() bool { return len(r.Findings) == 0 }

// State is the state that a history leads to.
type State struct {
	Seq       int64 // of the latest event; 0: none
	At        time.Time
	Stage     flow.Stage
	Attempt   int
	Worker    string // of the latest attempt, running or ended
	NotBefore time.Time
	Tasks     []api.ReplayTask // of a workflow, in document order
	Why       api.ReplayWhy
}

// most bounds the findings, and the unknowns, of one replay: a history of a million events may break a rule with each.
const most = 1000

// Replay lets the rules decide a record again, up to event upto (0: all of it).
func Replay(r *Record, upto int64) *Result {
	w := &walk{rec: r, upto: upto}
	w.x = &flow.Execution{ID: r.Execution.ID, Request: r.Execution.Request}
	w.x.NextSeq = 1
	w.prepare()
	for w.i = 0; w.i < len(w.rec.Events); {
		if upto > 0 && w.rec.Events[w.i].Seq > upto {
			break
		}
		before, at := w.x.State, w.i
		w.step()
		if last := w.rec.Events[w.i-1].Seq; upto > 0 && last > upto {
			w.within(before, at)
			break
		}
	}
	if w.i == len(w.rec.Events) {
		w.end()
	}
	w.res.Events = w.i
	w.res.State = w.state()
	return &w.res
}

// within goes back to the event at which the replay ends, which is not the last of its commit: the state after it comes from the events
// alone.
func (w *walk) within(before flow.State, from int) {
	w.x.State, w.x.Outcome = before, nil
	for w.i = from; w.rec.Events[w.i].Seq <= w.upto; w.i++ {
		w.takeOver(&w.rec.Events[w.i])
	}
	w.res.Findings = slices.DeleteFunc(w.res.Findings, func(f Finding) bool { return f.Seq > w.upto })
	w.res.Unknown = slices.DeleteFunc(w.res.Unknown, func(u Unknown) bool { return u.Seq > w.upto })
}

func (w *walk) find(seq int64, rules, recorded, why string, args ...any) {
	w.findAt(Finding{Seq: seq, Index: noIndex, Rules: rules, Recorded: recorded, Why: fmt.Sprintf(why, args...)})
}

// noIndex is the index if it is not about one item.
const noIndex = -1

func (w *walk) findAt(f Finding) {
	if len(w.res.Findings) < most {
		w.res.Findings = append(w.res.Findings, f)
	}
}

func (w *walk) unknown(u Unknown) {
	if len(w.res.Unknown) < most {
		w.res.Unknown = append(w.res.Unknown, u)
	}
}
