package api

import "encoding/json"

// RerunRequest says how a rerun differs from its original. Empty, what did not complete runs again, with everything after it.
type RerunRequest struct {
	From       []string                   `json:"from,omitempty" doc:"Tasks of a workflow, or items of them as task[3], that run again though they completed; within workflows among its tasks by a path, as deploy/verify[3]"`
	Only       []string                   `json:"only,omitempty" doc:"Tasks of a workflow, or items of them, also by a path, that run alone: what comes before them is reused, what comes after them is left out"`
	Outputs    map[string]json.RawMessage `json:"outputs,omitempty" doc:"Outputs by task, or by item as task[3], also by a path: it ends with that and does not run. 100 at most, with 64 KB together"`
	By         string                     `json:"by,omitempty" doc:"Who gives the outputs"`
	Input      json.RawMessage            `json:"input,omitempty" doc:"Given instead of the original's"`
	Definition string                     `json:"definition,omitempty" check:"filled" doc:"same (default), latest, or name@version"`
}

// RerunPlan is what a rerun does, before anything happens.
type RerunPlan struct {
	Of      string `json:"of" doc:"The execution that is run again"`
	Action  string `json:"action" doc:"That the rerun runs"`
	Version int    `json:"version,omitempty" doc:"Of the definition that the rerun runs on"`
	Reused  int    `json:"reused" doc:"Executions of tasks whose outcomes are reused"`
	// Status and Error are how the rerun ends when nothing of it runs.
	Status Status      `json:"status,omitempty" doc:"How the rerun ends, where nothing of it runs"`
	Error  *Error      `json:"error,omitempty" doc:"Why it did not complete"`
	Tasks  []RerunTask `json:"tasks,omitempty" doc:"In the order of the document; absent where nothing can be reused, because it is no workflow"`
	// Within are the workflows beneath it into which paths lead.
	Within []RerunWithin `json:"within,omitempty" doc:"The workflows among its tasks, and among theirs, of which parts run again, because a path leads into them; each behind the one that it is a task of"`
}

// RerunWithin is what a rerun does about the tasks of a workflow beneath it.
type RerunWithin struct {
	Path    string      `json:"path" doc:"Of the workflow: deploy[0], or deploy[0]/verify[2]"`
	Of      string      `json:"of" doc:"The execution that it runs again"`
	Action  string      `json:"action" doc:"That it runs"`
	Version int         `json:"version,omitempty" doc:"Of its definition"`
	Tasks   []RerunTask `json:"tasks" doc:"In the order of its document"`
}

// RerunTask is what a rerun does about one task.
type RerunTask struct {
	Task     string `json:"task" doc:"Its name"`
	Decision string `json:"decision" enum:"reuse,run,partly,skip,break,prevent,give,leave" doc:"Partly: some items run. Give: nothing of it runs, and an output is given. Skip: its condition does not hold. Break: one of its expressions fails. Prevent: the workflow fails before it can start. Leave: it is left out, because the rerun is of other tasks only"`
	Reused   int    `json:"reused,omitempty" doc:"Its items whose outcomes are reused"`
	Given    int    `json:"given,omitempty" doc:"Its items that end with an output that is given"`
	Runs     int    `json:"runs,omitempty" doc:"Its items that run, as far as that is known before what it needs has ended"`
	Items    []int  `json:"items,omitempty" doc:"Of a foreach: the first 100 items that run"`
	Reason   string `json:"reason,omitempty" doc:"Why; of several items that run, of the first"`
}
