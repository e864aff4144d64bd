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
	c.writer.b = b
	if ended {
		c.writer.uint(uint64(s.Attempt))
		c.writer.uint(uint64(s.NextSeq))
	} else if c.has == 0 {
		return b
	}
	c.writer.uint(c.has)
	c.state(s, created, ended)
	return c.writer.b
}

// state codes the fields of a state behind its bits.
func (c *codec) state(s *flow.State, created int64, ended bool) {
	for bit, t := range times(s, ended) {
		if t != nil {
			c.moment(1<<bit, t, created)
		}
	}
	unsigned(c, hasInbox, &s.Inbox)
	if o := part(c, hasCancel, &s.Cancel); o != nil {
		unsigned(c, hasCancel, &o.As)
		text(c, hasCancel, &o.Code)
		text(c, hasCancel, &o.Reason)
		c.moment(hasCancel, &o.At, created)
		c.cleanup(o)
		text(c, hasCancelKey, &o.Key)
	}
	unsigned(c, hasHandedBack, &s.HandedBack)
	if a := part(c, hasAside, &s.Aside); a != nil {
		c.moment(hasAside, &a.Until, created)
		unsigned(c, hasAside, &a.Times)
		text(c, hasAside, &a.Reason)
	}
	c.moment(hasSlot, &s.SlotAt, created)
	if p := part(c, hasPause, &s.Pause); p != nil {
		c.moment(hasPause, &p.At, created)
		c.time(hasPause, &p.Until)
		text(c, hasPause, &p.By)
		text(c, hasPause, &p.Reason)
		if c.reading {
			p.Stops = c.has&hasStops != 0
		}
	}
	if k := part(c, hasPausedFor, &s.PausedFor); k != nil {
		c.span(hasPausedFor, &k.All)
		c.span(hasPausedFor, &k.Here)
	}
	if !ended {
		c.moment(hasFirst, &s.EventAt, usualEvent(s, created))
	}
}

// cleanup codes the clean-up of an order to end, and whether it is a kill.
func (c *codec) cleanup(o *flow.CancelOrder) {
	flags := [...]*bool{&o.Cleaning, &o.Over, &o.Kill}
	var bits uint64
	for bit, is := range flags {
		if *is {
			bits |= 1 << bit
		}
	}
	unsigned(c, hasCleanup, &bits)
	c.time(hasCleanup, &o.Until)
	if c.reading {
		for bit, is := range flags {
			*is = bits&(1<<bit) != 0
		}
	}
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
	c := codec{reading: true, reader: reader{b: b}}
	if ended {
		s.Attempt = int(c.reader.uint())
		s.NextSeq = int64(c.reader.uint())
	}
	c.has = c.reader.uint()
	c.state(s, created, ended)
	if !ended && c.has&hasFirst == 0 {
		s.EventAt = FromMicros(usualEvent(s, created))
	}
	return c.reader.err
}
