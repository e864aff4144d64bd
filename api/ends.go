package api

// EvaluationBatch asks for many runs of code at once. Each gets its own verdict: one that is refused does not stop the others.
type EvaluationBatch struct {
	Evaluations []Evaluation `json:"evaluations" doc:"At most 10,000, in 16 MB together; their wait must not be set"`
}

// Counts counts executions, by where they stand and by what they ended with.
type Counts struct {
	Total      int            `json:"total" doc:"Executions"`
	Unfinished int            `json:"unfinished" doc:"Of them, those that have not ended: all of these are counted"`
	More       bool           `json:"more,omitempty" doc:"There are more than 10,000 with the label: of those that have ended the newest were counted"`
	Statuses   map[Status]int `json:"statuses" doc:"Executions by status; what there is none of is absent"`
	Verdicts   map[string]int `json:"verdicts" doc:"Executions that have ended by verdict: ok, or the code of the error"`
}

// Outcome is what one execution ended with, as the stream of outcomes tells it: a row of a list, with the output where that was
// asked for.
type Outcome struct {
	// Cursor is what to pass as ?after= for the outcomes behind this one.
	Cursor string `json:"cursor" doc:"What to pass as ?after= for the outcomes behind this one"`
	Execution
}

// OutcomesEnd is the last message of a stream of outcomes: everything with the label has ended, and its outcomes were sent.
type OutcomesEnd struct {
	End    bool   `json:"end" doc:"true; no outcome has this field"`
	Cursor string `json:"cursor" doc:"Behind the last outcome: with it, the outcomes of what is submitted later can be asked for"`
}

// VerdictOK is the verdict of what has completed. That of everything else that has ended is the code of its error.
const VerdictOK = "ok"
