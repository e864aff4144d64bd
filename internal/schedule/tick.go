package schedule

import "time"

const (
	FiredOnTime   = "on_time"
	FiredLate     = "catch_up" // also the reason of missed ticks
	FiredByHand   = "by_hand"
	FiredBackfill = "backfill"
	MissedLate    = FiredLate
	MissedPaused  = "paused"
	MissedBusy    = "overlap"
	MissedFault   = "refused" // its request could not be made

	MissedReplaced = "replaced" // it had passed when a new version of the document was applied
)

// Grace is how late a tick may be without counting as missed: a restart, a slow commit.
const Grace = time.Minute

// Missed are consecutive nominal times that were not fired.
type Missed struct {
	First, Last time.Time
	Count       int // countLimit: at least as many
	Why         string
	Message     string // further text about the reason
}

// countLimit is where counting of missed times stops: every second of a day is less.
const countLimit = 100_000

type Fire struct {
	Nominal time.Time
	Why     string
}

type Plan struct {
	Fire   []Fire
	Missed []Missed
	Next   time.Time // the first remaining nominal time; zero: there is none
}

// fireLimit is how many ticks one plan fires.
const fireLimit = 100

// Tick decides about the nominal times from next on that are due at now. Ticks that are not later than Grace are fired under any policy of
// catching up.
func (s *Schedule) Tick(name string, next, now time.Time) (p Plan) {
	if s.costly != nil {
		return Plan{Missed: s.refused(next)}
	}
	timely := now.Add(-Grace)
	if late := s.Due(name, next); late.Before(timely) {
		next = s.late(&p, name, next, timely, now)
	}
	for w := s.walk(next); !next.IsZero() && !s.Due(name, next).After(now) && len(p.Fire) < fireLimit+s.AtMost; {
		p.Fire = append(p.Fire, Fire{next, FiredOnTime})
		next, _ = w.next()
	}
	p.Next = next
	return p
}

// refused is the time that a costly schedule was waiting for; its other times are not searched.
func (s *Schedule) refused(next time.Time) []Missed {
	return []Missed{{First: next, Last: next, Count: 1, Why: MissedFault, Message: s.costly.Error()}}
}

// late decides about the late nominal times from next on, and returns the first one that is not late.
func (s *Schedule) late(p *Plan, name string, next, timely, now time.Time) time.Time {
	var caught []time.Time // the newest late times, within the bound
	keep := 0
	switch s.CatchUp {
	case CatchUpLast:
		keep = 1
	case CatchUpAll:
		keep = s.AtMost
	}
	var missed Missed
	miss := func(t time.Time) {
		if missed.Count == 0 {
			missed.First, missed.Why = t, MissedLate
		}
		if missed.Last = t; missed.Count < countLimit {
			missed.Count++
		}
	}
	since := maxTime(now.Add(-s.Within), s.newest(next, timely.Add(-s.Jitter), keep))
	if next.Before(since) {
		if n, last := s.Count(next, since, countLimit); n > 0 {
			missed = Missed{First: next, Last: last, Count: n, Why: MissedLate}
			next, _ = s.Next(maxTime(last, since.Add(-time.Nanosecond)))
		}
	}
	for w := s.walk(next); !next.IsZero() && s.Due(name, next).Before(timely); next, _ = w.next() {
		if caught = append(caught, next); len(caught) > keep {
			miss(caught[0])
			caught = caught[1:]
		}
	}
	if s.CatchUp == CatchUpLast && !next.IsZero() && !s.Due(name, next).After(now) {
		for _, t := range caught { // a later one is fired in time
			miss(t)
		}
		caught = nil
	}
	if missed.Count > 0 {
		p.Missed = append(p.Missed, missed)
	}
	for _, t := range caught {
		p.Fire = append(p.Fire, Fire{t, FiredLate})
	}
	return next
}

// newest is the time from which on there are keep nominal times before end, or next if there are fewer. Earlier times are missed and need
// not be visited one by one: a schedule of every second has 2.7 million times in a month.
func (s *Schedule) newest(next, end time.Time, keep int) time.Time {
	for span := time.Hour; ; span *= 8 {
		start := end.Add(-span)
		if !start.After(next) {
			return next
		}
		if n, _ := s.Count(start, end, keep); n == keep {
			return start
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Passed is the missed times from next until now, and the first nominal time after them.
func (s *Schedule) Passed(next, now time.Time, why string) (missed []Missed, left time.Time) {
	if s.costly != nil {
		return s.refused(next), time.Time{}
	}
	if n, last := s.Count(next, now, countLimit); n > 0 {
		missed = []Missed{{First: next, Last: last, Count: n, Why: why}}
		left, _ = s.Next(maxTime(last, now.Add(-time.Nanosecond)))
		return missed, left
	}
	return nil, next
}

// Change is a change of a zone's clocks, with its effect on the schedule.
type Change struct {
	At            time.Time
	Before, After time.Duration // offsets from UTC
	// Skipped are local times of the schedule that do not come, with the moments at which they are fired instead (zero: none). Repeated are
	// those that come twice, with the moments at which they are fired. Both lists are bounded.
	Skipped, Repeated []Fired
}

// Fired is a local time, written as if it were UTC, and the moments at which it is fired.
type Fired struct {
	Local time.Time
	At    []time.Time
}

// changeTimes is how many local times of a change are listed.
const changeTimes = 10

// Changes lists the changes of the zone's clocks between two moments.
func (s *Schedule) Changes(from, to time.Time) (all []Change) {
	for {
		in := spanAt(from, s.zone)
		if in.end.IsZero() || in.end.After(to) {
			return all
		}
		c := Change{At: in.end.UTC(), Before: in.offset, After: in.after}
		low, high := civil(in.end, min(in.offset, in.after)), civil(in.end, max(in.offset, in.after))
		for _, local := range s.locals(low, high) {
			f := Fired{Local: local}
			if in.after > in.offset {
				if s.Holds(in.end) {
					f.At = []time.Time{c.At}
				}
				c.Skipped = append(c.Skipped, f)
				continue
			}
			for _, t := range []time.Time{local.Add(-in.offset), local.Add(-in.after)} {
				if s.Holds(t) {
					f.At = append(f.At, t)
				}
			}
			c.Repeated = append(c.Repeated, f)
		}
		all = append(all, c)
		from = in.end
	}
}

// locals are the local times of the schedule from low to below high, as if its zone were UTC.
func (s *Schedule) locals(low, high time.Time) (all []time.Time) {
	lines := s.localLines()
	for t := low; len(all) < changeTimes; {
		var first time.Time
		for i := range lines {
			if n, ok := lines[i].set.within(&lines[i], t, high); ok && (first.IsZero() || n.Before(first)) {
				first = n
			}
		}
		if first.IsZero() {
			break
		}
		all = append(all, first)
		t = first.Add(time.Second)
	}
	return all
}

func (s *Schedule) localLines() []seeker {
	if s.Every != 0 || s.at != nil && s.at.zone != s.zone {
		return nil
	}
	return s.walk(time.Time{}).lines
}
