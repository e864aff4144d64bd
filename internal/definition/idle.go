package definition

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

// idle refuses a field that has no effect where it stands: its author expects one. A definition that was stored with such a field still
// works.
func (b *builder) idle(v *value, path, fix, format string, args ...any) {
	if v != nil && !b.trusted {
		b.fail(v, path, fix, format, args...)
	}
}

// unused is a setting that executions of some kinds do not use.
type unused struct {
	field, why, fix string
	by              func(flow.Kind) bool
}

// unusedSettings does not have the env of a noop, which stands for a task that is written later.
var unusedSettings = []unused{
	{"env", "only code and containers have an environment", "remove it, or give the value in with",
		func(k flow.Kind) bool { return k.BuiltIn() && !k.RunsCode() && k != flow.KindNoop }},
	{"queue", "the engine runs it, and no worker of a queue", "remove it", flow.Kind.ByEngine},
	{"queue_timeout", "the engine runs it, so it waits for no worker", "remove it, or write total_timeout",
		func(k flow.Kind) bool { return k.ByEngine() && k != flow.KindWorkflow }},
}

// idleSettings refuses settings of a document, task or run that executions of its kind do not use.
func (b *builder) idleSettings(v *value, path string) {
	kind := kindOf(v)
	for _, s := range unusedSettings {
		if s.by(kind) && (s.field != "env" || v.get("tasks") == nil) { // the env of a workflow is that of its tasks
			b.idle(v.get(s.field), problem.Join(path, s.field), s.fix, "%s has no effect on %s: %s", s.field, kind, s.why)
		}
	}
}

// idleFor lists the settings of a start of target that its executions would not use.
func (s *Settings) idleFor(target *Definition, env bool) (all []unused) {
	kind := flow.KindWorkflow
	if target.Action != nil {
		kind = flow.Kind(target.Action.Kind)
	}
	there := map[string]bool{"env": env && s.Env != nil, "queue": s.Queue != "", "queue_timeout": s.QueueTimeout != 0}
	for _, u := range unusedSettings {
		if there[u.field] && u.by(kind) {
			all = append(all, u)
		}
	}
	return all
}

// idleCatchUp refuses bounds of ticks that are not caught up with.
func (b *builder) idleCatchUp(doc *value) {
	v := doc.get("catch_up")
	if v == nil || v.kind != objectValue {
		return
	}
	policy := "last"
	if p := v.get("policy"); p != nil {
		policy = p.text
	}
	within, most := v.get("within"), v.get("at_most")
	switch {
	case len(v.fields) == 0:
		b.idle(v, "catch_up", "write catch_up: {policy: all, at_most: 10}, or remove it", "it is empty")
	case policy == "none":
		b.idle(within, "catch_up.within", "remove it, or write policy: last or all",
			"within has no effect: with policy: none every late tick is missed")
		b.idle(most, "catch_up.at_most", "remove it, or write policy: all",
			"at_most has no effect: with policy: none every late tick is missed")
	case doc.get("at") != nil:
		b.idle(most, "catch_up.at_most", "remove it", "at_most has no effect: a schedule of one moment has one tick")
	}
}

// idleOffset refuses an offset in a schedule without every, such as `cron: "0 8 * * *"` with `offset: 0s`. Package schedule refuses any
// other offset there, but reads 0s as no offset.
func (b *builder) idleOffset(doc *value) {
	if doc.get("every") == nil {
		b.idle(doc.get("offset"), "offset", "leave it out", "offset moves the times of every, and there is none")
	}
}

// startFaults returns the errors of settings that target's executions would not use.
func (d *Definition) startFaults(ref *Ref, target *Definition) (all Problems) {
	var s *Settings
	path, env := "run", false
	switch {
	case d.Schedule != nil:
		s = &d.Schedule.Run.Settings
	case d.Rule != nil:
		s = &d.Rule.Run.Settings
	case d.Workflow != nil:
		t := d.Workflow.Task(ref.Task)
		if t == nil || t.Action == string(flow.KindWorkflow) {
			return nil // idleSettings has reported them
		}
		s, path, env = &t.Settings, problem.Join("tasks", ref.Task), true
	}
	for _, u := range s.idleFor(target, env) {
		at := ref.Position
		all = append(all, Problem{File: at.File, Line: at.Line, Column: at.Column, Path: problem.Join(path, u.field),
			Message: fmt.Sprintf("%s has no effect on %s: %s", u.field, ref.Name, u.why), Fix: u.fix})
	}
	return all
}
