package api

import "time"

// Tasks is the progress of the tasks of a workflow execution, in the order of the definition.
type Tasks struct {
	Workflow string `json:"workflow" doc:"ID of the workflow execution"`
	Status   Status `json:"status" doc:"Status of the workflow execution"`
	Attempt  int    `json:"attempt" doc:"Attempt of the workflow execution"`
	Tasks    []Task `json:"tasks" doc:"In the order of the definition"`
}

// TaskChanges lists the tasks that have changed since the previous message, within the same attempt of a workflow.
type TaskChanges struct {
	Status  Status       `json:"status" doc:"Status of the workflow"`
	Attempt int          `json:"attempt"`
	Tasks   []TaskChange `json:"tasks"`
}

// TaskChange is the current state of one task.
type TaskChange struct {
	Place int  `json:"place" doc:"Position in the list of tasks, from 0"`
	Task  Task `json:"task"`
}

// TaskItems is a page of the executions of one task, in the order of their index.
type TaskItems struct {
	Workflow   string     `json:"workflow" doc:"ID of the workflow execution"`
	Attempt    int        `json:"attempt" doc:"Attempt of the workflow execution"`
	Task       string     `json:"task" doc:"Name of the task"`
	Since      time.Time  `json:"since" doc:"Creation time of the workflow; times of the items are milliseconds after it"`
	Items      []TaskItem `json:"items" doc:"In the order of their index"`
	NextCursor string     `json:"next_cursor,omitempty" doc:"Cursor of the next page; absent on the last. A filtered page may be empty"`
}

// TaskItem is one execution of a task, in few bytes, since a task may have 10,000.
type TaskItem struct {
	Index      int    `json:"index" doc:"Index of the item, from 0"`
	ID         string `json:"id" doc:"Id of the execution; begins with ex_"`
	Status     Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempt    int    `json:"attempt" doc:"Number of the attempt, from 1"`
	CreatedMS  int64  `json:"created_ms" doc:"Creation time, in milliseconds after since"`
	ClaimedMS  *int64 `json:"claimed_ms,omitempty" doc:"Claim of this attempt, in milliseconds after since"`
	StartedMS  *int64 `json:"started_ms,omitempty" doc:"Start of the first attempt, in milliseconds after since"`
	FinishedMS *int64 `json:"finished_ms,omitempty" doc:"End, in milliseconds after since; absent if it has not ended"`
	Given      bool   `json:"given,omitempty" doc:"It did not run: its output was supplied for a rerun"`
	Cached     bool   `json:"cached,omitempty" doc:"It did not run: a cached result was used"`
	Reused     bool   `json:"reused,omitempty" doc:"It did not run: the result of the original execution was reused"`
}

// The statuses that a task has in addition to those of executions.
const (
	TaskPending Status = "pending" // a task that it needs has not ended
	TaskSkipped Status = "skipped" // its condition was false
)

// Task is one task of a workflow and its executions so far.
type Task struct {
	Name    string   `json:"name" doc:"Name in the workflow"`
	Needs   []string `json:"needs,omitempty" doc:"Tasks that must end before this one"`
	Action  string   `json:"action" doc:"Action that its executions run"`
	Foreach bool     `json:"foreach,omitempty" doc:"Whether it runs once for each item of a list"`
	// Repeat is the largest number of rounds of a task with a repeat; 0: the task has no repeat. Its executions are its rounds; the first
	// round has index 0.
	Repeat int `json:"repeat,omitempty" doc:"Most rounds of a repeated task; round n is the execution with index n-1"`
	// Status is pending, skipped, or the status of the only execution. For a foreach task it is a summary: running while any item is
	// unfinished, else the worst status of the items. A task with a repeat is running until it is decided that no further round follows.
	Status     Status         `json:"status" enum:"pending,skipped,requested,scheduled,provisioning,running,completed,failed,cancelled,timed_out" doc:"pending before what it needs has ended, skipped when its condition was false, else that of its executions: running while any is open, then the worst"`
	Total      int            `json:"total,omitempty" doc:"foreach tasks only: number of items, once known"`
	Created    int            `json:"created,omitempty" doc:"Executions that exist"`
	Ended      int            `json:"ended,omitempty" doc:"Executions that have ended"`
	Counts     map[Status]int `json:"counts,omitempty" doc:"Executions by status"`
	Given      int            `json:"given,omitempty" doc:"Executions that did not run because their output was supplied for a rerun"`
	Cached     int            `json:"cached,omitempty" doc:"Executions that did not run because a cached result was used"`
	Reused     int            `json:"reused,omitempty" doc:"Executions that did not run because the result of the original was reused"`
	Error      *Error         `json:"error,omitempty" doc:"Why it could not start"`
	StartedAt  time.Time      `json:"started_at,omitzero" doc:"When its first execution began to run"`
	FinishedAt time.Time      `json:"finished_at,omitzero" doc:"When its last execution ended"`
	// Executions are in the order of their index. If a foreach or repeat has many, only the unfinished and the latest are listed: at most
	// ?items= (100 by default; with 0 only tasks with at most one execution list it), and fewer if the foreach tasks of the workflow would
	// list more than 20,000 together. More means that there are others; GET …/tasks/{task}/items lists them all.
	Executions []TaskExecution `json:"executions,omitempty" doc:"By index; if there are many, the unfinished and the latest"`
	More       bool            `json:"more,omitempty" doc:"More executions exist than are listed here; counts and times cover all of them"`
}

// Many reports whether the task can have more than one execution: items of a foreach, or rounds of a repeat.
func (t *Task) Many() bool { return t.Foreach || t.Repeat > 0 }

// Most is the number of executions that the task will have, 0 if not known; for a repeat it is the maximum.
func (t *Task) Most() int { return max(t.Total, t.Repeat) }

// TaskExecution is one execution of a task.
type TaskExecution struct {
	ID         string    `json:"id" doc:"Id of the execution; begins with ex_"`
	Index      int       `json:"index" doc:"Index of the item, from 0"`
	Status     Status    `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Kind       string    `json:"kind,omitempty" doc:"Kind of work, for example code, http or workflow, or the name of a handler"`
	Attempt    int       `json:"attempt" doc:"Number of the attempt, from 1"`
	CreatedAt  time.Time `json:"created_at,omitzero" doc:"When it was created"`
	ClaimedAt  time.Time `json:"claimed_at,omitzero" doc:"When the attempt was handed to its worker"`
	StartedAt  time.Time `json:"started_at,omitzero" doc:"When the first attempt began to run"`
	FinishedAt time.Time `json:"finished_at,omitzero" doc:"When it ended"`
	WakeAt     time.Time `json:"wake_at,omitzero" doc:"End of a sleep, or of the delay before the next attempt"`
	Given      bool      `json:"given,omitempty" doc:"It did not run: its output was supplied for a rerun"`
	Cached     bool      `json:"cached,omitempty" doc:"It did not run: a cached result was used"`
	Reused     bool      `json:"reused,omitempty" doc:"It did not run: the result of the original execution was reused"`
}
