package row

import (
	"slices"

	"github.com/pawl-run/pawl/internal/flow"
)

// AppendKept appends an event of the inbox with its outcome but without its number.
func AppendKept(b []byte, e *flow.Event) []byte {
	w := writer{b: b}
	w.uint(uint64(e.Attempt))
	w.text(string(e.Type))
	w.int(Micros(e.At))
	w.bytes(e.Data)
	if e.Outcome == nil {
		w.uint(0)
		return w.b
	}
	if e.Outcome.Error == nil {
		w.uint(1)
	} else {
		w.uint(2)
		w.text(e.Outcome.Error.Code)
		w.text(e.Outcome.Error.Message)
		w.bytes(e.Outcome.Error.Details)
	}
	w.bytes(e.Outcome.Output)
	return w.b
}

// DecodeKept decodes the output of AppendKept for the event with number seq.
func DecodeKept(seq int64, b []byte) (flow.Event, error) {
	d := reader{b: b}
	e := flow.Event{Seq: seq, Attempt: int(d.uint()), Type: flow.EventType(d.text())}
	e.At = FromMicros(d.int())
	e.Data = d.bytes()
	switch d.uint() {
	case 1:
		e.Outcome = &flow.Outcome{}
	case 2:
		e.Outcome = &flow.Outcome{Error: &flow.Error{Code: d.text(), Message: d.text(), Details: d.bytes()}}
	}
	if e.Outcome != nil {
		e.Outcome.Output = d.bytes()
	}
	return e, d.err
}

// eventNumbers are the event types that are stored as a number: their index in this list, from 1. New types must be appended. No event has
// number 2.
var eventNumbers = []flow.EventType{flow.EvRequested, "", flow.EvScheduled, flow.EvProvisioning, flow.EvRunning,
	flow.EvCompleted, flow.EvFailed, flow.EvCancelled, flow.EvTimedOut, flow.EvWaiting, flow.EvLost, flow.EvAdvanced, flow.EvProgress}

// EventNumber returns the number of a type. It is 0 for a type without one, which is stored as text.
func EventNumber(t flow.EventType) uint64 { return uint64(slices.Index(eventNumbers, t) + 1) }

// EventType is the inverse of EventNumber; it returns false if no type has the number.
func EventType(n uint64) (flow.EventType, bool) {
	if n == 0 || n > uint64(len(eventNumbers)) || eventNumbers[n-1] == "" {
		return "", false
	}
	return eventNumbers[n-1], true
}
