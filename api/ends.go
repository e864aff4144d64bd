package api

// EvaluationBatch asks for many runs of code at once. Each gets its own verdict: one that is refused does not stop the others.
type EvaluationBatch struct {
	Evaluations []Evaluation `json:"evaluations" doc:"At most 10,000, together 16 MB; wait is not allowed in them"`
}

// Counts counts executions, by where they stand and by what they ended with.
type Counts struct {
	Total      int            `json:"total" doc:"Number of executions"`
	Unfinished int            `json:"unfinished" doc:"Executions that have not ended; all of them are counted"`
	More       bool           `json:"more,omitempty" doc:"More than 10,000 match: of the ended ones only the newest were counted"`
	Statuses   map[Status]int `json:"statuses" doc:"Executions by status; a status without executions is absent"`
	Verdicts   map[string]int `json:"verdicts" doc:"Ended executions by verdict: ok, or the error code"`
}

// Outcome is what one execution ended with, as the stream of outcomes tells it: a row of a list, with the output where that was
// asked for.
type Outcome struct {
	// Cursor is what to pass as ?after= for the outcomes behind this one.
	Cursor string `json:"cursor" doc:"Value for ?after= to get the outcomes after this one"`
	Execution
}

// OutcomesEnd is the last message of a stream of outcomes: everything with the label has ended, and its outcomes were sent.
type OutcomesEnd struct {
	End    bool   `json:"end" doc:"Always true; marks the end of the stream"`
	Cursor string `json:"cursor" doc:"Value for ?after= to get outcomes of executions submitted later"`
}

// VerdictOK is the verdict of what has completed. That of everything else that has ended is the code of its error.
const VerdictOK = "ok"
