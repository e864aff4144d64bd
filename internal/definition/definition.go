// Package definition turns documents (YAML or JSON) into validated, immutable
// definitions of workflows and actions, and evaluates their expressions.
//
// It is pure: no I/O, no clock, no randomness. Everything it returns may be
// shared between goroutines, except Vars.
package definition

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Kind says what a document defines.
type Kind string

// The kinds of documents.
const (
	KindWorkflow Kind = "workflow"
	KindAction   Kind = "action"
	// KindQueue makes a queue known before a worker serves it. It has a name of its own namespace, and nothing else.
	KindQueue Kind = "queue"
	// KindSchedule starts executions by the clock. Schedules have a namespace of their own.
	KindSchedule Kind = "schedule"
	// KindTrigger says what signals of a name are like, KindRule starts executions for signals. Each has a namespace of its own.
	KindTrigger Kind = "trigger"
	KindRule    Kind = "rule"
	// KindWebhook makes signals of requests. Webhooks have a namespace of their own.
	KindWebhook Kind = "webhook"
)

// Definition is one validated document. It is immutable: callers must not
// change any of its fields, nor what they point to.
type Definition struct {
	Kind        Kind
	Name        string
	Description string
	Position    Position

	// Settings are those of an execution of this definition.
	Settings Settings
	// Input is what an execution's input must satisfy; nil accepts anything.
	Input *Schema
	// Searchable are the members of inputs and outputs that executions are searched by, as input.customer.
	Searchable []string

	// Exactly one of these is set, as Kind says; none of a queue.
	Workflow *Workflow
	Action   *Action
	Schedule *Schedule
	Trigger  *Trigger
	Rule     *Rule
	Webhook  *Webhook

	canonical []byte
	hash      string
}

// Settings are the knobs that workflows, actions and tasks share. A zero
// field is one that the document did not set.
type Settings struct {
	Queue    string // "" is the default queue
	Priority *int   // -1000..1000, higher goes first
	flow.Settings
	Retry        *flow.Retry // nil when the document has no `retry`
	Concurrency  *Concurrency
	Rate         *Rate
	Labels       map[string]string
	WorkerLabels map[string]string // those that a worker must have to get it
	// Env is the environment for code, an object of strings once evaluated.
	Env *Template
}

// Workflow is a graph of tasks.
type Workflow struct {
	// Name is the definition's.
	Name string
	// Tasks are in document order; Task.Index is the position in this slice.
	Tasks []*Task
	// Order holds the indices of all tasks, each after all that it needs.
	Order []int
	// Env is the default environment of all tasks; nil when there is none.
	Env *Template
	// Outputs is evaluated when the workflow completes; nil when absent.
	Outputs *Template
	// CleanupTimeout is how long tasks whose conditions survive an early end of the workflow may run after it; 0: none is run.
	CleanupTimeout time.Duration
	// Reports are the names of the tasks whose outputs are the workflow's, in place of Outputs. Only Only sets it.
	Reports []string

	index map[string]int
}

// Task is one node of a workflow.
type Task struct {
	Index       int
	Name        string
	Description string
	Position    Position
	// Needs are the indices of the tasks that must have ended before this one.
	Needs []int
	// Successors are the indices of the tasks that need this one.
	Successors []int
	// If is never nil: without `if` it is success().
	If *Condition
	// Foreach evaluates to the list of items; nil for a plain task.
	Foreach *Template
	// Repeat lets a task without Foreach run in rounds; nil: it runs once.
	Repeat *Repeat
	// Cache lets the task end with an outcome that is kept of another execution; nil: it always runs.
	Cache *Cache
	// InFlight is how many items of a foreach may be open at once, 0 for all;
	// InFlightOf is set instead when an expression says.
	InFlight   int
	InFlightOf *Template
	// Batch is how many items one child is handed; 0 hands each item by itself.
	Batch int
	// Action is a built-in kind or a registered name; Version is 0 for its latest.
	Action  string
	Version int
	// With is the input of the action, or nil.
	With *Template
	// SignalAt is where With says which signal a wait is for.
	SignalAt Position
	// ContinueOnError makes a failure of this task count as success elsewhere.
	ContinueOnError bool
	// LeftOut: it is skipped without looking at its condition; see Workflow.Only.
	LeftOut bool
	// Settings override those of the action for the task's executions.
	Settings Settings
}

// Action is a named unit of work.
type Action struct {
	// Kind is the built-in it specialises, or "" when Handler is set.
	Kind string
	// Handler is a custom handler kind, or "" when Kind is set.
	Handler string
	// With is the handler's input; expressions in it see `input` only. When it
	// is nil the handler is given the execution's input as it is.
	With *Template
	// SignalAt is where With says which signal a wait is for.
	SignalAt Position
}

// Concurrency limits how many executions hold one key at the same time.
type Concurrency struct {
	// Key is text, usually with expressions; its scope is that of its document.
	Key      *Template
	Limit    int
	WhenFull flow.WhenFull
	// FairBy gives a value, such as a customer: while executions wait, the key's slots are shared among the values. nil:
	// first come, first served.
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

// Rate bounds how often executions with a key begin.
type Rate struct {
	// Key is text, usually with expressions; its scope is that of its document.
	Key *Template
	// Bound is the rate, without its key.
	Bound flow.Rate
}

// Of is the rate of the executions that an evaluated key stands for.
func (r *Rate) Of(key string) flow.Rate {
	bound := r.Bound
	bound.Key = key
	return bound
}

// BuiltIns are the names of the built-in kinds of actions.
var BuiltIns = func() (names []string) {
	for _, k := range flow.BuiltIns() {
		names = append(names, string(k))
	}
	return names
}()

// BuiltIn reports whether name is one of the built-in kinds of actions.
func BuiltIn(name string) bool { return flow.Kind(name).BuiltIn() }

// Task returns the task called name, or nil.
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

// Ref is the mention of another definition, which must exist when the
// definition that mentions it is registered.
type Ref struct {
	Kind     Kind // KindWorkflow when only a workflow will do, else KindAction
	Name     string
	Version  int    // 0 is the latest
	Task     string // of a workflow; "" is what a schedule or rule runs
	Position Position
}

// AliasMost is how many bytes an alias may have.
const AliasMost = 50

var aliasName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// IsAlias reports whether a text can be an alias, which comes after the @ of name@stable.
func IsAlias(s string) bool { return len(s) <= AliasMost && aliasName.MatchString(s) }

// LatestAlias is what a name without @ means. It stands for the newest version, unless it has been moved to another one.
const LatestAlias = "latest"

// SplitAction reads "name", "name@3" or "name@stable"; version is 0 but for the second, alias empty but for the third.
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
