package api

import "time"

// Replay is the result of replaying a history: whether the recorded decisions agree with the rules.
type Replay struct {
	Execution string          `json:"execution" doc:"Execution whose history was replayed"`
	Follows   bool            `json:"follows" doc:"Whether every recorded decision agrees with the rules, so that findings is empty"`
	Events    int             `json:"events" doc:"Number of events replayed"`
	Findings  []ReplayFinding `json:"findings" doc:"Recorded decisions that do not agree with the rules, in order; at most 1,000"`
	Unknown   []ReplayUnknown `json:"unknown" doc:"Parts that the record does not contain and so cannot be checked; at most 1,000"`
	State     ReplayState     `json:"state" doc:"State at the end of the replayed events"`
}

// ReplayFinding is a recorded decision that the rules do not give.
type ReplayFinding struct {
	Seq      int64  `json:"seq,omitempty" doc:"Number of the event; absent if it concerns the whole execution"`
	Task     string `json:"task,omitempty" doc:"Workflows only: task, or item as task[3]"`
	Rules    string `json:"rules" doc:"Decision that the rules give"`
	Recorded string `json:"recorded" doc:"Decision that was recorded"`
	Why      string `json:"why" doc:"Rule that applies, with the values it used"`
}

// ReplayUnknown is a part that is missing from the record.
type ReplayUnknown struct {
	Seq  int64  `json:"seq,omitempty" doc:"Number of the event"`
	Task string `json:"task,omitempty" doc:"Workflows only: task, or item as task[3]"`
	What string `json:"what" doc:"Missing part, and the decisions that depend on it"`
}

// ReplayState is the state of the execution at the end of the replayed history.
type ReplayState struct {
	Seq       int64        `json:"seq" doc:"Number of the latest event"`
	At        time.Time    `json:"at" doc:"Time of that event"`
	Status    Status       `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempt   int          `json:"attempt" doc:"Number of the attempt, from 1"`
	Worker    string       `json:"worker,omitempty" doc:"Worker that has the attempt, or had it last"`
	NotBefore time.Time    `json:"not_before,omitzero" doc:"Earliest start of the attempt, if it waits for a time"`
	Tasks     []ReplayTask `json:"tasks,omitempty" doc:"Workflows only: tasks in the order of the definition"`
	Why       ReplayWhy    `json:"why" doc:"What the execution waited for at that event"`
}

// ReplayWhy is the reason for which an execution waited at an event of its history, as far as it is recorded.
type ReplayWhy struct {
	Waiting  string    `json:"waiting" enum:"nothing,time,rate,retry,key,queue,paused,worker,children,sleep,answer,signal,not known" doc:"What it waited for. Worker: one had it. Not known: nothing that is recorded kept it, and yet its next event came later"`
	Summary  string    `json:"summary" doc:"One sentence"`
	Until    time.Time `json:"until,omitzero" doc:"When the wait would have ended by itself"`
	Queue    string    `json:"queue,omitempty" doc:"Queue in which it waited for a worker"`
	Key      string    `json:"key,omitempty" doc:"Concurrency key"`
	Worker   string    `json:"worker,omitempty" doc:"Worker that had the attempt"`
	Tasks    []string  `json:"tasks,omitempty" doc:"Workflows only: tasks with executions that had not ended"`
	Facts    []string  `json:"facts" doc:"More facts, and which event came next"`
	NotKnown []string  `json:"not_known" doc:"What the record does not contain"`
}

// ReplayTask is the progress of a task.
type ReplayTask struct {
	Task      string `json:"task" doc:"Name of the task"`
	Mark      string `json:"mark,omitempty" doc:"expanded, skipped, cancelled (before its start) or broken (an expression failed)"`
	Total     int    `json:"total,omitempty" doc:"Number of items, once expanded"`
	Started   int    `json:"started,omitempty" doc:"Executions of the task"`
	Open      int    `json:"open,omitempty" doc:"Executions that have not ended"`
	Completed int    `json:"completed,omitempty" doc:"Executions that completed"`
	Failed    int    `json:"failed,omitempty" doc:"Executions that failed"`
	Cancelled int    `json:"cancelled,omitempty" doc:"Executions that were cancelled"`
	TimedOut  int    `json:"timed_out,omitempty" doc:"Executions that timed out"`
}

// ReplayRequest asks where a recorded run would differ under another definition.
type ReplayRequest struct {
	Document string `json:"document" doc:"Other definition, as YAML or JSON; of several documents, the one with the run's name"`
}

// ReplayComparison lists where a recorded run of a workflow would differ under another definition.
type ReplayComparison struct {
	Execution string           `json:"execution" doc:"Execution that was recorded"`
	Status    Status           `json:"status,omitempty" doc:"Status with which it would have ended; absent if unknown"`
	Error     *Error           `json:"error,omitempty" doc:"Why it would not have completed"`
	Alike     bool             `json:"alike" doc:"Whether it would have ended in the same way"`
	Tasks     []ReplayCompared `json:"tasks" doc:"Tasks of the other definition in order, then tasks that only the recorded one has"`
}

// ReplayCompared is the difference for one task.
type ReplayCompared struct {
	Task     string `json:"task" doc:"Name of the task"`
	Change   string `json:"change" enum:"same,differs,input,not known,added,removed" doc:"Differs: it is decided otherwise. Input: it is started and given something else. Not known: it comes after something of which no outcome is recorded"`
	Recorded string `json:"recorded,omitempty" doc:"Recorded decision"`
	Would    string `json:"would,omitempty" doc:"Decision with the other definition"`
	Items    []int  `json:"items,omitempty" doc:"First 100 items with other input"`
	Why      string `json:"why,omitempty" doc:"Cause of the difference"`
}
