package api

import (
	"encoding/json"
	"slices"
	"time"
)

// Status is the state of an execution. See docs/states.md for the transitions.
type Status string

// The statuses in order. The last four are final.
const (
	Requested    Status = "requested"
	Scheduled    Status = "scheduled"
	Provisioning Status = "provisioning"
	Running      Status = "running"
	Completed    Status = "completed"
	Failed       Status = "failed"
	Cancelled    Status = "cancelled"
	TimedOut     Status = "timed_out"
)

// Statuses lists every status in order.
func Statuses() []Status {
	return []Status{Requested, Scheduled, Provisioning, Running, Completed, Failed, Cancelled, TimedOut}
}

// Terminal reports whether s is final.
func (s Status) Terminal() bool {
	return slices.Index(Statuses(), s) >= slices.Index(Statuses(), Completed)
}

// Submission asks for one execution.
type Submission struct {
	// Action is a registered name ("grade", or "grade@3" for a version), or a built-in kind for ad-hoc work: "code", "container", "http",
	// "llm", "webhook", "sleep", "noop".
	Action string          `json:"action" doc:"Registered name, name@version, name@alias, or a built-in kind"`
	Input  json.RawMessage `json:"input,omitempty" doc:"Input of the action; the action's schema checks it"`

	Queue string `json:"queue,omitempty" check:"filled" doc:"Queue in which it waits for a worker; default: that of the action"`

	Priority *int              `json:"priority,omitempty" doc:"-1000 to 1000; higher goes first; default: that of the action"`
	Labels   map[string]string `json:"labels,omitempty" doc:"Labels by name; lists, counts and waits can select by them"`
	// WorkerLabels are labels that a worker must have to run the execution. They are added to those of the action; a label with the same key
	// replaces the action's.
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"Labels that a worker must have to run it"`

	Timeout      Duration `json:"timeout,omitempty" check:"positive" doc:"Time limit of one attempt, counted from its claim by a worker"`
	QueueTimeout Duration `json:"queue_timeout,omitempty" check:"positive" doc:"Longest time that an attempt may wait for a worker"`
	TotalTimeout Duration `json:"total_timeout,omitempty" check:"positive" doc:"Time limit for all attempts together"`
	Retry        *Retry   `json:"retry,omitempty" doc:"When a failed attempt is repeated"`

	Concurrency *Concurrency `json:"concurrency,omitempty" doc:"Ad-hoc work only: registered actions bring their own"`
	Rate        *Rate        `json:"rate,omitempty" doc:"How often executions with a key may begin; replaces the action's own"`
	Cache       *Cache       `json:"cache,omitempty" doc:"Reuse the cached result of an identical execution, or cache this one's"`
	NoCache     bool         `json:"no_cache,omitempty" doc:"Do not use cached results, for it and its tasks; new results are still cached"`
	NotBefore   time.Time    `json:"not_before,omitzero" doc:"Earliest start; default: now"`
	StartIn     Duration     `json:"start_in,omitempty" doc:"Delay before the start, counted from acceptance; instead of not_before"`
	// IdempotencyKey makes it safe to repeat the submission. For a single submission, the header Idempotency-Key does the same. For a batch,
	// the header applies to the whole batch, and an item's own key takes precedence.
	IdempotencyKey string `json:"idempotency_key,omitempty" check:"filled" doc:"A repeated request with this key returns the same execution"`
}

// Retry decides whether and when a failed attempt is followed by another.
type Retry struct {
	MaxAttempts int      `json:"max_attempts,omitempty" check:"positive" doc:"Attempts in all; default 1"`
	Backoff     string   `json:"backoff,omitempty" enum:"constant,exponential" doc:"How the delay grows; default exponential"`
	Delay       Duration `json:"delay,omitempty" check:"positive" doc:"Delay before the second attempt; default 1s"`
	MaxDelay    Duration `json:"max_delay,omitempty" check:"positive" doc:"Longest delay; default 10m"`
	Jitter      float64  `json:"jitter,omitempty" doc:"Random share of the delay, 0 to 1"`
	On          []string `json:"on,omitempty" doc:"Error codes to retry, or exit:N; default: all"`
}

// Concurrency limits how many executions hold one key at the same time.
type Concurrency struct {
	Key   string `json:"key" check:"filled" doc:"Executions with the same key are counted together"`
	Limit int    `json:"limit" doc:"Executions that may hold the key at the same time; at least 1"`

	WhenFull string `json:"when_full,omitempty" enum:"queue,cancel_new,cancel_oldest" doc:"At the limit: wait, or cancel one; default queue"`

	FairBy string `json:"fair_by,omitempty" check:"filled" doc:"Fairness group: waiting executions are served in turn by group"`
	Weight int    `json:"weight,omitempty" check:"positive" doc:"Share of this group compared with others, 1 to 100; default 1"`
}

// Rate limits how often executions with one key begin.
type Rate struct {
	Key   string   `json:"key" doc:"Executions with the same key are counted together, across all actions"`
	Limit int      `json:"limit" doc:"Starts per period, 1 to 100,000"`
	Per   Duration `json:"per" doc:"Length of the period, for example 1m"`
	Burst int      `json:"burst,omitempty" check:"positive" doc:"Starts allowed at once after a quiet time; default 1"`

	Over string `json:"over,omitempty" enum:"delay,drop" doc:"Above the limit: delay (default) waits, drop ends the execution as cancelled"`
}

// Cache lets an execution end without running, with the outcome of an earlier execution that had the same work and completed within TTL.
type Cache struct {
	TTL Duration `json:"ttl" doc:"Longest age of a result that may be reused, at most 30 days"`
	Key *string  `json:"key,omitempty" doc:"Cache key within a version of the action; default: a hash of the work and its input"`
}

// Batch asks for many executions at once. Each submission gets its own result: a refused one does not stop the others.
type Batch struct {
	Executions []Submission `json:"executions" doc:"Submissions, at most 10,000"`
}

// BatchLimit is the largest number of executions in one batch.
const BatchLimit = 10_000

// BatchResult answers a Batch.
type BatchResult struct {
	Accepted int          `json:"accepted" doc:"Number accepted, including executions that already existed"`
	Refused  int          `json:"refused" doc:"Number refused"`
	Results  []BatchEntry `json:"results" doc:"One result per submission, in order"`
}

// BatchEntry is the result for one submission of a batch: an ID, or a Problem.
type BatchEntry struct {
	ID       string   `json:"id,omitempty" doc:"ID of the execution, if accepted"`
	Existing bool     `json:"existing,omitempty" doc:"The same submission was accepted before with this idempotency key"`
	Problem  *Problem `json:"problem,omitempty" doc:"Why it was refused"`
}

// Execution is one run of an action or a workflow, from request to outcome. Lists leave out Input, and Output unless it is requested, and
// cut the error's message at 1,000 bytes. The answer to a new submission has only the submitted fields and the ID, unless it waited.
type Execution struct {
	ID       string `json:"id" doc:"Id of the execution; begins with ex_"`
	Action   string `json:"action" doc:"A registered name, or the kind of ad-hoc work"`
	Version  int    `json:"version,omitempty" doc:"Version of the definition; absent for ad-hoc work"`
	Alias    string `json:"alias,omitempty" doc:"Alias by which the version was chosen; absent if by number or by name alone"`
	Kind     string `json:"kind,omitempty" doc:"Kind of work, for example code, http or workflow, or the name of a handler"`
	Status   Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempt  int    `json:"attempt" doc:"Number of the attempt, from 1"`
	Existing bool   `json:"existing,omitempty" doc:"Answer to a submission only: the idempotency key was known"`

	Workflow string `json:"workflow,omitempty" doc:"ID of the workflow execution that this is a task of"`
	Task     string `json:"task,omitempty" doc:"Name of the task in that workflow"`
	Index    int    `json:"index,omitempty" doc:"Item of a foreach task or round of a repeated task, from 0"`

	Signal string   `json:"signal,omitempty" doc:"Signal for which a rule started it; begins with sg_"`
	Rules  []string `json:"rules,omitempty" doc:"Rules in the chain that led to it; the last one started it"`

	RerunOf string   `json:"rerun_of,omitempty" doc:"ID of the execution that this one reruns"`
	RetryOf string   `json:"retry_of,omitempty" doc:"ID of the execution whose request this one repeats"`
	Only    []string `json:"only,omitempty" doc:"Reruns only: tasks, or items as task[3], that it is limited to"`
	GivenBy string   `json:"given_by,omitempty" doc:"Who supplied the output of this task in a rerun; on the rerun, who supplied any"`
	Cached  bool     `json:"cached,omitempty" doc:"The task did not run: the cached result of reused_of was used"`
	NoCache bool     `json:"no_cache,omitempty" doc:"Cached results are not used for its tasks"`

	ReusedOf string `json:"reused_of,omitempty" doc:"Execution whose result this task took, in a rerun or from the cache, without running"`

	Queue        string            `json:"queue,omitempty" doc:"Queue in which it waits for a worker"`
	Runtime      string            `json:"runtime,omitempty" doc:"Runtimes that a worker needs, separated by commas; code:NAME is a language"`
	Priority     int               `json:"priority,omitempty" doc:"-1000 to 1000; higher goes first"`
	Labels       map[string]string `json:"labels,omitempty" doc:"Labels by name; lists, counts and waits can select by them"`
	Key          string            `json:"key,omitempty" doc:"Concurrency key"`
	KeyLimit     int               `json:"key_limit,omitempty" doc:"Executions that may hold the key at the same time"`
	FairBy       string            `json:"fair_by,omitempty" doc:"Fairness group among executions that wait for the key"`
	Weight       int               `json:"weight,omitempty" doc:"Share of its group compared with others"`
	Rate         *Rate             `json:"rate,omitempty" doc:"How often executions with its rate key may begin"`
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"Labels that a worker must have to run it"`

	Timeout      Duration `json:"timeout,omitempty" doc:"Time limit of one attempt, counted from its claim by a worker"`
	QueueTimeout Duration `json:"queue_timeout,omitempty" doc:"Longest time that an attempt may wait for a worker"`
	TotalTimeout Duration `json:"total_timeout,omitempty" doc:"Time limit for all attempts together"`
	Retry        *Retry   `json:"retry,omitempty" doc:"When a failed attempt is repeated"`

	CreatedAt  time.Time `json:"created_at,omitzero" doc:"When it was accepted; absent in the answer to a submission without wait"`
	NotBefore  time.Time `json:"not_before,omitzero" doc:"Earliest start"`
	QueuedAt   time.Time `json:"queued_at,omitzero" doc:"When the attempt became ready to be claimed"`
	ClaimedAt  time.Time `json:"claimed_at,omitzero" doc:"When the attempt was handed to its worker"`
	StartedAt  time.Time `json:"started_at,omitzero" doc:"When the first attempt began to run"`
	FinishedAt time.Time `json:"finished_at,omitzero" doc:"When it ended"`
	WakeAt     time.Time `json:"wake_at,omitzero" doc:"End of a sleep, or of the delay before the next attempt"`

	// Waiting is the reason for waiting that the execution's own row shows; GET …/why looks further and explains it.
	Waiting string `json:"waiting,omitempty" doc:"What it waits for, as far as its own row tells; absent after the end"`
	Inquiry string `json:"inquiry,omitempty" doc:"Open question that it, or a task below it, waits for"`
	Seq     int64  `json:"seq,omitempty" doc:"Number of its latest event; a copy with higher attempt and seq is newer"`

	Paused *Pause `json:"paused,omitempty" doc:"Present while the workflow is paused: it starts no tasks"`

	Worker      string       `json:"worker,omitempty" doc:"Session of the worker that holds the attempt; begins with ws_"`
	CancelOrder *CancelOrder `json:"cancel_order,omitempty" doc:"The worker was told to stop it and has not confirmed yet"`

	Input  json.RawMessage `json:"input,omitempty" doc:"Input; left out in lists"`
	Output json.RawMessage `json:"output,omitempty" doc:"Result of the execution; for code with verdict, stdout, times and files (docs/evaluations.md)"`
	Error  *Error          `json:"error,omitempty" doc:"Why it did not complete"`

	// Verdict is VerdictOK or the code of the error, for code that has ended. The fields below come from its output, if the output has them.
	Verdict         string  `json:"verdict,omitempty" doc:"Ended code only: ok, or the error code"`
	ExitCode        *int    `json:"exit_code,omitempty" doc:"Exit code; absent when a signal ended the program or Pawl stopped it"`
	WallMS          float64 `json:"wall_ms,omitempty" doc:"Code only: time from start to exit, in milliseconds"`
	CPUMS           float64 `json:"cpu_ms,omitempty" doc:"Code only: processor time, in milliseconds"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes,omitempty" doc:"Code only: highest memory use"`
	// Summary counts the cases, if there are any. Digest and CaseVerdicts are only in lists that request them.
	Summary      *CaseSummary  `json:"summary,omitempty" doc:"Counts of its test cases"`
	Digest       *CaseDigest   `json:"digest,omitempty" doc:"Case results, one letter per case; only in lists with digest=true"`
	CaseVerdicts []CaseVerdict `json:"case_verdicts,omitempty" doc:"Verdict of each case, in order; only in lists with cases=true"`

	Traceparent string `json:"traceparent,omitempty" doc:"W3C trace context"`
}

// CancelOrder is an order to end an execution that its worker has not confirmed yet.
type CancelOrder struct {
	As     Status    `json:"as" doc:"Status with which it will end"`
	Code   string    `json:"code" doc:"Error code with which it will end"`
	Reason string    `json:"reason,omitempty" doc:"Reason, shown to people"`
	At     time.Time `json:"at" doc:"When the order was given"`
	// CleanupUntil is set while a workflow runs clean-up tasks after the order.
	CleanupUntil time.Time `json:"cleanup_until,omitzero" doc:"Workflows only: latest end of the clean-up; a second cancel ends it at once"`
}

// Error says why an execution did not complete. Code is stable and meant for machines, Message for people.
type Error struct {
	Code    string          `json:"code" doc:"Stable code, for programs"`
	Message string          `json:"message" doc:"Message for people; cut at 1,000 bytes in lists"`
	Details json.RawMessage `json:"details,omitempty" doc:"Fields that depend on the code"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// ExecutionPage is a page of a list, newest first.
type ExecutionPage struct {
	Executions []Execution `json:"executions" doc:"Newest first"`
	NextCursor string      `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
	// SearchedTo is set if the request stopped after examining too many executions, before the page was full: executions created before this
	// time were not examined. NextCursor continues there.
	SearchedTo *time.Time `json:"searched_to,omitempty" doc:"Executions created before this time were not searched; use next_cursor"`
	// Unfinished counts the executions that the request waited for and that have not ended; absent if the request did not wait.
	Unfinished *int `json:"unfinished,omitempty" doc:"With wait: executions that have not ended"`
}

// Result is the output or the error of a finished execution.
type Result struct {
	ID     string          `json:"id" doc:"Id of the execution; begins with ex_"`
	Status Status          `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Output json.RawMessage `json:"output,omitempty" doc:"Result of the execution; for code with verdict, stdout, times and files (docs/evaluations.md)"`
	Error  *Error          `json:"error,omitempty" doc:"Why it did not complete"`
}

// CancelRequest gives the reason for a cancel or a kill.
type CancelRequest struct {
	Reason string `json:"reason,omitempty" doc:"Reason, shown to people"`
}
