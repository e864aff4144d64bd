package schedule

import (
	"math/bits"
	"time"
)

// set is a set of local times.
type set interface {
	// within is the first time of the set from low to below high. It sets k.done if the set has no time from low on.
	within(k *seeker, low, high time.Time) (time.Time, bool)
}

// times is a set of local times that become moments in a zone.
type times struct {
	set    set
	zone   *time.Location
	gap    Gap
	repeat Repeat
}

// endOfTime is after every year that can be written.
var endOfTime = time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC)

// lastTime is after every nominal time: JSON has no year of five digits, and the jitter is added.
var lastTime = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-MostJitter)

// localTime is a set of one local time.
type localTime time.Time

func (m localTime) within(k *seeker, low, high time.Time) (time.Time, bool) {
	t := time.Time(m)
	k.done = t.Before(low)
	return t, !k.done && t.Before(high)
}

// line is the set of a cron line's times that are not excepted.
type line struct {
	cron   cron
	except *exceptions
}

func (l *line) within(k *seeker, low, high time.Time) (time.Time, bool) {
	t := low.Truncate(time.Second)
	if t.Before(low) {
		t = t.Add(time.Second)
	}
	if k.most == 0 {
		k.most, k.last = t.Year()+civilYears, t.Year()+2*civilYears
	}
	for t.Before(high) {
		k.steps++
		year, month, n := t.Date()
		if year > k.most {
			k.done = true
			return t, false
		}
		if l.cron.month&(1<<month) == 0 {
			t = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		}
		switch d := dayOf(t); {
		case !l.cron.onDay(d):
		case l.except.dates[dayNumber(t)]:
			k.most = max(k.most, min(year+civilYears, k.last)) // a date is excepted once: the line may come after it
		case !k.isSpent(d):
			hour, minute, second := t.Clock()
			h, m, s, steps, comes := k.excepted(l.except, d).first(&l.cron, hour, minute, second)
			k.steps += steps
			if comes {
				found := time.Date(year, month, n, h, m, s, 0, time.UTC)
				return found, found.Before(high)
			}
			if hour+minute+second == 0 {
				k.spend(d)
			}
		}
		t = nextDay(t)
	}
	return t, false
}

// seeker finds the moments of a set, one after the other. It belongs to one caller.
type seeker struct {
	*times
	head  time.Time // the next moment; zero: not found yet
	most  int       // the last year to search, zero: as far as civilYears
	last  int       // the maximum of most
	done  bool      // there are no more moments
	spent []uint64  // kinds of days on which exceptions leave nothing, a bit for each
	seen  map[int]*excepted
	steps int // searched days, and comparisons with exceptions
	in    span
	known bool // in is valid
}

func (k *seeker) isSpent(d day) bool {
	kind := d.kind()
	return k.spent != nil && k.spent[kind/64]&(1<<(kind%64)) != 0
}

func (k *seeker) spend(d day) {
	if k.spent == nil {
		k.spent = make([]uint64, dayKinds/64+1)
	}
	k.spent[d.kind()/64] |= 1 << (d.kind() % 64)
}

var nothingExcepted = &excepted{}

// excepted is what exceptions take from a day. All exceptions are evaluated once for a kind of day.
func (k *seeker) excepted(e *exceptions, d day) *excepted {
	if len(e.lines) == 0 {
		return nothingExcepted
	}
	x := k.seen[d.kind()]
	if x == nil {
		if k.seen == nil {
			k.seen = map[int]*excepted{}
		}
		x = e.on(d)
		k.steps += len(e.lines)
		k.seen[d.kind()] = x
	}
	return x
}

// spanAt is the span of the zone in which t lies. Consecutive times are mostly in one span.
func (k *seeker) spanAt(t time.Time) span {
	if !k.known || !k.in.start.IsZero() && t.Before(k.in.start) || !k.in.end.IsZero() && !t.Before(k.in.end) {
		k.in, k.known = spanAt(t, k.zone), true
	}
	return k.in
}

// after is the first moment of the set after t and before until. A set is done if the clocks skip all its times for civilYears: 02:30 on
// the last Sunday in March is in the set every year, and in Berlin, with GapSkip, it never comes.
func (k *seeker) after(t, until time.Time) (time.Time, bool) {
	for from := t.Add(time.Nanosecond); from.Before(until) && !k.done; {
		in := k.spanAt(from)
		low := civil(from, in.offset)
		if k.gap == GapNext && in.offset > in.before && from.Equal(in.start) {
			if _, comes := k.set.within(k, civil(from, in.before), low); comes {
				k.most = 0
				return from.UTC(), true
			}
			k.done = false // a moment within the gap has been passed; later ones have not
		}
		if in.before > in.offset && k.repeat == RepeatFirst {
			if twice := civil(in.start, in.before); low.Before(twice) { // the first of the two times was in the span before
				low = twice
			}
		}
		high := civil(until, in.offset)
		if !in.end.IsZero() {
			end := civil(in.end, in.offset) // the clocks' time at the end of the span
			if in.after < in.offset && k.repeat == RepeatLast {
				end = civil(in.end, in.after)
			}
			if end.Before(high) {
				high = end
			}
		}
		if found, comes := k.set.within(k, low, high); comes {
			k.most = 0
			return found.Add(-in.offset), true
		}
		if in.end.IsZero() {
			break
		}
		from = in.end
	}
	return time.Time{}, false
}

// comes reports whether the set ever comes, and, if it does not, whether the zone's clocks skip all its times.
func (k *seeker) comes() (comes, skipped bool) {
	if _, comes = k.after(beginning, endOfTime); comes {
		return true, false
	}
	k.most, k.done = 0, false
	_, skipped = k.set.within(k, beginning, endOfTime)
	return false, skipped
}

// walk visits the nominal times of a schedule, the earliest first. It belongs to one caller.
//
// Lines are searched within a window, from the last one to horizon, which grows while it is empty: a line that comes once in 28 years is
// not searched that far if another one comes tomorrow.
type walk struct {
	s       *Schedule
	lines   []seeker
	free    *seeker   // of the seconds that are not excepted, between which intervals are searched
	at      time.Time // the last time of an interval
	horizon time.Time // each line's moments before it have been found
	days    int       // of the next window
}

const (
	firstWindow = 2       // days
	mostWindow  = 1 << 17 // days, 359 years: a window in which the search does not end is rare
)

// between is the line of all times at which an interval may be due. An interval of whole minutes is due at the same second of each: no zone
// has had an offset with seconds since 1972.
func between(every, offset time.Duration) cron {
	c := cron{second: 1<<60 - 1, minute: 1<<60 - 1, hour: 1<<24 - 1, month: 1<<13 - 1, anyDay: true, anyWeekday: true}
	if every%time.Minute == 0 {
		c.second = 1 << (offset % time.Minute / time.Second)
	}
	return c
}

// walk begins after t.
func (s *Schedule) walk(t time.Time) *walk {
	if t.Before(s.from) {
		t = s.from.Add(-time.Nanosecond)
	}
	w := &walk{s: s, at: t, horizon: t.Add(time.Nanosecond), days: firstWindow}
	seen := map[int]*excepted{}
	switch {
	case s.costly != nil:
	case s.Every != 0:
		w.free = &seeker{times: &times{set: &line{between(s.Every, s.Offset), &s.except}, zone: s.zone}, seen: seen}
	case s.at != nil:
		w.lines = []seeker{{times: s.at}}
	default:
		w.lines = make([]seeker, len(s.lines))
		for i := range s.lines {
			w.lines[i] = seeker{times: &s.lines[i], seen: seen}
		}
	}
	return w
}

// next is the next nominal time; false if there is none.
func (w *walk) next() (next time.Time, comes bool) {
	if w.free != nil {
		next, comes = w.nextOfInterval()
	} else {
		next, comes = w.nextOfLines()
	}
	if !comes || !next.Before(lastTime) || !w.s.until.IsZero() && !next.Before(w.s.until) {
		return time.Time{}, false
	}
	return next, true
}

func (w *walk) nextOfLines() (first time.Time, comes bool) {
	for {
		for i := range w.lines {
			if head := w.lines[i].head; !head.IsZero() && (first.IsZero() || head.Before(first)) {
				first = head
			}
		}
		if !first.IsZero() {
			w.days = firstWindow
			for i := range w.lines {
				if w.lines[i].head.Equal(first) {
					w.seek(i, first)
				}
			}
			return first, true
		}
		if !w.widen() {
			return first, false
		}
	}
}

// widen searches the lines' moments in the window after horizon. It is false if none of them has any.
func (w *walk) widen() (goes bool) {
	if !w.s.until.IsZero() && !w.horizon.Before(w.s.until) {
		return false
	}
	before := w.horizon.Add(-time.Nanosecond)
	w.horizon, w.days = w.horizon.AddDate(0, 0, w.days), min(8*w.days, mostWindow)
	for i := range w.lines {
		if !w.lines[i].done {
			w.seek(i, before)
			goes = true
		}
	}
	return goes
}

func (w *walk) seek(i int, after time.Time) {
	w.lines[i].head, _ = w.lines[i].after(after, w.horizon)
}

// Intervals are searched between exceptions in up to intervalSteps steps, of which a try counts tryCosts, so 100,000 tries: an interval of
// 2 seconds at odd ones never comes beside an exception of each odd second.
const (
	intervalSteps = 5_000_000
	tryCosts      = 50
)

// nextOfInterval counts intervals from the beginning of 1970 in UTC, so that the times do not depend on when the schedule was made, paused
// or late.
func (w *walk) nextOfInterval() (time.Time, bool) {
	s := w.s
	every, offset := int64(s.Every/time.Second), int64(s.Offset/time.Second)
	n := (w.at.Unix()-offset)/every + 1
	for least := w.free.steps; w.free.steps-least < intervalSteps; {
		next := time.Unix(n*every+offset, 0).UTC()
		if w.at = next; s.except.empty() {
			return next, true
		}
		w.free.steps += tryCosts
		in := w.free.spanAt(next)
		local := civil(next, in.offset)
		w.free.most = 0
		free, comes := w.free.set.within(w.free, local, endOfTime)
		switch {
		case !comes:
			return time.Time{}, false
		case free.Equal(local):
			return next, true
		}
		// The next interval is searched from the end of the excepted times, or from a change of the zone's clocks.
		over := free.Add(-in.offset)
		if !in.end.IsZero() && in.end.Before(over) {
			over = in.end
		}
		n = max(n, (over.Unix()-offset-1)/every) + 1
	}
	return time.Time{}, false
}

// Next is the first nominal time after t; false if there is none.
func (s *Schedule) Next(t time.Time) (time.Time, bool) { return s.walk(t).next() }

// Count counts the nominal times from <= t < to, and stops at most. last is the last counted one.
func (s *Schedule) Count(from, to time.Time, most int) (n int, last time.Time) {
	for w := s.walk(from.Add(-time.Nanosecond)); n < most; n++ {
		next, comes := w.next()
		if !comes || !next.Before(to) {
			break
		}
		last = next
	}
	return n, last
}

// times is how many times a day the line has.
func (c *cron) times() int {
	return bits.OnesCount64(c.hour) * bits.OnesCount64(c.minute) * bits.OnesCount64(c.second)
}
