package api

import "encoding/json"

// RerunRequest selects how a rerun differs from its original. If it is empty, all tasks that did not complete run again, and all tasks
// after them.
type RerunRequest struct {
	From []string `json:"from,omitempty" doc:"Tasks to run again although they completed, for example b, b[3] or deploy/verify[3]"`

	Only []string `json:"only,omitempty" doc:"Tasks or items to run alone: earlier results are reused, later tasks are left out"`

	Outputs    map[string]json.RawMessage `json:"outputs,omitempty" doc:"Outputs that replace running a task or item; at most 100, 64 KB"`
	By         string                     `json:"by,omitempty" doc:"Who supplies the outputs"`
	Input      json.RawMessage            `json:"input,omitempty" doc:"New input; default: that of the original"`
	Definition string                     `json:"definition,omitempty" check:"filled" doc:"same (default), latest, or name@version"`
}

// RerunPlan describes a rerun before it starts.
type RerunPlan struct {
	Of      string `json:"of" doc:"Execution to rerun"`
	Action  string `json:"action" doc:"Action of the rerun"`
	Version int    `json:"version,omitempty" doc:"Version of the definition that the rerun uses"`
	Reused  int    `json:"reused" doc:"Task executions whose results are reused"`
	// Status and Error are the end of a rerun in which no task has to run.
	Status Status        `json:"status,omitempty" doc:"Status of the rerun if nothing has to run"`
	Error  *Error        `json:"error,omitempty" doc:"Error of the rerun if nothing has to run"`
	Tasks  []RerunTask   `json:"tasks,omitempty" doc:"Tasks in document order; absent if it is not a workflow"`
	Within []RerunWithin `json:"within,omitempty" doc:"Sub-workflows that a path leads into and that run in part, each after its parent"`
}

// RerunWithin is the plan for the tasks of a sub-workflow.
type RerunWithin struct {
	Path    string      `json:"path" doc:"Path of the sub-workflow, for example deploy[0] or deploy[0]/verify[2]"`
	Of      string      `json:"of" doc:"Execution that it reruns"`
	Action  string      `json:"action" doc:"Action of the sub-workflow"`
	Version int         `json:"version,omitempty" doc:"Version of its definition"`
	Tasks   []RerunTask `json:"tasks" doc:"Tasks in document order"`
}

// RerunTask is the plan for one task.
type RerunTask struct {
	Task     string `json:"task" doc:"Name of the task"`
	Decision string `json:"decision" enum:"reuse,run,partly,skip,break,prevent,give,leave" doc:"Partly: some items run. Give: nothing of it runs, and an output is given. Skip: its condition does not hold. Break: one of its expressions fails. Prevent: the workflow fails before it can start. Leave: it is left out, because the rerun is of other tasks only"`
	Reused   int    `json:"reused,omitempty" doc:"Items whose results are reused"`
	Given    int    `json:"given,omitempty" doc:"Items with a supplied output"`
	Runs     int    `json:"runs,omitempty" doc:"Items that will run, as far as known now"`
	Items    []int  `json:"items,omitempty" doc:"foreach tasks only: first 100 items that will run"`
	Reason   string `json:"reason,omitempty" doc:"Reason; if several items run, that of the first"`
}
