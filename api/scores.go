package api

// Scores counts the passed evaluations with a label, in groups by the values of other labels.
type Scores struct {
	Groups []Score `json:"groups" doc:"One for each combination of values of the labels in by; without by one for all"`
	Open   bool    `json:"open,omitempty" doc:"Some evaluations with the label have not ended; they are not counted"`
	More   bool    `json:"more,omitempty" doc:"At least 100,000 have ended: only the first of them were counted"`
}

// Score is the result of one group. A retried evaluation counts only by its retry, once that has ended.
type Score struct {
	Labels   map[string]string `json:"labels,omitempty" doc:"Values of the labels in by; a label that the evaluations do not have is absent"`
	Judged   int               `json:"judged" doc:"Evaluations with a verdict about the program"`
	Passed   int               `json:"passed" doc:"Those with the verdict ok"`
	Accuracy float64           `json:"accuracy" doc:"passed / judged; 0 if nothing was judged"`
	// Unjudged evaluations do not count as failed: the sandbox broke, or the evaluation was cancelled.
	Unjudged int            `json:"unjudged,omitempty" doc:"Evaluations that ended without a verdict about the program; counted nowhere else"`
	Tasks    int            `json:"tasks,omitempty" doc:"Number of values of the label that names the task"`
	Untasked int            `json:"untasked,omitempty" doc:"Judged evaluations without that label; they are not part of pass_at"`
	PassAt   []PassAt       `json:"pass_at,omitempty" doc:"Estimates of pass@k; a k is absent if a task has fewer judged evaluations"`
	Verdicts map[string]int `json:"verdicts" doc:"Ended evaluations by verdict"`
}

// PassAt is the probability that one of k programs of a task passes, as the mean over the tasks.
type PassAt struct {
	K     int     `json:"k" doc:"Number of programs per task"`
	Value float64 `json:"value" doc:"Unbiased estimate, 0 to 1"`
}

// The bounds of scores.
const (
	ScoresReach  = 100_000
	ScoresGroups = 1000
	ScoresLabels = 4
	ScoresPassAt = 20 // number of values of k
	MaxPassAt    = 10_000
)
