package simulation

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// rounder has a task that runs in rounds, until a round's output meets a condition that depends on how many runs there were before.
var rounder = sync.OnceValue(func() *document {
	return parsed(`name: rounder
tasks:
  poll:
    action: noop
    repeat: {until: "(output.v + default(output.run, 0)) % 4 == 0", max: 4, delay: 700ms}
    with: {do: ok, v: "${{ round }}", last: "${{ default(previous.v, 0) }}"}
    retry: {max_attempts: 2, delay: 200ms}
  after: {needs: [poll], action: noop, with: {do: ok, v: "${{ tasks.poll.output.v }}"}}
`)
})

// rounding is the share of workflows that are rounders.
func (p *plan) rounding() float64 {
	if p.Rounds {
		return 0.9
	}
	return 0.12
}

// reached reports whether a round's output ended the rounds.
func (r *row) reached() bool {
	var out struct{ V, Run int }
	return r != nil && r.x.Stage == flow.Completed && r.x.Outcome != nil && json.Unmarshal(r.x.Outcome.Output, &out) == nil && (out.V+out.Run)%4 == 0
}

// lastRound returns the latest round of a task with a repeat, and nil for other tasks.
func lastRound(p *row, t *definition.Task, attempt int) (last *row) {
	if t.Repeat == nil {
		return nil
	}
	for _, k := range p.kids {
		if k.x.Task == t.Name && k.x.ParentAttempt == attempt && (last == nil || k.x.Index > last.x.Index) {
			last = k
		}
	}
	return last
}

// round judges the start of a round.
func (c *commit) round(p, r *row, d *seen, t *definition.Task) {
	if t.Repeat == nil {
		return
	}
	var last *row
	for _, k := range p.kids {
		if k != r && k.x.Task == t.Name && k.x.ParentAttempt == d.x.ParentAttempt && k.x.Place != flow.Finished {
			c.w.violate(65, "round %d of %s starts while round %d is open", d.x.Index+1, name(p.id), k.x.Index+1)
		}
		if k.x.Task == t.Name && k.x.ParentAttempt == d.x.ParentAttempt && k.x.Index == d.x.Index-1 {
			last = k
		}
	}
	runs := d.x.ReusedOf.IsZero() && d.x.AsRerun().OverriddenBy == ""
	switch {
	case d.x.Index >= t.Repeat.Max:
		c.w.violate(65, "round %d of %s starts, and there are at most %d", d.x.Index+1, name(p.id), t.Repeat.Max)
	case d.x.Index == 0:
	case last == nil:
		c.w.violate(65, "round %d of %s starts, and there is no round before it", d.x.Index+1, name(p.id))
	case last.reached():
		c.w.violate(65, "round %d of %s starts, and round %d reached what it was to", d.x.Index+1, name(p.id), last.x.Index+1)
	case runs && d.x.NotBefore.Sub(d.x.CreatedAt) != t.Repeat.Delay:
		c.w.violate(65, "round %d of %s waits until %s, and was made at %s", d.x.Index+1, name(p.id), d.x.NotBefore, d.x.CreatedAt)
	}
}

// judgeRounds compares the input of the task after the rounds with the output of the last round.
func (w *world) judgeRounds(r *row, def *definition.Workflow, kids map[string][]*row) {
	last := lastRound(r, def.Task("poll"), r.x.Attempt)
	var out, in struct{ V int }
	if json.Unmarshal(last.x.Outcome.Output, &out) != nil || json.Unmarshal(kids["after"][0].asks.Input, &in) != nil || in.V != out.V {
		w.violate(21, "the last round of %s put out %s, and what comes after it is given %s", name(r.id), last.x.Outcome.Output, kids["after"][0].asks.Input)
	}
}

// roundsBefore returns why a round of a rerun cannot reuse an outcome although its task could.
func (c *commit) roundsBefore(p *row, t *definition.Task, index, attempt int) string {
	if t.Repeat == nil {
		return ""
	}
	old := c.known(p.asks.RerunOf)
	if last := lastRound(old, t, old.x.Attempt); last.x.Index == t.Repeat.Max-1 && last.x.Stage == flow.Completed && !last.reached() {
		return "its rounds led to nothing"
	}
	for _, k := range p.kids {
		if k.x.Task == t.Name && k.x.ParentAttempt == attempt && k.x.Index < index && k.x.ReusedOf.IsZero() && k.x.AsRerun().OverriddenBy == "" {
			return "a round before it ran"
		}
	}
	return ""
}

// roundBugs are planted bugs of tasks that run in rounds.
var roundBugs = []bug{
	{name: "round starts while another is open", invariant: []int{65, 20}, tune: roundingPlan, tx: twisted(twist{progress: polls(func(p *store.TaskProgress) {
		if p.Open > 0 {
			p.Open, p.Ended[flow.Completed] = 0, p.Ended[flow.Completed]+1
		}
	}), outcome: unreached})},
	{name: "round beyond max", invariant: []int{65}, tune: roundingPlan, tx: twisted(twist{progress: polls(func(p *store.TaskProgress) {
		if p.Created == 4 && p.Open == 0 {
			p.Created, p.Mark = 3, nil
		}
	}), outcome: unreached, apply: nextPlace})},
	{name: "round starts twice", invariant: []int{65, 17, 19, 20}, tune: roundingPlan, tx: twisted(twist{progress: polls(func(p *store.TaskProgress) {
		if p.Open > 0 && p.Created > 1 {
			p.Created, p.Open = p.Created-1, 0
		}
	}), outcome: unreached, apply: nextPlace})},
	{name: "round starts though until held", invariant: []int{65}, tune: roundingPlan, tx: twisted(twist{progress: polls(func(p *store.TaskProgress) { p.Mark = nil }), outcome: unreached})},
	{name: "delay of a round is forgotten", invariant: []int{65}, tune: roundingPlan, tx: twisted(twist{apply: func(t *twist, ctx context.Context, d store.Delta) error {
		for _, x := range d.Drafts {
			if x.New && x.Task == "poll" && x.Index > 0 && x.Place == flow.Delayed {
				x.NotBefore, x.WakeAt = time.Time{}, x.CreatedAt
			}
		}
		return t.Tx.Apply(ctx, d)
	}})},
}

// roundingPlan is a plan in which most workflows have rounds.
func roundingPlan(p *plan) { p.Rounds, p.Ops = true, 2*p.Ops }

// polls returns a lie about the task that runs in rounds.
func polls(lie func(*store.TaskProgress)) func(*twist, store.WorkflowAttempt, []store.TaskProgress) []store.TaskProgress {
	return each(func(p *store.TaskProgress) {
		if p.Task == "poll" {
			lie(p)
		}
	})
}

// unreached makes the last round look as if it were not the last.
func unreached(c *store.ChildOutcome) { c.Outcome.Output = json.RawMessage(`{"v":1}`) }

// nextPlace stores a second child at the next free index when its place is taken.
func nextPlace(t *twist, ctx context.Context, d store.Delta) error {
	for _, x := range d.Drafts {
		for x.New && !x.Parent.IsZero() && t.w.shadow.hasChild(place{x.Parent, x.ParentAttempt, x.Task, x.Index}) {
			x.Index++
		}
	}
	return t.Tx.Apply(ctx, d)
}
