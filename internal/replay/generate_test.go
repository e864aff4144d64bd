package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// generator makes records of executions as an engine would write them: by the rules, with random lives.
type generator struct {
	*rand.Rand
	now time.Time
	n   uint64
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (g *generator) id() flow.ID {
	g.n++
	var id flow.ID
	for i := range 8 {
		id[15-i] = byte(g.n >> (8 * i))
	}
	id[0] = 7
	return id
}

// pass advances the clock by up to d.
func (g *generator) pass(d time.Duration) {
	g.now = g.now.Add(time.Duration(g.Int64N(int64(d)/1000+1)) * time.Microsecond)
}

func (g *generator) one(in int) bool { return g.IntN(in) == 0 }

func pick[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

// life is one execution that is being generated.
type life struct {
	g   *generator
	rec *Record
	x   *flow.Execution
}

// do makes one decision and records it.
func (l *life) do(decide func(*flow.Draft) error) {
	d := flow.Load(l.x)
	if err := decide(d); err != nil {
		panic(err)
	}
	l.rec.Events = append(l.rec.Events, d.Events...)
	l.x = d.Execution
	l.x.WakeAt = l.x.WakeAt.Truncate(time.Microsecond)
	l.x.QueuedAt = l.x.QueuedAt.Truncate(time.Microsecond)
}

func (g *generator) request() flow.Request {
	r := flow.Request{Kind: pick(g, flow.KindCode, flow.KindNoop, flow.KindHTTP, flow.KindSleep, flow.Kind("custom")), Queue: "default", CreatedAt: g.now}
	r.Action = string(r.Kind)
	if g.one(3) {
		r.Key, r.KeyLimit, r.WhenFull = "k", 1, pick(g, flow.WhenFullQueue, flow.WhenFullCancelNew)
	}
	if g.one(2) {
		r.Retry = flow.Retry{MaxAttempts: 1 + g.IntN(5), Delay: time.Duration(g.IntN(3)) * time.Second, Jitter: float64(g.IntN(3)) / 4, Backoff: pick(g, flow.Constant, flow.Exponential)}
	}
	if g.one(4) {
		r.Retry.On = []string{"boom", "timeout"}
	}
	if g.one(4) {
		r.NotBefore = g.now.Add(time.Minute)
	}
	if g.one(4) {
		r.QueueTimeout = time.Minute
	}
	if g.one(4) {
		r.TotalTimeout = 10 * time.Minute
	}
	if r.Kind == flow.KindSleep {
		r.Timeout = pick(g, 0, time.Minute)
	}
	return r
}

// single makes the record of an execution that is not a workflow.
func (g *generator) single() *Record {
	g.pass(time.Second)
	d := flow.Submit(g.id(), g.request())
	l := &life{g: g, rec: &Record{Execution: d.Execution, Events: d.Events}, x: d.Execution}
	if l.x.Kind == flow.KindSleep {
		l.rec.Sleeps = time.Duration(g.IntN(100)) * time.Second
	}
	for l.x.Place != flow.Finished && !g.one(200) {
		l.live()
	}
	return l.rec
}

func (l *life) live() {
	g, x := l.g, l.x
	g.pass(time.Second)
	finish := func(as flow.Stage, code string) {
		l.do(func(d *flow.Draft) error {
			return d.Finish(as, flow.Outcome{Error: &flow.Error{Code: code, Message: "because of " + code}}, g.now, 0)
		})
	}
	total := !x.TotalDeadline().IsZero() && g.now.After(x.TotalDeadline())
	switch {
	case x.Place == flow.Held && !x.Owner.IsZero():
		l.work()
	case x.Place == flow.Held: // a sleep
		wake := x.ClaimedAt.Add(l.rec.Sleeps)
		switch t := x.EngineDeadline(); {
		case g.one(9):
			finish(flow.Cancelled, flow.CodeCancelled)
		case !t.IsZero() && t.Before(wake):
			g.now = t.Add(time.Millisecond)
			finish(flow.TimedOut, flow.CodeTimeout)
		default:
			g.now = wake
			g.pass(time.Second)
			l.do(func(d *flow.Draft) error { return d.Finish(flow.Completed, flow.Outcome{}, g.now, 0) })
		}
	case g.one(15):
		finish(flow.Cancelled, flow.CodeCancelled)
	case total || x.TotalTimeout > 0 && g.one(12):
		g.now = later(g.now, x.TotalDeadline().Add(time.Millisecond))
		finish(flow.TimedOut, flow.CodeTotalTimeout)
	case x.Place == flow.Ready && !x.QueueDeadline().IsZero() && g.one(6):
		g.now = x.QueueDeadline().Add(time.Millisecond)
		finish(flow.TimedOut, flow.CodeQueueTimeout)
	case x.Place == flow.Ready && x.Kind.ByEngine():
		l.do(func(d *flow.Draft) error { return d.Begin(g.now) })
	case x.Place == flow.Ready:
		l.do(func(d *flow.Draft) error { return d.Claim(flow.ID{9}, "w1", g.now) })
	default:
		if x.Place == flow.Delayed && x.WakeAt.After(g.now) {
			g.now = x.WakeAt
			g.pass(time.Second)
		}
		switch {
		case x.Key != "" && x.Place != flow.Waiting && g.one(3):
			l.do(func(d *flow.Draft) error { return d.Wait(1, g.now) })
		case x.Attempt == 1 && g.one(40):
			l.do(func(d *flow.Draft) error {
				return d.Reject(&flow.Error{Code: flow.CodeInvalidInput, Message: "no such thing"}, g.now)
			})
		case x.Kind.ByEngine() && g.one(5):
			l.do(func(d *flow.Draft) error { return d.EnqueueSuspended(1, g.now) })
		default:
			l.do(func(d *flow.Draft) error { return d.Schedule(1, g.now) })
		}
	}
}

// work is the next report or act of the worker that holds the attempt.
func (l *life) work() {
	g, x := l.g, l.x
	say := func(t flow.EventType, o *flow.Outcome) {
		at := g.now.Add(-time.Duration(g.IntN(2000)) * time.Microsecond) // the worker's clock, and the delay of the report
		l.do(func(d *flow.Draft) error {
			rc := d.Report(x.Owner, flow.Report{Execution: x.ID, Attempt: x.Attempt, Events: []flow.Event{{Seq: x.NextSeq, Attempt: x.Attempt, Type: t, At: at, Outcome: o}}}, nil, nil, g.now, g.Float64())
			if rc.Verdict != flow.Applied {
				return errors.New(rc.Reason)
			}
			return nil
		})
	}
	fault := func(code string) *flow.Outcome {
		return &flow.Outcome{Error: &flow.Error{Code: code, Message: code + " it was"}}
	}
	switch {
	case g.one(12):
		l.do(func(d *flow.Draft) error { return d.HandBack(flow.ReasonShutDown, g.now) })
	case g.one(12):
		l.do(func(d *flow.Draft) error {
			if x.Attempt%2 == 0 {
				return d.LoseWithServer("worker w1"+flow.ReasonCrashed, g.now, g.Float64())
			}
			return d.Lose("worker w1 was lost", g.now, g.Float64())
		})
	case x.Stage == flow.Provisioning && g.one(8):
		l.do(func(d *flow.Draft) error { return d.Decline("worker w1"+flow.ReasonDeclined, g.now) })
	case x.State.Cancel == nil && g.one(12):
		l.do(func(d *flow.Draft) error { return d.Cancel(flow.Cancelled, flow.CodeCancelled, "enough", g.now) })
	case x.Stage == flow.Provisioning:
		say(flow.EvRunning, nil)
	case g.one(3):
		say(flow.EvProgress, nil)
	case x.State.Cancel != nil:
		say(flow.EvCancelled, fault(x.State.Cancel.Code))
	case g.one(3):
		say(flow.EvCompleted, &flow.Outcome{Output: json.RawMessage(`{"n":1}`)})
	case g.one(4):
		say(flow.EvTimedOut, fault("timeout"))
	case g.one(8):
		o := fault(flow.CodeInfraError)
		o.Error.Details = json.RawMessage(`{"reason":"` + pick(g, flow.HostNodeLost, flow.HostPreempted, "another") + `"}`)
		say(flow.EvFailed, o)
	default:
		say(flow.EvFailed, fault(pick(g, "boom", "bang")))
	}
}

var generatedConditions = []string{"", "", "", "always()", "failed()", "!failed()", "success() && input.yes", "input.no", "cancelled()"}

// document draws a workflow.
func (g *generator) document() string {
	var b strings.Builder
	b.WriteString("name: w\ntasks:\n")
	for i := range 1 + g.IntN(7) {
		fmt.Fprintf(&b, "  t%d:\n    action: noop\n", i)
		var needs []string
		for j := range i {
			if g.one(3) {
				needs = append(needs, fmt.Sprintf("t%d", j))
			}
		}
		if len(needs) > 0 {
			fmt.Fprintf(&b, "    needs: [%s]\n", strings.Join(needs, ", "))
		}
		if c := pick(g, generatedConditions...); c != "" {
			fmt.Fprintf(&b, "    if: %q\n", c)
		}
		with := fmt.Sprintf("{n: %d}", i)
		if len(needs) > 0 && g.one(2) {
			with = "{from: \"${{ tasks." + needs[0] + ".output }}\", was: \"${{ tasks." + needs[0] + ".status }}\"}"
		}
		if g.one(6) {
			fmt.Fprintf(&b, "    repeat: {until: %q, max: %d, delay: %ds}\n", pick(g, "round >= 2", "output.index == 2", "status == 'failed'", "input.no"), 1+g.IntN(4), g.IntN(2))
			with = "{round: \"${{ round }}\", last: \"${{ previous }}\"}"
		} else if g.one(3) {
			fmt.Fprintf(&b, "    foreach: ${{ input.lists[%d] }}\n", g.IntN(5))
			switch g.IntN(4) {
			case 0:
				fmt.Fprintf(&b, "    concurrency: %d\n", 1+g.IntN(3))
			case 1:
				fmt.Fprintf(&b, "    concurrency: ${{ input.flight[%d] }}\n", g.IntN(3))
			}
			with = "{item: \"${{ item }}\"}"
			if g.one(15) {
				with = "{item: \"${{ item[7 - index] }}\"}"
			}
		}
		fmt.Fprintf(&b, "    with: %s\n", with)
		if g.one(4) {
			b.WriteString("    continue_on_error: true\n")
		}
	}
	b.WriteString("outputs: {all: \"${{ tasks }}\"}\n")
	return b.String()
}

// flowing is a workflow that is being generated: an engine without a store.
type flowing struct {
	*life
	w       *definition.Workflow
	tracker *orchestration.Tracker
	st      *orchestration.State
	facts   orchestration.Facts
	open    []*flow.Execution // that have not ended
	told    []*flow.Execution // they have ended, and the workflow has not seen that
	bad     int               // one in so many children fails
}

// workflow makes the record of a workflow.
func (g *generator) workflow() *Record { return g.run(g.definition()) }

func (g *generator) definition() *definition.Workflow {
	defs, err := definition.Parse("w.yaml", []byte(g.document()))
	if err != nil {
		panic(err)
	}
	return defs[0].Workflow
}

func (g *generator) run(w *definition.Workflow) *Record {
	g.pass(time.Second)
	r := flow.Request{Kind: flow.KindWorkflow, Action: "w", Version: 1, Queue: "default", CreatedAt: g.now, Retry: flow.Retry{MaxAttempts: 1 + g.IntN(2)},
		Input: json.RawMessage(`{"yes":true,"no":false,"flight":[1,2,3],"lists":[[],[10],[10,11],[10,11,12,13],[1,2,3,4,5,6,7,8]]}`)}
	d := flow.Submit(g.id(), r)
	f := &flowing{life: &life{g: g, rec: &Record{Execution: d.Execution, Events: d.Events}, x: d.Execution}, w: w, bad: pick(g, 3, 10, 1000)}
	f.rec.Workflow = &Workflow{Definition: w, Request: childRequest}
	for f.x.Place != flow.Finished {
		if f.x.Place != flow.Held {
			if f.x.Attempt > 1 && g.one(4) { // before the attempt begins
				f.do(func(d *flow.Draft) error { return d.Cancel(flow.Cancelled, flow.CodeCancelled, "enough", g.now) })
				break
			}
			g.now = later(g.now, f.x.WakeAt)
			f.do(func(d *flow.Draft) error { return d.Schedule(1, g.now) })
			f.st = &orchestration.State{Tasks: make([]orchestration.Progress, len(w.Tasks))}
			f.tracker, f.open, f.told = orchestration.Track(w, f.st), nil, nil
			f.facts = orchestration.Facts{ID: f.x.ID.String(), Input: r.Input, Items: orchestration.Items{}, Output: f.output}
		}
		if !f.paused() {
			f.advance()
		}
		if f.x.Place == flow.Held {
			f.happen()
		}
	}
	return f.rec
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// childRequest is what a child of a generated workflow runs.
func childRequest(c *orchestration.Child, _ *flow.Execution) (flow.Request, error) {
	return flow.Request{Kind: flow.KindNoop, Action: "noop", Input: c.Input, Key: c.Key}, nil
}

// paused pauses the workflow from time to time, and resumes it; it reports whether it takes no step.
func (f *flowing) paused() bool {
	g := f.g
	if f.x.State.Cancel != nil {
		return false
	}
	if f.x.State.Pause == nil {
		if !g.one(25) {
			return false
		}
		until := pick(g, time.Time{}, g.now.Add(20*time.Millisecond))
		f.do(func(d *flow.Draft) error {
			return d.Pause(flow.Pause{Until: until, By: pick(g, "", "ann"), Reason: "enough for today", Stops: g.one(2)}, g.now)
		})
	}
	if f.x.PausedAt(g.now) && !g.one(3) {
		return true
	}
	f.do(func(d *flow.Draft) error { return d.Resume(pick(g, "", "bob"), "", g.now) })
	return false
}

// happen ends children, and shows some ends to the workflow.
func (f *flowing) happen() {
	g := f.g
	if f.x.State.Cancel == nil && g.one(40) {
		f.do(func(d *flow.Draft) error { return d.Cancel(flow.Cancelled, flow.CodeCancelled, "enough", g.now) })
		return
	}
	for range 1 + g.IntN(3) {
		if len(f.open) == 0 {
			break
		}
		g.pass(10 * time.Millisecond)
		i := g.IntN(len(f.open))
		x := f.open[i]
		f.open = slices.Delete(f.open, i, i+1)
		f.endChild(x, flow.Completed, g.now.Add(-time.Duration(g.IntN(5000))*time.Microsecond))
	}
	g.pass(10 * time.Millisecond)
	for n := g.IntN(len(f.told) + 1); n > 0; n-- {
		f.tell(g.IntN(len(f.told)))
	}
	if len(f.open) == 0 {
		for len(f.told) > 0 {
			f.tell(0)
		}
	}
}

func (f *flowing) tell(i int) {
	x := f.told[i]
	f.told = slices.Delete(f.told, i, i+1)
	task := f.w.Task(x.Task).Index
	f.tracker.Ended(task, x.Stage)
	f.st.Tasks[task].Blame(x.Index, x.Stage, x.Outcome.Error)
}

func (f *flowing) endChild(x *flow.Execution, as flow.Stage, at time.Time) {
	x.Outcome = &flow.Outcome{Output: json.RawMessage(fmt.Sprintf(`{"of":%q,"index":%d}`, x.Task, x.Index))}
	if as == flow.Completed && f.g.one(f.bad) {
		as = pick(f.g, flow.Failed, flow.TimedOut, flow.Cancelled)
	}
	if as != flow.Completed {
		x.Outcome = &flow.Outcome{Error: &flow.Error{Code: as.String(), Message: fmt.Sprintf("%s[%d] did", x.Task, x.Index)}}
	}
	x.Stage, x.FinishedAt = as, later(at, x.CreatedAt)
	f.told = append(f.told, x)
}

func (f *flowing) output(task int) orchestration.Output {
	t := f.w.Tasks[task]
	out := orchestration.Output{}
	if t.Repeat != nil {
		for _, x := range f.rec.Workflow.Children {
			if x.Task == t.Name && x.ParentAttempt == f.x.Attempt && x.Index == f.st.Tasks[task].Created-1 && x.Outcome != nil {
				out = orchestration.Output{Single: x.Outcome.Output, Stage: x.Stage, Error: x.Outcome.Error}
			}
		}
		return out
	}
	if t.Foreach != nil {
		out.Items = make([]json.RawMessage, f.st.Tasks[task].Created)
	}
	for _, x := range f.rec.Workflow.Children {
		if x.Task != t.Name || x.ParentAttempt != f.x.Attempt || x.Outcome == nil {
			continue
		}
		if t.Foreach == nil {
			out.Single = x.Outcome.Output
		} else {
			out.Items[x.Index] = x.Outcome.Output
		}
	}
	return out
}

// advance takes the workflow's next step, like package engine.
func (f *flowing) advance() {
	g := f.g
	if c := f.x.State.Cancel; c != nil {
		f.st.Ending, f.st.Reason = c.As, &flow.Error{Code: c.Code, Message: c.Reason}
	}
	var plan orchestration.Plan
	room, more := pick(g, 1, 3, 1000), false
	for {
		next := f.tracker.Next()
		if next.Empty() {
			break
		}
		f.facts.Most = room - len(plan.Children)
		if again := orchestration.Take(f.w, f.st, next, &f.facts, &plan); !again || plan.Stage != 0 {
			break
		}
		if more = room <= len(plan.Children); more {
			break
		}
	}
	a := &attempt{def: f.w}
	if s := a.of(&plan); len(s.Tasks()) > 0 {
		data, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		f.do(func(d *flow.Draft) error { return d.Advance(data, g.now) })
	}
	for i := range plan.Children {
		c := &plan.Children[i]
		r, err := childRequest(c, nil)
		if err != nil {
			panic(err)
		}
		r.Parent, r.ParentAttempt, r.Task, r.Index, r.CreatedAt = f.x.ID, f.x.Attempt, c.Task.Name, c.Index, g.now
		if c.Delay > 0 {
			r.NotBefore = g.now.Add(c.Delay)
		}
		x := &flow.Execution{ID: g.id(), Request: r, State: flow.State{Stage: flow.Running}}
		f.rec.Workflow.Children = append(f.rec.Workflow.Children, x)
		f.open = append(f.open, x)
	}
	for _, task := range append(plan.Recall, plan.Cancel...) {
		f.open = slices.DeleteFunc(f.open, func(x *flow.Execution) bool {
			end := x.Task == f.w.Tasks[task].Name && g.one(2)
			if end {
				f.endChild(x, flow.Cancelled, g.now)
			}
			return end
		})
	}
	if plan.Stage != 0 {
		f.do(func(d *flow.Draft) error { return d.Finish(plan.Stage, plan.Outcome, g.now, g.Float64()) })
	} else if more {
		f.advance()
	}
}
