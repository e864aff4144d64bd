package api

// EvaluationBatch asks for many runs of code at once. Each gets its own verdict: one that is refused does not stop the others.
type EvaluationBatch struct {
	Evaluations []Evaluation `json:"evaluations" doc:"At most 10,000, together 16 MB; wait is not allowed in them"`
}

// Counts counts executions, by status and by verdict.
type Counts struct {
	Total      int            `json:"total" doc:"Number of executions"`
	Unfinished int            `json:"unfinished" doc:"Executions that have not ended; all of them are counted"`
	More       bool           `json:"more,omitempty" doc:"More than 10,000 match: of the ended ones only the newest were counted"`
	Statuses   map[Status]int `json:"statuses" doc:"Executions by status; a status without executions is absent"`
	Verdicts   map[string]int `json:"verdicts" doc:"Ended executions by verdict: ok, or the error code"`
}

// Outcome is a message in the stream of outcomes: one finished execution, with its output if that was requested.
type Outcome struct {
	Cursor string `json:"cursor" doc:"Value for ?after= to get the outcomes after this one"`
	Execution
}

// OutcomesEnd is the last message of a stream of outcomes: every execution with the label has ended, and its outcome was sent.
type OutcomesEnd struct {
	End    bool   `json:"end" doc:"Always true; marks the end of the stream"`
	Cursor string `json:"cursor" doc:"Value for ?after= to get outcomes of executions submitted later"`
}

// VerdictOK is the verdict of a completed execution. The verdict of any other finished execution is the code of its error.
const VerdictOK = "ok"
