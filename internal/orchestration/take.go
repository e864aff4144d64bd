package orchestration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// maxItems is how many elements a foreach may have.
const maxItems = 100_000

// Plan is what the engine commits in one transaction. Steps taken one after the other add to the same plan.
type Plan struct {
	Marks    []Marking // at most one per task
	Children []Child
	Recall   []int
	Cancel   []int
	Work     int // operations that expressions have computed
	// Stage and Outcome are set when the workflow is over.
	Stage   flow.Stage
	Outcome flow.Outcome
}

// Child is a child execution to create. Settings that it does not have come from Task.Settings, and then from the
// action.
type Child struct {
	Task  *definition.Task
	Index int
	// Action and Version name what it runs; Workflow means that it must be a workflow (the built-in action "workflow",
	// whose name and input these are).
	Action   string
	Version  int
	Workflow bool
	Input    json.RawMessage
	// Env is the environment for code: the workflow's, with the task's over it.
	Env map[string]string
	// Key limits the child together with others of the same key, "" for none.
	Key      string
	KeyLimit int
	WhenFull flow.WhenFull
	Fair     flow.Fair
	Rate     flow.Rate // Key "": that of the action
	// CacheKey is the key from the task's cache; nil: its work is its key.
	CacheKey *string
	// Delay is how long it waits before it begins, if it is a round after another one.
	Delay time.Duration
}

// Output is the output of a task's children: of a plain task Single, nil for null; of a foreach Items, by index, nil if
// an item has none.
type Output struct {
	Single   json.RawMessage
	Items    []json.RawMessage
	TooLarge error // why it was not read: expressions that read it fail
	// Stage and Error are, for a task with a repeat, the end of its latest round, whose output is Single.
	Stage flow.Stage
	Error *flow.Error
}

// Items are the evaluated items of foreach tasks, by task. They never change during the workflow's attempt: keeping
// them saves evaluating the list again for every few children; losing them costs nothing else.
type Items map[int][]json.RawMessage

// Facts are the values for a workflow's expressions.
type Facts struct {
	ID     string // of the workflow's execution
	Input  json.RawMessage
	Labels map[string]string
	// Output returns the output of a task; it is called for the tasks that Step.Outputs named, and for completed ones only
	// by expressions.
	Output func(task int) Output
	// Items is read and added to; nil keeps nothing.
	Items Items
	// Most bounds the children created by one Take, and MostBytes their payloads: the child that exceeds a bound is the
	// last. 0 is no bound. The rest is in the next Step.
	Most, MostBytes int
	// MostWork bounds the work of the expressions of one Take: the one that exceeds it is the last. 0 is no bound.
	MostWork int
	// Prepare is called with each created child, and with how many operations its task has left. It returns how many its request has taken,
	// which count for MostWork; nil: they are not counted.
	Prepare func(c *Child, most int) (operations int)
	// Upto has, for tasks whose items Take may not all create, the index of the first that it leaves to the next Step.
	Upto map[int]int
}

type taking struct {
	w       *definition.Workflow
	st      *State
	f       *Facts
	plan    *Plan
	failing bool // State.narrowed
	left    int  // children that may still be created
	bytes   int  // for their payloads
	work    definition.Work
	vars    definition.Vars
	scoped  definition.Vars // of the current task
	env     map[string]string
	envErr  error
	results func(name string) *definition.Result // its method result
	haveEnv bool
}

// Take carries out a step: it adds to the plan, and changes st to the state after the plan's commit. It reports whether
// Next has more to do at once: a task ended without any child, or Most was reached.
func Take(w *definition.Workflow, st *State, s Step, f *Facts, plan *Plan) (again bool) {
	k := begin(w, st, f)
	defer k.end()
	defer func() { plan.Work += k.work.Done }()
	k.plan = plan
	if f.Most == 0 {
		k.left = -1
	}
	for _, m := range s.Marks {
		k.mark(m)
	}
	plan.Recall = append(plan.Recall, s.Recall...)
	plan.Cancel = append(plan.Cancel, s.Cancel...)
	if len(s.Recall) > 0 {
		st.Recalled = true // unless the engine could not end all of them at once
	}
	if len(s.Cancel) > 0 {
		st.Stopped = true // likewise
	}
	if s.Done != 0 {
		k.finish(s.Done)
		return false
	}
	for _, start := range s.Start {
		if k.full() {
			return true
		}
		k.work.Together()
		again = k.start(start) || again
	}
	for _, i := range s.More {
		if k.full() {
			return true
		}
		k.work.Together()
		again = k.more(w.Tasks[i], k.scope(w.Tasks[i])) || again
	}
	for _, i := range s.Judge {
		if k.full() {
			return true
		}
		k.work.Together()
		again = k.judge(w.Tasks[i]) || again
	}
	return again
}

func begin(w *definition.Workflow, st *State, f *Facts) *taking {
	k := takings.Get().(*taking)
	k.w, k.st, k.f, k.failing, k.left, k.bytes = w, st, f, st.narrowed(w), f.Most, f.MostBytes
	k.vars = definition.Vars{Input: f.Input, ID: f.ID, Name: w.Name, Labels: f.Labels, Task: k.results, Work: &k.work}
	return k
}

// takings are reused: with its variables one has more than a kilobyte, and a workflow takes a step for each few ends of tasks.
var takings = sync.Pool{New: func() any {
	k := &taking{}
	k.results = k.result
	return k
}}

// full reports whether this Take must not evaluate more.
func (k *taking) full() bool { return k.left == 0 || k.f.MostWork > 0 && k.work.Done >= k.f.MostWork }

func (k *taking) end() {
	*k = taking{results: k.results}
	takings.Put(k)
}

// Limit is how many items of a foreach Take may keep open at once; 0: all. An error is why the task will break.
func Limit(w *definition.Workflow, st *State, t *definition.Task, f *Facts) (int, error) {
	if t.InFlightOf == nil {
		return t.InFlight, nil
	}
	k := begin(w, st, f)
	defer k.end()
	v := k.scope(t)
	if err := k.environment(v); err != nil {
		return 0, err
	}
	return t.Limit(v)
}

func (k *taking) mark(m Marking) {
	p := &k.st.Tasks[m.Task]
	p.Mark = m.Mark
	if m.Mark == Expanded {
		p.Total = m.Total
	}
	if m.Error != nil {
		p.Error, p.ErrorIndex, p.ErrorStage = m.Error, p.Created, 0
	}
	if m.Mark == Broken { // it may have been expanded in this very plan
		k.plan.Marks = slices.DeleteFunc(k.plan.Marks, func(o Marking) bool { return o.Task == m.Task })
	}
	k.plan.Marks = append(k.plan.Marks, m)
}

// broken ends a task whose expression failed.
func (k *taking) broken(t *definition.Task, err error) bool {
	k.mark(Marking{Task: t.Index, Mark: Broken, Error: &flow.Error{Code: flow.CodeExpressionError, Message: err.Error()}})
	k.failing = k.st.narrowed(k.w)
	return true
}

// scope is the variables for the expressions of one task, until it is called for the next.
func (k *taking) scope(t *definition.Task) *definition.Vars {
	k.scoped = k.vars
	if usesAll(t) {
		k.scoped.Upstream = k.w.Upstream(t)
	}
	return &k.scoped
}

func usesAll(t *definition.Task) bool {
	if t.If.UsesAll() || t.Foreach.UsesAll() || t.With.UsesAll() || t.InFlightOf.UsesAll() || t.Settings.Env.UsesAll() {
		return true
	}
	if t.Repeat != nil && t.Repeat.Until.UsesAll() || t.Cache != nil && t.Cache.Key.UsesAll() {
		return true
	}
	if c := t.Settings.Concurrency; c != nil && (c.Key.UsesAll() || c.FairBy.UsesAll()) {
		return true
	}
	return t.Settings.Rate != nil && t.Settings.Rate.Key.UsesAll()
}

// result is a task as expressions see it.
func (k *taking) result(name string) *definition.Result {
	t := k.w.Task(name)
	if t == nil {
		return nil
	}
	p := &k.st.Tasks[t.Index]
	r := &definition.Result{Status: p.status(t, k.failing), Error: p.Error}
	if t.Repeat != nil && t.ContinueOnError && p.Mark != Broken && p.Mark != NotReached {
		r.Error = nil // a round that failed, and was allowed to, is not the task's end
	}
	if p.Created == 0 && p.Mark != Expanded || k.f.Output == nil {
		return r
	}
	out := k.f.Output(t.Index)
	r.Output, r.Unread = out.Single, out.TooLarge
	if t.Foreach != nil {
		r.Output, r.Items = nil, out.Items
		if r.Items == nil {
			r.Items = []json.RawMessage{}
		}
	}
	return r
}

// start evaluates a task whose needs have ended.
func (k *taking) start(s Start) (again bool) {
	t := k.w.Tasks[s.Task]
	if t.LeftOut {
		k.mark(Marking{Task: t.Index, Mark: Skipped})
		return true
	}
	if k.failing && !t.If.Survives() {
		return true // a task broke in this step: Next decides again
	}
	v := k.scope(t)
	v.Success, v.Failed, v.Cancelled = s.Success, s.Failed, s.Cancelled
	if err := k.environment(v); err != nil {
		return k.broken(t, err)
	}
	run, err := t.If.Eval(v)
	if err != nil {
		return k.broken(t, err)
	}
	if !run {
		k.mark(Marking{Task: t.Index, Mark: Skipped})
		return true
	}
	if t.Repeat != nil {
		v = v.Beginning(1, definition.Round{})
	}
	if t.Foreach == nil {
		return k.create(t, 0, v)
	}
	items, err := k.items(t, v)
	if err != nil {
		return k.broken(t, err)
	}
	k.mark(Marking{Task: t.Index, Mark: Expanded, Total: len(items)})
	if len(items) == 0 {
		return true
	}
	return k.more(t, v)
}

// environment evaluates the workflow's env, once, and adds it to v.
func (k *taking) environment(v *definition.Vars) error {
	if !k.haveEnv && k.w.Env != nil {
		k.env, k.envErr = k.w.Env.Texts(&k.vars)
	}
	k.haveEnv = true
	v.Env = k.env
	return k.envErr
}

// items evaluates the foreach of a task, in groups if it has a batch.
func (k *taking) items(t *definition.Task, v *definition.Vars) ([]json.RawMessage, error) {
	if items, ok := k.f.Items[t.Index]; ok {
		return items, nil
	}
	items, err := t.Items(v)
	if err != nil {
		return nil, err
	}
	if len(items) > maxItems {
		return nil, fmt.Errorf("tasks.%s.foreach: the list has %d items; at most %d are run: use batch, or sub-workflows", t.Name, len(items), maxItems)
	}
	if k.f.Items != nil {
		k.f.Items[t.Index] = items
	}
	return items, nil
}

// more creates as many children of a foreach as there is room for.
func (k *taking) more(t *definition.Task, v *definition.Vars) (again bool) {
	if err := k.environment(v); err != nil {
		return k.broken(t, err)
	}
	items, err := k.items(t, v)
	if err != nil {
		return k.broken(t, err)
	}
	p := &k.st.Tasks[t.Index]
	if len(items) != p.Total {
		return k.broken(t, fmt.Errorf("tasks.%s.foreach: the list has %d items now and had %d before", t.Name, len(items), p.Total))
	}
	limit, err := t.Limit(v)
	if err != nil {
		return k.broken(t, err)
	}
	n := room(t, p, k.failing, limit)
	created := n
	if k.left >= 0 { // without a bound all of them are
		created = min(n, k.left)
	}
	k.plan.Children = slices.Grow(k.plan.Children, max(0, created))
	for ; n > 0; n-- {
		if upto, bounded := k.f.Upto[t.Index]; k.full() || bounded && p.Created >= upto {
			return true
		}
		if k.create(t, p.Created, v.At(items[p.Created], p.Created)) {
			return true
		}
		k.work.Together()
	}
	return false
}

// create evaluates and adds one child; true means that the task broke.
func (k *taking) create(t *definition.Task, index int, v *definition.Vars) (broke bool) {
	c, err := child(t, index, v)
	if err != nil {
		if t.Foreach != nil {
			err = fmt.Errorf("item %d: %w", index, err)
		}
		return k.broken(t, err)
	}
	p := &k.st.Tasks[t.Index]
	p.Created++
	p.Open++
	k.left--
	if k.bytes -= c.Size(); k.f.MostBytes > 0 && k.bytes <= 0 {
		k.left = 0
	}
	k.plan.Children = append(k.plan.Children, c)
	if k.f.Prepare != nil {
		k.work.Done += k.f.Prepare(&k.plan.Children[len(k.plan.Children)-1], k.work.Left())
	}
	return false
}

// Size is about how many bytes of payload the child has.
func (c *Child) Size() int {
	n := len(c.Input) + len(c.Key)
	for name, value := range c.Env {
		n += len(name) + len(value)
	}
	return n
}

func child(t *definition.Task, index int, v *definition.Vars) (Child, error) {
	c := Child{Task: t, Index: index, Action: t.Action, Version: t.Version, Env: v.Env}
	if t.Settings.Env != nil {
		own, err := t.Settings.Env.Texts(v)
		if err != nil {
			return c, err
		}
		c.Env = maps.Clone(v.Env)
		if c.Env == nil {
			c.Env = own
		}
		maps.Copy(c.Env, own)
	}
	if t.With != nil {
		input, err := t.With.Eval(v)
		if err != nil {
			return c, err
		}
		c.Input = input
	}
	if t.Action == string(flow.KindWorkflow) {
		sub, err := definition.SubWorkflow(c.Input)
		if err != nil {
			return c, fmt.Errorf("tasks.%s.with: %w", t.Name, err)
		}
		c.Action, c.Version, c.Input, c.Workflow = sub.Name, sub.Version, sub.Input, true
	}
	if lim := t.Settings.Concurrency; lim != nil {
		key, err := lim.Key.Text(v)
		if err != nil {
			return c, err
		}
		c.Key, c.KeyLimit, c.WhenFull = key, lim.Limit, lim.WhenFull
		if c.Fair, err = lim.Fair(v); err != nil {
			return c, err
		}
	}
	if t.Cache != nil && t.Cache.Key != nil {
		key, err := t.Cache.Key.Text(v)
		if err != nil {
			return c, err
		}
		c.CacheKey = &key
	}
	if rate := t.Settings.Rate; rate != nil {
		key, err := rate.Key.Text(v)
		if err != nil {
			return c, err
		}
		c.Rate = rate.Of(key)
	}
	return c, nil
}
