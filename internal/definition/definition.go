// Package definition parses documents (YAML or JSON) into validated, immutable definitions of workflows and actions, and evaluates their
// expressions.
//
// It is pure: no I/O, no clock, no randomness. Everything it returns may be shared between goroutines, except Vars.
package definition

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

type Kind string

const (
	KindWorkflow Kind = "workflow"
	KindAction   Kind = "action"
	// KindQueue declares a queue before a worker serves it. Queue names have their own namespace; the document has only a name.
	KindQueue Kind = "queue"
	// KindSchedule starts executions at certain times. Schedule names have their own namespace.
	KindSchedule Kind = "schedule"
	// KindTrigger describes the signals with a name; KindRule starts executions for signals. The names of each have their own namespace.
	KindTrigger Kind = "trigger"
	KindRule    Kind = "rule"
	// KindWebhook turns requests into signals. Webhook names have their own namespace.
	KindWebhook Kind = "webhook"
)

// Definition is one validated document. It is immutable: callers must not change its fields or what they point to.
type Definition struct {
	Kind        Kind
	Name        string
	Description string
	Position    Position

	// Settings apply to executions of this definition.
	Settings Settings
	// Input is the schema of an execution's input; nil accepts anything.
	Input *Schema
	// Searchable lists the members of inputs and outputs by which executions can be searched, for example input.customer.
	Searchable []string

	// Exactly one of these is set, according to Kind; for a queue none.
	Workflow *Workflow
	Action   *Action
	Schedule *Schedule
	Trigger  *Trigger
	Rule     *Rule
	Webhook  *Webhook

	canonical []byte
	hash      string
}

// Settings are the settings that workflows, actions and tasks share. A zero field was not set in the document.
type Settings struct {
	Queue    string // "" is the default queue
	Priority *int   // -1000..1000, higher goes first
	flow.Settings
	Retry        *flow.Retry // nil if the document has no `retry`
	Concurrency  *Concurrency
	Rate         *Rate
	Labels       map[string]string
	WorkerLabels map[string]string // labels that a worker must have
	// Env is the environment for code; it evaluates to an object of strings.
	Env *Template
}

type Workflow struct {
	// Name is the name of the definition.
	Name string
	// Tasks are in document order; Task.Index is the position in this slice.
	Tasks []*Task
	// Order has the indexes of all tasks, each after the tasks that it needs.
	Order []int
	// Env is the default environment of all tasks; nil if there is none.
	Env *Template
	// Outputs is evaluated when the workflow completes; nil when absent.
	Outputs *Template
	// CleanupTimeout is how long tasks with conditions that survive an early end of the workflow may run after it; 0: none is run.
	CleanupTimeout time.Duration
	// Reports are the names of tasks whose outputs become the workflow's output, in place of Outputs. Only the method Only sets it.
	Reports []string

	index map[string]int
}

type Task struct {
	Index       int
	Name        string
	Description string
	Position    Position
	// Needs are the indexes of the tasks that must have ended before this one.
	Needs []int
	// Successors are the indexes of the tasks that need this one.
	Successors []int
	// If is never nil: without `if` it is success().
	If *Condition
	// Foreach evaluates to the list of items; nil for a plain task.
	Foreach *Template
	// Repeat runs a task without Foreach in rounds. If it is nil, the task runs once.
	Repeat *Repeat
	// Cache lets the task end with the stored outcome of another execution. If it is nil, the task always runs.
	Cache *Cache
	// InFlight is how many items of a foreach may be unfinished at the same time, 0 for all; InFlightOf is set instead if it is an expression.
	InFlight   int
	InFlightOf *Template
	// Batch is how many items one child gets as a list; 0: each child gets one item.
	Batch int
	// Action is a built-in kind or a registered name; Version 0 is its latest version.
	Action  string
	Version int
	// With is the input of the action, or nil if it has none.
	With *Template
	// SignalAt is the position of the signal's name in With, for a wait.
	SignalAt Position
	// ContinueOnError makes other tasks treat a failure of this one as success.
	ContinueOnError bool
	// LeftOut means that the task is skipped without evaluating its condition; see Workflow.Only.
	LeftOut bool
	// Settings override those of the action for the task's executions.
	Settings Settings
}

// Action is a named unit of work.
type Action struct {
	// Kind is the built-in kind that it specialises, or "" if Handler is set.
	Kind string
	// Handler is a custom handler kind, or "" if Kind is set.
	Handler string
	// With is the handler's input; its expressions can use only `input`. If it is nil, the handler gets the execution's input unchanged.
	With *Template
	// SignalAt is the position of the signal's name in With, for a wait.
	SignalAt Position
}

// Concurrency limits how many executions hold one key at the same time.
type Concurrency struct {
	// Key is a text, usually with expressions; its scope is that of its document.
	Key      *Template
	Limit    int
	WhenFull flow.WhenFull
	// FairBy evaluates to a value such as a customer: waiting executions with different values share the key's slots. nil: first come, first
	// served.
	FairBy *Template
	Weight int
}

// Fair evaluates FairBy for one execution.
func (c *Concurrency) Fair(v *Vars) (flow.Fair, error) {
	if c.FairBy == nil {
		return flow.Fair{}, nil
	}
	by, err := c.FairBy.Text(v)
	return flow.Fair{By: by, Weight: c.Weight}, err
}

// Rate limits how often executions with a key begin.
type Rate struct {
	// Key is a text, usually with expressions; its scope is that of its document.
	Key *Template
	// Bound is the rate, without its key.
	Bound flow.Rate
}

// Of returns the rate for an evaluated key.
func (r *Rate) Of(key string) flow.Rate {
	bound := r.Bound
	bound.Key = key
	return bound
}

var BuiltIns = func() (names []string) {
	for _, k := range flow.BuiltIns() {
		names = append(names, string(k))
	}
	return names
}()

func BuiltIn(name string) bool { return flow.Kind(name).BuiltIn() }

func (w *Workflow) Task(name string) *Task {
	if i, ok := w.index[name]; ok {
		return w.Tasks[i]
	}
	return nil
}

// Canonical returns the definition as JSON in its canonical form: the same
// meaning gives the same bytes. The caller must not change them.
func (d *Definition) Canonical() []byte { return d.canonical }

// Hash returns the SHA-256 of the canonical form, in hexadecimal.
func (d *Definition) Hash() string { return d.hash }

// Ref is a reference to another definition, which must exist when the referring definition is registered.
type Ref struct {
	Kind     Kind // KindWorkflow if it must be a workflow, else KindAction
	Name     string
	Version  int    // 0 is the latest
	Task     string // task of a workflow; "" for the run of a schedule or rule
	Position Position
	// Input is the input if it is Constant: no expression is in it.
	Input    json.RawMessage
	Constant bool
}

// AliasMost is the largest length of an alias in bytes.
const AliasMost = 50

var aliasName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// IsAlias reports whether s can be an alias, such as stable in name@stable.
func IsAlias(s string) bool { return len(s) <= AliasMost && aliasName.MatchString(s) }

// LatestAlias is the alias of a name without @. It selects the newest version unless it was moved to another one.
const LatestAlias = "latest"

// SplitAction reads "name", "name@3" or "name@stable". version is set only for the second form, alias only for the third.
func SplitAction(action string) (name string, version int, alias string, err error) {
	name, text, has := strings.Cut(action, "@")
	if !has {
		return name, 0, "", nil
	}
	if IsAlias(text) {
		return name, 0, text, nil
	}
	if version, err = strconv.Atoi(text); err != nil || version < 1 || strconv.Itoa(version) != text {
		return "", 0, "", fmt.Errorf("%.100q: after @ comes a version, 1 or more, as in %s@1, or an alias, as in %s@stable", action, name, name)
	}
	return name, version, "", nil
}
