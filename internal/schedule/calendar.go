package schedule

import (
	"time"
)

// Gap is what happens to a local time that the zone's clocks skip.
type Gap string

// Repeat is what happens to a local time that comes twice because the zone's clocks are set back.
type Repeat string

// The policies. By default, a line whose hour is * uses skip and both, like an interval, and every other line next and first.
const (
	GapNext     Gap    = "next" // the first moment after the gap
	GapSkip     Gap    = "skip"
	RepeatFirst Repeat = "first"
	RepeatLast  Repeat = "last"
	RepeatBoth  Repeat = "both"
)

// civil is the time on a clock in a zone, written as if it were UTC. Clocks of a zone show offset more than UTC.
func civil(t time.Time, offset time.Duration) time.Time { return t.UTC().Add(offset) }

// span is the time between two changes of a zone's offset from UTC.
type span struct {
	start, end            time.Time // zero: there is no change before, or after
	offset, before, after time.Duration
}

func spanAt(t time.Time, zone *time.Location) span {
	at := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	s := span{offset: at(t)}
	s.before, s.after = s.offset, s.offset
	s.start, s.end = t.In(zone).ZoneBounds()
	for !s.end.IsZero() && at(s.end) == s.offset { // a new name with the same offset is not a change
		s.end = nextBound(s.end)
	}
	for !s.start.IsZero() && at(s.start.Add(-1)) == s.offset {
		s.start, _ = s.start.Add(-1).ZoneBounds()
	}
	if !s.start.IsZero() {
		s.before = at(s.start.Add(-1))
	}
	if !s.end.IsZero() {
		s.after = at(s.end)
	}
	return s
}

// nextBound is the first time after t at which package time says that something changes; zero: there is none. If a zone's changes follow
// from a rule, package time counts 365 days for each year: on the last day of a leap year it returns the beginning of this day.
func nextBound(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		return t.Add(24 * time.Hour)
	}
	return end
}
