package row

import (
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Bits of a state.
const (
	// hasFirst means in an ended row that QueuedAt follows; live rows have a column for it. In a live row it means that EventAt follows, as
	// the last field, because it differs from usualEvent.
	hasFirst uint64 = 1 << iota
	hasWakeAt
	hasClaimed
	hasStarted
	hasGap
	hasInbox
	hasCancel
	hasHandedBack
	hasAside
	hasSlot
	hasPause
	hasStops // of the pause
	hasPausedFor
	hasCleanup   // of the order to end
	hasCancelKey // of the order to end
)

// Bits of an order to end: the state of its clean-up, and whether it is a kill.
const (
	cleanupBegun uint64 = 1 << iota
	cleanupOver
	killed
)

// AppendState appends the part of a state without a column of its own, or nothing if that part is empty. For an ended execution it includes
// Attempt, NextSeq and QueuedAt, but not EventAt. created is the execution's CreatedAt.
func AppendState(b []byte, s *flow.State, created int64, ended bool) []byte {
	var c codec
	c.set(hasFirst, ended && !s.QueuedAt.IsZero() || !ended && Micros(s.EventAt) != usualEvent(s, created))
	c.set(hasWakeAt, !s.WakeAt.IsZero())
	c.set(hasClaimed, !s.ClaimedAt.IsZero())
	c.set(hasStarted, !s.StartedAt.IsZero())
	c.set(hasGap, !s.GapSince.IsZero())
	c.set(hasInbox, s.Inbox != 0)
	c.set(hasCancel, s.Cancel != nil)
	c.set(hasHandedBack, s.HandedBack != 0)
	c.set(hasAside, s.Aside != nil)
	c.set(hasSlot, !s.SlotAt.IsZero())
	c.set(hasPause, s.Pause != nil)
	c.set(hasStops, s.Pause != nil && s.Pause.Stops)
	c.set(hasPausedFor, s.PausedFor != nil)
	c.set(hasCleanup, s.Cancel != nil && (!s.Cancel.Until.IsZero() || s.Cancel.Cleaning || s.Cancel.Over))
	c.set(hasCancelKey, s.Cancel != nil && s.Cancel.Key != "")
	has, w := c.has, writer{b: b}
	if ended {
		w.uint(uint64(s.Attempt))
		w.uint(uint64(s.NextSeq))
	} else if has == 0 {
		return b
	}
	w.uint(has)
	for bit, t := range times(s, ended) {
		if t != nil && has&(1<<bit) != 0 {
			w.since(Micros(*t), created)
		}
	}
	if has&hasInbox != 0 {
		w.uint(uint64(s.Inbox))
	}
	if c := s.Cancel; c != nil {
		w.uint(uint64(c.As))
		w.text(c.Code)
		w.text(c.Reason)
		w.since(Micros(c.At), created)
		if has&hasCleanup != 0 {
			var bits uint64
			if c.Cleaning {
				bits |= cleanupBegun
			}
			if c.Over {
				bits |= cleanupOver
			}
			if c.Kill {
				bits |= killed
			}
			w.uint(bits)
			w.int(Micros(c.Until))
		}
		if has&hasCancelKey != 0 {
			w.text(c.Key)
		}
	}
	if s.HandedBack != 0 {
		w.uint(uint64(s.HandedBack))
	}
	if a := s.Aside; a != nil {
		w.since(Micros(a.Until), created)
		w.uint(uint64(a.Times))
		w.text(a.Reason)
	}
	if has&hasSlot != 0 {
		w.since(Micros(s.SlotAt), created)
	}
	if p := s.Pause; p != nil {
		w.since(Micros(p.At), created)
		w.int(Micros(p.Until))
		w.text(p.By)
		w.text(p.Reason)
	}
	if k := s.PausedFor; k != nil {
		w.uint(uint64(k.All.Microseconds()))
		w.uint(uint64(k.Here.Microseconds()))
	}
	if !ended && has&hasFirst != 0 {
		w.since(Micros(s.EventAt), usualEvent(s, created))
	}
	return w.b
}

// times returns the times of a state in the order of their bits. The first one is nil for a live row, where this bit means EventAt.
func times(s *flow.State, ended bool) [5]*time.Time {
	all := [...]*time.Time{nil, &s.WakeAt, &s.ClaimedAt, &s.StartedAt, &s.GapSince}
	if ended {
		all[0] = &s.QueuedAt
	}
	return all
}

// usualEvent returns the time of the latest event of nearly every live execution: its creation, its hand-off or its start. If EventAt
// equals it, EventAt takes no bytes.
func usualEvent(s *flow.State, created int64) int64 {
	return max(created, Micros(s.ClaimedAt), Micros(s.StartedAt))
}

// DecodeState fills s from the output of AppendState.
func DecodeState(s *flow.State, b []byte, created int64, ended bool) error {
	if len(b) == 0 {
		s.EventAt = FromMicros(created)
		return nil
	}
	d := reader{b: b}
	if ended {
		s.Attempt = int(d.uint())
		s.NextSeq = int64(d.uint())
	}
	has := d.uint()
	for bit, t := range times(s, ended) {
		if t != nil && has&(1<<bit) != 0 {
			*t = d.since(created)
		}
	}
	if has&hasInbox != 0 {
		s.Inbox = int32(d.uint())
	}
	if has&hasCancel != 0 {
		s.Cancel = &flow.CancelOrder{As: flow.Stage(d.uint()), Code: d.text(), Reason: d.text()}
		s.Cancel.At = d.since(created)
		if has&hasCleanup != 0 {
			bits := d.uint()
			s.Cancel.Cleaning, s.Cancel.Over, s.Cancel.Kill = bits&cleanupBegun != 0, bits&cleanupOver != 0, bits&killed != 0
			s.Cancel.Until = FromMicros(d.int())
		}
		if has&hasCancelKey != 0 {
			s.Cancel.Key = d.text()
		}
	}
	if has&hasHandedBack != 0 {
		s.HandedBack = int(d.uint())
	}
	if has&hasAside != 0 {
		s.Aside = &flow.Aside{Until: d.since(created)}
		s.Aside.Times, s.Aside.Reason = int(d.uint()), d.text()
	}
	if has&hasSlot != 0 {
		s.SlotAt = d.since(created)
	}
	if has&hasPause != 0 {
		s.Pause = &flow.Pause{At: d.since(created), Until: FromMicros(d.int())}
		s.Pause.By, s.Pause.Reason, s.Pause.Stops = d.text(), d.text(), has&hasStops != 0
	}
	if has&hasPausedFor != 0 {
		s.PausedFor = &flow.PausedFor{All: time.Duration(d.uint()) * time.Microsecond, Here: time.Duration(d.uint()) * time.Microsecond}
	}
	switch {
	case ended:
	case has&hasFirst != 0:
		s.EventAt = d.since(usualEvent(s, created))
	default:
		s.EventAt = FromMicros(usualEvent(s, created))
	}
	return d.err
}
