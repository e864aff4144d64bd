package orchestration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// finish makes the outcome of a workflow that has ended.
func (k *taking) finish(stage flow.Stage) {
	k.plan.Stage = stage
	switch {
	case k.st.Ending != 0:
		k.plan.Outcome.Error = k.st.Reason
	case stage == flow.Failed:
		k.plan.Outcome.Error = k.failure()
	case stage == flow.Cancelled:
		k.plan.Outcome.Error = k.cancellation()
	case k.w.Reports != nil:
		k.report()
	case k.w.Outputs != nil:
		v := k.vars
		if _, all := k.w.Outputs.Refs(); all {
			v.Upstream = upstream(k.w, nil)
		}
		err := k.environment(&v)
		if err == nil {
			k.plan.Outcome.Output, err = k.w.Outputs.Eval(&v)
		}
		if err != nil {
			k.plan.Stage = flow.Failed
			k.plan.Outcome.Error = &flow.Error{Code: flow.CodeExpressionError, Message: err.Error()}
		}
	}
}

// failure names the first task, in document order, that made the workflow fail.
func (k *taking) failure() *flow.Error {
	for i, t := range k.w.Tasks {
		p := &k.st.Tasks[i]
		if !fails(t, p) {
			continue
		}
		why := cmp.Or(p.Error, &flow.Error{Code: string(definition.StatusFailed), Message: "it gave no reason"})
		details := culprit{Task: t.Name, Code: why.Code}
		e := &flow.Error{Code: flow.CodeTaskFailed}
		if p.Mark == Broken { // the expression of the whole task, or of an item that its message names: no child to name
			e.Message = failedTask(t.Name, why)
		} else {
			details.Index, e.Message = &p.ErrorIndex, FailedBy(t, p.ErrorIndex, why)
		}
		if raw, err := json.Marshal(details); err == nil {
			e.Details = raw
		}
		return e
	}
	return &flow.Error{Code: flow.CodeTaskFailed, Message: "a task failed"}
}

// FailedBy is the message of a workflow that failed because an item of a task did; without a foreach the index is not used.
func FailedBy(t *definition.Task, index int, why *flow.Error) string {
	if t.Foreach == nil {
		return failedTask(t.Name, why)
	}
	return fmt.Sprintf("task %q (item %d) failed: %s: %s", t.Name, index, why.Code, why.Message)
}

func failedTask(name string, why *flow.Error) string {
	return fmt.Sprintf("task %q failed: %s: %s", name, why.Code, why.Message)
}

// CancelledBy is the message of a workflow that was cancelled because an item of a task was; why is nil if it is not known. Without a
// foreach the index is not used.
func CancelledBy(t *definition.Task, index int, why *flow.Error) string {
	said := fmt.Sprintf("task %q was cancelled", t.Name)
	if why == nil {
		return said
	}
	if t.Foreach != nil {
		said = fmt.Sprintf("task %q (item %d) was cancelled", t.Name, index)
	}
	if why.Code != flow.CodeCancelled {
		said += ": " + why.Code
	}
	return said + ": " + why.Message
}

// SaysCancelledBy reports whether a message is one of CancelledBy, with any item and reason.
func SaysCancelledBy(t *definition.Task, message string) bool {
	rest, of := strings.CutPrefix(message, fmt.Sprintf("task %q ", t.Name))
	return of && (strings.HasPrefix(rest, "was cancelled") || t.Foreach != nil && strings.HasPrefix(rest, "(item ") && strings.Contains(rest, ") was cancelled: "))
}

func (k *taking) cancellation() *flow.Error {
	for i, t := range k.w.Tasks {
		p := &k.st.Tasks[i]
		if !p.interrupted() {
			continue
		}
		if p.Error == nil || p.ErrorStage != flow.Cancelled {
			return &flow.Error{Code: flow.CodeCancelled, Message: CancelledBy(t, 0, nil)}
		}
		e := &flow.Error{Code: flow.CodeCancelled, Message: CancelledBy(t, p.ErrorIndex, p.Error)}
		e.Details, _ = json.Marshal(culprit{t.Name, &p.ErrorIndex, p.Error.Code}) // texts and numbers always have a JSON form
		return e
	}
	return &flow.Error{Code: flow.CodeCancelled, Message: "a task was cancelled"}
}

// culprit are the details of a workflow's error: the task, the index of the child if there is one, and the error code.
type culprit struct {
	Task  string `json:"task"`
	Index *int   `json:"index,omitempty"`
	Code  string `json:"code"`
}

// report sets the workflow's output to the outputs of the only tasks that its rerun runs.
func (k *taking) report() {
	all := make(map[string]any, len(k.w.Reports))
	var err error
	for _, name := range k.w.Reports {
		switch r := k.result(name); {
		case r == nil: // the definition has no such task
		case r.Unread != nil:
			err = r.Unread
		case r.Items != nil:
			all[name] = r.Items
		default:
			all[name] = r.Output
		}
	}
	if err == nil {
		k.plan.Outcome.Output, err = json.Marshal(all)
	}
	if err != nil {
		k.plan.Stage, k.plan.Outcome.Error = flow.Failed, &flow.Error{Code: flow.CodeExpressionError, Message: err.Error()}
	}
}
