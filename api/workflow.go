package api

import "time"

// Tasks is how far the tasks of a workflow execution are, in the order of the definition.
type Tasks struct {
	Workflow string `json:"workflow" doc:"Id of the workflow's execution"`
	Status   Status `json:"status" doc:"Of the workflow's execution"`
	Attempt  int    `json:"attempt" doc:"Of the workflow's execution"`
	Tasks    []Task `json:"tasks" doc:"In the order of the definition"`
}

// TaskChanges is what has changed since the message before, of the tasks of the same attempt of a workflow.
type TaskChanges struct {
	Status  Status       `json:"status" doc:"Of the workflow"`
	Attempt int          `json:"attempt"`
	Tasks   []TaskChange `json:"tasks"`
}

// TaskChange is a task as it is now.
type TaskChange struct {
	Place int  `json:"place" doc:"In the list of tasks, from 0"`
	Task  Task `json:"task"`
}

// TaskItems is a page of the executions of one task, in the order of their index.
type TaskItems struct {
	Workflow   string     `json:"workflow" doc:"Id of the workflow"`
	Attempt    int        `json:"attempt" doc:"Of the workflow"`
	Task       string     `json:"task" doc:"Name of the task"`
	Since      time.Time  `json:"since" doc:"When the workflow was created: the times of the items are milliseconds since then"`
	Items      []TaskItem `json:"items" doc:"In the order of their index"`
	NextCursor string     `json:"next_cursor,omitempty" doc:"Absent: this is the last page. A page of few statuses may be empty and have one"`
}

// TaskItem is one execution of a task, in few bytes: a task may have 10,000.
type TaskItem struct {
	Index      int    `json:"index" doc:"Index of the item, from 0"`
	ID         string `json:"id" doc:"Id of the execution; begins with ex_"`
	Status     Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempt    int    `json:"attempt" doc:"Number of the attempt, from 1"`
	CreatedMS  int64  `json:"created_ms" doc:"When it was created"`
	ClaimedMS  *int64 `json:"claimed_ms,omitempty" doc:"Of this attempt"`
	StartedMS  *int64 `json:"started_ms,omitempty" doc:"Of the first attempt"`
	FinishedMS *int64 `json:"finished_ms,omitempty" doc:"When it ended; absent: it has not"`
	Given      bool   `json:"given,omitempty" doc:"It did not run: somebody has given its output"`
	Cached     bool   `json:"cached,omitempty" doc:"It did not run: it ended with an outcome that was kept"`
	Reused     bool   `json:"reused,omitempty" doc:"It did not run: it ended with the outcome of an execution of the original"`
}

// The statuses of a task beside those of its executions.
const (
	TaskPending Status = "pending" // what it needs has not ended
	TaskSkipped Status = "skipped" // its condition was false
)

// Task is one task of a workflow and the executions that it has so far.
type Task struct {
	Name    string   `json:"name" doc:"In the workflow"`
	Needs   []string `json:"needs,omitempty" doc:"Tasks that it waits for"`
	Action  string   `json:"action" doc:"What its executions run"`
	Foreach bool     `json:"foreach,omitempty" doc:"It has an execution for each item of a list"`
	// Repeat is how many rounds a task with a repeat has at most; 0: it has none. Its executions are its rounds, the first of index 0.
	Repeat int `json:"repeat,omitempty" doc:"Of a task that runs in rounds, how many there are at most; round n is the execution with index n-1"`
	// Status is pending or skipped, that of its only execution, or for a foreach task a summary: running while any item
	// is open, else the worst of its items. Of a repeat it is running until it is decided that there is no further round.
	Status     Status         `json:"status" enum:"pending,skipped,requested,scheduled,provisioning,running,completed,failed,cancelled,timed_out" doc:"pending before what it needs has ended, skipped when its condition was false, else that of its executions: running while any is open, then the worst"`
	Total      int            `json:"total,omitempty" doc:"Items of a foreach task, once known"`
	Created    int            `json:"created,omitempty" doc:"Executions that exist"`
	Ended      int            `json:"ended,omitempty" doc:"Executions that have ended"`
	Counts     map[Status]int `json:"counts,omitempty" doc:"Executions by status"`
	Given      int            `json:"given,omitempty" doc:"Executions that did not run: the task is one of a rerun, and somebody has given their outputs"`
	Cached     int            `json:"cached,omitempty" doc:"Executions that did not run: the task has a cache, and their outcomes were kept"`
	Reused     int            `json:"reused,omitempty" doc:"Executions that did not run: the task is one of a rerun, and reuses their outcomes"`
	Error      *Error         `json:"error,omitempty" doc:"Why it could not start"`
	StartedAt  time.Time      `json:"started_at,omitzero" doc:"When the first of its executions began to run"`
	FinishedAt time.Time      `json:"finished_at,omitzero" doc:"When the last of its executions ended"`
	// Executions are in the order of their index; of a long foreach or repeat only the open ones and the latest are here,
	// as many as ?items= allows (100 by default; with 0 only tasks that have no more than one list it), and fewer where
	// the foreach tasks of the workflow would have more than 20,000 together. More says that there are others; GET
	// …/tasks/{task}/items lists them all.
	Executions []TaskExecution `json:"executions,omitempty" doc:"In the order of their index; of many, the open ones and the latest"`
	More       bool            `json:"more,omitempty" doc:"There are executions of the task that are not listed here; the counts and times are of all"`
}

// Many reports whether the task can have more executions than one: items of a foreach, or rounds of a repeat.
func (t *Task) Many() bool { return t.Foreach || t.Repeat > 0 }

// Most is how many executions the task has in the end, as far as that is known: 0 where it is not, and of a repeat at most.
func (t *Task) Most() int { return max(t.Total, t.Repeat) }

// TaskExecution is one execution of a task.
type TaskExecution struct {
	ID         string    `json:"id" doc:"Id of the execution; begins with ex_"`
	Index      int       `json:"index" doc:"Index of the item, from 0"`
	Status     Status    `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Kind       string    `json:"kind,omitempty" doc:"What runs it: code, container, http, llm, input, output, sleep, ask, wait, noop, workflow, or the name of a handler"`
	Attempt    int       `json:"attempt" doc:"Number of the attempt, from 1"`
	CreatedAt  time.Time `json:"created_at,omitzero" doc:"When it was created"`
	ClaimedAt  time.Time `json:"claimed_at,omitzero" doc:"When the attempt was handed to its worker"`
	StartedAt  time.Time `json:"started_at,omitzero" doc:"When its first attempt began to run"`
	FinishedAt time.Time `json:"finished_at,omitzero" doc:"When it ended"`
	WakeAt     time.Time `json:"wake_at,omitzero" doc:"End of the wait before the next attempt, or of a sleep"`
	Given      bool      `json:"given,omitempty" doc:"It did not run: somebody has given its output"`
	Cached     bool      `json:"cached,omitempty" doc:"It did not run: it ended with an outcome that was kept"`
	Reused     bool      `json:"reused,omitempty" doc:"It did not run: it ended with the outcome of an execution of the original"`
}
