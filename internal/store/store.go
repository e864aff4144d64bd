// Package store is the port to where the truth is. A store persists decisions and never makes them: it loads what a
// decision needs, commits what was decided in one transaction under the condition that nothing changed in between, and
// answers readers. Every time is in UTC with microseconds.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

var (
	// ErrConflict means that a row is no longer as the decision saw it. Nothing of the transaction was kept; load and
	// decide again.
	ErrConflict = errors.New("changed since it was read")
	// ErrNotFound means that no such row exists (any more).
	ErrNotFound = errors.New("not found")
	// ErrUnavailable means that the database cannot be reached or cannot write just now. Nothing of the transaction was kept; trying
	// again later is safe.
	ErrUnavailable = errors.New("database unavailable")
	// ErrUnknown means that a commit was sent and its answer never came. It may have been kept: repeat only what is idempotent.
	ErrUnknown = errors.New("outcome of the commit is unknown")
	// ErrTooLarge means that an answer would have more bytes than the caller takes.
	ErrTooLarge = errors.New("too large")
)

// Store is the whole port. It is safe for concurrent use.
type Store interface {
	// Update runs decide in one read-write transaction and commits it when decide returns nil. What decide loads through
	// Tx is locked until then. decide may be run again from the start when the database asks for it (serialisation
	// failure, deadlock), so it must have no effects of its own. It calls nothing but the Tx: with its context every other
	// call of the store fails with ErrNested. An error that is not one of this package's means that the data were at fault:
	// the caller may split its batch and try the halves.
	Update(ctx context.Context, decide func(context.Context, Tx) error) error
	Reader
	Logs
	Pausing
	// RestartLeases begins every lease anew that EndLeases has not ended, also a lease that has run out. It is for the moment
	// after a jump of the store's clock: a lease that only the jump has ended runs again, and a lease that the jump has made an
	// hour longer ends in time.
	RestartLeases(ctx context.Context, lease time.Duration) error
	// Ready says why the store cannot be read, or is known not to take writes, just now; nil when it can be used. It writes
	// nothing, and ends after a few seconds where the database does not answer.
	Ready(ctx context.Context) error
	// Check verifies what every row promises (the invariants of docs/invariants.md that a query can see) and returns what it found.
	Check(ctx context.Context) ([]Violation, error)
	// Unreadable is how many live executions the store has met lately that it cannot decode: bytes that a disk has damaged, or a
	// row of a later version of the program. A Lock that names one fails. What reads the first executions of an order
	// (Take, Due, Line, Holders, OwnedBy, Ordered, Lines, Provisioning) may fail when it meets one for the first time, and passes
	// it over after that.
	Unreadable() int
	Close() error
}

// Prober is implemented by a store that can find out, by a small write that changes nothing, whether it takes writes again after
// one has failed: a disk may have space again, or be too full for one large output only.
type Prober interface {
	Probe(ctx context.Context) error
}

// Tx is one read-write transaction of the engine. It is used by one goroutine.
type Tx interface {
	// Now is the database's clock.
	Now(ctx context.Context) (time.Time, error)
	// LastPause is the latest generation of pauses; 0: there is none. LockSession returns it with the session.
	LastPause(ctx context.Context) (int64, error)
	Executions
	Lines
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
	// Apply writes a decision. It may be called several times; later calls see what earlier ones wrote. It returns
	// ErrConflict when a row is not as its draft's Before says.
	Apply(ctx context.Context, d Delta) error
}

// Delta is what a decision changes.
type Delta struct {
	// Drafts are inserted when New, else updated on the condition that the stored stage, attempt, next event number,
	// place and owner are those of Before. Their events and inbox changes go with them. A draft with a Parent has a row
	// (parent, parent's attempt, task, index) → execution, inserted with it (a second one is a conflict) and given the
	// outcome's stage when it ends.
	Drafts []*flow.Draft
	Marks  []Mark
	// Keys hold the submission's idempotency keys.
	Keys []IdempotencyKey
	// Changes of workflows are inserted; a second one with the same number is a conflict.
	Changes []WorkflowChange
	// Input pieces are inserted; a second one for the same offset is a conflict.
	Input []InputPiece
	// Holds are inserted behind the drafts; LockUploads has returned their uploads in this transaction.
	Holds []Hold
	// Reuses are inserted behind the drafts, with a copy of the outputs; ErrNotFound where one that is to be copied has been removed.
	Reuses []Reuse
	// Signals are inserted; a second one with the same trigger and key is a conflict.
	Signals []flow.Signal
	// Matched are the numbers of signals that are new and become matched; one that is not new is a conflict.
	Matched []int64
	// Enforcements are inserted; a second one of the same signal and rule is a conflict, and so is a second one that ran an execution.
	Enforcements []flow.Enforcement
	// Retried are written over enforcements that have failed or were refused; of one that is not so it is a conflict.
	Retried []flow.Enforcement
	// Closed are windows that close; one of which a signal that is named is not held is a conflict.
	Closed []Closing
	// Windows are written under the locks of their keys. Dropped ones hold nothing and are deleted, under the same locks.
	Windows        []Window
	DroppedWindows []WindowKey
	// Meters, by their keys, and Shares are written under the locks of their keys. The shares of the keys dropped are deleted before.
	Meters        map[string]time.Time
	Shares        []Share
	DroppedShares []string
	// Schedules are stored, each under its name.
	Schedules []Schedule
	// Ticks are inserted; a second one of the same schedule, nominal time and tag is a conflict.
	Ticks []Tick
	// Switches are inserted; a second one of the same generation is a conflict.
	Switches []Switch
	// Waits are written, each under its execution, and those of other executions are deleted. A second wait of an attempt of a workflow that
	// takes the same signal is a conflict. Nothing reads waits later in the transaction.
	Waits        []flow.Wait
	DroppedWaits []flow.ID
	// Unmet are numbers of signals that open waits are to be asked about; about those of Met they have been asked.
	Unmet, Met []int64
	// Inquiries are written, each as the next revision of what was read; one of revision 0 is new. It is a conflict when a row has another
	// revision, or there is one for the key or the execution. Nothing reads inquiries later in the transaction.
	Inquiries []*flow.Inquiry
	// Asides are written, each under its kind and id. Executions are not among them: their state says so.
	Asides []Aside
	// Kept are outcomes that are kept, in place of those with the same hashes.
	Kept []Kept
}

// Payload says whether Input and With are wanted: they may be large.
type Payload bool

// What to load.
const (
	WithPayload    Payload = true
	WithoutPayload Payload = false
)

// Executions loads what decisions about executions need. Finished executions are returned as well, with their Outcome
// only under WithPayload. The order of results is unspecified unless said.
type Executions interface {
	// Lock loads and locks the executions named, in a fixed order; unknown ids are left out. Naming one twice returns it
	// once.
	Lock(ctx context.Context, ids []flow.ID, p Payload) ([]*flow.Execution, error)
	// Due locks up to n executions whose Wake is not after the given time, earliest first, passing over what another
	// transaction has locked; it returns also the earliest Wake beyond them (zero: none).
	Due(ctx context.Context, now time.Time, n int) ([]*flow.Execution, time.Time, error)
	// Applied returns the applied events of an execution with from <= Seq < to, in order.
	Applied(ctx context.Context, id flow.ID, from, to int64) ([]flow.Event, error)
	// Inbox returns the events of an execution that are kept ahead of a gap, in order, outcome included.
	Inbox(ctx context.Context, id flow.ID) ([]flow.Event, error)
	// Submitted finds the executions that were submitted with the idempotency keys.
	Submitted(ctx context.Context, keys []string) (map[string]IdempotencyKey, error)
	// Remove deletes executions that have ended, with everything that hangs on them but their logs, and returns those that
	// are gone. One that another transaction is removing stays, and so does a workflow that has children left. One that has
	// not ended is a conflict.
	Remove(ctx context.Context, ids []flow.ID) ([]flow.ID, error)
}

// Lines draws executions from queues, and from the lines of concurrency keys.
type Lines interface {
	// Take locks up to n claimable executions of the queues, by priority (high first) and then ticket, passing over what
	// another transaction has locked. Payload included: Take stops behind the execution with which the payloads have TakeBytes.
	Take(ctx context.Context, queues []string, n int) ([]*flow.Execution, error)
	// Relane moves an execution that this transaction has locked, and that is claimable, to another lane (package flow) of its
	// queue, where it keeps its turn. It changes x as well, whose request otherwise never changes.
	Relane(ctx context.Context, x *flow.Execution, lane string) error
	// Tickets draws n tickets and returns the first; each ticket is drawn once and grows.
	Tickets(ctx context.Context, n int) (int64, error)
	// LockKeys locks concurrency keys, in a fixed order, and tells how full each is.
	LockKeys(ctx context.Context, keys []string) (map[string]KeyUse, error)
	// Line locks the first n executions that wait for the key, by priority (high first) and then ticket.
	Line(ctx context.Context, key string, n int) ([]*flow.Execution, error)
	// Holders locks the n executions that have held the key longest (oldest creation first).
	Holders(ctx context.Context, key string, n int) ([]*flow.Execution, error)
}

// Expecter is implemented by the Tx of a store that is a round trip away. It is told what the transaction will probably ask,
// and fetches that together with the next statement that needs an answer. A wrong expectation costs time and nothing else.
type Expecter interface {
	// ExpectEmpty says that Take may be asked for queues in which there is probably nothing.
	ExpectEmpty(queues []string)
	// ExpectSession says that LockSession will be asked for a session.
	ExpectSession(id flow.ID)
	// ExpectLastPause says that LastPause may be asked.
	ExpectLastPause()
}

// KeyUse is how full a concurrency key is.
type KeyUse struct {
	Holders int // executions in a place that holds the key
	Waiting int // executions in its line; LockKeys stops counting at WaitingCounted
}

// WaitingCounted is where LockKeys stops counting a key's line: a long line must not make every decision about its key
// slow. It is more than one decision can admit.
const WaitingCounted = 2000

// IdempotencyKey remembers which execution a submission with the key made, and of what.
type IdempotencyKey struct {
	Key       string
	Execution flow.ID
	Hash      [32]byte // of the submission
}

// Workflows loads what orchestration needs. A workflow's rows are those of one of its attempts.
type Workflows interface {
	// LockWorkflows loads and locks workflows as Lock does, and tells how far their tasks are, each at the attempt given,
	// whatever the workflow's own is.
	LockWorkflows(ctx context.Context, of []KnownWorkflow) ([]LockedWorkflow, error)
	// Outcomes returns what the finished children of the tasks ended with, by task, in index order. Outputs of more than most
	// bytes together are ErrTooLarge.
	Outcomes(ctx context.Context, of WorkflowAttempt, tasks []string, most int64) (map[string][]ChildOutcome, error)
	// Outcome returns what one child of a task ended with; nil: it has not ended, or there is none. An output of more than most bytes is
	// ErrTooLarge.
	Outcome(ctx context.Context, of WorkflowAttempt, task string, index int, most int64) (*ChildOutcome, error)
	// Open returns up to n children that have not ended and for which no order to end is outstanding, in index order; task ""
	// means of every task. With unheld only those that neither a worker nor the engine holds.
	Open(ctx context.Context, of WorkflowAttempt, task string, unheld bool, n int) ([]flow.ID, error)
}

// KnownWorkflow names an attempt of a workflow and what the caller knows of it.
type KnownWorkflow struct {
	WorkflowAttempt
	Change int64 // number of the last change that the caller knows; NothingKnown: none
}

// NothingKnown asks for the progress of a workflow instead of its changes.
const NothingKnown = -1

// LockedWorkflow is a workflow and how far it is.
type LockedWorkflow struct {
	*flow.Execution      // without outcome
	PayloadLeftOut  bool // it has more than SmallPayload bytes, or has ended: Lock loads it
	// Tasks counts the rows of each task when nothing is known; tasks without any row are absent. Otherwise Changes has those
	// beyond the one that is known, in order. Last is the number of the last change; 0: there is none.
	Tasks   []TaskProgress
	Changes [][]byte
	Last    int64
}

// TakeBytes is how many bytes of payload one Take loads, and at the most one payload more. Without a bound, a worker with 64 free
// slots would load 64 inputs of 16 MB at once.
const TakeBytes = 8 << 20

// SmallPayload is how large a workflow's payload is that comes with its lock, in bytes. A thousand of them are 16 MB.
const SmallPayload = 16 << 10

// WorkflowChange is what one transaction made of a workflow's state, in orchestration's words.
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

// TaskProgress is the rows of one task, counted.
type TaskProgress struct {
	Task    string
	Mark    *Mark // nil when the task has none
	Created int   // child rows; their indices are 0 … Created-1
	Open    int   // of them, not ended
	Ended   map[flow.Stage]int
}

// Mark is what is known about a task beyond its children: that it was skipped, into how many items it was expanded, why it
// could not start. One per task and attempt; a second one replaces the first.
type Mark struct {
	Workflow flow.ID
	Attempt  int
	Task     string
	State    string // orchestration's word
	Total    int    // items of an expanded task
	Error    *flow.Error
}

// ChildOutcome is the end of one child.
type ChildOutcome struct {
	Index     int
	Execution flow.ID
	Stage     flow.Stage
	Outcome   flow.Outcome
}

// Sessions keeps the leases of workers. A lease runs by the store's own clock, from the moment of the call that begins it:
// no caller names a time, so no caller's clock can end a lease early. It is over once that clock has passed its end, and
// for good once EndLeases was called.
type Sessions interface {
	// OpenSession stores a new session and begins its lease. StartedAt and ExpiresAt are set by the store.
	OpenSession(ctx context.Context, s Session, lease time.Duration) error
	// RenewSessions begins the leases of those sessions anew whose leases still run, and returns which they are, in any
	// order.
	RenewSessions(ctx context.Context, ids []flow.ID, lease time.Duration) ([]flow.ID, error)
	// EndLeases ends leases for good, and returns the sessions whose leases ran until then, in any order.
	EndLeases(ctx context.Context, ids []flow.ID) ([]flow.ID, error)
	// LockSession loads a session, with the latest generation of pauses, and reports whether its lease runs.
	LockSession(ctx context.Context, id flow.ID) (s Session, runs bool, err error)
	// DropSession forgets a session; its executions are the caller's to recover.
	DropSession(ctx context.Context, id flow.ID) error
	// Expired locks up to n sessions whose lease does not run any more.
	Expired(ctx context.Context, n int) ([]Session, error)
	// ExpireEmbedded makes the lease of every embedded session run out now: the caller has just become the only process on
	// this database, so their workers are gone.
	ExpireEmbedded(ctx context.Context) error
	// OwnedBy locks up to n executions that the session holds, in order of id, beyond after.
	OwnedBy(ctx context.Context, session, after flow.ID, n int) ([]*flow.Execution, error)
	// Ordered returns the executions of the sessions that have an outstanding order to end.
	Ordered(ctx context.Context, sessions []flow.ID) ([]*flow.Execution, error)
}

// Session is one life of one worker process.
type Session struct {
	ID        flow.ID
	Name      string // for people; no fence
	Embedded  bool   // lives in the server's own process
	Queues    []string
	Kinds     []string // what it runs and has, as flow.ReachOf reads it; empty: the built-in kinds
	Slots     int
	StartedAt time.Time
	ExpiresAt time.Time // when the lease ends, by the clock of leases; zero once EndLeases was called
	Pauses    int64     // the latest generation of pauses; set by LockSession alone
}

// Catalog keeps definitions. A version never changes.
type Catalog interface {
	// Definition loads a version of a definition (0: the latest), or ErrNotFound.
	Definition(ctx context.Context, name string, version int) (Definition, error)
	// Define stores a document as the next version of its name, unless the latest version has the same hash; it returns
	// the version that now is the latest, and whether it is new.
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
