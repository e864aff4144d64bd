package schedule

import (
	"archive/zip"
	"flag"
	"fmt"
	"hash/maphash"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var wholeCalendar = flag.Bool("whole-calendar", false, "compare all lines with the clocks of all zones in all years from 2015 to 2040, which make calendar does")

// The years of the whole calendar.
const firstYear, lastYear = 2015, 2040

// yearLine is a line whose nominal times are all compared.
type yearLine struct {
	text string
	days Days
}

var yearLines = func() (all []yearLine) {
	for _, text := range slices.Concat(oracleLines, []string{
		"0 0 1 1 *", "59 23 31 12 *", "0 12 L 2 *", "0 0 29 2 *", "30 2 * 3 6L,0L", "30 2 * 10 0L", "0 1-3 * * *", "*/15 1-3 * * 0,6", "0 */6 * * *", "5 0 * 8 *",
		"15 14 1 * *", "0 22 * * 1-5", "23 0-20/2 * * *", "0 0,12 1 */2 *", "0 4 8-14 * *", "0 0 15,30 * *", "0 9 * * 1#1", "0 17 * * 5L", "1 0 * * 1#5", "45 23 * * 6",
		"@hourly", "@daily", "@weekly", "@monthly", "@yearly", "0 2 * jan,jul mon-fri", "30 3 1-7,15-21 * *", "0-5 0 * * *", "55-59 23 * * *", "10,20,50 2,14 * * *",
		"0 0 31 * *", "59 1 * * *", "0 2 * * *", "59 2 * * *", "1 3 * * *", "30 0 * * *", "0 23 28-31 * *", "*/20 * * * 0", "0 8-18/5 * * 2,4", "3 3 3 3 *", "12 12 12 12 *",
	}) {
		all = append(all, yearLine{text, ""})
	}
	for _, text := range []string{"0 0 13 * 5", "30 1 1-7 * 7", "0 2 L * 0,5L", "15 3 */10 3,10,11 sun#2"} {
		all = append(all, yearLine{text, EitherDay}, yearLine{text, BothDays})
	}
	return all
}()

// clock is what the clocks of a zone show in some years, read minute by minute. The oracle knows nothing else of the zone, and reads the
// lines itself.
type clock struct {
	from    time.Time // of the first minute
	begin   int       // the first compared minute and the one after the last: those around them are for times that come twice
	end     int
	minutes []shown
	skipped []skip
	near    []bool // by day: a change of the clock, or an end of the years, is on it or on a neighbouring day
	same    uint64 // a hash of all changes
}

// shown is the time on a clock at one minute: bits 0 to 10 the minute of the day, bit 11 whether it has shown the same before, bit 12
// whether it will show the same again, and from bit 13 the day.
type shown uint32

const (
	shownBefore shown = 1 << 11
	shownAgain  shown = 1 << 12
)

func (s shown) minute() int { return int(s & 0x7ff) }
func (s shown) day() int    { return int(s >> 13) }

// skip is a time that a clock never shows; at is the minute at which it has been passed.
type skip struct {
	shown
	at int
}

const dayMinutes = 24 * 60

// seed makes hashes of one run comparable.
var seed = maphash.MakeSeed()

// readClock reads the clock of a zone at every minute of some years.
func readClock(zone *time.Location, from, to int) *clock {
	const margin = 25 * 60
	start := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &clock{from: start.Add(-margin * time.Minute), begin: margin}
	c.end = margin + int(time.Date(to+1, 1, 1, 0, 0, 0, 0, time.UTC).Sub(start)/time.Minute)
	c.minutes = make([]shown, c.end+margin)
	c.near = make([]bool, len(c.minutes)/dayMinutes+1)
	base := c.firstDay().Unix() / 60
	when := make([]int32, len(c.minutes)+5*dayMinutes) // minute of the clock → 1 + where it was shown
	var hash maphash.Hash
	hash.SetSeed(seed)
	offsetAt := func(minute int) int {
		_, offset := c.moment(minute).In(zone).Zone()
		return offset
	}
	// If the clock has the same offset from UTC at both ends of a quarter of an hour, it has it in between.
	const quarter = 15
	offset, steady := 0, false
	before, previous, first := 0, int64(0), c.from.Unix()/60
	for i := range c.minutes {
		if i%quarter == 0 || !steady {
			offset = offsetAt(i)
		}
		if i%quarter == 0 {
			steady = offsetAt(i+quarter) == offset
		}
		local := first + int64(i) + int64(offset/60) - base
		if i == 0 || offset != before {
			fmt.Fprintln(&hash, i, offset)
			c.markNear(i)
		}
		for gone := previous + 1; i > 0 && gone < local; gone++ {
			c.skipped = append(c.skipped, skip{shown(gone/dayMinutes)<<13 | shown(gone%dayMinutes), i})
		}
		s := shown(local/dayMinutes)<<13 | shown(local%dayMinutes)
		if at := when[local]; at > 0 {
			s |= shownBefore
			c.minutes[at-1] |= shownAgain
		}
		c.minutes[i], when[local] = s, int32(i+1)
		before, previous = offset, local
	}
	c.markNear(c.begin)
	c.markNear(c.end)
	c.same = hash.Sum64()
	return c
}

func (c *clock) markNear(minute int) {
	for day := max(0, minute/dayMinutes-1); day <= min(len(c.near)-1, minute/dayMinutes+1); day++ {
		c.near[day] = true
	}
}

// firstDay is day 0 of the clock: no clock is two days off.
func (c *clock) firstDay() time.Time {
	return time.Unix((c.from.Unix()/86400-2)*86400, 0).UTC()
}

func (c *clock) moment(minute int) time.Time { return c.from.Add(time.Duration(minute) * time.Minute) }

// meaning is a line as the oracle reads it: its minutes of the day, and its days.
type meaning struct {
	minutes [dayMinutes]bool
	days    []bool // by the clock's days
}

// means reads a line, field by field and value by value.
func (c *clock) means(line yearLine) (*meaning, error) {
	text := line.text
	if named := map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *"}[text]; named != "" {
		text = named
	}
	f := strings.Fields(text)
	if len(f) != 5 {
		return nil, fmt.Errorf("the oracle reads five fields, not %q", text)
	}
	m := &meaning{days: make([]bool, len(c.minutes)/dayMinutes+5)}
	for i := range m.minutes {
		m.minutes[i] = among(f[0], i%60, 0, nil) && among(f[1], i/60, 0, nil)
	}
	for i := range m.days {
		day := c.firstDay().AddDate(0, 0, i)
		if !among(f[3], int(day.Month()), 1, []string{"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}) {
			continue
		}
		ofMonth, ofWeek := false, false
		for item := range strings.SplitSeq(f[2], ",") {
			ofMonth = ofMonth || item == "L" && day.AddDate(0, 0, 1).Day() == 1 || item != "L" && among(item, day.Day(), 1, nil)
		}
		for item := range strings.SplitSeq(f[4], ",") {
			ofWeek = ofWeek || isWeekday(item, day)
		}
		switch {
		case line.days == EitherDay:
			m.days[i] = ofMonth || ofWeek
		default:
			m.days[i] = ofMonth && ofWeek
		}
	}
	return m, nil
}

// isWeekday reports whether an item of the last field includes a day.
func isWeekday(item string, day time.Time) bool {
	names := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	of, nth, numbered := strings.Cut(item, "#")
	of, last := strings.CutSuffix(of, "L")
	if !among(of, int(day.Weekday()), 0, names) && !(day.Weekday() == time.Sunday && among(of, 7, 0, names)) {
		return false
	}
	switch {
	case last:
		return day.AddDate(0, 0, 7).Month() != day.Month()
	case numbered:
		return fmt.Sprint((day.Day()+6)/7) == nth
	default:
		return true
	}
}

// among reports whether a list of values, ranges and steps has a value. least is the field's least value.
func among(list string, value, least int, names []string) bool {
	number := func(text string) (n int) {
		if n = slices.Index(names, text); n >= 0 && text != "" {
			return n
		}
		if _, err := fmt.Sscan(text, &n); err != nil {
			panic(fmt.Sprintf("the oracle cannot read %q: %v", list, err))
		}
		return n
	}
	for item := range strings.SplitSeq(list, ",") {
		span, every, stepped := strings.Cut(item, "/")
		low, high, step := least, value, 1
		if from, to, ranged := strings.Cut(span, "-"); ranged {
			low, high = number(from), number(to)
		} else if span != "*" {
			low = number(span)
			if !stepped {
				high = low
			}
		}
		if stepped {
			step = number(every)
		}
		if value >= low && value <= high && (value-low)%step == 0 {
			return true
		}
	}
	return false
}

// spans are the compared minutes: all of them, or those near changes of the clock.
func (c *clock) spans(all bool) (spans [][2]int) {
	if all {
		return [][2]int{{c.begin, c.end}}
	}
	for day, near := range c.near {
		from, to := max(c.begin, day*dayMinutes), min(c.end, (day+1)*dayMinutes)
		switch last := len(spans) - 1; {
		case !near || from >= to:
		case last >= 0 && spans[last][1] == from:
			spans[last][1] = to
		default:
			spans = append(spans, [2]int{from, to})
		}
	}
	return spans
}

// times are the minutes of a span at which a line fires, according to the clock.
func (c *clock) times(m *meaning, gap Gap, repeat Repeat, span [2]int) (all []int) {
	passed := map[int]bool{}
	if gap == GapNext {
		for _, s := range c.skipped {
			if m.minutes[s.minute()] && m.days[s.day()] {
				passed[s.at] = true
			}
		}
	}
	without := shown(0)
	switch repeat {
	case RepeatFirst:
		without = shownBefore
	case RepeatLast:
		without = shownAgain
	}
	for i := span[0]; i < span[1]; i++ {
		s := c.minutes[i]
		if m.minutes[s.minute()] && s&without == 0 && m.days[s.day()] || len(passed) > 0 && passed[i] {
			all = append(all, i)
		}
	}
	return all
}

// compare compares a schedule with the minutes of a span at which it fires.
func (c *clock) compare(s *Schedule, want []int, span [2]int) error {
	at := c.moment(span[0]).Add(-time.Nanosecond)
	for _, minute := range want {
		next, comes := s.Next(at)
		if moment := c.moment(minute); !comes || !next.Equal(moment) {
			return fmt.Errorf("after %s comes %s, the clocks say %s", at.Format(time.RFC3339), next.Format(time.RFC3339), moment.Format(time.RFC3339))
		}
		at = next
	}
	if next, comes := s.Next(at); comes && next.Before(c.moment(span[1])) {
		return fmt.Errorf("after %s comes %s, which the clocks do not say", at.Format(time.RFC3339), next.Format(time.RFC3339))
	}
	return nil
}

// zoneNames are all zones of Go's own database.
func zoneNames(t *testing.T) (names []string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, f := range r.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	if len(names) < 400 {
		t.Fatalf("%d zones: the test does not see them", len(names))
	}
	return names
}

// Lines with more than denseFrom minutes a day are compared completely on one clock of denseClocks, and near changes on each.
const (
	denseFrom   = 100
	denseClocks = 20
)

// compareLines compares all lines with a clock: every time of each line with one policy for gaps and repeated hours, which differs between
// clocks, and the times near changes with all policies.
func (c *clock) compareLines(zone string, nth int) (compared int, err error) {
	for i, line := range yearLines {
		m, err := c.means(line)
		if err != nil {
			return compared, err
		}
		dense := len(slices.DeleteFunc(slices.Clone(m.minutes[:]), func(means bool) bool { return !means })) > denseFrom
		for way := range 6 {
			gap, repeat := []Gap{GapNext, GapSkip}[way%2], []Repeat{RepeatFirst, RepeatLast, RepeatBoth}[way/2]
			s, err := New(Spec{Cron: []string{line.text}, Days: line.days, Zone: zone, Gap: gap, Repeat: repeat})
			if err != nil {
				return compared, err
			}
			for _, span := range c.spans((i+nth)%6 == way && !(dense && nth%denseClocks != 0)) {
				want := c.times(m, gap, repeat, span)
				if err := c.compare(s, want, span); err != nil {
					return compared, fmt.Errorf("%s (days %q) in %s, gap %s, repeat %s: %w", line.text, line.days, zone, gap, repeat, err)
				}
				compared += len(want)
			}
		}
	}
	return compared, nil
}

// TestYears compares the calendar with clocks at every minute of whole years.
func TestYears(t *testing.T) {
	load := func(name string) *time.Location {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		return zone
	}
	if !*wholeCalendar {
		for i, sample := range []struct {
			zone string
			year int
		}{{"Europe/Berlin", 2026}, {"Asia/Gaza", 2025}, {"America/New_York", 2040}} {
			if _, err := readClock(load(sample.zone), sample.year, sample.year).compareLines(sample.zone, i); err != nil {
				t.Error(err)
			}
		}
		return
	}
	names, distinct, compared, read := zoneNames(t), map[uint64]bool{}, 0, 0
	var mu sync.Mutex
	work := make(chan string)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for name := range work {
				c := readClock(load(name), firstYear, lastYear)
				mu.Lock()
				read++
				nth, known := len(distinct), distinct[c.same]
				distinct[c.same] = true
				mu.Unlock()
				if known {
					continue
				}
				n, err := c.compareLines(name, nth)
				mu.Lock()
				compared += n
				t.Logf("%s, zone %d of %d, %d clocks differ: %d times compared", name, read, len(names), len(distinct), compared)
				mu.Unlock()
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, name := range names {
		work <- name
	}
	close(work)
	workers.Wait()
	t.Logf("%d lines, %d zones with %d different clocks, %d to %d: %d times compared", len(yearLines), len(names), len(distinct), firstYear, lastYear, compared)
}
