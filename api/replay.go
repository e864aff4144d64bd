package api

import "time"

// Replay says whether a recorded history follows from the rules.
type Replay struct {
	Execution string          `json:"execution" doc:"Whose history it is"`
	Follows   bool            `json:"follows" doc:"Whether everything that is known follows from the rules: there are no findings"`
	Events    int             `json:"events" doc:"That were replayed"`
	Findings  []ReplayFinding `json:"findings" doc:"What was recorded and does not follow, in the order of the history; at most 1,000"`
	Unknown   []ReplayUnknown `json:"unknown" doc:"What the record does not hold, so that nothing follows about it; at most 1,000"`
	State     ReplayState     `json:"state" doc:"Where the replayed part of the history leads"`
}

// ReplayFinding is a recorded decision that does not follow from the rules.
type ReplayFinding struct {
	Seq      int64  `json:"seq,omitempty" doc:"Number of the event; absent where it is about the execution as a whole"`
	Task     string `json:"task,omitempty" doc:"Of a workflow: the task, or the item of it as task[3]"`
	Rules    string `json:"rules" doc:"What follows from the rules"`
	Recorded string `json:"recorded" doc:"What was recorded instead"`
	Why      string `json:"why" doc:"Which rule it is, with the values that it was decided by"`
}

// ReplayUnknown is something that the record does not hold.
type ReplayUnknown struct {
	Seq  int64  `json:"seq,omitempty" doc:"Number of the event that it is about"`
	Task string `json:"task,omitempty" doc:"Of a workflow: the task, or the item of it as task[3]"`
	What string `json:"what" doc:"What is missing, and what depends on it"`
}

// ReplayState is where a history leads.
type ReplayState struct {
	Seq       int64        `json:"seq" doc:"Number of the latest event"`
	At        time.Time    `json:"at" doc:"Its time"`
	Status    Status       `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempt   int          `json:"attempt" doc:"Number of the attempt, from 1"`
	Worker    string       `json:"worker,omitempty" doc:"That has, or had last, the attempt"`
	NotBefore time.Time    `json:"not_before,omitzero" doc:"When the attempt may begin, where it waits for its time"`
	Tasks     []ReplayTask `json:"tasks,omitempty" doc:"Of a workflow, in the order of its definition"`
	Why       ReplayWhy    `json:"why" doc:"What it waited for at that event"`
}

// ReplayWhy is what an execution waited for at an event of its history, as far as the record says.
type ReplayWhy struct {
	Waiting  string    `json:"waiting" enum:"nothing,time,rate,retry,key,queue,paused,worker,children,sleep,answer,signal,rerun,not known" doc:"What it waited for. Worker: one had it. Not known: nothing that is recorded kept it, and yet its next event came later"`
	Summary  string    `json:"summary" doc:"One sentence"`
	Until    time.Time `json:"until,omitzero" doc:"When the wait would have ended by itself"`
	Queue    string    `json:"queue,omitempty" doc:"Where it waits for a worker"`
	Key      string    `json:"key,omitempty" doc:"Its concurrency key"`
	Worker   string    `json:"worker,omitempty" doc:"That had the attempt"`
	Tasks    []string  `json:"tasks,omitempty" doc:"Of a workflow, those with executions that had not ended"`
	Facts    []string  `json:"facts" doc:"What is known beside that, and which event came next"`
	NotKnown []string  `json:"not_known" doc:"What the record does not hold"`
}

// ReplayTask is how far a task was.
type ReplayTask struct {
	Task      string `json:"task" doc:"Its name"`
	Mark      string `json:"mark,omitempty" doc:"expanded, skipped, cancelled (before it could start) or broken (an expression failed)"`
	Total     int    `json:"total,omitempty" doc:"Items, of one that was expanded"`
	Started   int    `json:"started,omitempty" doc:"Executions of it"`
	Open      int    `json:"open,omitempty" doc:"Of them, not ended"`
	Completed int    `json:"completed,omitempty" doc:"Of them, completed"`
	Failed    int    `json:"failed,omitempty" doc:"Of them, failed"`
	Cancelled int    `json:"cancelled,omitempty" doc:"Of them, cancelled"`
	TimedOut  int    `json:"timed_out,omitempty" doc:"Of them, timed out"`
}

// ReplayRequest asks where a recorded run would have gone another way.
type ReplayRequest struct {
	Document string `json:"document" doc:"The other definition, as YAML or JSON; of several documents the one with the run's name"`
}

// ReplayComparison is where a recorded run of a workflow would have gone another way under another definition.
type ReplayComparison struct {
	Execution string           `json:"execution" doc:"The recorded run"`
	Status    Status           `json:"status,omitempty" doc:"How it would have ended; absent where that is not known"`
	Error     *Error           `json:"error,omitempty" doc:"Why it did not complete"`
	Alike     bool             `json:"alike" doc:"Whether it would have ended as it did"`
	Tasks     []ReplayCompared `json:"tasks" doc:"In the order of the other definition; tasks that it does not have come last"`
}

// ReplayCompared is what becomes of one task under another definition.
type ReplayCompared struct {
	Task     string `json:"task" doc:"Its name"`
	Change   string `json:"change" enum:"same,differs,input,not known,added,removed" doc:"Differs: it is decided otherwise. Input: it is started and given something else. Not known: it comes after something of which no outcome is recorded"`
	Recorded string `json:"recorded,omitempty" doc:"What was decided about it"`
	Would    string `json:"would,omitempty" doc:"What would be"`
	Items    []int  `json:"items,omitempty" doc:"The first 100 items that are given something else"`
	Why      string `json:"why,omitempty" doc:"What makes the difference"`
}
