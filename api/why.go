package api

import "time"

// Why says what an execution waits for and what would let it continue.
type Why struct {
	ID      string   `json:"id" doc:"Id of the execution; begins with ex_"`
	Status  Status   `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempt int      `json:"attempt" doc:"Number of the attempt, from 1"`
	Summary string   `json:"summary" doc:"Why the execution waits, in one sentence"`
	Facts   []string `json:"facts" doc:"More facts, one sentence each"`
	Unblock []Advice `json:"unblock" doc:"Actions that would let it continue; one of them is enough"`
	// Action, Kind, Task, Index and Workflow identify the execution.
	Action   string `json:"action" doc:"Action of the execution"`
	Kind     string `json:"kind,omitempty" doc:"Kind of the action"`
	Task     string `json:"task,omitempty" doc:"Name of the task in its workflow"`
	Index    int    `json:"index,omitempty" doc:"Item or round of that task, from 0"`
	Workflow string `json:"workflow,omitempty" doc:"ID of the workflow execution that this is a task of"`
	Waiting  string `json:"waiting" doc:"queue, key, rate, time, retry, worker, children, sleep, answer, signal, paused, cancel, nothing"`
	Position int    `json:"position,omitempty" doc:"Place in the line, from 1"`
	PlaceOf  string `json:"place_of,omitempty" enum:"queue,key" doc:"Line that position refers to: that of its queue, or of its key"`
	Queue    string `json:"queue,omitempty" doc:"Queue in which it waits for a worker"`
	Handler  string `json:"handler,omitempty" doc:"Handler that a worker needs to run it"`
	Runtime  string `json:"runtime,omitempty" doc:"Runtime that a worker needs to run it"`
	// WorkerLabels are labels that a worker must have to run it.
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"Labels that a worker must have to run it"`
	Key          string            `json:"key,omitempty" doc:"Concurrency key that it waits for"`
	KeyLimit     int               `json:"key_limit,omitempty" doc:"Executions that may hold the key at the same time"`
	Holders      []string          `json:"holders,omitempty" doc:"Executions that hold the key"`
	SelfHeld     bool              `json:"self_held,omitempty" doc:"Its own workflow holds the key, so it may wait forever"`
	Until        time.Time         `json:"until,omitzero" doc:"When the wait ends, if known"`
	Worker       string            `json:"worker,omitempty" doc:"Session of the worker that holds the attempt; begins with ws_"`
	LeaseUntil   time.Time         `json:"lease_until,omitzero" doc:"When the worker's lease ends unless it is renewed"`
	Deadlines    []Deadline        `json:"deadlines,omitempty" doc:"Time limits that will end something, earliest first"`
	Open         map[Status]int    `json:"open,omitempty" doc:"Workflows only: unfinished tasks by status"`
	Workers      int               `json:"workers,omitempty" doc:"Live workers that could run it"`
	Slots        int               `json:"slots,omitempty" doc:"Slots of these workers"`

	Lacking []LackingWorker `json:"lacking,omitempty" doc:"Up to 10 live workers of its queue that cannot run it, and what each lacks"`

	// Root is set for a workflow: the task that causes its wait, searched down through sub-workflows.
	Root    string      `json:"root,omitempty" doc:"Workflows only: task that causes the wait, searched down through sub-workflows"`
	Inquiry string      `json:"inquiry,omitempty" doc:"Question whose answer it waits for"`
	Paused  *PausedPart `json:"paused,omitempty" doc:"Queue, worker or action whose pause it waits out"`
}

// Advice is one action that would let an execution, schedule or rule continue.
type Advice struct {
	Text string `json:"text" doc:"One sentence, independent of any client program"`
	// Do, Kind and Name identify the API operation that does it.
	Do      string `json:"do,omitempty" enum:"resume,answer,cancel,why,retry" doc:"API operation that does it"`
	Kind    string `json:"kind,omitempty" enum:"execution,question,queue,worker,action,schedule,rule" doc:"Kind of the object"`
	Name    string `json:"name,omitempty" doc:"ID or name of that object"`
	Command string `json:"command,omitempty" doc:"Command line that does it"`
}

// String returns the text with the command for it, as pawl why shows it.
func (a Advice) String() string {
	if a.Command == "" {
		return a.Text
	}
	return a.Text + ": " + a.Command
}

// PausedPart names a paused object.
type PausedPart struct {
	Kind string `json:"kind" enum:"queue,worker,action" doc:"Kind of the paused object"`
	Name string `json:"name" doc:"Name of the queue, worker or action"`
}

// Deadline is the time at which a timeout or a pause expires.
type Deadline struct {
	Of string    `json:"of" enum:"timeout,queue_timeout,total_timeout,gap" doc:"Limit; gap: an expected event did not arrive"`
	At time.Time `json:"at" doc:"When the limit is reached"`
}

// LackingWorker is a worker that does not meet all needs of an execution.
type LackingWorker struct {
	Worker string   `json:"worker" doc:"Name of the worker"`
	Lacks  []string `json:"lacks" doc:"What it lacks, in words"`
}

// WhyLimit is the largest number of executions in one request.
const WhyLimit = 100

// WhyRequest asks what executions wait for.
type WhyRequest struct {
	IDs []string `json:"ids" doc:"At most 100 executions"`
}

// WhyResult answers a WhyRequest.
type WhyResult struct {
	Executions []WhyEntry `json:"executions" doc:"Answers in the order of the request"`
}

// WhyEntry says what one execution waits for, or why this could not be answered.
type WhyEntry struct {
	Why     *Why     `json:"why,omitempty" doc:"What the execution waits for"`
	Problem *Problem `json:"problem,omitempty" doc:"Why this could not be answered"`
}
