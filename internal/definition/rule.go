package definition

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

// Rule runs an action for signals.
type Rule struct {
	// On has names of triggers; "github.*" matches every name that begins with "github.".
	On   []string
	OnAt Position // position of on
	// If must hold for a signal; nil holds for each.
	If  *Condition
	Run Start
	// Window buffers signals, so that one execution covers several. If it is nil, each signal is enforced when it comes.
	Window *Window
	// Once evaluates to an idempotency key: while a key is stored, it has one execution. nil: each signal starts one.
	Once *Template
	// Reentry allows the rule to run for a signal that it caused itself.
	Reentry bool
	// Depth is how many rules may have led to one another before this one.
	Depth int
	// CircuitBreaker (`storm` in documents) pauses the rule on a server if it would run more often there. Without one (nil), it never pauses.
	CircuitBreaker *CircuitBreaker
}

// CircuitBreaker limits how often a rule may run on one server before it pauses itself: Limit times in Per.
type CircuitBreaker struct {
	Limit int
	Per   time.Duration
}

// Depths of chains of rules. The values are chosen, not measured.
const (
	defaultDepth = 8
	MostDepth    = 32
)

var (
	ruleFields    = []string{"kind", "name", "description", "on", "if", "run", "debounce", "batch", "reentry", "depth", "storm"}
	ruleRunFields = append([]string{"once", "concurrency", "rate"}, runFields...)
)

func (b *builder) ruleDocument(v *value, d *Definition) {
	r := &Rule{On: b.texts(v.get("on"), "on"), Depth: defaultDepth}
	r.OnAt = b.place(v.get("on"))
	b.triggers(v, r.On)
	if len(r.On) == 1 && r.On[0] == flow.TriggerEnded {
		b.signalType = endType
	}
	if c := v.get("if"); c != nil {
		r.If = b.condition(c, "if", scopeSignal, noTask)
	}
	run := v.get("run")
	r.Window = b.window(v)
	sc := scopeSignal
	if r.Window.All() {
		sc = scopeSignals
	}
	b.start(run, v, &r.Run, sc, "rule", ruleRunFields)
	if run != nil && run.get("once") != nil {
		r.Once = b.template(run.get("once"), "run.once", sc, noTask)
	}
	r.Reentry = b.oneOf(v.get("reentry"), "reentry", "refuse", "allow") == "allow"
	if n, ok := b.whole(v.get("depth"), "depth", 1, MostDepth); ok {
		r.Depth = n
	}
	r.CircuitBreaker = b.circuitBreaker(v.get("storm"))
	d.Rule = r
	b.sum(v, d)
}

func (b *builder) circuitBreaker(v *value) *CircuitBreaker {
	if v == nil || !b.object(v, "storm", []string{"limit", "per"}) {
		return nil
	}
	for _, field := range []string{"limit", "per"} {
		if v.get(field) == nil {
			b.fail(v, "storm", "write storm: {limit: 1000, per: 1m}", "%s is missing", field)
		}
	}
	s := &CircuitBreaker{Per: b.duration(v.get("per"), "storm.per", false)}
	s.Limit, _ = b.whole(v.get("limit"), "storm.limit", 1, maxRate)
	return s
}

// triggers checks the names of triggers to which a rule listens.
func (b *builder) triggers(v *value, on []string) {
	if v.get("on") == nil {
		b.fail(v, "", "add on: [alert.fired]", "the rule does not say which triggers it is about")
		return
	}
	if len(on) > maxTriggers {
		b.fail(v.get("on"), "on", "name fewer, or all below a prefix as in github.*", "there are %d triggers; at most %d are allowed", len(on), maxTriggers)
		return
	}
	for i, name := range on {
		path, at := "on", v.get("on")
		if at.kind == listValue {
			path, at = fmt.Sprintf("on[%d]", i), at.list[i]
		}
		if why := flow.BadTrigger(strings.TrimSuffix(name, ".*")); why != "" {
			b.fail(at, path, flow.TriggerForm+"; github.* is all below github", "%q is not the name of a trigger: it %s", problem.Clip(name, 60), why)
		}
		if name != flow.TriggerEnded && strings.HasSuffix(name, ".*") && strings.HasPrefix(flow.TriggerEnded, strings.TrimSuffix(name, "*")) {
			b.fail(at, path, "write "+flow.TriggerEnded, "the ends of executions are listened to by their full name")
		}
	}
}

const maxTriggers = 100

// InputFor evaluates the input of the execution that a signal starts. An error is an *EvalError.
func (r *Rule) InputFor(v *Vars) (json.RawMessage, error) {
	if r.Run.Input == nil {
		return json.RawMessage("{}"), nil
	}
	return r.Run.Input.Eval(v)
}

// Ends returns which ends of executions a rule selects: by actions, by statuses, and by labels, of which an execution must have all. A
// result is empty if the rule does not restrict it.
func (r *Rule) Ends() (actions, statuses []string, labels map[string]string) {
	if r.If == nil {
		return nil, nil, nil
	}
	labels = map[string]string{}
	for path, values := range r.If.Constants() {
		switch path {
		case "signal.data.action":
			actions = values
		case "signal.data.status":
			statuses = values
		}
		p, ok := parsePath(path)
		if ok && len(values) == 1 && len(p.steps) == 3 && p.root == "signal" && p.steps[0].name == "data" && p.steps[1].name == "labels" && !p.steps[2].byIdx {
			labels[p.steps[2].name] = values[0]
		}
	}
	return actions, statuses, labels
}
