package definition

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

const maxRounds = 1000

// Repeat runs a task in rounds, one after the other, until a condition on the result of a round holds.
type Repeat struct {
	// Until is evaluated at the end of each round, with Vars.Judging.
	Until *Condition
	// Max is the largest number of rounds.
	Max int
	// Delay is the time between the end of a round and the start of the next one.
	Delay time.Duration
}

func (b *builder) repeat(v *value, path string, task int) *Repeat {
	r := &Repeat{Until: &Condition{}}
	if v.kind != objectValue {
		b.fail(v, path, `write repeat: {until: output.state == "ready", max: 10, delay: 5s}`, "want an object with until, max and delay, not %s", v.describe())
		return r
	}
	b.object(v, path, []string{"until", "max", "delay"})
	if u := v.get("until"); u != nil {
		r.Until = b.condition(u, problem.Join(path, "until"), scopeUntil, task)
	} else {
		b.fail(v, path, `add until: output.state == "ready"`, "until is missing: it says when the last round has been")
	}
	if n := v.get("max"); n != nil {
		r.Max, _ = b.whole(n, problem.Join(path, "max"), 1, maxRounds)
	} else {
		b.fail(v, path, "add max: 10", "max is missing: it says how many rounds there are at most")
	}
	r.Delay = b.duration(v.get("delay"), problem.Join(path, "delay"), true)
	return r
}

// Round is the result of a round of a repeated task.
type Round struct {
	Number int // from 1
	Status Status
	Output json.RawMessage // nil: null
	Unread error           // why the output could not be read
	Error  *flow.Error     // nil unless it failed or timed out
}

// roundVars are the variables of a repeated task's rounds.
type roundVars struct {
	number  int   // of the round that is about to begin, or whose end is evaluated
	last    Round // the round before that one, or the one whose end is evaluated
	output  any   // output of last, decoded
	decoded bool
}

// Beginning returns the same variables for the expressions of a round that is about to begin; last is the zero Round for the first.
func (v *Vars) Beginning(number int, last Round) *Vars {
	v.common()
	w := *v
	w.round = &roundVars{number: number, last: last}
	return &w
}

// Judging returns the same variables for the expression that decides whether a round was the last.
func (v *Vars) Judging(last Round) *Vars {
	w := v.Beginning(last.Number, last)
	w.Success = true // the condition concerns the round, whatever happened before its task
	return w
}

// Reached reports whether the round was the last one. If the round did not complete, an error of the expression counts as false, because
// such a round has no output.
func (r *Repeat) Reached(v *Vars, last Round) (bool, error) {
	held, err := r.Until.Eval(v.Judging(last))
	if err != nil && last.Status != StatusCompleted {
		return false, nil
	}
	return held, err
}

var errNoRound = errors.New("it has no value outside a task with repeat")

// evalRound evaluates a path that begins at a variable of the rounds.
func (p *path) evalRound(v *Vars) (json.RawMessage, error) {
	raw, err := v.ofRound(p.root)
	if err != nil {
		return nil, err
	}
	return walk(raw, p.steps, p.root)
}

// ofRound returns one of these variables as JSON.
func (v *Vars) ofRound(name string) (json.RawMessage, error) {
	r := v.round
	if r == nil {
		return nil, errNoRound
	}
	switch name {
	case "round":
		return json.Marshal(r.number)
	case "status":
		return json.Marshal(string(r.last.Status))
	case "error":
		return (&Result{Error: r.last.Error}).errorText(), nil
	}
	if r.last.Unread != nil {
		return nil, r.last.Unread
	}
	return orNull(r.last.Output), nil
}

// round returns one of these variables for CEL.
func (a *activation) round(name string) (any, bool) {
	r := a.v.round
	switch {
	case r == nil:
		return nil, false
	case name == "round":
		return int64(r.number), true
	case name == "status":
		return string(r.last.Status), true
	case name == "error" && r.last.Error == nil:
		return nil, true
	case name == "error":
		return map[string]any{"code": r.last.Error.Code, "message": r.last.Error.Message}, true
	}
	if r.last.Unread != nil && a.err == nil {
		a.err = r.last.Unread
	}
	if !r.decoded {
		r.output, r.decoded = a.decode(name, orNull(r.last.Output)), true
	}
	return r.output, true
}
