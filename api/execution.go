package api

import (
	"encoding/json"
	"slices"
	"time"
)

// Status is where an execution stands. See docs/states.md for what may follow what.
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
	// Action is a registered name ("grade", or "grade@3" for a version) or a built-in kind for ad-hoc work: "code", "container",
	// "http", "llm", "webhook", "sleep", "noop".
	Action string          `json:"action" doc:"A registered name, name@version, name@alias, or a built-in kind"`
	Input  json.RawMessage `json:"input,omitempty" doc:"What the action is given; its schema is the action's"`

	Queue    string            `json:"queue,omitempty" check:"filled" doc:"Where it waits for a worker; the action's own by default"`
	Priority *int              `json:"priority,omitempty" doc:"-1000 to 1000, higher goes first"`
	Labels   map[string]string `json:"labels,omitempty" doc:"By which lists, counts and waits select it"`
	// WorkerLabels are those that a worker must have, all of them, to be given it; they come beside those that the action
	// asks for, and in place of those with the same key.
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"Labels that a worker must have to be given it"`

	Timeout      Duration `json:"timeout,omitempty" check:"positive" doc:"Of one attempt, from claim"`
	QueueTimeout Duration `json:"queue_timeout,omitempty" check:"positive" doc:"From when an attempt is due to its claim; anew for each attempt"`
	TotalTimeout Duration `json:"total_timeout,omitempty" check:"positive" doc:"Of everything, retries included"`
	Retry        *Retry   `json:"retry,omitempty" doc:"Whether and when a failed attempt is followed by another"`

	Concurrency *Concurrency `json:"concurrency,omitempty" doc:"Only for ad-hoc work: registered actions carry their own"`
	Rate        *Rate        `json:"rate,omitempty" doc:"How often executions with a key begin; in place of the action's own"`
	Cache       *Cache       `json:"cache,omitempty" doc:"It ends with the outcome that is kept of an execution with the same to do, where there is one; its own is kept"`
	NoCache     bool         `json:"no_cache,omitempty" doc:"Neither it nor one of its tasks ends with an outcome that was kept; theirs are kept"`
	NotBefore   time.Time    `json:"not_before,omitzero" doc:"When it may start; at once by default"`
	StartIn     Duration     `json:"start_in,omitempty" doc:"The same, from when it is accepted on"`
	// IdempotencyKey makes submitting it again safe. For a single submission the header Idempotency-Key does the same; that of
	// a batch is for the batch as a whole, and items with a key of their own keep it.
	IdempotencyKey string `json:"idempotency_key,omitempty" check:"filled" doc:"The same submission again under this key gives the same execution, another one is refused with 422"`
}

// Retry says whether and when a failed attempt is followed by another.
type Retry struct {
	MaxAttempts int      `json:"max_attempts,omitempty" check:"positive" doc:"In all; 1 by default"`
	Backoff     string   `json:"backoff,omitempty" enum:"constant,exponential" doc:"How the delay grows; exponential by default"`
	Delay       Duration `json:"delay,omitempty" check:"positive" doc:"Before the second attempt; 1s by default"`
	MaxDelay    Duration `json:"max_delay,omitempty" check:"positive" doc:"10m by default"`
	Jitter      float64  `json:"jitter,omitempty" doc:"0 to 1: share of the delay that is random"`
	On          []string `json:"on,omitempty" doc:"Error codes that are tried again, and exit:N; all by default"`
}

// Concurrency limits how many executions hold one key at a time.
type Concurrency struct {
	Key      string `json:"key" doc:"What is shared; executions with the same key count together"`
	Limit    int    `json:"limit" doc:"At least 1"`
	WhenFull string `json:"when_full,omitempty" enum:"queue,cancel_new,cancel_oldest" doc:"queue by default"`
	FairBy   string `json:"fair_by,omitempty" check:"filled" doc:"Whose it is: of those that wait for the key, each whose they are takes turns"`
	Weight   int    `json:"weight,omitempty" check:"positive" doc:"With fair_by: how many turns it has for another's one, 1 to 100; 1 by default"`
}

// Rate bounds how often executions with one key begin.
type Rate struct {
	Key   string   `json:"key" doc:"What is limited, across everything that names it"`
	Limit int      `json:"limit" doc:"So many in each span, 1 to 100,000"`
	Per   Duration `json:"per" doc:"The span"`
	Burst int      `json:"burst,omitempty" check:"positive" doc:"How many may begin at once when none has for a while; 1 by default"`
	Over  string   `json:"over,omitempty" enum:"delay,drop" doc:"delay, the default: it begins when there is room; drop: it ends as cancelled"`
}

// Cache lets an execution end with the outcome of one that had the same to do and completed a short while ago, instead of running.
type Cache struct {
	TTL Duration `json:"ttl" doc:"How old the outcome may be, at most 30 days"`
	Key *string  `json:"key,omitempty" doc:"Stands for what it is given, for one version of an action; without it the same to do is what runs and all that it is given"`
}

// Batch asks for many executions at once. Each gets its own verdict: one that is refused does not stop the others.
type Batch struct {
	Executions []Submission `json:"executions" doc:"At most 10,000"`
}

// BatchLimit is how many executions one batch may ask for.
const BatchLimit = 10_000

// BatchResult answers a Batch.
type BatchResult struct {
	Accepted int          `json:"accepted" doc:"How many were accepted, existing ones included"`
	Refused  int          `json:"refused" doc:"How many were refused"`
	Results  []BatchEntry `json:"results" doc:"One for each item, in the order of the request"`
}

// BatchEntry is the verdict on one submission of a batch: an ID, or a Problem.
type BatchEntry struct {
	ID       string   `json:"id,omitempty" doc:"Id of the execution, when it was accepted"`
	Existing bool     `json:"existing,omitempty" doc:"The idempotency key was used for the same submission before"`
	Problem  *Problem `json:"problem,omitempty" doc:"Why it was refused"`
}

// Execution is one run of an action or a workflow, from request to outcome. In lists Input is left out, so is Output unless it
// is asked for, and the error's message is cut at 1,000 bytes; the answer to a new submission has only what was submitted and the
// ID, unless it waited.
type Execution struct {
	ID       string `json:"id" doc:"Id of the execution; begins with ex_"`
	Action   string `json:"action" doc:"A registered name, or the kind of ad-hoc work"`
	Version  int    `json:"version,omitempty" doc:"Version of the definition; absent for ad-hoc work"`
	Alias    string `json:"alias,omitempty" doc:"By which the version was asked for; absent: by its number, or by the name alone"`
	Kind     string `json:"kind,omitempty" doc:"What runs it: code, container, http, llm, input, output, sleep, ask, wait, noop, workflow, or the name of a handler"`
	Status   Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempt  int    `json:"attempt" doc:"Number of the attempt, from 1"`
	Existing bool   `json:"existing,omitempty" doc:"Only in the answer to a submission: its idempotency key was known"`

	Workflow string `json:"workflow,omitempty" doc:"The execution that it is a task of"`
	Task     string `json:"task,omitempty" doc:"Its task in the workflow"`
	Index    int    `json:"index,omitempty" doc:"Index of the item, from 0, for a foreach task"`

	Signal string   `json:"signal,omitempty" doc:"For which a rule has started it; begins with sg_"`
	Rules  []string `json:"rules,omitempty" doc:"The rules that have led to it, the one that has started it last"`

	RerunOf  string   `json:"rerun_of,omitempty" doc:"The execution that this one runs again"`
	RetryOf  string   `json:"retry_of,omitempty" doc:"The execution whose request this one repeats as a whole"`
	Only     []string `json:"only,omitempty" doc:"Of a rerun: the tasks, or items of tasks, of which alone it is"`
	GivenBy  string   `json:"given_by,omitempty" doc:"Who has given the output with which this task of a rerun ended: it did not run. Of the rerun: who has given outputs to tasks"`
	Cached   bool     `json:"cached,omitempty" doc:"It did not run: the task has a cache, and the outcome of reused_of was kept"`
	NoCache  bool     `json:"no_cache,omitempty" doc:"None of its tasks ends with an outcome that was kept"`
	ReusedOf string   `json:"reused_of,omitempty" doc:"The execution whose outcome this task ended with, of a rerun or out of the cache: it did not run"`

	Queue    string            `json:"queue,omitempty" doc:"Where it waits for a worker"`
	Runtime  string            `json:"runtime,omitempty" doc:"What a worker must have to run it, code:NAME for a language, several with commas; absent: any worker may"`
	Priority int               `json:"priority,omitempty" doc:"-1000 to 1000; higher goes first"`
	Labels   map[string]string `json:"labels,omitempty" doc:"By which lists, counts and waits select it"`
	Key      string            `json:"key,omitempty" doc:"Its concurrency key"`
	KeyLimit int               `json:"key_limit,omitempty" doc:"How many executions may hold the key at a time"`
	FairBy   string            `json:"fair_by,omitempty" doc:"Whose it is in the line of its key"`
	Weight   int               `json:"weight,omitempty" doc:"How many turns it has there for another's one"`
	Rate     *Rate             `json:"rate,omitempty" doc:"How often executions with its key begin"`
	// WorkerLabels are those that a worker must have to run it.
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"Labels that a worker must have to be given it"`

	Timeout      Duration `json:"timeout,omitempty" doc:"Most time for one attempt, from its hand-off to a worker"`
	QueueTimeout Duration `json:"queue_timeout,omitempty" doc:"Most time from when an attempt is due to its claim by a worker; anew for each attempt"`
	TotalTimeout Duration `json:"total_timeout,omitempty" doc:"Of everything, retries included"`
	Retry        *Retry   `json:"retry,omitempty" doc:"Whether and when a failed attempt is followed by another"`

	CreatedAt  time.Time `json:"created_at,omitzero" doc:"When it was accepted; absent in the answer to a submission that did not wait"`
	NotBefore  time.Time `json:"not_before,omitzero" doc:"When it may start"`
	QueuedAt   time.Time `json:"queued_at,omitzero" doc:"When the attempt became due"`
	ClaimedAt  time.Time `json:"claimed_at,omitzero" doc:"When the attempt was handed to its worker"`
	StartedAt  time.Time `json:"started_at,omitzero" doc:"When its first attempt began to run"`
	FinishedAt time.Time `json:"finished_at,omitzero" doc:"When it ended"`
	WakeAt     time.Time `json:"wake_at,omitzero" doc:"End of the wait before the next attempt, or of a sleep"`

	// Waiting is what it waits for as far as its own row says; GET …/why looks further, and says why.
	Waiting string `json:"waiting,omitempty" doc:"What it waits for, in the words of why, as far as its own row says; absent: it has ended"`
	Inquiry string `json:"inquiry,omitempty" doc:"An open question whose answer it or a task beneath it waits for, also in sub-workflows; in lists, and of GET …/{id}"`
	Seq     int64  `json:"seq,omitempty" doc:"Number of its latest event: of two answers about it, the one with the higher attempt and number is the later"`

	Paused *Pause `json:"paused,omitempty" doc:"It is a workflow that starts no tasks until it is resumed"`

	// Worker is the session that holds the attempt.
	Worker      string       `json:"worker,omitempty" doc:"Session of the worker that holds the attempt; begins with ws_"`
	CancelOrder *CancelOrder `json:"cancel_order,omitempty" doc:"Its worker was ordered to end it and has not confirmed that yet"`

	Input  json.RawMessage `json:"input,omitempty" doc:"Its input; left out in lists"`
	Output json.RawMessage `json:"output,omitempty" doc:"Result of the execution; for code with verdict, stdout, times and files (docs/evaluations.md)"`
	Error  *Error          `json:"error,omitempty" doc:"Why it did not complete"`

	// Verdict is VerdictOK, or the code of the error, of an execution of code that has ended. What follows is out of its output, where
	// that has it.
	Verdict         string  `json:"verdict,omitempty" doc:"For code that has ended: ok, or the code of the error"`
	ExitCode        *int    `json:"exit_code,omitempty" doc:"For code that ended by itself"`
	WallMS          float64 `json:"wall_ms,omitempty" doc:"Time from start to exit of code that has run, in milliseconds"`
	CPUMS           float64 `json:"cpu_ms,omitempty" doc:"Processor time of code that has run, in milliseconds"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes,omitempty" doc:"Most memory that code has used"`
	// Summary counts the cases, where there are any. Digest and CaseVerdicts are in lists that were asked for them.
	Summary      *CaseSummary  `json:"summary,omitempty" doc:"How many of its cases passed"`
	Digest       *CaseDigest   `json:"digest,omitempty" doc:"How its cases ended, one letter for each; only in lists, with digest=true"`
	CaseVerdicts []CaseVerdict `json:"case_verdicts,omitempty" doc:"How each case ended, in their order; only in lists, with cases=true"`

	Traceparent string `json:"traceparent,omitempty" doc:"W3C trace context"`
}

// CancelOrder is an order to end an execution that its worker has not confirmed yet.
type CancelOrder struct {
	As     Status    `json:"as" doc:"The status that it is to end with"`
	Code   string    `json:"code" doc:"Of the error that it is to end with"`
	Reason string    `json:"reason,omitempty" doc:"Why, for people"`
	At     time.Time `json:"at" doc:"When it was ordered"`
	// CleanupUntil is set while a workflow runs the tasks that survive the order.
	CleanupUntil time.Time `json:"cleanup_until,omitzero" doc:"Of a workflow that is cleaning up: when that is over at the latest; a second cancel ends it at once"`
}

// Error says why an execution did not complete. Code is stable and meant for machines, Message for people.
type Error struct {
	Code    string          `json:"code" doc:"Stable, for machines"`
	Message string          `json:"message" doc:"For people; in lists cut at 1,000 bytes"`
	Details json.RawMessage `json:"details,omitempty" doc:"Details that depend on the code"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// ExecutionPage is a page of a list, newest first.
type ExecutionPage struct {
	Executions []Execution `json:"executions" doc:"Newest first"`
	NextCursor string      `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
	// SearchedTo is set where the request looked at so many executions that it gave up before the page was full: what was created before
	// that time was not looked at. NextCursor goes on there.
	SearchedTo *time.Time `json:"searched_to,omitempty" doc:"Executions created before this were not looked at: the request gave up before the page was full, and next_cursor goes on there"`
	// Unfinished is how many executions have not ended of those that the request waited for; absent where it did not wait.
	Unfinished *int `json:"unfinished,omitempty" doc:"Executions that have not ended, of those that the request waited for; absent where it did not wait"`
}

// Result is what a finished execution ended with.
type Result struct {
	ID     string          `json:"id" doc:"Id of the execution; begins with ex_"`
	Status Status          `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Output json.RawMessage `json:"output,omitempty" doc:"Result of the execution; for code with verdict, stdout, times and files (docs/evaluations.md)"`
	Error  *Error          `json:"error,omitempty" doc:"Why it did not complete"`
}

// CancelRequest says why. Killing takes the same.
type CancelRequest struct {
	Reason string `json:"reason,omitempty" doc:"Why, for people"`
}
