package schedule

import "time"

// Reasons of ticks.
const (
	FiredOnTime   = "on_time"
	FiredLate     = "catch_up" // also why a tick was missed
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

// Missed are nominal times, one after the other, that were not fired.
type Missed struct {
	First, Last time.Time
	Count       int // countLimit: at least as many
	Why         string
}

// countLimit is where missed times are no longer counted: every second of a day are fewer.
const countLimit = 100_000

// Fire is a nominal time to be fired.
type Fire struct {
	Nominal time.Time
	Why     string
}

// Plan is what becomes of the nominal times that have passed.
type Plan struct {
	Fire   []Fire
	Missed []Missed
	Next   time.Time // the first nominal time that is left; zero: there is none
}

// fireLimit is how many ticks one plan fires.
const fireLimit = 100

// Tick decides about the nominal times from next on that are due at now. What is not late by more than Grace is fired whatever
// the policy of catching up says.
func (s *Schedule) Tick(name string, next, now time.Time) (p Plan) {
	timely := now.Add(-Grace)
	if late := s.Due(name, next); late.Before(timely) {
		next = s.late(&p, name, next, timely, now)
	}
	for !next.IsZero() && !s.Due(name, next).After(now) && len(p.Fire) < fireLimit+s.AtMost {
		p.Fire = append(p.Fire, Fire{next, FiredOnTime})
		next, _ = s.Next(next)
	}
	p.Next = next
	return p
}

// late decides about the nominal times from next on that are late, and returns the first one that is not.
func (s *Schedule) late(p *Plan, name string, next, timely, now time.Time) time.Time {
	since := now.Add(-s.Within)
	var caught []time.Time // within the bound, the newest of them
	keep := 1
	if s.CatchUp == CatchUpAll {
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
	if next.Before(since) {
		if n, last := s.Count(next, since, countLimit); n > 0 {
			missed = Missed{First: next, Last: last, Count: n, Why: MissedLate}
			next, _ = s.Next(maxTime(last, since.Add(-time.Nanosecond)))
		}
	}
	for !next.IsZero() && s.Due(name, next).Before(timely) {
		if s.CatchUp == CatchUpNone {
			miss(next)
		} else {
			if len(caught) == keep {
				miss(caught[0])
				caught = caught[1:]
			}
			caught = append(caught, next)
		}
		next, _ = s.Next(next)
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

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Passed is what was missed from next until now, and the first nominal time that was not.
func (s *Schedule) Passed(next, now time.Time, why string) (missed []Missed, left time.Time) {
	if n, last := s.Count(next, now, countLimit); n > 0 {
		missed = []Missed{{First: next, Last: last, Count: n, Why: why}}
		left, _ = s.Next(maxTime(last, now.Add(-time.Nanosecond)))
		return missed, left
	}
	return nil, next
}

// Change is a moment at which a zone's clocks are set, and what the schedule makes of it.
type Change struct {
	At            time.Time
	Before, After time.Duration // offsets from UTC
	// Skipped are the local times of the schedule that do not come, with the moments at which they are fired instead (zero: at
	// none). Repeated are those that come twice, with the moments at which they are fired. They are listed up to a bound.
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
	for t := low; len(all) < changeTimes; {
		var first time.Time
		for _, line := range s.localLines() {
			if n, ok := line.next(t); ok && (first.IsZero() || n.Before(first)) {
				first = n
			}
		}
		if first.IsZero() || !first.Before(high) {
			break
		}
		all = append(all, first)
		t = first.Add(time.Second)
	}
	return all
}

func (s *Schedule) localLines() []times {
	if s.at != nil && s.at.zone == s.zone {
		return []times{*s.at}
	}
	return s.lines
}
