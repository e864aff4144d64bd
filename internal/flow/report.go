package flow

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

type AttemptID struct {
	Execution ID  `json:"execution"`
	Attempt   int `json:"attempt"`
}

// Report is a worker's report about an attempt that it holds: all unacknowledged events, in order.
type Report struct {
	Execution ID      `json:"execution"`
	Attempt   int     `json:"attempt"`
	Events    []Event `json:"events"`
}

// Verdict is the result of a report.
type Verdict string

// The verdicts. After Applied, Duplicate and Stored the sender may drop events below Receipt.Next; after Fenced,
// Refused and Unknown it must stop working on the attempt.
const (
	Applied   Verdict = "applied"   // at least one event was applied
	Duplicate Verdict = "duplicate" // everything was known already
	Stored    Verdict = "stored"    // kept ahead of a gap
	Fenced    Verdict = "fenced"    // the attempt has ended, or another session holds it
	Refused   Verdict = "refused"   // a number came twice with different content, or the lifecycle forbids the event
	Unknown   Verdict = "unknown"   // no such execution
)

// Receipt answers one report.
type Receipt struct {
	Execution  ID      `json:"execution"`
	Attempt    int     `json:"attempt"`
	Verdict    Verdict `json:"verdict"`
	Next       int64   `json:"next"`                 // every event below it is applied
	Duplicates int     `json:"duplicates,omitempty"` // events that were known already
	Reason     string  `json:"say,omitempty"`
}

// Report applies the events of a worker session to the draft: in order, without gaps, each number once. past holds the applied events that
// the report repeats and the one before them, inbox the events kept ahead of a gap; both may be nil if there are none. random is in [0, 1).
func (d *Draft) Report(session ID, r Report, past map[int64]Event, inbox []Event, now time.Time, random float64) Receipt {
	rc := Receipt{Execution: r.Execution, Attempt: r.Attempt, Next: d.NextSeq}
	r.Events = explained(r.Events)
	knownEvents, taken, reason := repeats(r, d.NextSeq, past)
	rc.Duplicates = knownEvents
	if reason != "" {
		rc.Verdict, rc.Reason = Refused, reason
		return rc
	}
	if taken {
		return rc.fence(d, r)
	}
	if knownEvents == len(r.Events) && r.Attempt <= d.Attempt {
		rc.Verdict = Duplicate
		return rc
	}
	if r.Attempt != d.Attempt || d.Place != Held || d.Owner != session {
		return rc.fence(d, r)
	}
	rc.Verdict = Duplicate
	d.Events = slices.Grow(d.Events, len(r.Events)-knownEvents)
	for _, e := range r.Events {
		if e.Seq < d.NextSeq {
			continue
		}
		if e.Seq > d.NextSeq {
			rc.keep(d, e, &inbox, now)
		} else {
			rc.apply(d, e, now, random)
		}
		if rc.Verdict == Refused || d.Place != Held {
			break
		}
	}
	rc.closeGap(d, inbox, now, random)
	rc.Next = d.NextSeq
	return rc
}

// explained copies the error of the outcome into a terminal event without data, so that the history has it, too.
func explained(events []Event) []Event {
	for i, e := range events {
		if e.Data == nil && e.Outcome != nil && e.Outcome.Error != nil {
			events = slices.Clone(events)
			events[i].Data = errorData(e.Outcome.Error)
			break // a report ends with its terminal event
		}
	}
	return events
}

// fence answers a report about an attempt that the sender does not hold any more.
func (rc *Receipt) fence(d *Draft, r Report) Receipt {
	rc.Verdict = Fenced
	rc.Reason = fmt.Sprintf("attempt %d is no longer this session's: the execution is %s in attempt %d", r.Attempt, d.Stage, d.Attempt)
	return *rc
}

// progressLimit is the highest number of a progress event: a history must stay readable, and a store may have its own bounds (SQLite's key
// has room for four million).
const progressLimit = 1_000_000

// repeats counts the events of r that are known already, and returns the reason if one has other content. taken means
// that the engine has written an event under one of these numbers, because it took the attempt back before this report
// came: then the report is fenced, and not refused.
func repeats(r Report, next int64, past map[int64]Event) (knownEvents int, taken bool, reason string) {
	for i, e := range r.Events {
		if e.Attempt != r.Attempt || (i > 0 && e.Seq <= r.Events[i-1].Seq) {
			return knownEvents, false, fmt.Sprintf(
				"event %d is of attempt %d and at place %d of a report of attempt %d: a report lists one attempt's events in order",
				e.Seq, e.Attempt, i, r.Attempt)
		}
		if e.Seq >= next {
			continue
		}
		old, ok := past[e.Seq]
		// An event after a loss is the engine's as well, even with the same content.
		if ok && (old.Attempt != e.Attempt || !slices.Contains(ownersEvents, old.Type) || past[e.Seq-1].Type == EvLost) {
			return knownEvents, true, ""
		}
		asKept := e
		if at := orderIn(old.Data); ok && !at.IsZero() {
			asKept.Data = withOrder(e.Data, at)
		}
		if !ok || !same(old, e) && !same(old, asKept) {
			return knownEvents, false, fmt.Sprintf("event %d came before with other content (it was %q, now %q)", e.Seq, old.Type, e.Type)
		}
		knownEvents++
	}
	return knownEvents, false, ""
}

func same(a, b Event) bool {
	return a.Attempt == b.Attempt && a.Type == b.Type && bytes.Equal(a.Data, b.Data)
}

// ownersEvents are the types that the owner of an attempt may author.
var ownersEvents = []EventType{EvRunning, EvProgress, EvCompleted, EvFailed, EvCancelled, EvTimedOut}

func (rc *Receipt) apply(d *Draft, e Event, now time.Time, random float64) {
	if !slices.Contains(ownersEvents, e.Type) {
		rc.Verdict, rc.Reason = Refused, fmt.Sprintf("event %d: a worker cannot author %q", e.Seq, e.Type)
		return
	}
	if e.Type == EvProgress && e.Seq > progressLimit {
		rc.Verdict, rc.Reason = Refused, fmt.Sprintf("event %d: a history may not have more than %d events: say less with progress, write more to the log", e.Seq, progressLimit)
		return
	}
	o := e.Outcome
	if e.Type == EvCompleted && o != nil && o.Error != nil {
		rc.Verdict, rc.Reason = Refused, fmt.Sprintf("event %d: what has completed has no error, and this one says %.100q", e.Seq, o.Error.Code)
		return
	}
	if e.At = e.At.UTC().Truncate(time.Microsecond); e.At.After(now) { // stores keep microseconds
		e.At = now // the worker's clock is ahead of the store's
	}
	if err := d.append(e); err != nil {
		rc.Verdict, rc.Reason = Refused, fmt.Sprintf("event %d: %v", e.Seq, err)
		return
	}
	rc.Verdict = Applied
	switch {
	case e.Type == EvRunning:
		d.markStarted()
	case d.Stage.Terminal():
		if o == nil {
			o = &Outcome{}
		}
		if o.Error == nil && d.Stage != Completed {
			o.Error = &Error{Code: string(e.Type), Message: "the worker gave no reason"}
		}
		d.settle(*o, now, random)
	}
}

// keep keeps an event until the earlier ones have come.
func (rc *Receipt) keep(d *Draft, e Event, inbox *[]Event, now time.Time) {
	for _, s := range *inbox {
		if s.Seq == e.Seq {
			if !same(s, e) {
				rc.Verdict, rc.Reason = Refused, fmt.Sprintf("event %d came before with other content (it was %q, now %q)", e.Seq, s.Type, e.Type)
			} else {
				rc.Duplicates++
			}
			return
		}
	}
	if d.Inbox >= InboxLimit {
		rc.Reason = fmt.Sprintf("event %d waits for event %d and %d others wait already: send it again later", e.Seq, d.NextSeq, d.Inbox)
		return
	}
	*inbox = append(*inbox, e)
	d.InboxAdd = append(d.InboxAdd, e)
	d.Inbox++
	if d.GapSince.IsZero() {
		d.GapSince = now
	}
	if rc.Verdict == Duplicate {
		rc.Verdict = Stored
	}
}

// closeGap applies kept events whose turn has come.
func (rc *Receipt) closeGap(d *Draft, inbox []Event, now time.Time, random float64) {
	if len(inbox) == 0 || rc.Verdict == Refused {
		return
	}
	slices.SortFunc(inbox, func(a, b Event) int { return int(a.Seq - b.Seq) })
	for _, e := range inbox {
		if d.Place != Held || rc.Verdict == Refused {
			break
		}
		if e.Seq == d.NextSeq {
			rc.apply(d, e, now, random)
		}
	}
	if d.Place != Held {
		return // settled: no events are kept any more
	}
	below := d.NextSeq
	d.InboxAdd = slices.DeleteFunc(d.InboxAdd, func(e Event) bool { return e.Seq < below })
	remaining := int32(0)
	for _, e := range inbox {
		if e.Seq >= below {
			remaining++
		}
	}
	if d.Before.Inbox > 0 {
		d.InboxBelow = below
	}
	d.Inbox = remaining
	if remaining == 0 {
		d.GapSince = time.Time{}
	}
}
