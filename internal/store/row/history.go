package row

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// A history is a sequence of encoded events without their numbers, which follow from the number of the first. Consecutive
// histories can be joined by joining their bytes.

// Flags in the head of an event, in addition to the number of its type: the fields that follow.
const (
	hasData   = 1 << iota
	hasSeq    // the number, if it does not follow the previous event's: a history must have no gap, but Check must be able to find one
	typeShift = iota
)

// AppendHistory appends events in order; the first should have the number next. created is the execution's CreatedAt. Outcomes
// are left out.
func AppendHistory(b []byte, events []flow.Event, next, created int64) []byte {
	w := writer{b: b}
	for i := range events {
		e := &events[i]
		number := EventNumber(e.Type)
		head := number << typeShift
		if e.Data != nil {
			head |= hasData
		}
		if e.Seq != next {
			head |= hasSeq
		}
		next = e.Seq + 1
		w.uint(head)
		if head&hasSeq != 0 {
			w.int(e.Seq)
		}
		if number == 0 {
			w.text(string(e.Type))
		}
		w.uint(uint64(e.Attempt))
		w.since(Micros(e.At), created)
		if e.Data != nil {
			w.bytes(e.Data)
		}
	}
	return w.b
}

// DecodeHistory decodes events and appends them to all; the first encoded one has the number first. It leaves out events below from and
// from "to" on, and stops after an event for which last returns true; last may be nil.
func DecodeHistory(all []flow.Event, b []byte, first, from, to, created int64, last func(*flow.Event) bool) ([]flow.Event, error) {
	d := reader{b: b}
	for seq := first; len(d.b) > 0 && d.err == nil && seq < to; seq++ {
		head := d.uint()
		if head&hasSeq != 0 {
			seq = d.int()
		}
		e := flow.Event{Seq: seq}
		if n := head >> typeShift; n == 0 {
			e.Type = flow.EventType(d.text())
		} else if t, ok := EventType(n); ok {
			e.Type = t
		} else {
			d.err = errShort
		}
		e.Attempt = int(d.uint())
		e.At = time.UnixMicro(created + d.int()).UTC()
		if head&hasData != 0 {
			e.Data = slices.Clone(d.take(d.uint()))
		}
		if seq >= from && seq < to && d.err == nil {
			all = append(all, e)
			if last != nil && last(&e) {
				break
			}
		}
	}
	return all, d.err
}
