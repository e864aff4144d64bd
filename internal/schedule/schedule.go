package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for servers without the system's zones
)

// CatchUp is what happens to ticks that no server fired in time.
type CatchUp string

const (
	CatchUpNone CatchUp = "none" // all of them are missed
	CatchUpLast CatchUp = "last" // the newest one is fired, late
	CatchUpAll  CatchUp = "all"  // they are fired, the oldest first
)

// Overlap is what happens to a tick while the execution of the previous tick has not ended.
type Overlap string

const (
	OverlapSkip     Overlap = "skip"      // it is missed
	OverlapQueueOne Overlap = "queue_one" // one waits its turn, later ones are missed
	OverlapQueue    Overlap = "queue"     // all wait their turn
	OverlapAllow    Overlap = "allow"     // they run side by side
	OverlapCancel   Overlap = "cancel_running"
)

// Keyed reports whether the executions of a schedule share a concurrency key.
func (o Overlap) Keyed() bool {
	return o == OverlapQueueOne || o == OverlapQueue || o == OverlapCancel
}

// Spec is the part of a document about the times of a schedule.
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
	// From and Until bound the times: the first allowed one, and the first forbidden one. Each is a moment or a day of the zone.
	From, Until string

	CatchUp CatchUp
	Within  time.Duration // how late a tick may be and still be caught up with
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
	strict []error
	costly error // nil: the bounds of costs hold
}

const zoneFix = "write a name of the IANA database, such as Europe/Berlin, or UTC"

// nearZone corrects the case of a zone's name: the database has UTC and not utc.
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
	return zoneFix
}

// hostZones are files and directories beside the zones of the IANA database that a system may have. Those below right/ count leap
// seconds, which Go does not: in November right/Europe/Berlin would be an hour late.
var hostZones = []string{"localtime", "posixrules", "posix", "right"}

// New reads a Spec. The error joins a Fault for each mistake.
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
		if first, _, _ := strings.Cut(spec.Zone, "/"); slices.Contains(hostZones, first) {
			say := fmt.Sprintf("%.60q is a file of this machine, and other machines may have another", spec.Zone)
			s.strict = append(s.strict, Fault{"zone", say, zoneFix})
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
			s.strict = append(s.strict, Fault{path, fmt.Sprintf("%.60q never comes", line), "name a day that the month has, or leave the line out"})
		}
	}
	if spec.Every == 0 && s.zone == time.UTC {
		s.clocks("the clocks of UTC are never changed", "add zone: Europe/Berlin, for example, or leave it out")
	}
	s.readCron(fault)
	s.readEvery(fault)
	s.readAt(fault)
	if s.costly = s.tooCostly(); s.costly != nil {
		return s, errors.Join(faults...)
	}
	s.checkLines(fault)
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
	bothDays := len(s.Cron) == 0
	for i, text := range s.Cron {
		c, err := parseCron(text, s.Days)
		if err != nil {
			fault(s.cronPath(i), err.Error(), "")
			continue
		}
		t := times{zone: s.zone, gap: s.Gap, repeat: s.Repeat, set: &line{c, &s.except}}
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
		s.lines = append(s.lines, t)
		s.except.beside(&c)
		bothDays = bothDays || !c.anyDay && !c.anyWeekday
	}
	if s.Days != "" && !bothDays {
		say := "days has no effect: no line names both a day of the month and a day of the week"
		s.strict = append(s.strict, Fault{"days", say, "leave it out"})
	}
}

// clocks refuses policies for clocks that are changed, in a new schedule where no clock is.
func (s *Schedule) clocks(why, fix string) {
	for _, f := range []struct {
		path  string
		given bool
	}{{"gap", s.Gap != ""}, {"repeat", s.Repeat != ""}} {
		if f.given {
			s.strict = append(s.strict, Fault{f.path, f.path + " has no effect: " + why, fix})
		}
	}
}

// checkLines refuses lines that never come.
func (s *Schedule) checkLines(fault func(path, message, fix string)) {
	if len(s.lines) != len(s.Cron) {
		return // the faults of the others are reported, and paths would be of other lines
	}
	if s.at != nil {
		if _, comes := s.Next(beginning.Add(-time.Nanosecond)); !comes {
			fault("at", fmt.Sprintf("%.60q never comes: it is not of the years 2000 to 9999, or with gap: skip the clocks of %s jump over it", s.At, s.zone), "write another moment")
		}
		return
	}
	if s.Every != 0 && !s.except.empty() {
		if _, comes := s.Next(beginning.Add(-time.Nanosecond)); !comes {
			say := fmt.Sprintf("no time of every: %s is left", s.Every)
			s.strict = append(s.strict, Fault{"except", say, "except fewer times, or write another offset"})
		}
		return
	}
	lines := s.walk(beginning).lines
	for i := range lines {
		switch comes, skipped := lines[i].comes(); {
		case comes:
		case skipped:
			fault(s.cronPath(i), fmt.Sprintf("%.60q never comes: the clocks of %s jump over each of its times", s.Cron[i], s.zone), "write gap: next, or another time")
		default:
			fault(s.cronPath(i), fmt.Sprintf("%.60q never comes", s.Cron[i]), "name a day that the month has, which is not among the exceptions")
		}
	}
}

// cronPath is the path of a line in the document.
func (s *Schedule) cronPath(i int) string {
	if len(s.Cron) > 1 {
		return fmt.Sprintf("cron[%d]", i)
	}
	return "cron"
}

func (s *Schedule) readEvery(fault func(path, message, fix string)) {
	if s.Every == 0 {
		if s.Offset != 0 {
			fault("offset", "offset moves the times of every, and there is none", "leave it out")
		}
		return
	}
	all := between(s.Every, s.Offset)
	s.except.beside(&all)
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

// parseMoment reads a moment with an offset, or a local time. A new schedule is refused for a fraction of a second.
func (s *Schedule) parseMoment(path, form, text string) (time.Time, error) {
	t, err := time.Parse(form, text)
	if err == nil && t.Nanosecond() != 0 {
		say := fmt.Sprintf("%.60q has a fraction of a second", text)
		s.strict = append(s.strict, Fault{path, say, "leave the fraction out: schedules go by whole seconds"})
	}
	return t, err
}

// atForms are the forms of a moment that is local to the zone.
var atForms = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

func (s *Schedule) readAt(fault func(path, message, fix string)) {
	if s.At == "" {
		return
	}
	only := func(at time.Time, zone *time.Location) {
		s.at = &times{zone: zone, gap: s.Gap, repeat: s.Repeat, set: localTime(at)}
		s.at.gap = cmp.Or(s.at.gap, GapNext)
		s.at.repeat = cmp.Or(s.at.repeat, RepeatFirst)
	}
	if t, err := s.parseMoment("at", time.RFC3339, s.At); err == nil {
		if s.zone != time.UTC {
			s.clocks("at is a moment with an offset from UTC, which no clock skips or repeats",
				"leave it out, or write at as a local time with zone")
		}
		only(t.UTC(), time.UTC)
		return
	}
	for _, form := range atForms {
		if t, err := s.parseMoment("at", form, s.At); err == nil {
			only(t, s.zone)
			return
		}
	}
	fault("at", fmt.Sprintf("%.60q is not a moment", s.At), `write "2026-12-24T08:00", which is of the schedule's zone, or "2026-12-24T08:00:00Z"`)
}

// readBounds reads the first allowed moment, and the first forbidden one. A local time that the clocks skip stands for the moment after the
// gap, one that comes twice for the first of the two.
func (s *Schedule) readBounds(fault func(path, message, fix string)) {
	read := func(path, text string) (bound time.Time) {
		if text == "" {
			return bound
		}
		if t, err := s.parseMoment(path, time.RFC3339, text); err == nil {
			return t.UTC()
		}
		for _, form := range append([]string{time.DateOnly}, atForms...) {
			if t, err := s.parseMoment(path, form, text); err == nil {
				only := times{zone: s.zone, gap: GapNext, repeat: RepeatFirst, set: localTime(t)}
				bound, _ = (&seeker{times: &only}).after(time.Unix(0, 0).AddDate(-1000, 0, 0), endOfTime)
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

// Strict is why a new schedule is refused although its times can be found: exceptions that never come, zones that differ between machines,
// fractions of a second. A schedule that was stored with them works.
func (s *Schedule) Strict() error { return errors.Join(s.strict...) }

// Costly is why the times of the schedule would take too long to find. A new schedule is refused; a stored one has no times, and the time
// that it was waiting for is missed.
func (s *Schedule) Costly() error { return s.costly }

// beginning is the start of the search for a line that may never come.
var beginning = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Holds reports whether t is a nominal time.
func (s *Schedule) Holds(t time.Time) bool {
	n, ok := s.Next(t.Add(-time.Nanosecond))
	return ok && n.Equal(t)
}

// Due is when a nominal time is fired: later by up to the jitter, with the same delay on every server.
func (s *Schedule) Due(name string, nominal time.Time) time.Time {
	if s.Jitter < time.Millisecond {
		return nominal
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", name, nominal.UnixMicro())
	return nominal.Add(time.Duration(h.Sum64()%uint64(s.Jitter/time.Millisecond)) * time.Millisecond)
}

func (s *Schedule) Location() *time.Location { return s.zone }
