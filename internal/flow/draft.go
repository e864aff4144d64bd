package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/wirejson"
)

// Draft is an execution that a transaction decides about: its state as it was read, its state now, and the events that lead from one to the
// other. Decisions change the draft only; the shell commits it under the condition that the stored state is still Before.
type Draft struct {
	*Execution
	Before State // as read; the zero State for a new execution
	New    bool
	Events []Event // decided, in order, numbered from Before.NextSeq

	// InboxAdd are events to keep ahead of a gap. Kept events below InboxBelow are dropped (0: none), because they were
	// applied or their attempt has ended.
	InboxAdd   []Event
	InboxBelow int64
}

// allInbox drops every kept event.
const allInbox = int64(1) << 62

// Load begins a decision about a stored execution.
func Load(x *Execution) *Draft { return &Draft{Execution: x, Before: x.State} }

// Submit opens the first attempt of a new execution.
func Submit(id ID, r Request) *Draft {
	d := &Draft{Execution: &Execution{ID: id, Request: r, State: State{NextSeq: 1}}, New: true}
	d.Events = make([]Event, 0, 3) // requested, scheduled and, if a worker waits for it, provisioning
	if err := d.record(EvRequested, r.CreatedAt, nil); err != nil {
		panic(err) // the table has a row for a new execution, or nothing works
	}
	d.QueuedAt = r.CreatedAt
	if r.NotBefore.After(r.CreatedAt) {
		d.delay(r.NotBefore)
	}
	return d
}

// Changed reports whether the draft holds anything to commit.
func (d *Draft) Changed() bool {
	return d.New || len(d.Events) > 0 || len(d.InboxAdd) > 0 || d.State != d.Before
}

// record appends an event of the engine and moves the stage as the table says.
func (d *Draft) record(t EventType, at time.Time, data json.RawMessage) error {
	return d.append(Event{Type: t, At: at, Data: data})
}

func (d *Draft) append(e Event) error {
	to, opens, err := Next(d.Stage, e.Type)
	if err != nil {
		return err
	}
	if opens {
		d.Attempt++
	}
	d.Stage = to
	e.Seq, e.Attempt, e.Outcome, e.At = d.NextSeq, d.Attempt, nil, d.moment(e.At)
	if c := d.State.Cancel; c != nil && e.Type == EventType(c.As.String()) && e.At.Before(c.At) {
		e.At = c.At // an ordered end is not earlier than the order: a total_timeout could otherwise end before its deadline
	}
	if c := d.State.Cancel; c != nil && e.Type == EvCancelled {
		e.Data = withOrder(e.Data, c.At)
	}
	d.NextSeq++
	d.EventAt = e.At
	d.Events = append(d.Events, e)
	return nil
}

// moment is the time of an event that is decided now, but not before the previous event. Two servers read the database's clock and then
// commit, and the later commit may have read the clock first: "scheduled" at 59.453 could be followed by "provisioning" at 59.441.
func (d *Draft) moment(now time.Time) time.Time {
	if now.Before(d.EventAt) {
		return d.EventAt
	}
	return now
}

func (d *Draft) delay(until time.Time) {
	d.Place, d.WakeAt, d.QueuedAt = Delayed, until, until
}

// SetSlot stores the time at which the rate lets the execution begin, and delays it until then.
func (d *Draft) SetSlot(at, now time.Time) {
	d.SlotAt = at
	if at.After(now) {
		d.delay(at)
	}
}

// Due reports whether the draft waits only for its turn and not for its time.
func (d *Draft) Due(now time.Time) bool {
	return (d.Stage == Requested || d.TakenOut()) && d.Place != Waiting &&
		(d.Place != Delayed || !d.WakeAt.After(now) && (!d.StandsStill() || d.WaitsForSlot()))
}

// TakenOut reports whether the execution was put aside from its queue: it was admitted, but has left the queue and holds no slot of its
// key. It waits for its time, or in the wait list of its key.
func (x *Execution) TakenOut() bool {
	return x.Stage == Scheduled && (x.Place == Delayed || x.Place == Waiting)
}

// Wait puts the draft into its key's wait list with a ticket. It counts as waiting from the moment it was due. An execution that was put
// aside from its queue waits there in its old stage, without an event.
func (d *Draft) Wait(ticket int64, now time.Time) error {
	if !d.TakenOut() {
		if err := d.record(EvWaiting, now, object("key", d.Key)); err != nil {
			return fmt.Errorf("wait for key: %w", err)
		}
	}
	d.Place, d.Ticket, d.WakeAt = Waiting, ticket, time.Time{}
	return nil
}

// Schedule admits the draft: it takes its key's slot, if it has a key, and its place in the queue. An execution that the engine runs itself
// starts at once. One that was put aside from its queue returns to it without an event: it is scheduled already.
func (d *Draft) Schedule(ticket int64, now time.Time) error {
	if err := d.enqueue(ticket, nil, now); err != nil || !d.Kind.ByEngine() {
		return err
	}
	return d.Begin(now)
}

func (d *Draft) enqueue(ticket int64, data json.RawMessage, now time.Time) error {
	if !d.TakenOut() {
		if err := d.record(EvScheduled, now, data); err != nil {
			return fmt.Errorf("schedule: %w", err)
		}
	}
	d.Place, d.Ticket, d.WakeAt = Ready, ticket, time.Time{}
	return nil
}

// EnqueueSuspended is Schedule for an execution that the engine runs itself and whose action is paused: it waits until Begin, as others
// wait for a worker.
func (d *Draft) EnqueueSuspended(ticket int64, now time.Time) error {
	return d.enqueue(ticket, object("paused", d.Action), now)
}

// IsSuspension reports whether an EvScheduled belongs to an execution that the engine runs itself and that did not begin then.
func IsSuspension(e *Event) bool { return len(e.Data) > 0 }

// Begin starts an execution that the engine runs itself.
func (d *Draft) Begin(now time.Time) error {
	if err := d.Claim(ID{}, engineName, now); err != nil {
		return err
	}
	if err := d.record(EvRunning, now, nil); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	d.markStarted()
	return nil
}

// Claim hands the draft off to a worker session, whose name is only for display.
func (d *Draft) Claim(session ID, name string, now time.Time) error {
	if err := d.record(EvProvisioning, now, object("worker", name)); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	d.Place, d.Owner, d.ClaimedAt, d.Ticket = Held, session, d.EventAt, 0
	return nil
}

// engineName is the worker of executions that the engine runs, or ends before any worker could run them.
const engineName = "engine"

// ClaimedByEngine reports whether an EvProvisioning belongs to an execution that no worker session claimed.
func ClaimedByEngine(e *Event) bool {
	return bytes.Equal(e.Data, object("worker", engineName))
}

// WakeAgainAt sets when the engine looks again at an execution that it runs itself (State.WakeAt); zero: no time is set.
func (d *Draft) WakeAgainAt(at time.Time) { d.WakeAt = at }

// Bounds of the pause before an execution that was put aside is tried again: it doubles from the first to the last.
const (
	firstAside = 10 * time.Second
	lastAside  = 10 * time.Minute
)

// PutAside postpones the execution for a while, because a decision about it was refused. It leaves its queue or its wait list, where it
// would block others. A Held execution stays Held. A Ready one gives up its key's slot: if the key is full when it is tried again, it waits
// in the key's wait list.
func (d *Draft) PutAside(reason string, now time.Time) {
	d.Aside = d.Aside.Again(reason, now)
	if d.Place == Ready || d.Place == Waiting {
		d.Place, d.Ticket, d.WakeAt = Delayed, 0, d.Aside.Until
	}
}

// Again is a after one more refusal; a is nil before the first.
func (a *Aside) Again(reason string, now time.Time) *Aside {
	times := 1
	if a != nil {
		times += a.Times
	}
	pause := lastAside
	if times < 10 {
		pause = min(firstAside<<(times-1), lastAside)
	}
	return &Aside{Until: now.Add(pause), Times: times, Reason: Clipped(reason, AsideLimit)}
}

// Clipped is a text, cut to a length, without characters that stores do not accept.
func Clipped(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// ClearAside ends the aside before the next decision. If that decision is refused as well, the execution is put aside again.
func (d *Draft) ClearAside() { d.Aside = nil }

// Advance records a step of a workflow; data names the tasks.
func (d *Draft) Advance(data json.RawMessage, now time.Time) error {
	return d.record(EvAdvanced, now, data)
}

// Finish ends an execution that the engine runs itself (or, for Cancelled and TimedOut, one that no worker holds), or opens the next
// attempt if its policy says so. random is in [0, 1).
func (d *Draft) Finish(stage Stage, o Outcome, now time.Time, random float64) error {
	if d.Place == Held && !d.Owner.IsZero() {
		return fmt.Errorf("%w: %s is held by %s", ErrIllegalMove, d.ID, d.Owner.Text(SessionPrefix))
	}
	if err := d.record(EventType(stage.String()), now, errorData(o.Error)); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	d.settle(o, now, random)
	return nil
}

// Reject ends an execution whose request turned out to be impossible. It passes every stage, with the engine as its owner, like every
// failure.
func (d *Draft) Reject(e *Error, now time.Time) error {
	if err := d.record(EvScheduled, now, nil); err != nil {
		return fmt.Errorf("reject: %w", err)
	}
	if err := d.Claim(ID{}, engineName, now); err != nil {
		return err
	}
	if err := d.record(EvRunning, now, nil); err != nil {
		return fmt.Errorf("reject: %w", err)
	}
	d.markStarted()
	return d.Finish(Failed, Outcome{Error: e}, now, 0)
}

// Reuse ends a new execution with the outcome of the one that ReusedOf names. It has no owner and nothing runs.
func (d *Draft) Reuse(output json.RawMessage, now time.Time) error {
	if d.ReusedOf.IsZero() {
		return fmt.Errorf("%w: %s names no execution whose outcome it reuses", ErrIllegalMove, d.ID)
	}
	if err := d.record(EvReused, now, object("of", d.ReusedOf.String())); err != nil {
		return fmt.Errorf("reuse an outcome: %w", err)
	}
	d.settle(Outcome{Output: output}, now, 0)
	return nil
}

// Override ends a new execution with an output that the client of a rerun has set. It is never claimed, and nothing runs.
func (d *Draft) Override(output json.RawMessage, now time.Time) error {
	by := d.AsRerun().OverriddenBy
	if by == "" {
		return fmt.Errorf("%w: no output was given to %s", ErrIllegalMove, d.ID)
	}
	if err := d.record(EvOverridden, now, object("by", by)); err != nil {
		return fmt.Errorf("give an output: %w", err)
	}
	d.settle(Outcome{Output: output}, now, 0)
	return nil
}

// Cancel ends the execution at once if no worker holds it; otherwise it leaves an order for its owner. stage is Cancelled, TimedOut or, for
// a workflow, Failed. A second cancel changes nothing, except that an order to end the execution replaces an order to end one attempt (a
// workflow's timeout). If the execution has finished, the error is ErrFinished.
func (d *Draft) Cancel(stage Stage, code, reason string, now time.Time) error {
	if d.Stage.Terminal() {
		return ErrFinished
	}
	if d.Place == Held && (!d.Owner.IsZero() || d.Kind == KindWorkflow) {
		if d.State.Cancel == nil || !d.EndsForGood() && !endsOneAttempt(stage, code) {
			d.State.Cancel = &CancelOrder{As: stage, Code: code, Reason: reason, At: now}
		}
		return nil
	}
	return d.Finish(stage, Outcome{Error: &Error{Code: code, Message: reason}}, now, 0)
}

// Inherit moves an attempt from one session to another: the next process of the same worker, which continues it. Later reports of the old
// session are fenced. An attempt whose events have a gap is not moved: no worker is left to close the gap.
func (d *Draft) Inherit(before, next ID) error {
	if d.Place != Held || d.Owner != before || before.IsZero() || d.Inbox > 0 {
		return fmt.Errorf("%w: attempt %d of %s is not %s's to hand on", ErrIllegalMove, d.Attempt, d.ID, before.Text(SessionPrefix))
	}
	d.Owner = next
	return nil
}

// Lose takes ownership back from a lost owner and opens the next attempt, or ends the execution if its attempts are spent or its end was
// ordered. random is in [0, 1).
func (d *Draft) Lose(reason string, now time.Time, random float64) error {
	if over, err := d.takeBack(reason, now); over || err != nil {
		return err
	}
	if d.Spent() < d.Retry.Attempts(CodeWorkerLost) {
		return d.reopen(CodeWorkerLost, now, d.Retry.Pause(d.Spent(), random))
	}
	return d.Finish(Failed, Outcome{Error: &Error{Code: CodeWorkerLost,
		Message: fmt.Sprintf("%s on each of %d attempts", reason, d.Spent())}}, now, random)
}

// LoseWithServer takes ownership back from an owner in a server process that died during the evaluation of a document. The death is
// attributed to the evaluation, and the attempt does not count: up to freeLosses times, because work that kills its worker may do so during
// an evaluation as well.
func (d *Draft) LoseWithServer(reason string, now time.Time, random float64) error {
	if d.HandedBack >= freeLosses {
		return d.Lose(reason, now, random)
	}
	return d.giveUp(reason, now, declined.Pause(d.HandedBack+1, 0))
}

// Reasons of attempts that are taken back and do not count: the whole reason of HandBack, and the ends of those of Decline and
// LoseWithServer, after the name of the worker.
const (
	ReasonShutDown = "the worker was shut down"
	ReasonDeclined = " declined it"
	ReasonCrashed  = " ended with its server, whose process died while it evaluated a document"
)

// HandBack takes ownership back from an owner that is shutting down, and opens the next attempt at once, or ends the
// execution if its end was ordered. The attempt does not count.
func (d *Draft) HandBack(reason string, now time.Time) error {
	return d.giveUp(reason, now, 0)
}

// Decline takes ownership back from an owner that cannot run an attempt and has not begun it. It is HandBack with a pause: without it, a
// server and a worker that disagree about what the worker runs would fill the history with thousands of attempts a second.
func (d *Draft) Decline(reason string, now time.Time) error {
	if d.Stage != Provisioning {
		return fmt.Errorf("%w: attempt %d of %s has begun", ErrIllegalMove, d.Attempt, d.ID)
	}
	return d.giveUp(reason, now, declined.Pause(d.HandedBack+1, 0))
}

// declined has the pauses after attempts that were declined, ended by their host, or lost with their server: 1 s, 2 s, 4 s, … 1 min.
var declined = Retry{Delay: time.Second, MaxDelay: time.Minute}

func (d *Draft) giveUp(reason string, now time.Time, pause time.Duration) error {
	d.HandedBack++
	if over, err := d.takeBack(reason, now); over || err != nil {
		return err
	}
	return d.reopen(CodeWorkerLost, now, pause)
}

// takeBack takes ownership back, and ends the execution if that was ordered.
func (d *Draft) takeBack(reason string, now time.Time) (over bool, err error) {
	if err := d.record(EvLost, now, object("reason", reason)); err != nil {
		return false, fmt.Errorf("recover: %w", err)
	}
	d.Owner = ID{}
	c := d.State.Cancel
	if c == nil {
		return false, nil
	}
	return true, d.Finish(c.As, Outcome{Error: &Error{Code: c.Code, Message: c.Reason}}, now, 0)
}

// Spent is how many attempts count, the current one included.
func (s *State) Spent() int { return s.Attempt - s.HandedBack }

// markStarted records that the latest event began the work, unless an earlier attempt did.
func (d *Draft) markStarted() {
	if d.StartedAt.IsZero() {
		d.StartedAt = d.EventAt
	}
}

func (d *Draft) Ended() bool { return d.Place == Finished && d.Before.Place != Finished }

// FreedKey reports whether the decision freed the draft's slot of its key.
func (d *Draft) FreedKey() bool {
	return d.Key != "" && d.Before.Place.HoldsKey() && !d.Place.HoldsKey()
}

// orderedAt is the member of a cancelled event's data with the time of the order, which is deleted once it is obeyed.
const orderedAt = "ordered_at"

// withOrder adds the time of an order to the data of an event. Data without room for it is unchanged.
func withOrder(data json.RawMessage, at time.Time) json.RawMessage {
	member := object(orderedAt, at.UTC().Format(wirejson.Form))
	switch {
	case len(data) == 0 || string(data) == "{}":
		return member
	case data[0] != '{' || data[len(data)-1] != '}' || len(data)+len(member) > MostData:
		return data
	}
	return append(append(slices.Clone(data[:len(data)-1]), ','), member[1:]...)
}

// orderIn is the time that withOrder has added to data; the zero time: none.
func orderIn(data json.RawMessage) (at time.Time) {
	if i := bytes.LastIndex(data, []byte(`"`+orderedAt+`":"`)); i > 0 {
		text := strings.TrimSuffix(string(data[i+len(orderedAt)+4:]), `"}`)
		at, _ = time.Parse(time.RFC3339Nano, text) // another text belongs to the owner
	}
	return at
}

func errorData(e *Error) json.RawMessage { return EndData(e, nil) }

// EndData is the data of the event that ends an attempt: the error's code and message, the reason for takenByHost if a
// host ended the attempt, and, if the attempt's code had cases, their results as a JSON value. nil: there is neither.
func EndData(e *Error, cases json.RawMessage) (data json.RawMessage) {
	var pairs []string
	if e != nil {
		pairs = append(pairs, "code", e.Code, "message", e.Message)
		if reason := HostTook(e.Code, e.Details); reason != "" {
			pairs = append(pairs, "reason", reason)
		}
		data = object(pairs...)
	}
	switch {
	case cases == nil:
		return data
	case data == nil:
		data = json.RawMessage(`{`)
	default:
		data = append(data[:len(data)-1], ',')
	}
	return append(append(append(data, `"cases":`...), cases...), '}')
}

// object writes a flat JSON object of strings; pairs are key, value, key, value …
func object(pairs ...string) json.RawMessage {
	b := []byte{'{'}
	for p := range slices.Chunk(pairs, 2) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendString(append(appendString(b, p[0]), ':'), p[1])
	}
	return append(b, '}')
}

func appendString(b []byte, s string) []byte {
	if isPlain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	q, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return append(b, q...)
}

// isPlain reports whether s needs no escapes in JSON, as encoding/json writes it: true for names and most reasons.
func isPlain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c >= 0x7f, c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}
