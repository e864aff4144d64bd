package flow

import (
	"crypto/sha256"
	"encoding/json"
	"time"
)

// Execution is one run of an action or a workflow, from request to outcome.
type Execution struct {
	ID ID
	Request
	State
	// Outcome is set exactly when Stage is terminal.
	Outcome *Outcome
}

// Request is the submitted request. It does not change after submission, except Queue: store.WaitLists.Reroute moves
// the execution to another routing key of the same queue.
type Request struct {
	// Parent is the workflow execution of which this one is a task; zero if a user submitted it. (Parent, Task, Index)
	// within an attempt of the parent is unique.
	Parent        ID
	ParentAttempt int
	Task          string
	Index         int
	Depth         int32 // workflows above this one
	// NoCache means that no task of it, at any depth, ends with an outcome from the cache. Outcomes of its tasks are put
	// into the cache. It shares a word with Depth (TestExecutionsAreSmall).
	NoCache bool

	Action  string // the registered name, or the kind for ad-hoc work
	Version int    // of the definition; 0 for ad-hoc work
	Alias   string // the alias that was submitted; empty: a version number, or the latest
	Kind    Kind

	Queue    string
	Priority int // higher first

	Key      string // concurrency key; empty: none
	KeyLimit int    // how many may hold Key at once
	WhenFull WhenFull
	Fair     Fair // who shares Key's slots in turns

	Rate Rate // how often executions with its key may begin

	Settings
	Retry Retry

	// Input is from the submitter; With is for the handler, nil if it is Input itself.
	Input json.RawMessage
	With  json.RawMessage

	Labels         map[string]string
	IdempotencyKey string
	Traceparent    string
	CreatedAt      time.Time
	NotBefore      time.Time // zero: at once

	// Signal is the signal for which a rule has started it; zero if no rule has. Rules are the rules that have led to it, in order; a retry or
	// rerun of it has the same rules, and no signal.
	Signal ID
	Rules  []string

	// RerunOf is the execution that this one reruns; zero if it is not a rerun.
	RerunOf ID
	// Rerun has more fields of a rerun, of an item of one, or of a retry; nil for other requests. Copies of the request share it, so it is
	// replaced and never changed.
	Rerun *Rerun
	// ReusedOf is the execution whose outcome this one ended with instead of running; zero: it ran. That execution ran
	// itself: it has no ReusedOf.
	ReusedOf ID

	// Cache is the hash under which the outcome is kept for executions with the same work, and for how long; nil: it is not kept. If ReusedOf
	// is set as well, the execution has ended with an outcome from the cache.
	Cache *Cache
}

// MaxCacheTime is how long an outcome may be kept.
const MaxCacheTime = 30 * 24 * time.Hour

// Cache is how an outcome is kept.
type Cache struct {
	Hash [sha256.Size]byte // of its work
	TTL  time.Duration
}

// Cached reports whether the execution ended with an outcome from the cache, and not with one reused by a rerun.
func (r *Request) Cached() bool { return !r.ReusedOf.IsZero() && r.Cache != nil }

// LeaveWorkflow makes this the request of an execution that is not a task of a workflow.
func (r *Request) LeaveWorkflow() {
	r.Parent, r.ParentAttempt, r.Task, r.Index, r.Depth = ID{}, 0, "", 0, 0
}

// PayloadSize is the size of Input and With in bytes.
func (r *Request) PayloadSize() int { return len(r.Input) + len(r.With) }

// Payload is the input of the handler.
func (r *Request) Payload() json.RawMessage {
	if r.With != nil {
		return r.With
	}
	return r.Input
}

// WhenFull is what a submission does if its concurrency key is full.
type WhenFull string

// Values of WhenFull. The zero value is WhenFullQueue.
const (
	WhenFullQueue        WhenFull = "queue"
	WhenFullCancelNew    WhenFull = "cancel_new"
	WhenFullCancelOldest WhenFull = "cancel_oldest"
)

// Place is the one position that an execution is in. It is stored, so "in at most one queue" holds by construction.
type Place uint8

const (
	Delayed  Place = 1 + iota // waits for its time (State.WakeAt)
	Waiting                   // waits for its key
	Ready                     // in its queue, claimable; holds its key
	Held                      // handed off to a worker, or owned by the engine; holds its key
	Finished                  // terminal
)

var placeNames = [...]string{"", "delayed", "waiting", "ready", "held", "finished"}

func (p Place) String() string { return placeNames[p] }

// HoldsKey reports whether an execution in p counts against its concurrency key's limit.
func (p Place) HoldsKey() bool { return p == Ready || p == Held }

// State is the changing part of an execution: its position, its owner, and the times that depend on them.
type State struct {
	// The first three fit into one word: with it, an execution of 888 bytes is allocated in 896; one byte more would take 1,024.
	Stage   Stage
	Place   Place
	Inbox   int32 // events stored ahead of a gap, not yet applied
	Attempt int
	NextSeq int64 // number of the next event
	Ticket  int64 // turn in its place; drawn when it entered Waiting or Ready
	Owner   ID    // worker session; zero when the engine owns it
	// HandedBack counts the attempts that ended because their worker was shut down or could not run them, because their host ended them
	// (HostTook), or because the process of their server died of something else (LoseWithServer). The program did not cause these ends, so
	// max_attempts does not count them.
	HandedBack int

	// WakeAt is when the engine looks at the execution again. Delayed: the end of the wait. Held, by kind: sleep: its end; rerun: the next
	// look; ask: the next reminder, or the expiry; wait: its timeout; workflow: when a postponed step is due, or its pause ends. Zero: no time
	// is set.
	WakeAt time.Time
	// QueuedAt is when the attempt became due. Time in the wait list of a key counts too, so queue_timeout includes it.
	QueuedAt   time.Time
	ClaimedAt  time.Time // when the attempt was handed off
	StartedAt  time.Time // first attempt's running
	FinishedAt time.Time
	// EventAt is the time of the latest event; zero once the execution has ended, because FinishedAt has it.
	EventAt time.Time

	// SlotAt is the earliest start that the rate allows. It is drawn once, when the execution first becomes due, and later attempts keep it.
	// Zero: not drawn, or no rate.
	SlotAt time.Time

	Cancel    *CancelOrder // outstanding order to end it
	Aside     *Aside       // a decision about it was refused: the engine postpones it for a while
	Pause     *Pause       // a KindWorkflow starts no tasks
	PausedFor *PausedFor   // how long its timers have been stopped; nil: never
	GapSince  time.Time    // when events of Inbox were found to wait for an earlier one
}

// Aside records that a decision about an execution, a signal or a wait failed: the rules or the store refused it, or its row cannot be
// read. The engine tries it again later and continues with others.
type Aside struct {
	Until  time.Time `json:"until"`
	Times  int       `json:"times"` // that it has been put aside
	Reason string    `json:"reason"`
}

// AsideLimit bounds the reason of an Aside, in bytes.
const AsideLimit = 500

// CancelOrder is an order to end an execution that a session holds. The owner obeys it; the end is recorded only when the owner, or
// recovery in its place, confirms it.
type CancelOrder struct {
	As     Stage     `json:"as"` // Cancelled, TimedOut, or Failed for a workflow whose next step is impossible
	Code   string    `json:"code"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// For a workflow: Until is the latest end of its clean-up, once that is known. Cleaning means that tasks that survive the order are
	// running; Over means that the clean-up has ended and open tasks are ordered to end.
	Until    time.Time `json:"until,omitzero"`
	Cleaning bool      `json:"cleaning,omitempty"`
	Over     bool      `json:"over,omitempty"`
	Kill     bool      `json:"kill,omitempty"` // a program gets no grace, and neither do those of a workflow's tasks
	// Key is the idempotency key of the request with the order, "" without one: the same request again is not a second cancel.
	Key string `json:"key,omitempty"`
}

// EndsForGood reports whether an order is outstanding after which no attempt follows. The timeout of a workflow is an order, too, but ends
// only one attempt.
func (s *State) EndsForGood() bool {
	return s.Cancel != nil && !endsOneAttempt(s.Cancel.As, s.Cancel.Code)
}

// endsOneAttempt reports whether an order is a workflow's own timeout. The order for its tasks has the same code and ends them finally: as
// Cancelled.
func endsOneAttempt(stage Stage, code string) bool { return stage == TimedOut && code == CodeTimeout }

// GapTimeout is how long events may wait for an earlier one. A longer gap means that the owner lost its own history:
// the attempt ends as lost.
const GapTimeout = 10 * time.Second

// InboxLimit is how many events of one execution are kept ahead of a gap. More are refused; their sender still has them and repeats them
// with every report.
const InboxLimit = 1000

// Wake is the next time at which the engine must decide about x by itself; zero: never.
func (x *Execution) Wake() time.Time {
	var wake time.Time
	earliest := func(t time.Time) {
		if wake.IsZero() || t.Before(wake) {
			wake = t
		}
	}
	switch {
	case x.Place == Finished:
		return wake
	case x.Aside != nil:
		return x.Aside.Until
	case x.StandsStill() && (x.Kind != KindWorkflow || x.Place != Held):
		if !x.State.Pause.Until.IsZero() {
			earliest(x.State.Pause.Until)
		}
		if x.WaitsForSlot() {
			earliest(x.WakeAt)
		}
	case x.Place == Delayed, x.Place == Held && x.Kind.ByEngine() && !x.WakeAt.IsZero():
		earliest(x.WakeAt)
	}
	if d := x.QueueDeadline(); !d.IsZero() && x.Place < Held {
		earliest(d)
	}
	if d := x.EngineDeadline(); !d.IsZero() && x.Cancel == nil {
		earliest(d)
	}
	if d := x.TotalDeadline(); !d.IsZero() && !x.EndsForGood() {
		earliest(d)
	}
	if d := x.CleanupDeadline(); !d.IsZero() {
		earliest(d)
	}
	if !x.GapSince.IsZero() {
		earliest(x.GapSince.Add(GapTimeout))
	}
	return wake
}

// pausedFor is how long its timers have been stopped.
func (x *Execution) pausedFor() PausedFor {
	if x.State.PausedFor == nil {
		return PausedFor{}
	}
	return *x.State.PausedFor
}

// SleepsUntil is when a sleep of a given length ends.
func (x *Execution) SleepsUntil(span time.Duration) time.Time {
	return x.ClaimedAt.Add(span + x.pausedFor().Here)
}

// EngineDeadline is when the attempt of an execution that the engine runs itself times out; zero: never, or its timers are stopped.
func (x *Execution) EngineDeadline() time.Time {
	if x.Timeout == 0 || !x.Kind.ByEngine() || x.Place != Held || x.StandsStill() {
		return time.Time{}
	}
	return x.ClaimedAt.Add(x.Timeout + x.pausedFor().Here)
}

// CleanupDeadline is when the clean-up of a workflow that was ordered to end must be over; zero: it has none, or is over already.
func (x *Execution) CleanupDeadline() time.Time {
	if c := x.State.Cancel; c != nil && x.Kind == KindWorkflow && x.Place == Held && !c.Over {
		return c.Until
	}
	return time.Time{}
}

// QueueDeadline is when the current attempt must have been claimed, counted from when it was due; zero: never, or its timers are stopped.
func (x *Execution) QueueDeadline() time.Time {
	if x.QueueTimeout == 0 || x.QueuedAt.IsZero() || x.StandsStill() {
		return time.Time{}
	}
	return x.QueuedAt.Add(x.QueueTimeout)
}

// TotalDeadline is when the execution must have ended, retries included; zero: never, or its timers are stopped.
func (x *Execution) TotalDeadline() time.Time {
	if x.TotalTimeout == 0 || x.StandsStill() {
		return time.Time{}
	}
	return x.CreatedAt.Add(x.TotalTimeout + x.pausedFor().All)
}
