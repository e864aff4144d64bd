// Package handoff is the port between the engine and the workers: how claimed work reaches a worker, and how the worker's
// reports and logs come back.
package handoff

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

var (
	// ErrSessionLost means that the session's lease has run out: what it held is or will be another session's. Stop
	// everything and open a new session.
	ErrSessionLost = errors.New("session lost")
	// ErrUnavailable means that the engine cannot be reached or cannot commit just now; keep what is unacknowledged and
	// try again.
	ErrUnavailable = errors.New("engine unavailable")
	// ErrRefused means that the engine refuses the worker for what it is: its token, or its version. To ask again changes
	// nothing.
	ErrRefused = errors.New("refused")
	// ErrBadCall means that the engine cannot read the call, or that no store would keep what it says. It comes with ErrUnavailable. The
	// same call is refused again, unless it was damaged on its way.
	ErrBadCall = errors.New("bad call")
	// ErrNotHeld means that the session does not hold the attempt that it asks about.
	ErrNotHeld = errors.New("the session does not hold the attempt")
	// ErrNoBlob means that there is no blob of that name.
	ErrNoBlob = errors.New("no such blob")
	// ErrBlobRefused means that the attempt may not have its way with the blob of that name, or that it is too large.
	ErrBlobRefused = errors.New("blob refused")
)

// The lease of a session, unless its renewals say otherwise. The database's clock decides expiry; the worker's own
// monotonic clock decides when to stop. A worker renews every third of the lease, less up to a fifth by jitter, and kills
// everything that runs after two thirds without a renewal.
const (
	Lease      = 30 * time.Second
	RenewEvery = Lease / 3
	StopAfter  = 2 * Lease / 3
)

// Session describes a worker to the engine. Kinds are what it runs and has, as flow.ReachOf reads them: all built-in kinds or
// none (flow.CheckKinds), custom kinds, runtimes, languages and labels; none named: the built-in kinds.
type Session struct {
	ID       flow.ID  `json:"-"`
	Name     string   `json:"name"`
	Embedded bool     `json:"-"`
	Queues   []string `json:"queues"`
	Kinds    []string `json:"kinds"`
	Slots    int      `json:"slots"`
}

// Assignment is one attempt, claimed for the session before it is handed over.
type Assignment struct {
	Execution flow.ID           `json:"execution"`
	Attempt   int               `json:"attempt"`
	NextSeq   int64             `json:"next_seq"` // number of the worker's first event
	Action    string            `json:"action"`
	Kind      flow.Kind         `json:"kind"`
	Payload   json.RawMessage   `json:"payload,omitempty"`
	Timeout   time.Duration     `json:"timeout,omitempty"` // of the attempt; 0: the handler's default
	Labels    map[string]string `json:"labels,omitempty"`
	// Workflow and Task tell where the work belongs; zero outside workflows.
	Workflow    flow.ID   `json:"workflow,omitzero"`
	Task        string    `json:"task,omitempty"`
	Index       int       `json:"index,omitempty"`
	Traceparent string    `json:"traceparent,omitempty"`
	Chain       string    `json:"chain,omitempty"` // value of the header Pawl-Chain for what the work sends; "" where no rule has led to it
	ClaimedAt   time.Time `json:"claimed_at"`
	// Resumed is set for an attempt that an earlier process of the worker began; nil for one to begin.
	Resumed *Resumed `json:"resumed,omitempty"`
}

// Resumed says how far an attempt is, as far as it was recorded.
type Resumed struct {
	Running bool             `json:"running,omitempty"` // that it began
	Elapsed time.Duration    `json:"elapsed"`           // since its claim, by the engine's clock
	LogSeq  int64            `json:"log_seq"`           // its next log chunk has a greater number
	Logs    map[string]int64 `json:"logs,omitempty"`    // how many bytes of each stream are kept
}

// Order tells the owner of an attempt to end it, and how to report the end.
type Order struct {
	Execution flow.ID    `json:"execution"`
	Attempt   int        `json:"attempt"`
	As        flow.Stage `json:"as"` // Cancelled or TimedOut
	Code      string     `json:"code"`
	Reason    string     `json:"reason"`
}

// Renewal answers a renewal.
type Renewal struct {
	Orders []Order `json:"orders,omitempty"` // all outstanding ones
	// Lease is how long the session lasts from this renewal on; 0 means Lease, the constant.
	Lease time.Duration `json:"lease,omitempty"`
}

// InputQuery asks for the input of an attempt.
type InputQuery struct {
	Execution flow.ID `json:"execution"`
	Attempt   int     `json:"attempt"`
	From      int64   `json:"from"` // offset of the first byte
}

// Input is what an execution has been given to read: bytes, or the end, or both.
type Input struct {
	Data []byte `json:"data,omitempty"`
	Last bool   `json:"last,omitempty"` // nothing follows
}

// Empty reports whether there is nothing yet.
func (in *Input) Empty() bool { return len(in.Data) == 0 && !in.Last }

// Leased is a Handoff whose leases may be other than Lease, the constant.
type Leased interface{ Lease() time.Duration }

// Concurrent is a Handoff on which a session may have several calls of Take under way, and its worker should have several
// of Report; on others it has one of each at a time. Two transactions side by side can serve such a worker.
type Concurrent interface{ Calls() int }

// Calls is how many calls of Take, and of Report, a worker is to have under way.
func Calls(h Handoff) int {
	if c, ok := h.(Concurrent); ok {
		return c.Calls()
	}
	return 1
}

// Stray is work that was handed over by an answer for which no call of Take waits any more.
type Stray struct {
	Session flow.ID
	Work    []Assignment
}

// Straying is a Handoff on which answers to Take may come twice, or after the call was given up. Its worker runs what comes so if it
// knows none of it and has slots for it.
type Straying interface{ Strays() <-chan Stray }

// Handoff connects one worker process with the engine. It is safe for concurrent use. Every method returns ErrSessionLost
// once the session is gone.
type Handoff interface {
	// Open registers a new session and returns its id.
	Open(ctx context.Context, s Session) (flow.ID, error)
	// Resume is Open for a worker whose process before had a session, and is dead: the caller is certain of that. What
	// that session holds of keep becomes the new one's, to be gone on with from where it is, and is returned; the rest of
	// it is recovered at once. Nothing that the dead process has sent, and that arrives from now on, is recorded. A
	// session whose lease has run out keeps nothing.
	Resume(ctx context.Context, s Session, before flow.ID, keep []flow.AttemptID) (flow.ID, []Assignment, error)
	// Take claims up to n executions for the session, waiting until there is one or ctx ends. What it returns is
	// committed as this session's. Work that was claimed when the answer could not be delivered is Missed, or else recovered
	// as lost. A session makes one such call at a time, unless the hand-off is Concurrent.
	Take(ctx context.Context, session flow.ID, n int) ([]Assignment, error)
	// Missed returns attempts that the session holds, has not begun and does not name among those it has: the answer with which
	// they were handed over may be lost. Ones that were claimed a moment ago are left out, because their answer may still
	// come, and ones that are about to be recovered. An answer that was only late, and what is returned here, may hand over
	// the same attempt: the worker must know it again.
	Missed(ctx context.Context, session flow.ID, have []flow.AttemptID) ([]Assignment, error)
	// Report hands in events; each report gets its receipt, in order. Reporting again is always safe.
	Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error)
	// Decline gives back attempts of the session that it cannot run and has not begun: they do not count, and the next ones
	// open after a pause. Attempts that have begun, or that are not the session's any more, stay as they are.
	Decline(ctx context.Context, session flow.ID, attempts []flow.AttemptID) error
	// Log hands in log chunks. A chunk must be handed in before the event that ends its attempt.
	Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error
	// Input returns what an execution has been given to read from an offset on, waiting until there is something or ctx
	// ends. Only the session that holds the attempt may ask: ErrNotHeld. Every attempt reads from the beginning.
	Input(ctx context.Context, session flow.ID, q InputQuery) (Input, error)
	// Renew prolongs the lease and returns the outstanding orders.
	Renew(ctx context.Context, session flow.ID) (Renewal, error)
	// Orders waits until an order for the session is given (or ctx ends) and returns the outstanding ones. It is the
	// fast path; what it misses comes with the next Renew.
	Orders(ctx context.Context, session flow.ID) ([]Order, error)
	// Close ends the session; what it still holds is recovered at once.
	Close(ctx context.Context, session flow.ID) error
}
