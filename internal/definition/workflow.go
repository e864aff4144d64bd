package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

var taskFieldNames = append([]string{
	"description", "needs", "if", "foreach", "repeat", "cache", "concurrency", "rate", "batch", "action", "with", "env", "queue", "priority",
	"retry", "labels", "worker_labels", "continue_on_error",
}, flow.SpanNames()...)

// workflow builds the graph of v's tasks. It includes v's env and outputs.
func (b *builder) workflow(v *value, d *Definition) *Workflow {
	w := &Workflow{Name: d.Name, Env: d.Settings.Env, index: map[string]int{}}
	tasks := v.get("tasks")
	switch {
	case tasks == nil:
		b.fail(v, "", "add tasks:", "the workflow has no tasks")
		return w
	case tasks.kind != objectValue:
		b.fail(tasks, "tasks", "write tasks: {name: {action: …}}", "want an object of tasks by name, not %s", tasks.kind)
		return w
	case len(tasks.fields) == 0:
		b.fail(tasks, "tasks", "add a task", "the workflow has no tasks")
		return w
	case len(tasks.fields) > maxTasks:
		b.fail(tasks, "tasks", "use foreach, or sub-workflows", "the workflow has %d tasks; at most %d are allowed", len(tasks.fields), maxTasks)
		return w
	}
	for _, f := range tasks.fields {
		t := &Task{Index: len(w.Tasks), Name: f.name, Position: Position{b.file, f.line, f.column}}
		if why := badName(strings.ToLower(f.name)); why != "" || f.name == "" {
			b.failAt(t.Position, "tasks", fmt.Sprintf("use at most %d letters, digits, '.', '_' and '-', beginning with a letter or digit", maxName), "%q is not a task's name: %s", problem.Clip(f.name, 60), why)
		}
		w.index[f.name] = t.Index
		w.Tasks = append(w.Tasks, t)
	}
	b.tasks = make(map[string]bool, len(w.Tasks))
	for _, t := range w.Tasks {
		b.tasks[t.Name] = true
	}
	needs := make([][]need, len(w.Tasks))
	for i, f := range tasks.fields {
		needs[i] = b.task(w, w.Tasks[i], f.value)
	}
	if o := v.get("outputs"); o != nil {
		w.Outputs = b.template(o, "outputs", scopeTask, noTask)
		if w.Outputs.root.expr == nil { // an expression may give any value, like the output of a task
			b.objectTemplate(o, w.Outputs, "outputs")
		}
	}
	w.CleanupTimeout = b.cleanupTimeout(v.get("cleanup_timeout"))
	b.graph(w, tasks, needs)
	return w
}

const (
	defaultCleanup = 5 * time.Minute
	maxCleanup     = 24 * time.Hour
)

func (b *builder) cleanupTimeout(v *value) time.Duration {
	if v == nil || v.kind == nullValue {
		return defaultCleanup
	}
	d := b.duration(v, "cleanup_timeout", true)
	if d > maxCleanup {
		b.fail(v, "cleanup_timeout", "write at most 24h", "%s is too long: a workflow that was cancelled is to end", d)
	}
	return d
}

func (b *builder) task(w *Workflow, t *Task, v *value) []need {
	path := problem.Join("tasks", t.Name)
	t.If = &Condition{}
	if !b.object(v, path, taskFieldNames) {
		return nil
	}
	sc := scopeTask
	if f := v.get("foreach"); f != nil {
		sc = scopeItem
		t.Foreach = b.foreach(f, problem.Join(path, "foreach"), t.Index)
		b.itemType = b.elementType(f, t.Foreach)
		defer func() { b.itemType = nil }()
	}
	if r := v.get("repeat"); r != nil {
		sc = scopeRound
		t.Repeat = b.repeat(r, problem.Join(path, "repeat"), t.Index)
		if v.get("foreach") != nil {
			b.fail(r, problem.Join(path, "repeat"), "let the foreach run a sub-workflow whose task has the repeat", "a task with foreach cannot repeat: each of its items would have rounds of its own")
		}
	}
	t.Description = b.text(v.get("description"), problem.Join(path, "description"), 10_000)
	b.inFlight(t, v, path)
	if c := v.get("if"); c != nil {
		t.If = b.condition(c, problem.Join(path, "if"), scopeIf, t.Index)
	}
	b.taskAction(t, v, path)
	t.With = b.template(v.get("with"), problem.Join(path, "with"), sc, t.Index)
	t.SignalAt = b.memberPlace(v.get("with"), "signal")
	b.objectTemplate(v.get("with"), t.With, problem.Join(path, "with"))
	b.payload(t.Action, v, v.get("with"), problem.Join(path, "with"), true)
	b.settings(v, path, &t.Settings, sc, t.Index)
	t.Settings.Queue = b.queue(v.get("queue"), problem.Join(path, "queue"))
	t.Settings.WorkerLabels = b.workerLabels(v.get("worker_labels"), problem.Join(path, "worker_labels"), t.Action)
	if c := v.get("cache"); c != nil {
		t.Cache = b.cache(c, t, problem.Join(path, "cache"), sc)
	}
	t.ContinueOnError = b.boolean(v.get("continue_on_error"), problem.Join(path, "continue_on_error"))
	return b.needs(w, t, v.get("needs"), path)
}

// need is one entry of a task's needs, with its position.
type need struct {
	task int
	at   *value
}

func (b *builder) needs(w *Workflow, t *Task, v *value, path string) []need {
	if v == nil || v.kind == nullValue {
		return nil
	}
	path = problem.Join(path, "needs")
	list := v.list
	if v.kind == textValue {
		list = []*value{v}
	} else if v.kind != listValue {
		b.fail(v, path, "write needs: [name]", "want a list of task names, not %s", v.kind)
		return nil
	}
	var out []need
	seen := make(map[int]bool, len(list))
	for _, el := range list {
		name := b.text(el, path, 1000)
		if name == "" {
			continue
		}
		i, known := w.index[name]
		switch {
		case !known:
			b.fail(el, path, b.offerTask(name), "there is no task %q", problem.Clip(name, 60))
		case i == t.Index:
			b.fail(el, path, "remove it", "the task needs itself")
		case seen[i]:
			b.fail(el, path, "remove one of them", "%q is here twice", name)
		default:
			seen[i] = true
			out = append(out, need{i, el})
			t.Needs = append(t.Needs, i)
		}
	}
	return out
}

func (b *builder) offerTask(name string) string {
	if len(b.problems) >= maxProblems {
		return ""
	}
	if b.taskNames == nil {
		b.taskNames = problem.NamesOf(sortedKeys(b.tasks))
	}
	return b.taskNames.NearestOr(name, "the tasks are")
}

func (b *builder) foreach(v *value, path string, task int) *Template {
	if v.kind != listValue && v.kind != textValue {
		b.fail(v, path, "write foreach: ${{ input.items }}, or a list", "want a list, not %s", v.kind)
		return nil
	}
	t := b.template(v, path, scopeTask, task)
	switch {
	case t.root.expr != nil:
		e := t.root.expr
		if e.result != nil && e.result.Kind() != listKind && !dynamic(e.result) {
			b.fail(v, path, "make it a list, for example with .map() or [x]", "the expression is of type %s, not a list", e.result)
		} else if is := b.exprType(e); is != nil && is.kind != typeList {
			b.fail(v, path, "make it a list, for example with [x]", "%s is %s, not a list", e.text, is)
		}
	case v.kind == textValue:
		b.fail(v, path, "write foreach: ${{ … }} alone", "want a list, not text")
	}
	return t
}

// inFlight reads concurrency, as a number, and batch; both are for a foreach only.
func (b *builder) inFlight(t *Task, v *value, path string) {
	if c := v.get("concurrency"); c != nil && c.kind == textValue && strings.Contains(c.text, opening) && t.Foreach != nil {
		t.InFlightOf = b.template(c, problem.Join(path, "concurrency"), scopeTask, t.Index)
		if e := t.InFlightOf.root.expr; e == nil || e.result != nil && e.result.Kind() != intKind && !dynamic(e.result) {
			b.fail(c, problem.Join(path, "concurrency"), "write one expression that gives a whole number", "want a number")
		}
	} else if c != nil && c.kind != objectValue {
		if n, ok := b.whole(c, problem.Join(path, "concurrency"), 1, 100_000); ok && t.Foreach != nil {
			t.InFlight = n
		}
		if v.get("foreach") == nil {
			b.fail(c, problem.Join(path, "concurrency"), `remove it, or limit by key: {key: "…", limit: 5}`, "a number limits the items of a foreach, and the task has none")
		}
	}
	if n := v.get("batch"); n != nil {
		if size, ok := b.whole(n, problem.Join(path, "batch"), 1, 100_000); ok && t.Foreach != nil {
			t.Batch = size
		}
		if v.get("foreach") == nil {
			b.fail(n, problem.Join(path, "batch"), "remove it", "batch groups the items of a foreach, and the task has none")
		}
	}
}

func (b *builder) condition(v *value, path string, sc scope, task int) *Condition {
	switch v.kind {
	case boolValue:
		return &Condition{expr: b.expression(v.text, path, sc, task, b.placer(v, func() int { return b.offset(v) }))}
	case textValue:
	default:
		b.fail(v, path, "write an expression, such as "+conditionExample[sc], "want an expression, not %s", v.describe())
		return &Condition{}
	}
	text, at := v.text, b.bare(v)
	if strings.Contains(text, opening) {
		segs, nth, err := scan(strings.TrimSpace(text))
		if err != nil {
			b.failAt(b.expressionAt(v, nth)(1, -len(opening)), path, "write the expression without braces", "%v", err)
			return &Condition{}
		}
		if len(segs) != 1 || !segs[0].expr {
			b.fail(v, path, "put all of it into one ${{ }}, or write it without braces", "the condition is text with an expression in it, which would always hold")
			return &Condition{}
		}
		text, at = segs[0].text, b.expressionAt(v, segs[0].nth)
	}
	if strings.TrimSpace(text) == "" {
		b.fail(v, path, "leave it out", "the condition is empty")
		return &Condition{}
	}
	lead := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	e := b.expression(text, path, sc, task, shift(at, text[:lead]))
	if e.result != nil && e.result.Kind() != boolKind && !dynamic(e.result) {
		b.fail(v, path, "compare it with something", "the condition is of type %s, not true or false", e.result)
	} else if is := b.exprType(e); is != nil && is.kind != typeBool {
		b.fail(v, path, "compare it with something", "the condition is %s, not true or false", is)
	}
	return &Condition{expr: e}
}

var conditionExample = map[scope]string{scopeIf: "success() && input.grade", scopeUntil: `output.state == "ready"`, scopeSignal: `signal.data.severity == "page"`}

// bare finds positions within an expression that is written without `${{ }}`, so that the whole string is the expression.
func (b *builder) bare(v *value) func(line, column int) Position {
	return b.placer(v, func() int {
		at := b.offset(v)
		if at < 0 {
			return -1
		}
		first, _, _ := strings.Cut(strings.TrimSpace(v.text), "\n")
		i := strings.Index(string(b.src[at:min(len(b.src), at+len(first)+4096)]), first)
		if i < 0 {
			return -1
		}
		return at + i
	})
}

func (b *builder) taskAction(t *Task, v *value, path string) {
	a := v.get("action")
	if a == nil {
		b.fail(v, path, "add action: "+strings.Join(BuiltIns[:4], ", ")+", …; or the name of a registered action", "the task has no action")
		return
	}
	s := b.plainText(a, problem.Join(path, "action"), 1000)
	if s == "" {
		return
	}
	name, version, pinned := strings.Cut(s, "@")
	if why := badName(name); why != "" || name == "" {
		b.fail(a, problem.Join(path, "action"), "use lower-case letters, digits, '.', '_' and '-'", "%q is not an action's name: %s", problem.Clip(s, 60), why)
		return
	}
	t.Action = name
	if !pinned {
		return
	}
	if IsAlias(version) && !BuiltIn(name) {
		t.Action = s
		return
	}
	n, err := strconv.Atoi(version)
	if err != nil || n < 1 || n > 1_000_000_000 || BuiltIn(name) {
		b.fail(a, problem.Join(path, "action"), "write name@3, or name@stable, of a registered action", "%q does not name a version", problem.Clip(s, 60))
		return
	}
	t.Version = n
}

// objectTemplate checks that a template can give an object.
func (b *builder) objectTemplate(v *value, t *Template, path string) {
	if v == nil || v.kind == objectValue {
		return
	}
	if e := t.root.expr; e != nil {
		if e.result != nil && e.result.Kind() != mapKind && !dynamic(e.result) {
			b.fail(v, path, `write name: "${{ … }}" pairs`, "the expression is of type %s, not an object", e.result)
		}
		return
	}
	b.fail(v, path, "write name: value pairs", "want an object, not %s", v.describe())
}

// References returns the other definitions to which d refers by a fixed name.
func (d *Definition) References() []Ref {
	if s := d.Schedule; s != nil {
		return s.Run.references()
	}
	if r := d.Rule; r != nil {
		return r.Run.references()
	}
	if d.Workflow == nil {
		return nil
	}
	var refs []Ref
	for _, t := range d.Workflow.Tasks {
		switch {
		case t.Action == "workflow":
			if name, version, ok := t.child(); ok {
				input, constant := t.With.member("input")
				refs = append(refs, Ref{KindWorkflow, name, version, t.Name, t.Position, input, constant})
			}
		case !BuiltIn(t.Action):
			input, constant := t.With.constantOr(nil)
			refs = append(refs, Ref{KindAction, t.Action, t.Version, t.Name, t.Position, input, constant})
		}
	}
	return refs
}

func (r *Start) references() []Ref {
	if BuiltIn(r.Action) {
		return nil
	}
	input, constant := r.Input.constantOr(json.RawMessage("{}"))
	return []Ref{{KindAction, r.Action, r.Version, "", r.Position, input, constant}}
}

// Misfits are the reasons for which every execution of target that d starts by the reference would be refused: its input, if no
// expression is in it, and the key of a schedule beside the action's own. w counts the work of one request; beyond SharedWork, inputs are
// not checked.
func (d *Definition) Misfits(ref *Ref, target *Definition, w *Work) (all Problems) {
	at := Problem{File: ref.Position.File, Line: ref.Position.Line, Column: ref.Position.Column}
	if d.Schedule != nil && d.Schedule.Overlap.Keyed() && target.Settings.Concurrency != nil {
		at.Path, at.Fix = "overlap", "write overlap: allow or skip"
		at.Message = fmt.Sprintf("%s has a concurrency key of its own, which decides what waits; overlap: %s needs one for the schedule",
			ref.Name, d.Schedule.Overlap)
		all = append(all, at)
	}
	all = append(all, d.startFaults(ref, target)...)
	if !ref.Constant || target.Input == nil || w.Done > SharedWork {
		return all
	}
	if _, err := target.Input.compile(); err != nil {
		return all // the problem is the target's
	}
	path := "run.input"
	switch {
	case ref.Kind == KindWorkflow:
		path = problem.Join("tasks", ref.Task) + ".with.input"
	case ref.Task != "":
		path = problem.Join("tasks", ref.Task) + ".with"
	}
	_, err := validateInput(target, ref.Input, w)
	var found Problems
	errors.As(err, &found)
	for _, p := range found {
		at.Path, at.Message, at.Fix = path+strings.TrimPrefix(p.Path, "input"), fmt.Sprintf("%s (by the input of %s)", p.Message, ref.Name), p.Fix
		all = append(all, at)
	}
	return all
}

type QueueRef struct {
	Name     string
	Path     string // "queue", "tasks.train.queue"
	Position Position
}

// QueueRefs lists the queues that the definition and its tasks name.
func (d *Definition) QueueRefs() []QueueRef {
	var refs []QueueRef
	if q := d.Settings.Queue; q != "" {
		refs = append(refs, QueueRef{q, "queue", d.Position})
	}
	if d.Schedule != nil && d.Schedule.Run.Settings.Queue != "" {
		refs = append(refs, QueueRef{d.Schedule.Run.Settings.Queue, "run.queue", d.Schedule.Run.Position})
	}
	if d.Rule != nil && d.Rule.Run.Settings.Queue != "" {
		refs = append(refs, QueueRef{d.Rule.Run.Settings.Queue, "run.queue", d.Rule.Run.Position})
	}
	if d.Workflow != nil {
		for _, t := range d.Workflow.Tasks {
			if q := t.Settings.Queue; q != "" {
				refs = append(refs, QueueRef{q, "tasks." + t.Name + ".queue", t.Position})
			}
		}
	}
	return refs
}

// Runnable reports whether executions of the definition can be submitted.
func (d *Definition) Runnable() bool { return d.Kind == KindWorkflow || d.Kind == KindAction }

func DeclaredQueues(defs []*Definition) []string {
	var names []string
	for _, d := range defs {
		if d.Kind == KindQueue {
			names = append(names, d.Name)
		}
	}
	return names
}

// child returns the fixed name of the sub-workflow that t runs.
func (t *Task) child() (name string, version int, ok bool) {
	name = t.With.text("name")
	if v := t.With.text("version"); v != "" {
		if n, err := strconv.Atoi(v); err == nil {
			version = n
		}
	}
	return name, version, name != ""
}

// Upstream returns the names of all tasks that come before t.
func (w *Workflow) Upstream(t *Task) []string {
	var names []string
	seen := map[int]bool{}
	stack := append([]int(nil), t.Needs...)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		names = append(names, w.Tasks[i].Name)
		stack = append(stack, w.Tasks[i].Needs...)
	}
	return names
}

func (r Ref) String() string {
	if r.Version > 0 {
		return fmt.Sprintf("%s %s@%d", r.Kind, r.Name, r.Version)
	}
	return fmt.Sprintf("%s %s", r.Kind, r.Name)
}
