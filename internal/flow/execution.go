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

// Request is what was asked for. It does not change after submission, except Queue: store.WaitLists.Reroute moves the
// execution to another routing key of the same queue.
type Request struct {
	// Parent is the workflow execution that this one is a task of; zero for what a user submitted. (Parent, Task, Index)
	// within an attempt of the parent is unique.
	Parent        ID
	ParentAttempt int
	Task          string
	Index         int
	Depth         int32 // workflows above this one
	// NoCache says that no task of it, however deep, ends with an outcome from the cache. Outcomes of its tasks are put
	// into the cache. It shares a word with Depth (TestExecutionsAreSmall).
	NoCache bool

	Action  string // the registered name, or the kind for ad-hoc work
	Version int    // of the definition; 0 for ad-hoc work
	Alias   string // by which the version was asked for; empty: by its number, or as the latest
	Kind    Kind

	Queue    string
	Priority int // higher first

	Key      string // concurrency key; empty: none
	KeyLimit int    // how many may hold Key at once
	WhenFull WhenFull
	Fair     Fair // between whom Key's slots are shared

	Rate Rate // how often executions with its key begin

	Settings
	Retry Retry

	// Input is what the submitter gave; With is what the handler gets, nil when it is Input itself.
	Input json.RawMessage
	With  json.RawMessage

	Labels         map[string]string
	IdempotencyKey string
	Traceparent    string
	CreatedAt      time.Time
	NotBefore      time.Time // zero: at once

	// Signal is the signal for which a rule has started it; zero where no rule has. Rules are those that have led to it, the last one
	// last; a retry or rerun of it has the same rules, and no signal.
	Signal ID
	Rules  []string

	// RerunOf is the execution that this one runs again; zero for all others.
	RerunOf ID
	// Rerun says more of a rerun, of an item of one, or of a retry; nil: nothing. Copies of the request share it, so it is
	// replaced and never changed.
	Rerun *Rerun
	// ReusedOf is the execution whose outcome this one ended with instead of running; zero: it ran. That execution ran
	// itself: it has no ReusedOf.
	ReusedOf ID

	// Cache says under which hash the outcome is kept for executions with the same work, and for how long; nil: not at all. An execution that
	// has ReusedOf as well has ended with an outcome from the cache.
	Cache *Cache
}

// MaxCacheTime is how long outcomes are kept at most.
const MaxCacheTime = 30 * 24 * time.Hour

// Cache is how an outcome is kept.
type Cache struct {
	Hash [sha256.Size]byte // of what it is to do
	TTL  time.Duration
}

// Cached reports whether the execution ended with an outcome from the cache, and not with one that a rerun reuses.
func (r *Request) Cached() bool { return !r.ReusedOf.IsZero() && r.Cache != nil }

// LeaveWorkflow makes this the request of an execution that is no task of a workflow.
func (r *Request) LeaveWorkflow() {
	r.Parent, r.ParentAttempt, r.Task, r.Index, r.Depth = ID{}, 0, "", 0, 0
}

// PayloadSize is how many bytes Input and With have together.
func (r *Request) PayloadSize() int { return len(r.Input) + len(r.With) }

// Payload is what the handler gets.
func (r *Request) Payload() json.RawMessage {
	if r.With != nil {
		return r.With
	}
	return r.Input
}

// WhenFull says what a submission does when its concurrency key is full.
type WhenFull string

// What to do when a key is full. The zero value is WhenFullQueue.
const (
	WhenFullQueue        WhenFull = "queue"
	WhenFullCancelNew    WhenFull = "cancel_new"
	WhenFullCancelOldest WhenFull = "cancel_oldest"
)

// Place is the one position that an execution is in. It is stored, so "in at most one queue" holds by construction.
type Place uint8

// The places.
const (
	Delayed  Place = 1 + iota // waits for its time (State.WakeAt)
	Waiting                   // waits for its key
	Ready                     // in its queue, claimable; holds its key
	Held                      // handed off to a worker, or owned by the engine; holds its key
	Finished                  // terminal
)

var placeNames = [...]string{"", "delayed", "waiting", "ready", "held", "finished"}

// String is the place's name.
func (p Place) String() string { return placeNames[p] }

// HoldsKey reports whether an execution in p counts against its concurrency key's limit.
func (p Place) HoldsKey() bool { return p == Ready || p == Held }

// State is what changes: the position, who holds it, and the deadlines that depend on them.
type State struct {
	// The first three fit into one word: with it, an execution of 888 bytes is allocated in 896, and one byte more would take 1,024.
	Stage   Stage
	Place   Place
	Inbox   int32 // events stored ahead of a gap, not yet applied
	Attempt int
	NextSeq int64 // number of the next event
	Ticket  int64 // turn in the place; drawn when it entered Waiting or Ready
	Owner   ID    // worker session; zero when the engine owns it
	// HandedBack counts the attempts that ended because their worker was shut down or could not run them, or because their host took
	// them away (HostTook), or the process of their server died of something else (LoseWithServer). The program did not cause these ends, so
	// max_attempts does not count them.
	HandedBack int

	// WakeAt is when the engine looks at the execution again. Delayed: the end of the wait. Held, by kind: sleep: its end;
	// rerun: the next look; ask: the next reminder, or the expiry; wait: its timeout; workflow: when a step that was
	// postponed is due, or its pause ends. Zero: no time is set.
	WakeAt time.Time
	// QueuedAt is when the attempt became due. The wait in the wait list of a key counts from here too, so queue_timeout includes it.
	QueuedAt   time.Time
	ClaimedAt  time.Time // when the attempt was handed off
	StartedAt  time.Time // first attempt's running
	FinishedAt time.Time
	// EventAt is the time of the latest event; zero once the execution has ended, when FinishedAt is that.
	EventAt time.Time

	// SlotAt is the earliest start that the rate allows. It is drawn once, when the execution first becomes due, and later attempts keep it.
	// Zero: not drawn, or no rate.
	SlotAt time.Time

	Cancel    *CancelOrder // outstanding order to end it
	Aside     *Aside       // the engine could not decide about it, and leaves it alone for a while
	Pause     *Pause       // a KindWorkflow starts no tasks
	PausedFor *PausedFor   // how long its timers have stood still; nil: they never have
	GapSince  time.Time    // when it was seen that events of Inbox wait for an earlier one
}

// Aside says that a decision about an execution, a signal or a wait could not be carried out: the rules or the store refused it, or its
// row cannot be read. The engine tries it again later, so that those beside it go on.
type Aside struct {
	Until  time.Time `json:"until"`
	Times  int       `json:"times"` // that it has been put aside
	Reason string    `json:"reason"`
}

// AsideLimit bounds the reason for which an execution was put aside, in bytes.
const AsideLimit = 500

// CancelOrder is an order to end an execution that a session holds. It is carried out by the owner and recorded only when
// the owner, or recovery in its place, confirms it.
type CancelOrder struct {
	As     Stage     `json:"as"` // Cancelled, TimedOut, or Failed for a workflow whose next step is impossible
	Code   string    `json:"code"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Of a workflow: Until is when its clean-up is over at the latest, once that is known. Cleaning means that tasks that survive the order
	// are being run, Over that none is any more: what is open is ordered to end.
	Until    time.Time `json:"until,omitzero"`
	Cleaning bool      `json:"cleaning,omitempty"`
	Over     bool      `json:"over,omitempty"`
	Kill     bool      `json:"kill,omitempty"` // a program gets no grace, and neither do those of the tasks of a workflow
	// Key is the idempotency key of the request that gave the order, "" without one: the same request again is not a second cancel.
	Key string `json:"key,omitempty"`
}

// EndsForGood reports whether an order is outstanding that no attempt follows. The timeout of a workflow is carried out as
// an order, too, and ends one attempt of it.
func (s *State) EndsForGood() bool {
	return s.Cancel != nil && !endsOneAttempt(s.Cancel.As, s.Cancel.Code)
}

// endsOneAttempt reports whether an order is a workflow's own timeout. The order that its tasks get has the same code and ends them
// for good: as Cancelled.
func endsOneAttempt(stage Stage, code string) bool { return stage == TimedOut && code == CodeTimeout }

// GapTimeout is how long events may wait for one that comes before them. A gap that stays open longer means that the
// owner lost its own history: the attempt is over as lost.
const GapTimeout = 10 * time.Second

// InboxLimit is how many events of one execution are kept ahead of a gap. More are refused; their sender still has them
// and sends them again with every report.
const InboxLimit = 1000

// Wake is the next moment at which the engine has something to decide about x without being told; zero: never.
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

// pausedFor is how long its timers have stood still.
func (x *Execution) pausedFor() PausedFor {
	if x.State.PausedFor == nil {
		return PausedFor{}
	}
	return *x.State.PausedFor
}

// SleepsUntil is when a sleep is over that was to last for a time.
func (x *Execution) SleepsUntil(span time.Duration) time.Time {
	return x.ClaimedAt.Add(span + x.pausedFor().Here)
}

// EngineDeadline is when the attempt of something that the engine runs itself times out; zero: never, or its timers stand still.
func (x *Execution) EngineDeadline() time.Time {
	if x.Timeout == 0 || !x.Kind.ByEngine() || x.Place != Held || x.StandsStill() {
		return time.Time{}
	}
	return x.ClaimedAt.Add(x.Timeout + x.pausedFor().Here)
}

// CleanupDeadline is when the clean-up of a workflow that was ordered to end is over; zero: it has none, or is over already.
func (x *Execution) CleanupDeadline() time.Time {
	if c := x.State.Cancel; c != nil && x.Kind == KindWorkflow && x.Place == Held && !c.Over {
		return c.Until
	}
	return time.Time{}
}

// QueueDeadline is when the current attempt must have been claimed, counted from when it was due; zero: never, or its timers stand still.
func (x *Execution) QueueDeadline() time.Time {
	if x.QueueTimeout == 0 || x.QueuedAt.IsZero() || x.StandsStill() {
		return time.Time{}
	}
	return x.QueuedAt.Add(x.QueueTimeout)
}

// TotalDeadline is when the execution must have ended, retries included; zero: never, or its timers stand still.
func (x *Execution) TotalDeadline() time.Time {
	if x.TotalTimeout == 0 || x.StandsStill() {
		return time.Time{}
	}
	return x.CreatedAt.Add(x.TotalTimeout + x.pausedFor().All)
}
