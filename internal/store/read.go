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

// Reader reads committed data only. A later call never sees less than an earlier one.
type Reader interface {
	ExecutionReader
	QueueReader
	SessionReader
	DefinitionReader
	Inputs
	OutcomeReader
	ScheduleReader
	SignalReader
	InquiryReader
	WaitReader
	AsideReader
	EnforcementReader
	SwitchReader
	WindowReader
	PauseReader
	WaitListReader
	RegistryReader
	RerunReader
	PendingReader
	Surveyor
	// Upload returns the upload with a sum, if its content exists, or ErrNotFound.
	Upload(ctx context.Context, sum [sha256.Size]byte) (Upload, error)
	// Size is how many bytes the store occupies.
	Size(ctx context.Context) (int64, error)
}

// ExecutionReader reads executions, their histories and their children.
type ExecutionReader interface {
	// Get loads one execution, payload and outcome included, or ErrNotFound.
	Get(ctx context.Context, id flow.ID) (*flow.Execution, error)
	// Search finds up to f.Limit executions, newest first (by id) unless f says otherwise, without payload; of the outcome they have the error
	// but not the output. For the next page, search f.Beyond the last id. It returns fewer if a Page is full. A search that must examine
	// executions one by one gives up after f.Looks of them, so it does not take longer if there are more.
	Search(ctx context.Context, f Filter) (Found, error)
	// Events returns up to n applied events with Seq > after, in order and without a gap. It returns fewer if a Page is
	// full.
	Events(ctx context.Context, id flow.ID, after int64, n int) ([]flow.Event, error)
	// Children returns the rows of a workflow's current attempt, sorted by task name and index, at most n beyond
	// (afterTask, afterIndex); start with "" and -1.
	Children(ctx context.Context, of WorkflowAttempt, afterTask string, afterIndex, n int) ([]Child, error)
	// Marks returns the marks of a workflow's attempt.
	Marks(ctx context.Context, of WorkflowAttempt) ([]Mark, error)
	// Removable returns executions that retention may remove, in an order in which they can be removed.
	Removable(ctx context.Context, q RemovableQuery) (Removable, error)
}

// QueueReader reads the lengths of queues and wait lists, and the holders of keys.
type QueueReader interface {
	// Ahead counts the executions before x in its wait list: its queue, or its key's.
	Ahead(ctx context.Context, x *flow.Execution) (int, error)
	// KeyHolders returns up to n executions that hold the key.
	KeyHolders(ctx context.Context, key string, n int) ([]*flow.Execution, error)
	// WaitLists returns the wait lists of up to n concurrency keys for which executions wait, sorted by key, beyond after.
	WaitLists(ctx context.Context, after string, n int) ([]WaitList, error)
	// Queues returns the length of each queue that has claimable executions.
	Queues(ctx context.Context) ([]QueueDepth, error)
	// Keys returns the use of up to n concurrency keys, the fullest first.
	Keys(ctx context.Context, n int) (map[string]KeyUse, error)
}

// SessionReader reads the sessions of workers, and what they hold.
type SessionReader interface {
	// Provisioning returns up to n executions that sessions have claimed and not begun, sorted by (owner, id), beyond the given one, without
	// payload.
	Provisioning(ctx context.Context, owner, id flow.ID, n int) ([]*flow.Execution, error)
	// LiveSessions returns the sessions whose leases have not expired.
	LiveSessions(ctx context.Context) ([]Session, error)
}

// DefinitionReader reads definitions.
type DefinitionReader interface {
	// Definition loads a version of a definition (0: the latest), or ErrNotFound.
	Definition(ctx context.Context, name string, version int) (Definition, error)
	// Latest loads the latest versions of definitions by name; unknown names are left out.
	Latest(ctx context.Context, names []string) ([]Definition, error)
	// Definitions returns the latest version of up to n definitions, by name, beyond after, without their documents.
	Definitions(ctx context.Context, after string, n int) ([]Definition, error)
}

// WaitList is the head of a concurrency key's wait list, and its length.
type WaitList struct {
	Key     string
	Head    *flow.Execution // the next one to be admitted, without payload
	Holders int             // executions that hold the key
}

// Filter selects executions. Zero fields select everything.
type Filter struct {
	Stages   []flow.Stage
	Action   string
	Workflow flow.ID // children of it
	TopLevel bool    // only executions without a parent
	RerunOf  flow.ID // reruns of it
	RetryOf  flow.ID // retries of it
	Labels   map[string]string
	Verdicts []string  // ended with one of these: VerdictOK, or the code of the error
	Since    time.Time // created at or after
	Until    time.Time // created before
	IDs      []flow.ID // any of these
	Before   flow.ID   // ids below this one; the cursor of a search that begins with the newest
	After    flow.ID   // ids above this one; the cursor of a search that begins with the oldest
	Oldest   bool      // oldest first
	Limit    int
	// Reach is how many executions a search examines one by one; zero: 20,000.
	Reach int
	// Rare is how many rows a condition may have for a search to read only those; zero: a tenth of the reach. Callers that search in many
	// small steps set it.
	Rare int
	// Within is how long a walk continues; zero: until its reach is used up. The first step is always made.
	Within time.Duration
}

// Looks returns the number of executions after which a search gives up.
func (f *Filter) Looks() int { return cmp.Or(f.Reach, 20_000) } // takes some 50 ms on SQLite

// Few returns how many rows a label, a stage or another condition may have for a search to read only those.
func (f *Filter) Few() int { return cmp.Or(f.Rare, f.Looks()/10) }

// clocksDiffer is how much later an execution may have been created than its neighbours in the order of ids: ids come from a server's
// clock, CreatedAt from the database's.
const clocksDiffer = time.Hour

// Beyond returns the filter for the executions after id, in the filter's order.
func (f Filter) Beyond(id flow.ID) Filter {
	if f.Oldest {
		f.After = id
	} else {
		f.Before = id
	}
	return f
}

// Ends reports whether a search that has reached an execution has examined everything between f.After and f.Before.
func (f *Filter) Ends(at flow.ID) bool {
	if f.Oldest {
		return !f.Before.IsZero() && bytes.Compare(at[:], f.Before[:]) >= 0
	}
	return bytes.Compare(at[:], f.After[:]) <= 0
}

// Past reports whether all executions after one that was created at a time are too old for the filter (or too new, if the oldest come
// first).
func (f *Filter) Past(at time.Time) bool {
	if f.Oldest {
		return !f.Until.IsZero() && at.After(f.Until.Add(clocksDiffer))
	}
	return !f.Since.IsZero() && at.Before(f.Since.Add(-clocksDiffer))
}

// Recent returns the result of a search. It removes the mark that the search gave up if all further executions are outside f's times.
func (f *Filter) Recent(found Found) Found {
	if f.Past(found.At) {
		found.Searched, found.At = flow.ID{}, time.Time{}
	}
	return found
}

// Found is the result of a search.
type Found struct {
	Executions []*flow.Execution
	// Searched is set if the search gave up: Executions has the matches up to and including this id, in the filter's order. To continue,
	// search Beyond it.
	Searched flow.ID
	At       time.Time // creation time of the execution Searched
}

// List returns up to f.Limit executions, however many must be examined: when a search gives up, it starts the next one.
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

// How many executions a walk reads at first, since this is enough for most callers, and how many in later steps. The executions of one step
// are in memory together.
const (
	firstStep = 1000
	nextStep  = 2000
)

// readCost is how many executions a search on SQLite skips in the time that reading one takes (6 µs).
const readCost = 6

// Walk passes the executions that f selects to take, in f's order, several at a time. It ends when take returns over, when f's reach is
// used up, or when another step as long as the last one would exceed f.Within. An execution that the search skips counts once, one that is
// passed to take counts readCost times. searched is where it gave up, as in Found. f's Limit is ignored.
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
			f.Rare = 1 // no condition is rare: finding that out again would take as long as a step
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

// PageBytes is the approximate size of a Page. User data may be large: a thousand items may not fit into memory.
const PageBytes = 4 << 20

// Page counts the bytes of a page of a list. The page ends after the item that fills it, so it has at least one item if there is any. A
// store counts while it fills a page; if the caller counts too, it knows whether there may be more.
type Page int

// Full reports whether the page must end here.
func (p Page) Full() bool { return p >= PageBytes }

// Execution adds the size of an execution in lists.
func (p *Page) Execution(x *flow.Execution) {
	const fixed = 400 // size of ids, times and numbers as JSON
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

// Payload adds the size of an execution's payload.
func (p *Page) Payload(x *flow.Execution) { *p += Page(x.PayloadSize()) }

// Output adds an execution's output.
func (p *Page) Output(output []byte) { *p += Page(len(output)) }

// Event adds an event.
func (p *Page) Event(e *flow.Event) {
	const fixed = 100
	*p += Page(fixed + len(e.Data))
}

// Child is one row of a workflow, with the fields of its execution that readers of a workflow need.
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
	WakeAt     time.Time // as in flow.State
}

// QueueDepth is the length of a queue.
type QueueDepth struct {
	Queue  string
	Ready  int
	Oldest time.Time // when the longest-waiting execution was queued
}

// Violation is a broken invariant that Check has found.
type Violation struct {
	Invariant int // number in docs/invariants.md
	Execution flow.ID
	Say       string
}

// Logs stores the logs of executions, separate from the rows that change often. When the process or the machine fails, the last second of
// logs may be lost, but nothing else in a store.
type Logs interface {
	// AppendLogs stores chunks and ignores chunks that are already stored.
	AppendLogs(ctx context.Context, chunks []flow.LogChunk) error
	// ReadLogs returns chunks beyond the cursor, in order, up to about limit bytes, but at least one chunk if there is any.
	ReadLogs(ctx context.Context, q LogQuery) ([]flow.LogChunk, error)
	// RemoveLogs deletes the logs of executions in its own transactions, each of limited size.
	RemoveLogs(ctx context.Context, ids []flow.ID) error
}

// LogQuery selects chunks of one execution.
type LogQuery struct {
	Execution flow.ID
	Attempt   int    // 0: every attempt
	Stream    string // "": every stream
	// After is a cursor: only chunks of a later attempt, or of the same attempt with a greater Seq.
	AfterAttempt int
	AfterSeq     int64
	// Before is a limit: only chunks of an earlier attempt, or of the same attempt with a lower Seq; attempt 0: no limit. A tail ends there.
	BeforeAttempt int
	BeforeSeq     int64
	// Offset skips the chunks of Stream that end at or before it; it needs Attempt and Stream.
	Offset int64
	// Tail starts at the last chunk that has at least this many bytes from its start to the end, unless After is set; 0: at the start.
	Tail  int64
	Limit int64 // bytes
}

// Bound returns the position before which the query ends: Before, or a position after every chunk.
func (q *LogQuery) Bound() (attempt int, seq int64) {
	if q.BeforeAttempt == 0 {
		return math.MaxInt32, math.MaxInt64
	}
	return q.BeforeAttempt, q.BeforeSeq
}
