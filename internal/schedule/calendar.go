package schedule

import (
	"time"
)

// Gap says what becomes of a local time that the zone's clocks jump over.
type Gap string

// Repeat says what becomes of a local time that comes twice because the zone's clocks are set back.
type Repeat string

// The policies. Unset, a line whose hour is * goes by skip and both, as an interval would, and every other by next and first.
const (
	GapNext     Gap    = "next" // the first moment after the gap
	GapSkip     Gap    = "skip"
	RepeatFirst Repeat = "first"
	RepeatLast  Repeat = "last"
	RepeatBoth  Repeat = "both"
)

// civil is what a clock in a zone shows, written as if it were UTC. Clocks of a zone show offset more than UTC.
func civil(t time.Time, offset time.Duration) time.Time { return t.UTC().Add(offset) }

// span is the time between two changes of a zone's offset from UTC.
type span struct {
	start, end            time.Time // zero: there is no change before, or after
	offset, before, after time.Duration
}

// spanAt returns the span in which t lies.
func spanAt(t time.Time, zone *time.Location) span {
	at := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	s := span{offset: at(t)}
	s.before, s.after = s.offset, s.offset
	s.start, s.end = t.In(zone).ZoneBounds()
	for !s.end.IsZero() && at(s.end) == s.offset { // a new name and the same offset is no change
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

// nextBound is the first time after t at which package time says that something changes; zero: there is none. Where a zone's changes
// follow from a rule, package time takes each year to have 365 days: on the last day of a leap year it says that this day has begun.
func nextBound(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		return t.Add(24 * time.Hour)
	}
	return end
}

// times is a set of local times that become moments in a zone.
type times struct {
	// next is the first local time of the set at or after civil.
	next   func(civil time.Time) (time.Time, bool)
	zone   *time.Location
	gap    Gap
	repeat Repeat
}

// after is the first moment of the set after t. It is false as well where the clocks jump over all times of the set in civilYears:
// 02:30 on the last Sunday in March is in the set every year, and in Berlin, with GapSkip, it never comes.
func (s *times) after(t time.Time) (time.Time, bool) {
	from, last := t.Add(time.Nanosecond), time.Time{}
	for last.IsZero() || from.Before(last) {
		in := spanAt(from, s.zone)
		low := civil(from, in.offset)
		if s.gap == GapNext && in.offset > in.before && from.Equal(in.start) {
			if found, ok := s.next(civil(from, in.before)); ok && found.Before(low) {
				return from.UTC(), true
			}
		}
		if in.before > in.offset && s.repeat == RepeatFirst {
			if twice := civil(in.start, in.before); low.Before(twice) { // the first time has been in the span before
				low = twice
			}
		}
		found, ok := s.next(low)
		if !ok {
			return time.Time{}, false
		}
		if in.end.IsZero() {
			return found.Add(-in.offset), true
		}
		if last.IsZero() {
			last = found.AddDate(civilYears, 0, 0)
		}
		high := civil(in.end, in.offset) // what clocks show at the end of the span
		if in.after < in.offset && s.repeat == RepeatLast {
			high = civil(in.end, in.after)
		}
		if found.Before(high) {
			return found.Add(-in.offset), true
		}
		from = in.end
	}
	return time.Time{}, false
}
