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
	// ErrSessionLost means that the session's lease has expired: its attempts belong, or will soon belong, to other
	// sessions. Stop all of them and open a new session.
	ErrSessionLost = errors.New("session lost")
	// ErrUnavailable means that the engine cannot be reached or cannot commit at the moment; keep unacknowledged events and
	// try again.
	ErrUnavailable = errors.New("engine unavailable")
	// ErrRefused means that the engine refuses the worker because of its token or its version. Trying again changes
	// nothing.
	ErrRefused = errors.New("refused")
	// ErrBadCall means that the engine cannot read the call, or that no store would accept its content. It comes together with ErrUnavailable.
	// A repeated call is refused again, unless it was damaged in transit.
	ErrBadCall = errors.New("bad call")
	// ErrNotHeld means that the session does not hold the attempt named in the call.
	ErrNotHeld = errors.New("the session does not hold the attempt")
	// ErrNoBlob means that no blob has that name.
	ErrNoBlob = errors.New("no such blob")
	// ErrBlobRefused means that the attempt may not read or write the blob of that name, or that the blob is too large.
	ErrBlobRefused = errors.New("blob refused")
)

// The lease of a session, unless its renewals say otherwise. The database's clock decides when it ends; the worker decides by
// its own monotonic clock when to stop. A worker renews every third of the lease, less up to a fifth of that by jitter, and
// kills all its attempts after two thirds without a renewal.
const (
	Lease      = 30 * time.Second
	RenewEvery = Lease / 3
	StopAfter  = 2 * Lease / 3
)

// Session describes a worker to the engine. Kinds are the work that it can run, as flow.ReachOf reads them: all built-in kinds
// or none (flow.CheckKinds), custom kinds, runtimes, languages and labels. Without any it runs the built-in kinds.
type Session struct {
	ID       flow.ID  `json:"-"`
	Name     string   `json:"name"`
	Embedded bool     `json:"-"`
	Queues   []string `json:"queues"`
	Kinds    []string `json:"kinds"`
	Slots    int      `json:"slots"`
	// Instant are the kinds that a worker of the engine's process runs without occupying a slot. A call of Take returns
	// executions of them also beyond the requested number, up to MostInstant in all.
	Instant []flow.Kind `json:"-"`
}

// MostInstant is how many executions one call of Take returns, including those of instant kinds, unless it asks for more. Claiming 200 on
// SQLite takes about 5 ms, for which other requests wait. With one commit for them and one for their ends, a no-op costs a hundredth of a
// commit.
const MostInstant = 200

// Assignment is one attempt. It has been claimed for the session before it is handed over.
type Assignment struct {
	Execution flow.ID           `json:"execution"`
	Attempt   int               `json:"attempt"`
	NextSeq   int64             `json:"next_seq"` // number of the worker's first event
	Action    string            `json:"action"`
	Kind      flow.Kind         `json:"kind"`
	Payload   json.RawMessage   `json:"payload,omitempty"`
	Timeout   time.Duration     `json:"timeout,omitempty"` // of the attempt; 0: the handler's default
	Labels    map[string]string `json:"labels,omitempty"`
	// Workflow and Task say which task of which workflow this is; zero outside workflows.
	Workflow    flow.ID   `json:"workflow,omitzero"`
	Task        string    `json:"task,omitempty"`
	Index       int       `json:"index,omitempty"`
	Traceparent string    `json:"traceparent,omitempty"`
	Chain       string    `json:"chain,omitempty"` // value of the header Pawl-Chain on requests that the work sends; "" if no rule has led to it
	ClaimedAt   time.Time `json:"claimed_at"`
	// Resumed is set for an attempt that an earlier process of the worker began; nil otherwise.
	Resumed *Resumed `json:"resumed,omitempty"`
}

// Resumed is the recorded progress of an attempt.
type Resumed struct {
	Running bool             `json:"running,omitempty"` // its start was recorded
	Elapsed time.Duration    `json:"elapsed"`           // since its claim, by the engine's clock
	LogSeq  int64            `json:"log_seq"`           // number of its last log chunk
	Logs    map[string]int64 `json:"logs,omitempty"`    // recorded bytes of each stream
}

// Order tells the owner of an attempt to end it, and how to report the end.
type Order struct {
	Execution flow.ID    `json:"execution"`
	Attempt   int        `json:"attempt"`
	As        flow.Stage `json:"as"` // Cancelled or TimedOut
	Code      string     `json:"code"`
	Reason    string     `json:"reason"`
	AtOnce    bool       `json:"at_once,omitempty"` // without a grace; an earlier order may become one of these
}

type Renewal struct {
	Orders []Order `json:"orders,omitempty"` // all outstanding orders
	// Lease is how long the session lasts from this renewal on; 0 means Lease, the constant.
	Lease time.Duration `json:"lease,omitempty"`
}

type InputQuery struct {
	Execution flow.ID `json:"execution"`
	Attempt   int     `json:"attempt"`
	From      int64   `json:"from"` // offset of the first byte
}

// Input is a part of an execution's input: bytes, or the end, or both.
type Input struct {
	Data []byte `json:"data,omitempty"`
	Last bool   `json:"last,omitempty"` // nothing follows Data
}

// Empty reports whether there is nothing yet.
func (in *Input) Empty() bool { return len(in.Data) == 0 && !in.Last }

// Leased is implemented by a Handoff whose leases may differ from the constant Lease.
type Leased interface{ Lease() time.Duration }

// Concurrent is implemented by a Handoff on which a session may have several calls of Take under way, and on which its worker
// should have several of Report; on others it has one of each. Two transactions side by side can then serve the worker.
type Concurrent interface{ Calls() int }

// Calls is how many calls of Take, and of Report, a worker should have under way.
func Calls(h Handoff) int {
	if c, ok := h.(Concurrent); ok {
		return c.Calls()
	}
	return 1
}

// Stray is work in an answer that came when no call of Take waited for it any more.
type Stray struct {
	Session flow.ID
	Work    []Assignment
}

// Straying is implemented by a Handoff on which an answer to Take may come twice, or after the call was given up. Its worker
// starts the attempts of such an answer that it does not know yet and has slots for.
type Straying interface{ Strays() <-chan Stray }

// Handoff connects one worker process with the engine. It is safe for concurrent use. Every method returns ErrSessionLost once
// the session has ended.
type Handoff interface {
	// Open registers a new session and returns its id.
	Open(ctx context.Context, s Session) (flow.ID, error)
	// Resume is Open for a worker whose previous process had a session. The caller must be certain that this process is dead. The attempts in
	// keep move from the old session to the new one and are returned, to be continued from their present state; the others are recovered at
	// once. Events of the dead process that arrive from now on are not recorded. A session with an expired lease keeps nothing.
	Resume(ctx context.Context, s Session, before flow.ID, keep []flow.AttemptID) (flow.ID, []Assignment, error)
	// Take claims up to n executions for the session. It waits until there is one or ctx ends. The claims are committed
	// before it returns. If the answer with claimed work is lost, Missed returns the work, or the engine recovers it. A
	// session makes one call at a time, unless the hand-off is Concurrent.
	Take(ctx context.Context, session flow.ID, n int) ([]Assignment, error)
	// Missed returns attempts that the session holds, has not begun and does not name in have: the answer with them may be
	// lost. It leaves out attempts that were claimed a moment ago, because their answer may still come, and those that are
	// about to be recovered. A late answer may hand over an attempt that Missed has returned, so the worker must recognise
	// it.
	Missed(ctx context.Context, session flow.ID, have []flow.AttemptID) ([]Assignment, error)
	// Report sends events; each report gets its receipt, in order. A report may always be repeated.
	Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error)
	// Decline gives back attempts of the session that it cannot run and has not begun. They do not count, and the next
	// attempts open after a pause. Attempts that have begun, or that the session does not hold, do not change.
	Decline(ctx context.Context, session flow.ID, attempts []flow.AttemptID) error
	// Log sends log chunks. They must be accepted before the event that ends their attempt is reported.
	Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error
	// Input returns the input of an execution from an offset on. It waits until there is some or ctx ends. Only the session
	// that holds the attempt may ask, others get ErrNotHeld. Every attempt reads from the beginning.
	Input(ctx context.Context, session flow.ID, q InputQuery) (Input, error)
	// Renew prolongs the lease and returns the outstanding orders.
	Renew(ctx context.Context, session flow.ID) (Renewal, error)
	// Orders waits until there is an order for the session or ctx ends, and returns all outstanding ones. An order that it
	// misses comes with the next Renew.
	Orders(ctx context.Context, session flow.ID) ([]Order, error)
	// Close ends the session; the engine recovers its attempts at once.
	Close(ctx context.Context, session flow.ID) error
}
