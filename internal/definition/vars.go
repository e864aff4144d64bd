package definition

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"

	"github.com/pawl-run/pawl/internal/jsonvalue"
)

// Vars are the values of the variables in expressions. JSON texts are decoded only if an expression looks inside them, and then once. A
// Vars, and all copies that At makes, must be used by one goroutine at a time, and its fields must not change after its first use.
type Vars struct {
	Input       json.RawMessage // nil is null
	ID, Name    string          // of the workflow's execution, and of its definition
	Labels, Env map[string]string
	Tick        json.RawMessage // of a schedule
	Signal      json.RawMessage // of a rule or a trigger
	Signals     json.RawMessage // of a rule that gathers them
	Answer      json.RawMessage // to a question
	Vars        json.RawMessage // of a wait
	// Body, Headers and Query are parts of a request to a webhook.
	Body    json.RawMessage
	Headers map[string]string
	Query   json.RawMessage
	// Task returns the result of an upstream task; nil if it has none. It is called for the tasks that Refs returns.
	Task func(name string) *Result
	// Upstream names all upstream tasks, for expressions that use `tasks` as a whole.
	Upstream []string
	// Work counts the work of evaluations with these variables and their copies. If it is nil, only each template is limited.
	Work *Work
	// Success, Failed and Cancelled are the results of the functions of `if`.
	Success, Failed, Cancelled bool

	round *roundVars // of a task with repeat

	item    json.RawMessage
	index   int
	element bool // item and index are set
	itemVal any
	decoded bool // itemVal is item, decoded
	shared  *decodedVars
}

// decodedVars has the decoded values that the Vars of one task's items share.
type decodedVars struct {
	values  map[string]any // of variables, by name
	results map[string]*Result
	outputs map[string]any
	whole   map[string]json.RawMessage
}

func (v *Vars) common() *decodedVars {
	if v.shared == nil {
		v.shared = &decodedVars{}
	}
	return v.shared
}

// At returns the same variables with item and index set for one element of a foreach. Decoded values are shared with v.
func (v *Vars) At(item json.RawMessage, index int) *Vars {
	v.common()
	w := *v
	w.item, w.index, w.element = item, index, true
	w.itemVal, w.decoded = nil, false
	return &w
}

func (v *Vars) result(name string) *Result {
	c := v.common()
	if r, ok := c.results[name]; ok {
		return r
	}
	var r *Result
	if v.Task != nil {
		r = v.Task(name)
	}
	if c.results == nil {
		c.results = map[string]*Result{}
	}
	c.results[name] = r
	return r
}

// output returns the JSON of a task's output; that of a foreach is built once.
func (v *Vars) output(name string, r *Result) json.RawMessage {
	if r.Items == nil {
		return orNull(r.Output)
	}
	c := v.common()
	if raw, ok := c.whole[name]; ok {
		return raw
	}
	raw := joinItems(r.Items)
	if c.whole == nil {
		c.whole = map[string]json.RawMessage{}
	}
	c.whole[name] = raw
	return raw
}

func joinItems(items []json.RawMessage) json.RawMessage {
	n := 2
	for _, it := range items {
		n += len(it) + 5
	}
	raw := append(make(json.RawMessage, 0, n), '[')
	for i, it := range items {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, orNull(it)...)
	}
	return append(raw, ']')
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// text returns the JSON text of a variable that is stored as one.
func (v *Vars) text(name string) (raw json.RawMessage, is bool) {
	switch name {
	case "input":
		return v.Input, true
	case "tick":
		return v.Tick, true
	case "signal":
		return v.Signal, true
	case "signals":
		return v.Signals, true
	case "answer":
		return v.Answer, true
	case "vars":
		return v.Vars, true
	case "body":
		return v.Body, true
	case "query":
		return v.Query, true
	}
	return nil, false
}

// texts returns the members of a variable that is an object of strings.
func (v *Vars) texts(name string) (m map[string]string, is bool) {
	switch name {
	case "labels":
		return v.Labels, true
	case "env":
		return v.Env, true
	case "headers":
		return v.Headers, true
	case "workflow":
		return map[string]string{"id": v.ID, "name": v.Name}, true
	}
	return nil, false
}

// eval evaluates a path on the JSON texts.
func (p *path) eval(v *Vars) (json.RawMessage, error) {
	if raw, ok := v.text(p.root); ok {
		return walk(orNull(raw), p.steps, p.root)
	}
	if m, ok := v.texts(p.root); ok {
		return walkText(m, p.steps, p.root)
	}
	switch p.root {
	case "tasks":
		return p.evalTask(v)
	case "item":
		if !v.element {
			return nil, fmt.Errorf("item has no value outside a foreach")
		}
		return walk(orNull(v.item), p.steps, "item")
	case "index":
		return walk(strconv.AppendInt(nil, int64(v.index), 10), p.steps, "index")
	}
	return p.evalRound(v)
}

// searched estimates how many bytes of JSON are searched for the path.
func (p *path) searched(v *Vars) int {
	if raw, ok := v.text(p.root); ok {
		return len(raw)
	}
	switch p.root {
	case "item":
		return len(v.item)
	case "tasks":
		if r := v.result(p.steps[0].name); r != nil {
			return len(r.Output)
		}
	}
	return 0
}

// evalTask evaluates tasks.NAME.FIELD…; parsePath leaves shorter paths to CEL.
func (p *path) evalTask(v *Vars) (json.RawMessage, error) {
	name, field, rest := p.steps[0].name, p.steps[1].name, p.steps[2:]
	r := v.result(name)
	if r == nil {
		return nil, fmt.Errorf("task %q has no result yet", name)
	}
	sofar := "tasks" + p.steps[0].suffix() + "." + field
	switch field {
	case "output":
		if r.Unread != nil {
			return nil, fmt.Errorf("%s: %w", sofar, r.Unread)
		}
		if r.Items != nil && len(rest) > 0 && rest[0].byIdx {
			if i := rest[0].index; i < len(r.Items) {
				return walk(orNull(r.Items[i]), rest[1:], sofar+rest[0].suffix())
			}
			return nil, fmt.Errorf("%s has no %s: the list has %d elements, counted from 0", sofar, rest[0], len(r.Items))
		}
		if len(rest) > 0 && r.Status != StatusCompleted && len(r.Output) == 0 && r.Items == nil {
			return nil, fmt.Errorf("%s is null and has no %s: the task is %s", sofar, rest[0], r.Status)
		}
		return walk(v.output(name, r), rest, sofar)
	case "status":
		return walk(jsonvalue.AppendText(nil, string(r.Status)), rest, sofar)
	case "error":
		return walk(r.errorText(), rest, sofar)
	}
	return nil, fmt.Errorf("tasks%s has no %q: it has output, status and error", p.steps[0].suffix(), field)
}

func (r *Result) errorText() json.RawMessage {
	if r.Error == nil {
		return json.RawMessage("null")
	}
	b := jsonvalue.AppendText([]byte(`{"code":`), r.Error.Code)
	b = jsonvalue.AppendText(append(b, `,"message":`...), r.Error.Message)
	return append(b, '}')
}

func walkText(m map[string]string, steps []step, root string) (json.RawMessage, error) {
	if len(steps) == 1 && !steps[0].byIdx {
		if s, ok := m[steps[0].name]; ok {
			return jsonvalue.AppendText(nil, s), nil
		}
	}
	return walk(textObject(m), steps, root)
}

// textObject writes an object of strings, with sorted keys.
func textObject(m map[string]string) json.RawMessage {
	b := []byte{'{'}
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonvalue.AppendText(append(jsonvalue.AppendText(b, k), ':'), m[k])
	}
	return append(b, '}')
}

// activation gives CEL access to Vars. There is one per evaluation, because it keeps the first decoding error, which CEL cannot pass on.
type activation struct {
	v    *Vars
	refs []TaskRef
	err  error
}

var _ cel.Activation = (*activation)(nil)

func (a *activation) Parent() cel.Activation { return nil }

func (a *activation) ResolveName(name string) (any, bool) {
	v := a.v
	c := v.common()
	if val, known := c.values[name]; known {
		return val, true
	}
	var val any
	if raw, ok := v.text(name); ok {
		val = a.decode(name, raw)
	} else if m, ok := v.texts(name); ok {
		val = anyMap(m)
	} else {
		return a.other(name)
	}
	if c.values == nil {
		c.values = map[string]any{}
	}
	c.values[name] = val
	return val, true
}

// other returns a variable that is built for this evaluation, or that belongs to one item or round.
func (a *activation) other(name string) (any, bool) {
	v := a.v
	switch name {
	case "tasks":
		return a.tasks(), true
	case "item":
		if !v.element {
			return nil, false
		}
		if !v.decoded {
			v.itemVal, v.decoded = a.decode("item", v.item), true
		}
		return v.itemVal, true
	case "index":
		return int64(v.index), v.element
	case "round", "previous", "output", "status", "error":
		return a.round(name)
	case identSuccess:
		return v.Success, true
	case identFailed:
		return v.Failed, true
	case identCancelled:
		return v.Cancelled, true
	case identAlways:
		return true, true
	}
	return nil, false
}

func (a *activation) tasks() map[string]any {
	m := make(map[string]any, len(a.refs))
	for _, ref := range a.refs {
		r := a.v.result(ref.Task)
		if r == nil {
			continue
		}
		t := map[string]any{"status": string(r.Status), "error": nil, "output": nil}
		if r.Error != nil {
			t["error"] = map[string]any{"code": r.Error.Code, "message": r.Error.Message}
		}
		if ref.Output {
			t["output"] = a.output(ref.Task, r)
		}
		m[ref.Task] = t
	}
	return m
}

func (a *activation) output(name string, r *Result) any {
	c := a.v.common()
	if out, ok := c.outputs[name]; ok {
		return out
	}
	var out any
	if r.Unread != nil && a.err == nil {
		a.err = fmt.Errorf("tasks.%s.output: %w", name, r.Unread)
	}
	if r.Items != nil {
		list := make([]any, len(r.Items))
		for i, raw := range r.Items {
			list[i] = a.decode("tasks."+name+".output", raw)
		}
		out = list
	} else {
		out = a.decode("tasks."+name+".output", r.Output)
	}
	if c.outputs == nil {
		c.outputs = map[string]any{}
	}
	c.outputs[name] = out
	return out
}

func (a *activation) decode(what string, raw json.RawMessage) any {
	val, err := jsonvalue.Decode(raw)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("read %s: %w", what, err)
	}
	return val
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, s := range m {
		out[k] = s
	}
	return out
}
