package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// walk is one replay: the rules decide about x, and their events are compared with the record.
type walk struct {
	rec  *Record
	upto int64
	res  Result

	x       *flow.Execution // the execution after the events so far
	draft   flow.Draft      // of the decision about the next event
	i       int             // index of the next event
	claimed *flow.Event     // the claim of the latest attempt; nil: there was none
	wf      *attempt        // of a workflow, the running attempt
	kids    map[int][]*flow.Execution
}

// holder stands for the session that holds an attempt: the history does not have its id.
var holder = flow.ID{1}

// worker is the worker of the latest attempt, running or ended; "": none.
func (w *walk) worker() string {
	if w.claimed == nil {
		return ""
	}
	return textOf(w.claimed.Data, "worker")
}

// load begins a decision about the execution. The next decision reuses its memory.
func (w *walk) load() *flow.Draft {
	events := w.draft.Events[:0]
	w.draft = *flow.Load(w.x)
	w.draft.Events = events
	return &w.draft
}

// step replays the decision that begins with the next event.
func (w *walk) step() {
	e := &w.rec.Events[w.i]
	if e.Seq != w.x.NextSeq {
		w.find(e.Seq, fmt.Sprintf("event %d", w.x.NextSeq), fmt.Sprintf("event %d", e.Seq), "events are numbered 1, 2, 3 … without a hole and each once")
		w.force()
		return
	}
	if _, _, err := flow.Next(w.x.Stage, e.Type); err != nil {
		w.find(e.Seq, "no such event", said(e), "%q cannot come while the execution is %s", e.Type, stageText(w.x.Stage))
		w.force()
		return
	}
	if w.x.Stage.Terminal() {
		w.again()
		return
	}
	before, outcome := w.x.State, w.x.Outcome
	d, err := w.decide(e)
	if err != nil {
		w.x.State, w.x.Outcome = before, outcome
		w.find(e.Seq, "no such decision", said(e), "%v", err)
		w.force()
		return
	}
	w.compare(d)
}

// decide lets the rules make the decision that recorded an event.
func (w *walk) decide(e *flow.Event) (*flow.Draft, error) {
	if w.x.Stage == 0 {
		return flow.Submit(w.x.ID, w.x.Request), nil
	}
	d := w.load()
	switch e.Type {
	case flow.EvWaiting:
		if w.x.Key == "" {
			return nil, fmt.Errorf("it has no concurrency key that it could wait for")
		}
		w.due(e)
		return d, d.Wait(0, e.At)
	case flow.EvScheduled:
		w.due(e)
		if why := w.rejection(); why != nil {
			return d, d.Reject(why, e.At)
		}
		if w.x.Kind.ByEngine() && flow.IsSuspension(e) {
			return d, d.EnqueueSuspended(0, e.At)
		}
		return d, d.Schedule(0, e.At)
	case flow.EvProvisioning:
		if w.x.Kind.ByEngine() && flow.IsSuspension(&w.rec.Events[w.i-1]) {
			return d, d.Begin(e.At)
		}
		if w.x.Kind.ByEngine() {
			return nil, fmt.Errorf("the engine runs a %s itself, in one step with its admission", w.x.Kind)
		}
		return d, d.Claim(holder, textOf(e.Data, "worker"), e.At)
	case flow.EvAdvanced:
		if w.x.Kind != flow.KindWorkflow {
			return nil, fmt.Errorf("a %s has no tasks", w.x.Kind)
		}
		return d, d.Advance(e.Data, e.At)
	case flow.EvPaused:
		p, err := flow.PauseOf(e)
		if err != nil {
			return nil, err
		}
		return d, d.Pause(*p, e.At)
	case flow.EvResumed:
		by, reason := flow.ResumedBy(e)
		return d, d.Resume(by, reason, e.At)
	case flow.EvReused:
		return d, d.Reuse(w.outcome(w.i).Output, e.At)
	case flow.EvOverridden:
		return d, d.Override(w.outcome(w.i).Output, e.At)
	case flow.EvLost:
		return d, w.lose(d, e)
	case flow.EvRequested:
		return nil, fmt.Errorf("an attempt is opened only by the end or the loss of the one before it")
	}
	if w.x.Place == flow.Held && !w.x.Owner.IsZero() {
		return d, w.report(d, e)
	}
	if !w.x.Kind.ByEngine() && w.x.Place == flow.Held || e.Type == flow.EvRunning || e.Type == flow.EvProgress {
		return nil, fmt.Errorf("no worker holds the attempt")
	}
	as, err := flow.ParseStage(string(e.Type))
	if err != nil {
		return nil, err
	}
	w.inTime(e)
	return d, d.Finish(as, w.outcome(w.i), e.At, 0)
}

// report makes the worker that holds the attempt report an event.
func (w *walk) report(d *flow.Draft, e *flow.Event) error {
	now, said := e.At, *e
	if w.terminal(e) {
		o := w.outcome(w.i)
		said.Outcome = &o
		if n := w.next(1); n != nil && n.Type == flow.EvRequested {
			now = n.At // of the commit; the worker's own time may be earlier
		}
		w.inTime(e)
	}
	r := flow.Report{Execution: w.x.ID, Attempt: e.Attempt, Events: []flow.Event{said}}
	if rc := d.Report(holder, r, nil, nil, now, 0); rc.Verdict != flow.Applied {
		return fmt.Errorf("a report of it is %s: %s", rc.Verdict, rc.Reason)
	}
	return nil
}

// compare compares the events of the rules with the record, and continues from the draft.
func (w *walk) compare(d *flow.Draft) {
	first, bad := w.i, false
	for n := range d.Events {
		rules, e := &d.Events[n], w.next(0)
		if e == nil || n > 0 && e.Type != rules.Type {
			w.differs(rules, e, d, n)
			bad = true
			break
		}
		bad = w.same(rules, e) || bad
		w.follow(e)
		w.i++
	}
	if bad {
		w.resume(d, first)
		return
	}
	w.x = d.Execution
	if e := &w.rec.Events[w.i-1]; e.Type == flow.EvRequested && e.Attempt > 1 {
		w.pause(e, d.HandedBack > d.Before.HandedBack)
	}
}

// same compares two events of one type.
func (w *walk) same(rules, e *flow.Event) (bad bool) {
	if e.Seq != rules.Seq {
		w.find(e.Seq, fmt.Sprintf("event %d", rules.Seq), fmt.Sprintf("event %d", e.Seq), "events are numbered 1, 2, 3 … without a hole and each once")
		bad = true
	}
	if e.Attempt != rules.Attempt {
		w.find(e.Seq, fmt.Sprintf("attempt %d", rules.Attempt), fmt.Sprintf("attempt %d", e.Attempt), "attempts count up by one, when one is opened")
		bad = true
	}
	if !e.At.Equal(rules.At) {
		why := "it is recorded in one commit with the event before it, or when the execution was accepted"
		if e.At.Before(rules.At) {
			why = "no event is earlier than the one before it"
		}
		w.find(e.Seq, "at "+clock(rules.At), "at "+clock(e.At), "%s", why)
		bad = true
	}
	if e.Type == flow.EvRequested && e.Attempt > 1 {
		if after, was := textOf(rules.Data, "after"), textOf(e.Data, "after"); after != was {
			w.find(e.Seq, "after "+after, "after "+was, "the next attempt says why it was opened")
			bad = true
		}
		return bad
	}
	ends := w.terminal(e) && e.Type != flow.EvReused && e.Type != flow.EvOverridden // the record has all of their data
	if !ends && !bytes.Equal(e.Data, rules.Data) && !sameJSON(e.Data, rules.Data) {
		w.find(e.Seq, said(rules), said(e), "the event says something else")
		bad = true
	}
	return bad
}

// differs reports that the rules have another event than the record after the first one of a decision, or more events.
func (w *walk) differs(rules, e *flow.Event, d *flow.Draft, n int) {
	before := &w.rec.Events[w.i-1]
	again := rules.Type == flow.EvRequested && w.terminal(before)
	switch {
	case again && e == nil:
		// An order to end the execution that came while the attempt failed: it is not recorded if another end came first.
		w.unknown(Unknown{Seq: before.Seq, Index: noIndex,
			What: fmt.Sprintf("its retry policy allows %d attempts and this was number %d: it follows only if its end had been ordered, which the history does not say", d.Retry.Attempts(textOf(before.Data, "code")), d.Before.Spent())})
	case again:
		w.find(e.Seq, "requested, attempt "+fmt.Sprint(rules.Attempt), said(e), "the attempt before it ended with %s, which the retry policy tries again", textOf(before.Data, "code"))
	case e == nil:
		w.find(before.Seq, said(rules), "nothing", "%q is followed by %q in the same commit", d.Events[n-1].Type, rules.Type)
	default:
		w.find(e.Seq, said(rules), said(e), "%q is followed by %q in the same commit", d.Events[n-1].Type, rules.Type)
	}
}

// again reports an event after the end of the execution.
func (w *walk) again() {
	e, before := &w.rec.Events[w.i], w.rec.Events[w.i-1]
	w.find(e.Seq, "no further event", said(e), "%s", w.noRetry(&before))
	w.force()
}

// noRetry explains why no attempt follows an end.
func (w *walk) noRetry(end *flow.Event) string {
	code := textOf(end.Data, "code")
	switch {
	case end.Type != flow.EvFailed && end.Type != flow.EvTimedOut:
		return fmt.Sprintf("the execution has ended: %s is final", end.Type)
	case w.x.Spent() >= w.x.Retry.Attempts(code):
		return fmt.Sprintf("the execution has ended: its retry policy allows %d attempts, and this was number %d", w.x.Retry.Attempts(code), w.x.Spent())
	}
	return fmt.Sprintf("the execution has ended: its retry policy does not try %s again", code)
}

// resume continues after a decision that does not follow, from the record: its events from first on.
func (w *walk) resume(d *flow.Draft, first int) {
	handed := w.x.HandedBack
	w.x.State = d.Before
	w.x.HandedBack = handed
	for ; first < w.i; first++ {
		w.takeOver(&w.rec.Events[first])
	}
}

// force continues after an event that does not follow at all.
func (w *walk) force() {
	w.takeOver(&w.rec.Events[w.i])
	w.i++
}

// takeOver sets the execution to its state after a recorded event, from the event alone.
func (w *walk) takeOver(e *flow.Event) {
	w.x.NextSeq, w.x.Attempt, w.x.State.Cancel, w.x.Outcome = e.Seq+1, e.Attempt, nil, nil
	if e.At.After(w.x.EventAt) {
		w.x.EventAt = e.At
	}
	if s, err := flow.ParseStage(string(e.Type)); err == nil {
		w.x.Stage = s
	}
	switch {
	case e.Type == flow.EvReused, e.Type == flow.EvOverridden:
		w.x.Stage = flow.Completed
	case e.Type == flow.EvRequested:
		w.x.Place, w.x.Owner, w.x.ClaimedAt, w.x.WakeAt, w.x.FinishedAt = flow.Delayed, flow.ID{}, time.Time{}, notBefore(e.Data), time.Time{}
	case e.Type == flow.EvWaiting:
		w.x.Place = flow.Waiting
	case w.x.Stage == flow.Scheduled:
		w.x.Place = flow.Ready
	case w.x.Stage.Owned():
		if w.x.Place, w.x.Owner = flow.Held, holder; w.x.Kind.ByEngine() {
			w.x.Owner = flow.ID{}
		}
		if e.Type == flow.EvProvisioning || w.x.ClaimedAt.IsZero() {
			w.x.ClaimedAt = e.At
		}
		if e.Type == flow.EvRunning && w.x.StartedAt.IsZero() {
			w.x.StartedAt = e.At
		}
	}
	if w.x.Stage.Terminal() {
		w.x.Place, w.x.Owner, w.x.FinishedAt, w.x.EventAt = flow.Finished, flow.ID{}, e.At, time.Time{}
	}
}

func (w *walk) next(n int) *flow.Event {
	if w.i+n < len(w.rec.Events) {
		return &w.rec.Events[w.i+n]
	}
	return nil
}

// terminal reports whether an event ends an attempt.
func (w *walk) terminal(e *flow.Event) bool {
	switch e.Type {
	case flow.EvCompleted, flow.EvFailed, flow.EvCancelled, flow.EvTimedOut, flow.EvReused, flow.EvOverridden:
		return true
	}
	return false
}

// outcome is the outcome of an attempt that ended with the event at an index: complete for the last attempt, and for earlier ones what the
// event has.
func (w *walk) outcome(i int) flow.Outcome {
	if o := w.rec.Execution.Outcome; o != nil && i == len(w.rec.Events)-1 {
		return *o
	}
	e := &w.rec.Events[i]
	if e.Type == flow.EvCompleted || e.Type == flow.EvReused || e.Type == flow.EvOverridden {
		return flow.Outcome{}
	}
	why := &flow.Error{Code: textOf(e.Data, "code"), Message: textOf(e.Data, "message")}
	if n := exitOf(w.x.Retry.On); n != "" && why.Code == flow.CodeNonzeroExit && i+1 < len(w.rec.Events) && w.rec.Events[i+1].Type == flow.EvRequested {
		why.Details = json.RawMessage(`{"exit_code":` + n + `}`)
		w.unknown(Unknown{Seq: e.Seq, Index: noIndex, What: "the exit code of an attempt that was tried again is not kept: whether the retry policy lists it is not known"})
	}
	return flow.Outcome{Error: why}
}

// exitOf is an exit code in a retry policy; "": none.
func exitOf(on []string) string {
	for _, o := range on {
		if n, ok := strings.CutPrefix(o, "exit:"); ok {
			return n
		}
	}
	return ""
}

// rejection is why an execution that could not run failed, if the next events are those of a rejection; otherwise nil.
func (w *walk) rejection() *flow.Error {
	claim, end := w.next(1), w.next(3)
	if w.x.Kind.ByEngine() || claim == nil || end == nil || claim.Type != flow.EvProvisioning || end.Type != flow.EvFailed || !flow.ClaimedByEngine(claim) {
		return nil
	}
	if textOf(end.Data, "code") != flow.CodeInvalidInput {
		return nil
	}
	return w.outcome(w.i + 3).Error
}

func said(e *flow.Event) string {
	if len(e.Data) == 0 {
		return string(e.Type)
	}
	return fmt.Sprintf("%s %s", e.Type, flow.Clipped(string(e.Data), 300))
}

func stageText(s flow.Stage) string {
	if s == 0 {
		return "not there yet"
	}
	return s.String()
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func textOf(data json.RawMessage, name string) string {
	if len(data) == 0 {
		return ""
	}
	return strictjson.Text(data, name)
}

func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return bytes.Equal(a, b) || jsonvalue.Same(a, b)
}
