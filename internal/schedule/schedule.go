package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	_ "time/tzdata" // a server without the system's zones knows them all the same
)

// CatchUp says what becomes of ticks that no server fired in time.
type CatchUp string

// The policies of catching up.
const (
	CatchUpNone CatchUp = "none" // all of them are missed
	CatchUpLast CatchUp = "last" // the newest one is fired, late
	CatchUpAll  CatchUp = "all"  // they are fired, the oldest first
)

// Overlap says what becomes of a tick while the execution of the tick before has not ended.
type Overlap string

// The policies of overlapping.
const (
	OverlapSkip     Overlap = "skip"      // it is missed
	OverlapQueueOne Overlap = "queue_one" // one waits its turn, further ones are missed
	OverlapQueue    Overlap = "queue"     // all wait their turn
	OverlapAllow    Overlap = "allow"     // they run side by side
	OverlapCancel   Overlap = "cancel_running"
)

// Spec is what a document says about when a schedule is due.
type Spec struct {
	Cron   []string
	Days   Days
	Every  time.Duration
	Offset time.Duration
	At     string
	Zone   string // UTC when empty
	Gap    Gap
	Repeat Repeat
	Except []string
	Jitter time.Duration
	// From and Until bound the times: the first that may come, and the first that may not. Each is a moment or a day of the zone.
	From, Until string

	CatchUp CatchUp
	Within  time.Duration // how late a tick may be caught up with
	AtMost  int           // how many are caught up with at once
}

// The defaults and bounds of a Spec.
const (
	defaultWithin = 24 * time.Hour
	MostWithin    = 31 * 24 * time.Hour
	defaultAtMost = 100
	MostAtMost    = 1000
	MostJitter    = 24 * time.Hour
	mostLines     = 100
	leastEvery    = time.Second
	mostEvery     = 366 * 24 * time.Hour

	mostExceptions = 1000
)

// Fault is one thing that is wrong with a Spec.
type Fault struct {
	Path, Message, Fix string
}

func (f Fault) Error() string {
	if f.Fix != "" {
		return fmt.Sprintf("%s: %s (%s)", f.Path, f.Message, f.Fix)
	}
	return fmt.Sprintf("%s: %s", f.Path, f.Message)
}

// Schedule computes the nominal times of a Spec. It is immutable and safe for concurrent use.
type Schedule struct {
	Spec
	zone   *time.Location
	lines  []times
	at     *times    // of the one moment
	from   time.Time // zero: there is no bound
	until  time.Time
	except exceptions
	idle   []error
}

// exceptions are local times that do not count.
type exceptions struct {
	dates map[string]bool // as 2026-12-25
	lines []cron
}

// nearZone says how a zone is written whose letters are of another case: the names of the database are not the same in every case.
func nearZone(given string) string {
	lower := strings.ToLower(given)
	titled := []byte(lower)
	for i, c := range titled {
		if (i == 0 || lower[i-1] == '/' || lower[i-1] == '_' || lower[i-1] == '-') && 'a' <= c && c <= 'z' {
			titled[i] = c - 'a' + 'A'
		}
	}
	for _, name := range []string{strings.ToUpper(given), string(titled)} {
		if _, err := time.LoadLocation(name); err == nil && name != given {
			return fmt.Sprintf("did you mean %q?", name)
		}
	}
	return "write a name of the IANA database, such as Europe/Berlin, or UTC"
}

// New reads a Spec. The error joins a Fault for each thing that is wrong.
func New(spec Spec) (*Schedule, error) {
	s := &Schedule{Spec: spec, zone: time.UTC}
	var faults []error
	fault := func(path, message, fix string) { faults = append(faults, Fault{path, message, fix}) }
	if spec.Zone != "" {
		zone, err := time.LoadLocation(spec.Zone)
		if err != nil || spec.Zone == "Local" {
			fault("zone", fmt.Sprintf("%.60q is not a time zone", spec.Zone), nearZone(spec.Zone))
		} else {
			s.zone = zone
		}
	}
	s.Within = cmp.Or(s.Within, defaultWithin)
	s.AtMost = cmp.Or(s.AtMost, defaultAtMost)
	s.CatchUp = cmp.Or(s.CatchUp, CatchUpLast)
	kinds := 0
	for _, there := range []bool{len(spec.Cron) > 0, spec.Every != 0, spec.At != ""} {
		if there {
			kinds++
		}
	}
	if kinds != 1 {
		fault("", fmt.Sprintf("the schedule has %d of cron, every and at", kinds), `write one of them, such as cron: "30 2 * * *"`)
	}
	if len(spec.Cron) > mostLines || len(spec.Except) > mostExceptions {
		fault("cron", fmt.Sprintf("there are %d lines and %d exceptions", len(spec.Cron), len(spec.Except)), fmt.Sprintf("write up to %d lines and %d exceptions", mostLines, mostExceptions))
		return s, errors.Join(faults...)
	}
	for i, line := range spec.Except {
		path := fmt.Sprintf("except[%d]", i)
		if comes, err := s.except.add(line); err != nil {
			fault(path, err.Error(), `write a date such as "2026-12-25", or a cron line such as "* * 1 1 *"`)
		} else if !comes {
			s.idle = append(s.idle, Fault{path, fmt.Sprintf("%.60q never comes", line), "name a day that the month has, or leave the line out"})
		}
	}
	s.readCron(fault)
	s.readEvery(fault)
	s.readAt(fault)
	s.readBounds(fault)
	if spec.Days != "" && len(spec.Cron) == 0 {
		fault("days", "days says how a cron line is read, and there is none", "leave it out")
	}
	if len(spec.Except) > 0 && spec.At != "" {
		fault("except", "a schedule of one moment has no exceptions", "leave it out")
	}
	return s, errors.Join(faults...)
}

func (s *Schedule) readCron(fault func(path, message, fix string)) {
	for i, line := range s.Cron {
		path := "cron"
		if len(s.Cron) > 1 {
			path = fmt.Sprintf("cron[%d]", i)
		}
		c, err := parseCron(line, s.Days)
		if err != nil {
			fault(path, err.Error(), "")
			continue
		}
		t := times{zone: s.zone, gap: s.Gap, repeat: s.Repeat, next: func(civil time.Time) (time.Time, bool) { return s.except.next(&c, civil) }}
		if t.gap == "" {
			if t.gap = GapNext; c.anyHour {
				t.gap = GapSkip
			}
		}
		if t.repeat == "" {
			if t.repeat = RepeatFirst; c.anyHour {
				t.repeat = RepeatBoth
			}
		}
		if _, comes := t.next(beginning); !comes {
			fault(path, fmt.Sprintf("%.60q never comes", line), "name a day that the month has, which is not among the exceptions")
		} else if _, comes := t.after(beginning); !comes {
			fault(path, fmt.Sprintf("%.60q never comes: the clocks of %s jump over each of its times", line, s.zone), "write gap: next, or another time")
		}
		s.lines = append(s.lines, t)
	}
}

func (s *Schedule) readEvery(fault func(path, message, fix string)) {
	if s.Every == 0 {
		if s.Offset != 0 {
			fault("offset", "offset moves the times of every, and there is none", "leave it out")
		}
		return
	}
	if s.Every < leastEvery || s.Every > mostEvery || s.Every%time.Second != 0 {
		fault("every", fmt.Sprintf("%s is not an interval of whole seconds from %s to 366 days", s.Every, leastEvery), "write every: 15m")
	}
	if s.Offset < 0 || s.Offset >= s.Every || s.Offset%time.Second != 0 {
		fault("offset", fmt.Sprintf("%s is not within the interval of %s, in whole seconds", s.Offset, s.Every), "write offset: 2m with every: 15m for minutes 2, 17, 32 and 47")
	}
	if s.Gap != "" || s.Repeat != "" {
		fault("gap", "an interval knows no hour that is skipped or comes twice", "leave gap and repeat out")
	}
}

// atForms are how a moment may be written that is local to the zone.
var atForms = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

func (s *Schedule) readAt(fault func(path, message, fix string)) {
	if s.At == "" {
		return
	}
	only := func(moment time.Time, zone *time.Location) {
		s.at = &times{zone: zone, gap: s.Gap, repeat: s.Repeat, next: func(civil time.Time) (time.Time, bool) { return moment, !moment.Before(civil) }}
		s.at.gap = cmp.Or(s.at.gap, GapNext)
		s.at.repeat = cmp.Or(s.at.repeat, RepeatFirst)
	}
	if t, err := time.Parse(time.RFC3339, s.At); err == nil {
		only(t.UTC(), time.UTC)
		return
	}
	for _, form := range atForms {
		if t, err := time.Parse(form, s.At); err == nil {
			only(t, s.zone)
			return
		}
	}
	fault("at", fmt.Sprintf("%.60q is not a moment", s.At), `write "2026-12-24T08:00", which is of the schedule's zone, or "2026-12-24T08:00:00Z"`)
}

// readBounds reads the first moment that may come, and the first that may not. A local time that the clocks jump over stands for the
// moment after the gap, one that comes twice for the first of the two.
func (s *Schedule) readBounds(fault func(path, message, fix string)) {
	read := func(path, text string) (bound time.Time) {
		if text == "" {
			return bound
		}
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			return t.UTC()
		}
		for _, form := range append([]string{time.DateOnly}, atForms...) {
			if t, err := time.Parse(form, text); err == nil {
				only := times{zone: s.zone, gap: GapNext, repeat: RepeatFirst, next: func(civil time.Time) (time.Time, bool) { return t, !t.Before(civil) }}
				bound, _ = only.after(time.Unix(0, 0).AddDate(-1000, 0, 0))
				return bound
			}
		}
		fault(path, fmt.Sprintf("%.60q is neither a moment nor a day", text), `write "2027-01-01" or "2027-01-01T08:00", which are of the schedule's zone, or "2027-01-01T08:00:00Z"`)
		return bound
	}
	if (s.From != "" || s.Until != "") && s.Spec.At != "" {
		fault("at", "a schedule of one moment has no bounds", "leave from and until out")
		return
	}
	s.from, s.until = read("from", s.From), read("until", s.Until)
	if s.until.IsZero() || len(s.lines) != len(s.Cron) {
		return
	}
	if s.from.IsZero() {
		return
	}
	if _, comes := s.Next(s.from.Add(-time.Nanosecond)); !comes {
		fault("until", "no time comes between from and until", "write a later one")
	}
}

// add reads an exception, and reports whether it ever comes; one that does not, as 30 February, is not kept.
func (e *exceptions) add(line string) (comes bool, err error) {
	if _, err := time.Parse(time.DateOnly, line); err == nil {
		if e.dates == nil {
			e.dates = map[string]bool{}
		}
		e.dates[line] = true
		return true, nil
	}
	if !strings.Contains(strings.TrimSpace(line), " ") && !strings.HasPrefix(line, "@") {
		return false, fmt.Errorf("%.40q is neither a date nor a cron line", line)
	}
	c, err := parseCron(line, EitherDay)
	if err != nil {
		return false, err
	}
	if _, comes = c.next(beginning); comes {
		e.lines = append(e.lines, c)
	}
	return comes, nil
}

// Idle are the exceptions that never come. They change nothing, so a schedule that was stored with them works; a new one is refused.
func (s *Schedule) Idle() error { return errors.Join(s.idle...) }

// beginning is from when on a line is looked for that may never come.
var beginning = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// exceptionsPassed is how many steps are made over what is excepted before nothing counts as coming any more. A step
// passes one time, or what one exception means without a break: a minute, an hour, a day.
const exceptionsPassed = 50_000

// next is the first time at or after civil that a line means and that is no exception.
func (e *exceptions) next(c *cron, civil time.Time) (time.Time, bool) {
	for range exceptionsPassed {
		t, comes := c.next(civil)
		if !comes {
			return t, false
		}
		l, is := e.at(t)
		switch {
		case !is:
			return t, true
		case l != nil && !l.covers(c):
			civil = l.until(t)
		default: // nothing of this day is left
			civil = nextDay(t)
		}
	}
	return time.Time{}, false
}

// at reports whether a whole second is excepted: as the day that it is of, or by a line, which is returned.
func (e *exceptions) at(civil time.Time) (by *cron, is bool) {
	if e.dates[civil.Format(time.DateOnly)] {
		return nil, true
	}
	by = e.line(civil)
	return by, by != nil
}

// nextDay is when the day after that of a local time begins.
func nextDay(civil time.Time) time.Time {
	year, month, day := civil.Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
}

// line returns the first line that means a whole second; nil: none does. It is asked at every step, up to 50,000 with
// 1,000 lines each: a line is not searched for its next time, which takes 0.1 ms for a rare one.
func (e *exceptions) line(civil time.Time) *cron {
	d := dayOf(civil)
	hour, minute, second := civil.Clock()
	for i := range e.lines {
		if l := &e.lines[i]; l.means(d, hour, minute, second) {
			return l
		}
	}
	return nil
}

func (e *exceptions) empty() bool { return len(e.dates)+len(e.lines) == 0 }

// Next is the first nominal time after t; false when there is none.
func (s *Schedule) Next(t time.Time) (time.Time, bool) {
	if t.Before(s.from) {
		t = s.from.Add(-time.Nanosecond)
	}
	next, comes := s.unbounded(t)
	if comes && !s.until.IsZero() && !next.Before(s.until) {
		return time.Time{}, false
	}
	return next, comes
}

// unbounded is Next without regard to From and Until.
func (s *Schedule) unbounded(t time.Time) (time.Time, bool) {
	if s.Every != 0 {
		return s.nextOfInterval(t)
	}
	if s.at != nil {
		return s.at.after(t)
	}
	var first time.Time
	for i := range s.lines {
		if n, ok := s.lines[i].after(t); ok && (first.IsZero() || n.Before(first)) {
			first = n
		}
	}
	return first, !first.IsZero()
}

// nextOfInterval counts intervals from the beginning of 1970 in UTC, so that the times do not depend on when the schedule was
// made, paused or late.
func (s *Schedule) nextOfInterval(t time.Time) (time.Time, bool) {
	every, offset := int64(s.Every/time.Second), int64(s.Offset/time.Second)
	n := (t.Unix()-offset)/every + 1
	for range exceptionsPassed {
		next := time.Unix(n*every+offset, 0).UTC()
		if s.except.empty() {
			return next, true
		}
		in := spanAt(next, s.zone)
		local := civil(next, in.offset)
		l, is := s.except.at(local)
		if !is {
			return next, true
		}
		until := nextDay(local)
		if l != nil {
			until = l.until(local)
		}
		// A day has 86,400 intervals of a second: it is passed in one step, or in two where the zone's clocks change on it.
		over := until.Add(-in.offset)
		if !in.end.IsZero() && in.end.Before(over) {
			over = in.end
		}
		n = max(n, (over.Unix()-offset-1)/every) + 1
	}
	return time.Time{}, false
}

// Holds reports whether t is a nominal time.
func (s *Schedule) Holds(t time.Time) bool {
	n, ok := s.Next(t.Add(-time.Nanosecond))
	return ok && n.Equal(t)
}

// Count counts the nominal times from <= t < to, and stops at most. last is the last one counted.
func (s *Schedule) Count(from, to time.Time, most int) (n int, last time.Time) {
	at := from.Add(-time.Nanosecond)
	for n < most {
		next, ok := s.Next(at)
		if !ok || !next.Before(to) {
			break
		}
		n, last, at = n+1, next, next
	}
	return n, last
}

// Due is when a nominal time is fired: later by up to the jitter, by the same span on every server.
func (s *Schedule) Due(name string, nominal time.Time) time.Time {
	if s.Jitter < time.Millisecond {
		return nominal
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", name, nominal.UnixMicro())
	return nominal.Add(time.Duration(h.Sum64()%uint64(s.Jitter/time.Millisecond)) * time.Millisecond)
}

// Location is the zone that the schedule's local times are of.
func (s *Schedule) Location() *time.Location { return s.zone }
