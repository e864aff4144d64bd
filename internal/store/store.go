// Package store is the port to the database, which is the single source of truth. A store records decisions and never makes them: it loads
// the data for a decision, commits the decision in one transaction if nothing has changed since it was read, and answers readers. All times
// are in UTC with microseconds.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

var (
	// ErrConflict means that a row has changed since the decision read it. Nothing of the transaction was written; load and
	// decide again.
	ErrConflict = errors.New("changed since it was read")
	// ErrNotFound means that the row does not exist, or no longer.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable means that the database is unreachable or cannot write at the moment. Nothing of the transaction was written, and a later
	// retry is safe. One exception, on SQLite: if the fsync of a COMMIT fails and the process ends before its next commit, the transaction may
	// exist at the next start.
	ErrUnavailable = errors.New("database unavailable")
	// ErrUnknown means that a commit was sent and its answer was lost. The transaction may have been committed: repeat only
	// idempotent work.
	ErrUnknown = errors.New("outcome of the commit is unknown")
	// ErrTooLarge means that a result would have more bytes than the caller accepts.
	ErrTooLarge = errors.New("too large")
)

// Store is the whole port. It is safe for concurrent use.
type Store interface {
	// Update runs decide in one read-write transaction and commits it if decide returns nil. Rows that decide loads through Tx are locked
	// until then. decide may be run again from the start if the database asks for that (serialisation failure, deadlock), so it must have no
	// effects of its own. It may call only the Tx: any other call of the store with its context fails with ErrNested. An error that is not one
	// of this package's means that the data caused it: the caller may split its batch and try the halves.
	Update(ctx context.Context, decide func(context.Context, Tx) error) error
	Reader
	Logs
	Pausing
	// RestartLeases restarts every lease that EndLeases has not ended, even an expired one. It is for the moment after the store's clock has
	// jumped: a lease that expired only by the jump then runs again, and a lease that the jump made an hour longer ends in time.
	RestartLeases(ctx context.Context, lease time.Duration) error
	// Ready returns why the store cannot be read at the moment, or is known not to accept writes; nil if it can be used. It writes nothing,
	// and returns after a few seconds if the database does not answer.
	Ready(ctx context.Context) error
	// Check verifies on every row the invariants of docs/invariants.md that a query can check, and returns the violations.
	Check(ctx context.Context) ([]Violation, error)
	// Unreadable returns how many live executions the store recently could not decode: because of bytes that a disk has damaged, or rows of a
	// later version of the program. A Lock of one fails. A call that reads the first executions of an order (Take, Due, WaitList, Holders,
	// OwnedBy, CancelRequested, WaitLists, Provisioning) may fail at the first one that it meets, and leaves it out after that.
	Unreadable() int
	Close() error
}

// Prober is implemented by a store that can check with a small write, which changes nothing, whether it accepts writes again after one has
// failed. The disk may have space again, or may have been too full only for one large output.
type Prober interface {
	Probe(ctx context.Context) error
}

// Tx is one read-write transaction. It is for one goroutine.
type Tx interface {
	Access
	// Apply writes a decision. It may be called several times; later calls see the effects of earlier ones. It returns ErrConflict if a row
	// differs from its draft's Before.
	Apply(ctx context.Context, d Delta) error
}

// Access is a transaction without Apply: it loads and locks rows, and writes rows that are not part of a Delta, such as sessions and names.
type Access interface {
	// Now returns the database's clock. It is read once, and again after the transaction has waited for locks and after LockWorkflows, so that
	// the transaction writes no time that is earlier than one that it has read.
	Now(ctx context.Context) (time.Time, error)
	// LastPause returns the latest generation of pauses; 0: there is none. LockSession returns it with the session.
	LastPause(ctx context.Context) (int64, error)
	Executions
	WaitLists
	Workflows
	Sessions
	Catalog
	Registry
	Inputs
	Numbering
	Uploads
	Schedules
	Signals
	Inquiries
	Waits
	Meters
	Shares
	Enforcements
	Switches
	Windows
	Pauses
	Reruns
	Cache
	Cleaning
}

// Delta has the changes of a decision.
type Delta struct {
	// Drafts are inserted if New, and otherwise updated if the stored stage, attempt, next event number, place and owner are those of Before.
	// Their events and inbox changes are written with them. A draft with a Parent has a child row (parent, parent's attempt, task, index) →
	// execution. The row is inserted with it (a second one is a conflict) and gets the outcome's stage when the execution ends.
	Drafts    []*flow.Draft
	Workflows WorkflowRows
	// Keys are the submission's idempotency keys.
	Keys []IdempotencyKey
	// Input pieces are inserted; a second one for the same offset is a conflict.
	Input []InputPiece
	// UploadReferences are inserted after the drafts; LockUploads must have returned their uploads in this transaction.
	UploadReferences []UploadReference
	Signals          SignalRows
	Rules            RuleRows
	Windows          WindowRows
	// Meters, by their keys, are written under the locks of the keys, like Shares.
	Meters    map[string]time.Time
	Shares    ShareRows
	Schedules ScheduleRows
	Waits     WaitRows
	// Inquiries are written, each as the next revision of the one that was read; revision 0 is a new one. It is a conflict if the row has
	// another revision, or if the key or the execution already has an inquiry. Inquiries are not read again in the same transaction.
	Inquiries []*flow.Inquiry
	// Asides are written under their kind and id. If an execution is put aside, its state has it instead.
	Asides []Aside
	// Kept are outcomes for the cache; they replace those with the same hashes.
	Kept []Kept
}

// WorkflowRows are the changes of a decision to workflows, except their executions.
type WorkflowRows struct {
	Marks []Mark
	// Changes are inserted; a second one with the same number is a conflict.
	Changes []WorkflowChange
	// Reuses are inserted after the drafts, with a copy of the outputs; ErrNotFound if an execution to copy from was removed.
	Reuses []Reuse
}

// Payload says whether Input and With are loaded: they may be large.
type Payload bool

const (
	WithPayload    Payload = true
	WithoutPayload Payload = false
)

// Executions loads executions for decisions. It also returns ended ones, with their Outcome only under WithPayload. Results are in no
// particular order unless one is stated.
type Executions interface {
	// Lock loads and locks executions, in a fixed order, each once; unknown ids are left out.
	Lock(ctx context.Context, ids []flow.ID, p Payload) ([]*flow.Execution, error)
	// Due locks up to n executions whose Wake is not after the given time, earliest first, and skips those that another
	// transaction has locked. It also returns the earliest Wake of the others (zero: none).
	Due(ctx context.Context, now time.Time, n int) ([]*flow.Execution, time.Time, error)
	// Applied returns the applied events of an execution with from <= Seq < to, in order.
	Applied(ctx context.Context, id flow.ID, from, to int64) ([]flow.Event, error)
	// Inbox returns the events of an execution that arrived before earlier ones, in order, with their outcomes.
	Inbox(ctx context.Context, id flow.ID) ([]flow.Event, error)
	// Submitted finds the executions that were submitted with the idempotency keys.
	Submitted(ctx context.Context, keys []string) (map[string]IdempotencyKey, error)
	// Remove deletes ended executions with all their rows except logs, and returns the deleted ones. An execution that another transaction is
	// removing stays, and so does a workflow that still has children. An unfinished execution is a conflict.
	Remove(ctx context.Context, ids []flow.ID) ([]flow.ID, error)
}

// WaitLists loads executions from queues, and from the wait lists of concurrency keys.
type WaitLists interface {
	// Take locks up to n claimable executions of the queues, by priority (high first) and then ticket, with payload, and skips those that
	// another transaction has locked. It stops after the execution with which the payloads reach TakeBytes.
	Take(ctx context.Context, queues []string, n int) ([]*flow.Execution, error)
	// Reroute moves a claimable execution that this transaction has locked to another routing key (package flow) of its queue,
	// where it keeps its place. It also changes the request in x, which otherwise never changes.
	Reroute(ctx context.Context, x *flow.Execution, routingKey string) error
	// Tickets draws n consecutive tickets and returns the first one. No ticket is drawn twice, and later tickets are higher.
	Tickets(ctx context.Context, n int) (int64, error)
	// LockKeys locks concurrency keys, in a fixed order, and returns the use of each.
	LockKeys(ctx context.Context, keys []string) (map[string]KeyUse, error)
	// WaitList locks the first n executions that wait for the key, by priority (high first) and then ticket.
	WaitList(ctx context.Context, key string, n int) ([]*flow.Execution, error)
	// Holders locks the n oldest of the executions that hold the key, by creation.
	Holders(ctx context.Context, key string, n int) ([]*flow.Execution, error)
}

// Expecter is implemented by the Tx of a store that needs network round trips. The caller announces its probable calls, and the store
// fetches their results together with the next statement that needs an answer. A wrong announcement only costs time. On PostgreSQL a no-op
// takes 3.0 round trips with it and 6.0 without, a workflow of three steps 8.2 and 20.5 (e2e/counted): 12 ms more if a round trip takes 1
// ms.
type Expecter interface {
	// ExpectEmpty announces that Take may be called for queues that are probably empty.
	ExpectEmpty(queues []string)
	// ExpectSession announces a LockSession.
	ExpectSession(id flow.ID)
	// ExpectLastPause announces that LastPause may be called.
	ExpectLastPause()
	// ExpectWorkflows announces that LockWorkflows may be called, with exactly this argument, for the workflows of the executions in the next
	// Lock or the last LockKnown. The next Lock locks and reads them as well, even if it names no execution.
	ExpectWorkflows(of []KnownWorkflow)
	// LockKnown locks executions without reading them, together with the next statement that needs an answer. The caller knows their state,
	// because this process has written it. If a row has another state, the write of its draft is a conflict. LockKnown must be the
	// transaction's first lock.
	LockKnown(ids []flow.ID)
	// RecentNow is Now without a round trip: this process's latest reading of the database's clock plus the time since then. It is behind
	// that clock by less than the duration of a round trip. It is false if there is no reading from the last second.
	RecentNow() (time.Time, bool)
}

// KeyUse is the use of a concurrency key.
type KeyUse struct {
	Holders int // executions in a place that holds the key
	Waiting int // executions in its wait list; LockKeys stops counting at WaitingCounted
}

// WaitingCounted is the number at which LockKeys stops counting a key's wait list, so that a long wait list does not slow down every
// decision about its key. It is more than one decision can admit.
const WaitingCounted = 2000

// IdempotencyKey is the execution that a submission with the key has made, and the hash of the submission.
type IdempotencyKey struct {
	Key       string
	Execution flow.ID
	Hash      [32]byte // of the submission
}

// Workflows loads the progress of workflows for orchestration. Its rows belong to one attempt of a workflow.
type Workflows interface {
	// LockWorkflows loads and locks workflows as Lock does, with the progress of their tasks. The progress is that of the given attempt, even
	// if the workflow is at another one.
	LockWorkflows(ctx context.Context, of []KnownWorkflow) ([]LockedWorkflow, error)
	// Outcomes returns the outcomes of the ended children of tasks, by task, sorted by index. It returns ErrTooLarge if the
	// outputs have more than "most" bytes together.
	Outcomes(ctx context.Context, of WorkflowAttempt, tasks []string, most int64) (map[string][]ChildOutcome, error)
	// Outcome returns the outcome of one child of a task, or nil if the child has not ended or does not exist. It returns
	// ErrTooLarge if the output has more than "most" bytes.
	Outcome(ctx context.Context, of WorkflowAttempt, task string, index int, most int64) (*ChildOutcome, error)
	// Open returns up to n children that have not ended and have no outstanding order to end, sorted by index; task "" means every task. With
	// unheld it leaves out children that a worker or the engine holds.
	Open(ctx context.Context, of WorkflowAttempt, task string, unheld bool, n int) ([]flow.ID, error)
}

// KnownWorkflow is an attempt of a workflow with the part of its progress that the caller knows.
type KnownWorkflow struct {
	WorkflowAttempt
	Change int64 // number of the last change that the caller knows; NothingKnown: none
}

// NothingKnown asks for the whole progress of a workflow instead of its latest changes.
const NothingKnown = -1

// LockedWorkflow is a workflow and its progress.
type LockedWorkflow struct {
	*flow.Execution      // without outcome
	PayloadLeftOut  bool // it has more than SmallPayload bytes, or the workflow has ended: Lock loads it
	// If the caller knew nothing, Tasks counts the rows of each task that has any. Otherwise Changes has the changes after the known one, in
	// order. Last is the number of the last change; 0: there is none.
	Tasks   []TaskProgress
	Changes [][]byte
	Last    int64
}

// TakeBytes is how many bytes of payload one Take loads, plus at most one more payload. Without a limit, a worker with 64 free slots would
// load 64 inputs of 16 MB at once.
const TakeBytes = 8 << 20

// SmallPayload is the largest size of a workflow's payload that is loaded with its lock. A thousand of them have 16 MB.
const SmallPayload = 16 << 10

// WorkflowChange is the change of a workflow's state in one transaction, in orchestration's encoding.
type WorkflowChange struct {
	WorkflowAttempt
	Number int64 // 1, 2, 3 … within the attempt
	Change []byte
}

// WorkflowAttempt names the rows of one attempt of a workflow execution.
type WorkflowAttempt struct {
	ID      flow.ID
	Attempt int
}

// TaskProgress counts the rows of one task.
type TaskProgress struct {
	Task    string
	Mark    *Mark // nil if the task has none
	Created int   // child rows, whose indices are 0 … Created-1
	Open    int   // the unfinished ones among these
	Ended   map[flow.Stage]int
}

// Mark is a decision about a task, not about its children: it was skipped, it was expanded into a number of items, or it could not start.
// There is one per task and attempt; a second one replaces the first.
type Mark struct {
	Workflow flow.ID
	Attempt  int
	Task     string
	State    string // one of the names in orchestration
	Total    int    // items of an expanded task
	Error    *flow.Error
}

// ChildOutcome is the outcome of one child.
type ChildOutcome struct {
	Index     int
	Execution flow.ID
	Stage     flow.Stage
	Outcome   flow.Outcome
}

// Sessions stores the leases of workers. A lease runs by the store's own clock, from the call that starts it: callers pass no times, so no
// caller's clock can end a lease early. It has expired when that clock has passed its end, and has ended for good once EndLeases was
// called.
type Sessions interface {
	// OpenSession stores a new session and starts its lease. The store sets StartedAt and ExpiresAt.
	OpenSession(ctx context.Context, s Session, lease time.Duration) error
	// RenewSessions restarts the leases of the sessions whose leases have not expired, and returns these sessions, in any order.
	RenewSessions(ctx context.Context, ids []flow.ID, lease time.Duration) ([]flow.ID, error)
	// EndLeases ends leases for good, and returns the sessions whose leases had not expired by then, in any order.
	EndLeases(ctx context.Context, ids []flow.ID) ([]flow.ID, error)
	// LockSession loads and locks a session, with the latest generation of pauses, and returns the remaining time of its lease, at most 0 if
	// it has expired.
	LockSession(ctx context.Context, id flow.ID) (s Session, left time.Duration, err error)
	// DropSession deletes a session; the caller must recover its executions.
	DropSession(ctx context.Context, id flow.ID) error
	// Expired locks up to n sessions with expired leases.
	Expired(ctx context.Context, n int) ([]Session, error)
	// ExpireEmbedded makes the leases of all embedded sessions expire now. The caller has just become the only process on this database, so
	// the workers of these sessions are gone.
	ExpireEmbedded(ctx context.Context) error
	// OwnedBy locks up to n executions that the session holds, sorted by id, beyond after.
	OwnedBy(ctx context.Context, session, after flow.ID, n int) ([]*flow.Execution, error)
	// CancelRequested returns the executions of the sessions that have an outstanding order to end.
	CancelRequested(ctx context.Context, sessions []flow.ID) ([]*flow.Execution, error)
}

// Session is the session of one worker process.
type Session struct {
	ID        flow.ID
	Name      string // shown to people; it need not be unique
	Embedded  bool   // the worker is part of the server's process
	Queues    []string
	Kinds     []string // kinds of work that it can run, for flow.ReachOf; empty: the built-in kinds
	Slots     int
	StartedAt time.Time
	ExpiresAt time.Time // when the lease ends, by the clock of leases; zero once EndLeases was called
	Pauses    int64     // the latest generation of pauses; only LockSession sets it
}

// Catalog stores definitions. A version never changes.
type Catalog interface {
	// Definition loads a version of a definition (0: the latest), or ErrNotFound.
	Definition(ctx context.Context, name string, version int) (Definition, error)
	// Define stores a document as the next version of its name, unless the latest version has the same hash. It returns the version that is
	// then the latest, and whether it is new. A document with a version, as in an archive, is stored as that version; ErrConflict if the
	// version exists.
	Define(ctx context.Context, d Definition) (version int, created bool, err error)
}

// Definition is a stored document.
type Definition struct {
	Name      string
	Version   int
	Kind      string // "workflow" or "action"
	Hash      [32]byte
	Document  []byte // canonical JSON
	CreatedAt time.Time
}
