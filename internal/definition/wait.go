package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// conditions is a cache of the compiled expressions of one kind.
type conditions struct{ recent[*Condition] }

// of compiles the expression of a field. It returns nil for an empty text.
func (k *conditions) of(text, field string, s scope) (*Condition, Problems) {
	if text == "" {
		return nil, nil
	}
	if c, known := k.get(text); known {
		return c, nil
	}
	c := &Condition{expr: &expression{field: field, compiled: newCompiled(text, s)}}
	c.expr.compile()
	var ps Problems
	for _, i := range c.expr.issues {
		ps = append(ps, Problem{Path: field, Value: problem.Clip(text, 100), Message: i.message, Fix: i.fix})
	}
	if e := c.expr; len(ps) == 0 && e.result != nil && e.result.Kind() != boolKind && !dynamic(e.result) {
		ps = Problems{{Path: field, Value: problem.Clip(text, 100), Message: fmt.Sprintf("the expression is of type %s, not true or false", e.result), Fix: "compare it with something"}}
	}
	if len(ps) > 0 {
		return nil, ps
	}
	k.keep(text, c)
	return c, nil
}

// Waits parses waits, and decides which signals match. It caches compiled expressions. The zero value is ready to use, and it is safe for
// concurrent use.
type Waits struct{ ifs conditions }

// Read reads the payload of kind "wait". An error of type Problems lists all errors.
func (k *Waits) Read(raw json.RawMessage) (*payload.Wait, error) {
	w, err := payload.Signal(raw)
	if err != nil {
		var ps problem.List
		if !errors.As(err, &ps) {
			return nil, err
		}
		return nil, ps
	}
	w.If = strings.TrimSpace(w.If)
	if _, ps := k.ifs.of(w.If, "if", scopeWait); len(ps) > 0 {
		return nil, ps
	}
	return w, nil
}

// Fits reports whether a signal matches a wait; it does not check whether another wait has taken the signal. If the condition cannot be
// evaluated for the signal, it returns an error, and the signal does not match. work counts and limits the evaluation.
func (k *Waits) Fits(w *flow.Wait, s *flow.Signal, work *Work) (bool, error) {
	if s.Replayed || s.Trigger != w.Trigger || s.Subject != w.Subject || s.At.Before(w.Since) {
		return false, nil
	}
	c, ps := k.ifs.of(w.If, "if", scopeWait)
	switch {
	case len(ps) > 0:
		return false, ps
	case c == nil:
		return true, nil
	}
	vars, err := SignalVars(s)
	if err != nil {
		return false, err
	}
	vars.Vars, vars.Work = w.Vars, work
	return c.Eval(vars)
}

// SignalValue returns a signal as expressions see it, which is also the output of a wait.
func SignalValue(s *flow.Signal) (json.RawMessage, error) {
	vars, err := SignalVars(s)
	if err != nil {
		return nil, err
	}
	return vars.Signal, nil
}

// waitPayload checks the constant parts of a wait in the document.
func (b *builder) waitPayload(with *value, path string) {
	if b.trusted {
		return
	}
	known := with.known("wait", "signal")
	if known.get("timeout") == nil && with.get("timeout") != nil {
		known.drop("on_timeout")
	}
	if s := known.get("signal"); s != nil && s.kind == textValue && flow.OwnTrigger(s.text) {
		b.fail(s, problem.Join(path, "signal"), "wait for a trigger of your own, whose signal a rule on this one emits",
			"no task waits for a signal that Pawl emits itself, such as %s", problem.Clip(s.text, 60))
		return
	}
	if with.get("if") == nil {
		b.idle(with.get("vars"), problem.Join(path, "vars"), "remove it, or add if",
			"vars has no effect: they are the variables of if, and there is none")
	}
	_, err := new(Waits).Read(known.appendJSON(nil))
	if ps, ok := errors.AsType[Problems](err); ok {
		b.withProblems(with, path, ps)
	}
}

// withProblems adds positions to errors of a payload in the document.
func (b *builder) withProblems(with *value, path string, ps Problems) {
	for _, p := range ps {
		at := with
		if first, _, _ := strings.Cut(strings.ReplaceAll(p.Path, "[", "."), "."); with.get(first) != nil {
			at = with.get(first)
		}
		place := path
		if p.Path != "" {
			place += "." + p.Path
		}
		b.fail(at, place, p.Fix, "%s", p.Message)
	}
}

// Differs says why a signal does not match a wait, part by part of its condition.
func (k *Waits) Differs(w *flow.Wait, s *flow.Signal) string {
	c, _ := k.ifs.of(w.If, "if", scopeWait)
	vars, err := SignalVars(s)
	switch {
	case s.Replayed:
		return "was a replay of an earlier one"
	case err != nil || c == nil:
		return "was taken by another wait of the workflow"
	}
	vars.Vars = w.Vars
	var said []string
	for _, part := range c.Explain(vars) {
		if part.Holds {
			continue
		}
		say := part.Text
		for _, v := range part.Values {
			say += fmt.Sprintf(", %s is %s", v.Text, problem.Clip(string(v.Value), 100))
		}
		if part.Error != "" {
			say += ": " + problem.Clip(part.Error, 200)
		}
		said = append(said, say)
	}
	if len(said) == 0 {
		return "was taken by another wait of the workflow"
	}
	return "differs in " + strings.Join(said, "; ")
}

// AwaitedRef is a reference to a trigger whose signals a task waits for.
type AwaitedRef struct {
	Trigger  string
	Path     string // "tasks.paid.with.signal"
	Position Position
}

// memberPlace returns the position of a member of an object, or of the object if it lacks the member.
func (b *builder) memberPlace(v *value, member string) Position {
	if v == nil {
		return b.place(nil)
	}
	if at := v.get(member); at != nil {
		return b.place(at)
	}
	return b.place(v)
}

// Awaited lists the triggers that waits of the definition name without an expression.
func (d *Definition) Awaited() (refs []AwaitedRef) {
	if d.Action != nil && d.Action.Kind == string(flow.KindWait) {
		if name := d.Action.With.text("signal"); name != "" {
			refs = append(refs, AwaitedRef{name, "with.signal", d.Action.SignalAt})
		}
	}
	if d.Workflow == nil {
		return refs
	}
	for _, t := range d.Workflow.Tasks {
		if t.Action != string(flow.KindWait) {
			continue
		}
		if name := t.With.text("signal"); name != "" {
			refs = append(refs, AwaitedRef{name, problem.Join("tasks", t.Name) + ".with.signal", t.SignalAt})
		}
	}
	return refs
}

// text returns a member of a template that is a text without expressions; "" if it is not.
func (t *Template) text(member string) string {
	if raw, constant := t.member(member); constant && raw != nil {
		return plain(raw)
	}
	return ""
}

// member is a member of a template that is an object, if no expression is in the member; nil where the object has none.
func (t *Template) member(name string) (raw json.RawMessage, constant bool) {
	if t == nil {
		return nil, true
	}
	if raw, constant := t.Constant(); constant {
		raw, _, err := strictjson.Member(raw, name)
		return raw, err == nil
	}
	for _, f := range t.root.fields {
		if f.name == name {
			return f.value.constant, f.value.constant != nil
		}
	}
	return nil, t.root.expr == nil
}
