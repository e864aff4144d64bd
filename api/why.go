package api

import "time"

// Why tells what an execution is waiting for and what would unblock it.
type Why struct {
	ID      string   `json:"id" doc:"Id of the execution; begins with ex_"`
	Status  Status   `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempt int      `json:"attempt" doc:"Number of the attempt, from 1"`
	Summary string   `json:"summary" doc:"The reason for which it waits, in a sentence"`
	Facts   []string `json:"facts" doc:"More about it, a sentence each"`
	Unblock []Advice `json:"unblock" doc:"What would let it go on; one of them is enough"`
	// Action, Kind, Task, Index and Workflow say what the execution is.
	Action   string `json:"action" doc:"What it is an execution of"`
	Kind     string `json:"kind,omitempty" doc:"What kind that is"`
	Task     string `json:"task,omitempty" doc:"Of its workflow"`
	Index    int    `json:"index,omitempty" doc:"Of the item or round of that task, from 0"`
	Workflow string `json:"workflow,omitempty" doc:"The execution that it is a task of"`
	Waiting  string `json:"waiting" doc:"queue, key, rate, time, retry, worker, children, sleep, answer, signal, paused, cancel, nothing"`
	Position int    `json:"position,omitempty" doc:"Its place in line, from 1"`
	PlaceOf  string `json:"place_of,omitempty" enum:"queue,key" doc:"What position is a place in: the line of its queue, or of its key"`
	Queue    string `json:"queue,omitempty" doc:"Where it waits for a worker"`
	Handler  string `json:"handler,omitempty" doc:"What a worker of the queue must have to run it"`
	Runtime  string `json:"runtime,omitempty" doc:"What a worker of the queue must have to run it"`
	// WorkerLabels are those that a worker must have to run it.
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"Labels that a worker must have to be given it"`
	Key          string            `json:"key,omitempty" doc:"The concurrency key that it waits for"`
	KeyLimit     int               `json:"key_limit,omitempty" doc:"How many executions may hold the key"`
	Holders      []string          `json:"holders,omitempty" doc:"Executions that hold the key"`
	SelfHeld     bool              `json:"self_held,omitempty" doc:"The workflow that it is a task of holds the key itself: it may wait for ever"`
	Until        time.Time         `json:"until,omitzero" doc:"When the wait ends, where that is known"`
	Worker       string            `json:"worker,omitempty" doc:"Session of the worker that holds the attempt; begins with ws_"`
	LeaseUntil   time.Time         `json:"lease_until,omitzero" doc:"When the lease of its worker runs out, unless that renews it"`
	Deadlines    []Deadline        `json:"deadlines,omitempty" doc:"Moments at which something ends by itself, the earliest first"`
	Open         map[Status]int    `json:"open,omitempty" doc:"Of a workflow: how many of its tasks are open, by status"`
	Workers      int               `json:"workers,omitempty" doc:"Live workers that could take it"`
	Slots        int               `json:"slots,omitempty" doc:"Of these workers"`
	Lacking      []LackingWorker   `json:"lacking,omitempty" doc:"Live workers of its queue that could not take it, and what they lack; at most 10"`
	// Root is, of a workflow, the task that its own wait goes back to, down through workflows that are tasks.
	Root string `json:"root,omitempty" doc:"Of a workflow: the task that its wait goes back to, down through workflows that are tasks"`
	// Inquiry is the question whose answer it waits for.
	Inquiry string `json:"inquiry,omitempty" doc:"The question whose answer it waits for"`
	// Paused is the queue, worker or action that it waits to be resumed.
	Paused *PausedPart `json:"paused,omitempty" doc:"The queue, worker or action that it waits to be resumed"`
}

// Advice is one thing that would let an execution, schedule or rule go on.
type Advice struct {
	Text string `json:"text" doc:"In a sentence, without the words of any program"`
	// Do, Kind and Name are the order, or the look, that the API has for it.
	Do      string `json:"do,omitempty" enum:"resume,answer,cancel,why,retry" doc:"What can be asked of the API for it"`
	Kind    string `json:"kind,omitempty" enum:"execution,question,queue,worker,action,schedule,rule" doc:"What that is asked of"`
	Name    string `json:"name,omitempty" doc:"The id or name of that"`
	Command string `json:"command,omitempty" doc:"The command line that does it"`
}

// String has the command behind the text, as pawl why shows it.
func (a Advice) String() string {
	if a.Command == "" {
		return a.Text
	}
	return a.Text + ": " + a.Command
}

// PausedPart names something that is paused.
type PausedPart struct {
	Kind string `json:"kind" enum:"queue,worker,action" doc:"What is paused"`
	Name string `json:"name" doc:"Of the queue, worker or action"`
}

// Deadline is a moment at which something ends by itself.
type Deadline struct {
	Of string    `json:"of" enum:"timeout,queue_timeout,total_timeout,gap" doc:"Which limit it is of; gap: an event of the attempt has not come"`
	At time.Time `json:"at" doc:"When it is"`
}

// LackingWorker is a worker that does not have all that an execution needs.
type LackingWorker struct {
	Worker string   `json:"worker" doc:"Its name"`
	Lacks  []string `json:"lacks" doc:"What it does not have, in words"`
}

// WhyLimit is how many executions one request may ask about.
const WhyLimit = 100

// WhyRequest asks what executions wait for.
type WhyRequest struct {
	IDs []string `json:"ids" doc:"At most 100 executions"`
}

// WhyResult answers a WhyRequest.
type WhyResult struct {
	Executions []WhyEntry `json:"executions" doc:"In the order of the request"`
}

// WhyEntry is what one execution waits for, or why that cannot be said.
type WhyEntry struct {
	Why     *Why     `json:"why,omitempty" doc:"What it waits for"`
	Problem *Problem `json:"problem,omitempty" doc:"Why that cannot be said"`
}
