package replay

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

// child is a recorded execution of a task that a corruption may change.
func child(g *generator, r *Record, want func(x *flow.Execution) bool) *flow.Execution {
	var all []*flow.Execution
	for _, x := range r.Workflow.Children {
		if want(x) {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[g.IntN(len(all))]
}

func anyChild(*flow.Execution) bool { return true }

// needed reports whether a task that was decided about needs a child's task.
func needed(r *Record) func(*flow.Execution) bool {
	return func(x *flow.Execution) bool {
		t := r.Workflow.Definition.Task(x.Task)
		for _, s := range t.Successors {
			name := r.Workflow.Definition.Tasks[s].Name
			if slices.ContainsFunc(r.Workflow.Children, func(o *flow.Execution) bool { return o.Task == name && o.ParentAttempt == x.ParentAttempt }) {
				return true
			}
		}
		return false
	}
}

// editStep changes the effect of a step.
func editStep(change func(g *generator, s *orchestration.Advance) bool) func(*generator, *Record) bool {
	return func(g *generator, r *Record) bool {
		i := at(g, r, ofType(flow.EvAdvanced))
		if i < 0 {
			return false
		}
		var s orchestration.Advance
		if err := json.Unmarshal(r.Events[i].Data, &s); err != nil || !change(g, &s) {
			return false
		}
		var err error
		r.Events[i].Data, err = json.Marshal(&s)
		return err == nil
	}
}

// unordered skips workflows that were ordered to end: their last step cancels tasks that could as well have been skipped before.
func unordered(change func(*generator, *Record) bool) func(*generator, *Record) bool {
	return func(g *generator, r *Record) bool {
		return !slices.ContainsFunc(r.Events, func(e flow.Event) bool {
			return e.Type == flow.EvCancelled && textOf(e.Data, "message") == "enough"
		}) && change(g, r)
	}
}

func started(s *orchestration.Advance) string {
	for name := range s.Started {
		if _, foreach := s.Expanded[name]; !foreach && s.Started[name] == 1 {
			return name
		}
	}
	return ""
}

var workflowCorruptions = []corruption{
	{"a child started before what it needs had ended", true, func(g *generator, r *Record) bool {
		x := child(g, r, needed(r))
		if x == nil {
			return false
		}
		x.FinishedAt = r.Events[len(r.Events)-1].At.Add(time.Second)
		return true
	}},
	{"a child started though what it needs never ended", true, func(g *generator, r *Record) bool {
		x := child(g, r, needed(r))
		if x == nil {
			return false
		}
		x.Stage, x.Outcome = flow.Running, nil
		return true
	}},
	{"a skipped task that ran", true, editStep(func(_ *generator, s *orchestration.Advance) bool {
		if len(s.Skipped) == 0 {
			return false
		}
		if s.Started == nil {
			s.Started = map[string]int{}
		}
		s.Started[s.Skipped[0]], s.Skipped = 1, s.Skipped[1:]
		return true
	})},
	{"a task that ran, skipped", true, editStep(func(_ *generator, s *orchestration.Advance) bool {
		name := started(s)
		delete(s.Started, name)
		s.Skipped = append(s.Skipped, name)
		return name != ""
	})},
	{"a task that was skipped, cancelled", true, unordered(editStep(func(_ *generator, s *orchestration.Advance) bool {
		n := len(s.Skipped)
		s.Cancelled, s.Skipped = append(s.Cancelled, s.Skipped...), nil
		return n > 0
	}))},
	{"a task broken that was not", true, editStep(func(_ *generator, s *orchestration.Advance) bool {
		name := started(s)
		delete(s.Started, name)
		s.Broken = append(s.Broken, name)
		return name != ""
	})},
	{"a task that the definition does not have", true, editStep(func(_ *generator, s *orchestration.Advance) bool {
		s.Skipped = append(s.Skipped, "another")
		return true
	})},
	{"another number of items", true, editStep(func(_ *generator, s *orchestration.Advance) bool {
		for name := range s.Expanded {
			s.Expanded[name]++
			return true
		}
		return false
	})},
	{"more children started than there is room for", true, editStep(func(_ *generator, s *orchestration.Advance) bool {
		for name := range s.Started {
			s.Started[name] += 9
			return true
		}
		return false
	})},
	{"a step that starts tasks, of a workflow that is paused", true, edit(ofType(flow.EvAdvanced), func(_ *generator, r *Record, i int) bool {
		if !strings.Contains(string(r.Events[i].Data), `"started"`) || r.Events[i].Seq < 2 {
			return false
		}
		paused := r.Events[i-1]
		paused.Type, paused.Data = flow.EvPaused, []byte(`{"by":"ann"}`)
		r.Events = slices.Insert(r.Events, i, paused)
		renumber(r)
		return true
	})},
	{"a step dropped, and all numbered anew", true, edit(ofType(flow.EvAdvanced), func(_ *generator, r *Record, i int) bool {
		if string(r.Events[i].Data)[:12] == `{"cancelled"` {
			return false // the last step of a workflow that was ordered to end may be missing, and is reported as unknown
		}
		r.Events = slices.Delete(r.Events, i, i+1)
		renumber(r)
		return true
	})},
	{"a step doubled, and all numbered anew", true, edit(ofType(flow.EvAdvanced), func(_ *generator, r *Record, i int) bool {
		r.Events = slices.Insert(r.Events, i, r.Events[i])
		renumber(r)
		return true
	})},
	{"the input of a child changed", true, func(g *generator, r *Record) bool {
		x := child(g, r, anyChild)
		if x == nil {
			return false
		}
		x.Input = json.RawMessage(`{"another":1}`)
		return true
	}},
	{"what a child runs changed", true, func(g *generator, r *Record) bool {
		x := child(g, r, anyChild)
		if x == nil {
			return false
		}
		x.Action = "another"
		return true
	}},
	{"the key of a child changed", true, func(g *generator, r *Record) bool {
		x := child(g, r, anyChild)
		if x == nil {
			return false
		}
		x.Key = "another"
		return true
	}},
	{"the output of a child changed", true, func(g *generator, r *Record) bool {
		// The outputs of these workflows contain that of each task.
		x := child(g, r, func(x *flow.Execution) bool {
			return x.Stage == flow.Completed && x.ParentAttempt == r.Execution.Attempt
		})
		if x == nil || r.Execution.Stage != flow.Completed {
			return false
		}
		x.Outcome = &flow.Outcome{Output: json.RawMessage(`"another"`)}
		return true
	}},
	{"the output of the workflow changed", true, func(_ *generator, r *Record) bool {
		if r.Execution.Stage != flow.Completed {
			return false
		}
		r.Execution.Outcome = &flow.Outcome{Output: json.RawMessage(`{"another":1}`)}
		return true
	}},
	{"a workflow completed though a task of it failed", true, func(g *generator, r *Record) bool {
		x := child(g, r, func(x *flow.Execution) bool {
			return !r.Workflow.Definition.Task(x.Task).ContinueOnError && x.ParentAttempt == r.Execution.Attempt
		})
		if x == nil || r.Execution.Stage != flow.Completed {
			return false
		}
		x.Stage, x.Outcome = flow.Failed, &flow.Outcome{Error: &flow.Error{Code: "boom", Message: "boom"}}
		return true
	}},
	{"a workflow failed for another reason", true, func(_ *generator, r *Record) bool {
		if r.Execution.Stage != flow.Failed {
			return false
		}
		r.Execution.Outcome = &flow.Outcome{Error: &flow.Error{Code: flow.CodeTaskFailed, Message: `task "another" failed: boom: boom`}}
		return true
	}},
	{"a workflow failed though its tasks completed", true, func(_ *generator, r *Record) bool {
		last := &r.Events[len(r.Events)-1]
		if r.Execution.Stage != flow.Completed {
			return false
		}
		last.Type, last.Data = flow.EvFailed, json.RawMessage(`{"code":"task_failed","message":"a task failed"}`)
		r.Execution.Stage, r.Execution.Outcome = flow.Failed, &flow.Outcome{Error: &flow.Error{Code: flow.CodeTaskFailed, Message: "a task failed"}}
		return true
	}},
	{"a workflow over while a task of it is open", true, func(g *generator, r *Record) bool {
		x := child(g, r, func(x *flow.Execution) bool { return x.ParentAttempt == r.Execution.Attempt })
		if x == nil || !ended(r) {
			return false
		}
		x.FinishedAt = r.Execution.FinishedAt.Add(time.Second)
		return true
	}},
	{"an execution that no event speaks of", true, func(g *generator, r *Record) bool {
		x := child(g, r, func(x *flow.Execution) bool { return x.ParentAttempt == r.Execution.Attempt })
		if x == nil {
			return false
		}
		more := *x
		more.ID = g.id()
		for _, o := range r.Workflow.Children {
			if o.Task == x.Task && o.ParentAttempt == x.ParentAttempt {
				more.Index = max(more.Index, o.Index+1)
			}
		}
		r.Workflow.Children = append(r.Workflow.Children, &more)
		return true
	}},
	{"an item with two executions", true, func(g *generator, r *Record) bool {
		x := child(g, r, anyChild)
		if x == nil {
			return false
		}
		more := *x
		more.ID = g.id()
		r.Workflow.Children = append(r.Workflow.Children, &more)
		return true
	}},
}
