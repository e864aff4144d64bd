package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Reader answers readers. Every call sees committed data only; later calls see no less than earlier ones.
type Reader interface {
	ExecutionReader
	QueueReader
	SessionReader
	DefinitionReader
	Inputs
	Ends
	ScheduleReader
	SignalReader
	InquiryReader
	WaitReader
	AsideReader
	EnforcementReader
	SwitchReader
	WindowReader
	PauseReader
	LineReader
	RegistryReader
	RerunReader
	PendingReader
	Surveyor
	// Upload returns the upload of a sum that is there, or ErrNotFound.
	Upload(ctx context.Context, sum [sha256.Size]byte) (Upload, error)
	// Size is the bytes that the store takes.
	Size(ctx context.Context) (int64, error)
}

// ExecutionReader reads executions and what hangs on them.
type ExecutionReader interface {
	// Get loads one execution, payload and outcome included, or ErrNotFound.
	Get(ctx context.Context, id flow.ID) (*flow.Execution, error)
	// Search finds up to f.Limit executions, newest first (by id) unless f says otherwise, without payload; of the outcome they have the
	// error and not the output. Ask for the next page with f.Beyond the last id. A full Page may have fewer. A search that must look at
	// executions one by one gives up after f.Looks of them, so that it takes no longer however many there are.
	Search(ctx context.Context, f Filter) (Found, error)
	// Events returns up to n applied events with Seq > after, in order. The prefix is gap-free. A full Page may have fewer.
	Events(ctx context.Context, id flow.ID, after int64, n int) ([]flow.Event, error)
	// Children returns the rows of a workflow's current attempt, by task (in order of name) and index, at most n beyond
	// (afterTask, afterIndex); start with "" and -1.
	Children(ctx context.Context, of WorkflowAttempt, afterTask string, afterIndex, n int) ([]Child, error)
	// Marks returns the marks of a workflow's attempt.
	Marks(ctx context.Context, of WorkflowAttempt) ([]Mark, error)
	// Removable returns executions that retention may remove, in an order in which they can be removed.
	Removable(ctx context.Context, q RemovableQuery) (Removable, error)
}

// QueueReader tells how long queues and lines are, and how full keys.
type QueueReader interface {
	// Ahead counts the executions that come before x in the line it stands in (its queue, or its key's).
	Ahead(ctx context.Context, x *flow.Execution) (int, error)
	// KeyHolders returns up to n executions that hold the key.
	KeyHolders(ctx context.Context, key string, n int) ([]*flow.Execution, error)
	// Lines returns the lines of up to n concurrency keys in which executions wait, in order of the keys, beyond after.
	Lines(ctx context.Context, after string, n int) ([]Line, error)
	// Queues tells how long each queue is; queues without claimable executions are absent.
	Queues(ctx context.Context) ([]QueueDepth, error)
	// Keys tells how full the concurrency keys in use are, the fullest first, at most n.
	Keys(ctx context.Context, n int) (map[string]KeyUse, error)
}

// SessionReader reads the sessions of workers, and what they hold.
type SessionReader interface {
	// Provisioning returns up to n executions that sessions hold and have not begun, in order of (owner, id), beyond the one
	// given, without payload.
	Provisioning(ctx context.Context, owner, id flow.ID, n int) ([]*flow.Execution, error)
	// LiveSessions returns the sessions whose leases run.
	LiveSessions(ctx context.Context) ([]Session, error)
}

// DefinitionReader reads definitions.
type DefinitionReader interface {
	// Definition loads a version of a definition (0: the latest), or ErrNotFound.
	Definition(ctx context.Context, name string, version int) (Definition, error)
	// Latest loads the latest versions of definitions, by name; names that there are not are left out.
	Latest(ctx context.Context, names []string) ([]Definition, error)
	// Definitions returns the latest version of up to n definitions, by name, beyond after, without their documents.
	Definitions(ctx context.Context, after string, n int) ([]Definition, error)
}

// Line is the line of a concurrency key, seen from its head.
type Line struct {
	Key     string
	Head    *flow.Execution // the first to go, without payload
	Holders int             // executions that hold the key
}

// Filter selects executions. Zero fields select everything.
type Filter struct {
	Stages   []flow.Stage
	Action   string
	Workflow flow.ID // children of it
	TopLevel bool    // only what has no parent
	RerunOf  flow.ID // reruns of it
	RetryOf  flow.ID // retries of it
	Labels   map[string]string
	Verdicts []string  // ended with any of these: VerdictOK, or the code of the error
	Since    time.Time // created at or after
	Until    time.Time // created before
	IDs      []flow.ID // any of these
	Before   flow.ID   // ids below it; the cursor of a search that begins with the newest
	After    flow.ID   // ids above it; the cursor of a search that begins with the oldest
	Oldest   bool      // the oldest first
	Limit    int
	// Reach is how many executions a search looks at one by one; zero: 20,000.
	Reach int
	// Rare is how many rows a condition may name to be looked up; zero: a tenth of the reach. A caller that searches in many small steps sets it.
	Rare int
	// Within is for how long a walk goes on; zero: until its reach is used up. It makes its first step whatever that takes.
	Within time.Duration
}

// Looks is after how many executions a search gives up.
func (f *Filter) Looks() int { return cmp.Or(f.Reach, 20_000) } // some 50 ms on SQLite

// Few is how many rows a label, a stage or another condition may name so that a search looks at each of them, and at nothing else.
func (f *Filter) Few() int { return cmp.Or(f.Rare, f.Looks()/10) }

// clocksDiffer bounds how much later than its neighbours in the order of ids an execution may have been created: ids are made of the clock of a
// server, and CreatedAt of the database's.
const clocksDiffer = time.Hour

// Beyond is the filter of what comes behind an execution in the filter's order.
func (f Filter) Beyond(id flow.ID) Filter {
	if f.Oldest {
		f.After = id
	} else {
		f.Before = id
	}
	return f
}

// Ends reports whether a search that looks no further than an execution has looked at all between f.After and f.Before.
func (f *Filter) Ends(at flow.ID) bool {
	if f.Oldest {
		return !f.Before.IsZero() && bytes.Compare(at[:], f.Before[:]) >= 0
	}
	return bytes.Compare(at[:], f.After[:]) <= 0
}

// Past reports whether everything beyond an execution that was created at a time is too old for the filter, or too new where the oldest come
// first.
func (f *Filter) Past(at time.Time) bool {
	if f.Oldest {
		return !f.Until.IsZero() && at.After(f.Until.Add(clocksDiffer))
	}
	return !f.Since.IsZero() && at.Before(f.Since.Add(-clocksDiffer))
}

// Recent is what a search has found, without where it gave up if f is Past that.
func (f *Filter) Recent(found Found) Found {
	if f.Past(found.At) {
		found.Searched, found.At = flow.ID{}, time.Time{}
	}
	return found
}

// Found is what a search has found.
type Found struct {
	Executions []*flow.Execution
	// Searched is set where the search gave up: what matches and has this id, or comes before it in the filter's order, is in Executions.
	// To go on, search Beyond it.
	Searched flow.ID
	At       time.Time // when that execution was created
}

// List returns up to f.Limit executions however far it must look: it searches on where a search gives up.
func List(ctx context.Context, r Reader, f Filter) (all []*flow.Execution, err error) {
	for {
		found, err := r.Search(ctx, f)
		all = append(all, found.Executions...)
		if err != nil || found.Searched.IsZero() {
			return all, err
		}
		f = f.Beyond(found.Searched)
		f.Limit -= len(found.Executions)
	}
}

// How many executions a walk asks for at first, because most callers have enough by then, and how many after that; they are in memory together.
const (
	firstStep = 1000
	nextStep  = 2000
)

// readCost is how many executions a search passes over, on SQLite, in the time that it takes to read one, 6 µs.
const readCost = 6

// Walk gives take the executions that f selects, in f's order and some at a time, until take says that it has enough, f's reach is used up, or
// another step as long as the last would take it beyond f.Within. An execution that a search passes over counts once, and one that take gets readCost times. searched is where it gave up, as in Found; f's Limit is not looked at.
func Walk(ctx context.Context, r Reader, f Filter, take func(page []*flow.Execution) (over bool, err error)) (searched flow.ID, at time.Time, err error) {
	left := f.Looks()
	f.Rare = f.Few()
	var last flow.ID
	begun := time.Now()
	for step := firstStep; ; step = nextStep {
		stepped := time.Now()
		f.Limit = min(step, left)
		f.Reach = f.Limit
		found, err := r.Search(ctx, f)
		if err != nil {
			return flow.ID{}, at, err
		}
		if over, err := take(found.Executions); over || err != nil {
			return flow.ID{}, at, err
		}
		var size Page
		for _, x := range found.Executions {
			size.Execution(x)
		}
		switch n := len(found.Executions); {
		case n == f.Limit || size.Full():
			last, at = found.Executions[n-1].ID, found.Executions[n-1].CreatedAt
		case found.Searched.IsZero():
			return flow.ID{}, at, nil
		default:
			last, at = found.Searched, found.At
			f.Rare = 1 // none of the conditions is rare: counting to that again would take as long as a step
		}
		if left -= max(f.Limit, readCost*len(found.Executions)); left <= 0 || f.Past(at) {
			return last, at, nil
		}
		if now := time.Now(); f.Within > 0 && now.Sub(begun)+now.Sub(stepped) > f.Within {
			return last, at, nil
		}
		f = f.Beyond(last)
	}
}

// PageBytes is about how many bytes a Page has: what users store may be large, and a thousand of them larger than memory.
const PageBytes = 4 << 20

// Page counts the bytes of a page of List or Events. The page ends behind the item with which it is full, so it has one item
// at least where there is any. A store counts while it fills a page; a caller that counts too knows whether more may follow.
type Page int

// Full reports whether the page ends here.
func (p Page) Full() bool { return p >= PageBytes }

// Execution adds an execution, as List returns it.
func (p *Page) Execution(x *flow.Execution) {
	const fixed = 400 // ids, times and numbers as JSON has them
	n := fixed + len(x.Action) + len(x.Queue) + len(x.Key) + len(x.Task) + len(x.Traceparent)
	for k, v := range x.Labels {
		n += len(k) + len(v)
	}
	for _, on := range x.Retry.On {
		n += len(on)
	}
	if x.State.Cancel != nil {
		n += len(x.State.Cancel.Reason)
	}
	*p += Page(n)
	if x.Outcome != nil && x.Outcome.Error != nil {
		e := x.Outcome.Error
		*p += Page(len(e.Code) + len(e.Message) + len(e.Details))
	}
}

// Inquiry adds an inquiry.
func (p *Page) Inquiry(i *flow.Inquiry) {
	const fixed = 300
	n := fixed + len(i.Purpose) + len(i.Title) + len(i.Text) + len(i.Form) + len(i.Accept) + len(i.Default)
	for _, all := range [][]string{i.Assignees, i.Exclude} {
		for _, who := range all {
			n += len(who)
		}
	}
	if i.Answer != nil {
		n += len(i.Answer.Value) + len(i.Answer.Note)
	}
	*p += Page(n)
}

// Payload adds what an execution was given.
func (p *Page) Payload(x *flow.Execution) { *p += Page(x.PayloadSize()) }

// Output adds an execution's output.
func (p *Page) Output(output []byte) { *p += Page(len(output)) }

// Event adds an event.
func (p *Page) Event(e *flow.Event) {
	const fixed = 100
	*p += Page(fixed + len(e.Data))
}

// Child is one row of a workflow, with what readers of a workflow want to know of the execution.
type Child struct {
	Task      string
	Index     int
	Execution flow.ID
	Stage     flow.Stage // current
	Attempt   int

	Kind       flow.Kind
	CreatedAt  time.Time
	ClaimedAt  time.Time // of this attempt
	StartedAt  time.Time // of the first attempt
	FinishedAt time.Time
	WakeAt     time.Time // as flow.State has it
}

// QueueDepth is how long a queue is.
type QueueDepth struct {
	Queue  string
	Ready  int
	Oldest time.Time // when the one that has waited longest was queued
}

// Violation is one broken promise found by Check.
type Violation struct {
	Invariant int // number in docs/invariants.md
	Execution flow.ID
	Say       string
}

// Logs keeps what executions write, away from the hot rows. Chunks may be lost with the process up to the last second; the
// rest of the store never loses anything.
type Logs interface {
	// AppendLogs stores chunks; one that is stored already is ignored.
	AppendLogs(ctx context.Context, chunks []flow.LogChunk) error
	// ReadLogs returns chunks beyond the cursor, in order, up to about limit bytes (at least one chunk when there is one).
	ReadLogs(ctx context.Context, q LogQuery) ([]flow.LogChunk, error)
	// RemoveLogs deletes what executions wrote, in transactions of its own that each delete a bounded part.
	RemoveLogs(ctx context.Context, ids []flow.ID) error
}

// LogQuery selects chunks of one execution.
type LogQuery struct {
	Execution flow.ID
	Attempt   int    // 0: every attempt
	Stream    string // "": every stream
	// After is a cursor: chunks of a later attempt, or of the same attempt with a greater Seq.
	AfterAttempt int
	AfterSeq     int64
	// Before is a bound: chunks of an earlier attempt, or of the same attempt with a lesser Seq; attempt 0: none. A tail ends there.
	BeforeAttempt int
	BeforeSeq     int64
	// Offset skips the chunks of Stream that end at or before it; it needs Attempt and Stream.
	Offset int64
	// Tail begins with the last chunk behind whose start there are at least so many bytes, where nothing is After; 0: at the start.
	Tail  int64
	Limit int64 // bytes
}

// Bound is where the query ends: Before, or what no chunk reaches.
func (q *LogQuery) Bound() (attempt int, seq int64) {
	if q.BeforeAttempt == 0 {
		return math.MaxInt32, math.MaxInt64
	}
	return q.BeforeAttempt, q.BeforeSeq
}
