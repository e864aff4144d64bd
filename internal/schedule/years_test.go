package schedule

import (
	"archive/zip"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Without wholeCalendar a few years of a few zones are compared. Lines that fire more than denseFrom times a year are compared around the
// changes of the clocks only, and of zones whose clocks show the same in a year one is.
var wholeCalendar = flag.Bool("whole-calendar", false, "compare all lines with the clocks of all zones in all years from 2015 to 2040")

const denseFrom = 5_000

// yearLines are compared with the clocks of whole years.
var yearLines = slices.Concat(oracleLines, []string{
	"0 0 1 1 *", "59 23 31 12 *", "0 12 L 2 *", "0 0 29 2 *", "30 2 * 3 0L", "30 2 * 10 0L", "0 1-3 * * *", "*/15 1-3 * * 0,6", "0 */6 * * *", "5 0 * 8 *",
	"15 14 1 * *", "0 22 * * 1-5", "23 0-20/2 * * *", "0 0,12 1 */2 *", "0 4 8-14 * *", "0 0 15,30 * *", "0 9 * * 1#1", "0 17 * * 5L", "1 0 * * 1#5", "45 23 * * 6",
	"@hourly", "@daily", "@weekly", "@monthly", "@yearly", "0 2 * jan,jul mon-fri", "30 3 1-7,15-21 * *", "0-5 0 * * *", "55-59 23 * * *", "10,20,50 2,14 * * *",
	"0 0 31 * *", "59 1 * * *", "0 2 * * *", "59 2 * * *", "1 3 * * *", "30 0 * * *", "0 23 28-31 * *", "*/20 * * * 0", "0 8-18/5 * * 2,4", "3 3 3 3 *", "12 12 12 12 *",
})

// year is what the clocks of a zone show, minute by minute.
type year struct {
	from    time.Time // of the first minute
	begin   int       // the first minute and the one behind the last that are compared: those around them are there for times that come twice
	end     int
	minutes []clockMinute
	skipped []skippedMinute
	changes []int  // minutes at which the clock's offset is another one than before
	shows   string // is the same for all zones whose clocks show the same in this year
}

// clockMinute is a minute of a clock: its day, counted from the first one's, and whether the same comes before or after it again.
type clockMinute struct {
	day           int
	hour, minute  uint8
	before, after bool
}

// skippedMinute is one that a clock never shows; at is the minute at which it has been passed.
type skippedMinute struct {
	clockMinute
	at int
}

// yearOf reads the clock of a zone at every minute of a year.
func yearOf(zone *time.Location, number int) *year {
	const margin = 25 * 60
	first := time.Date(number, 1, 1, 0, 0, 0, 0, time.UTC)
	y := &year{from: first.Add(-margin * time.Minute), begin: margin}
	y.end = margin + int(time.Date(number+1, 1, 1, 0, 0, 0, 0, time.UTC).Sub(first)/time.Minute)
	base := y.from.Unix()/86400 - 2 // no clock is two days off
	shown := map[int64]int{}        // minute of a clock → where it was shown
	last, before := int64(0), 0
	y.shows = first.Format("2006")
	for i := range y.end + margin {
		t := y.from.Add(time.Duration(i) * time.Minute)
		_, offset := t.In(zone).Zone()
		local := (t.Unix() + int64(offset)) / 60
		if i == 0 || offset != before {
			y.changes, y.shows = append(y.changes, i), fmt.Sprintf("%s %d:%d", y.shows, i, offset)
		}
		before = offset
		if i > 0 {
			for gone := last + 1; gone < local; gone++ {
				y.skipped = append(y.skipped, skippedMinute{minuteOf(gone, base), i})
			}
		}
		last = local
		m := minuteOf(local, base)
		if at, again := shown[local]; again {
			m.before, y.minutes[at].after = true, true
		}
		shown[local] = i
		y.minutes = append(y.minutes, m)
	}
	return y
}

func minuteOf(local, base int64) clockMinute {
	return clockMinute{day: int(local/1440 - base), hour: uint8(local / 60 % 24), minute: uint8(local % 60)}
}

// nearChange reports whether a minute is within two days of a change of the clock, or of the year.
func (y *year) nearChange(minute int) bool {
	const near = 2 * 24 * 60
	return minute < y.begin+near || minute >= y.end-near || slices.ContainsFunc(y.changes, func(at int) bool { return minute >= at-near && minute < at+near })
}

// times are the minutes at which a line fires, by what the clock showed.
func (y *year) times(c *cron, gap Gap, repeat Repeat) (all []int) {
	base := time.Unix((y.from.Unix()/86400-2)*86400, 0).UTC()
	days := make([]bool, 372+8)
	for i := range days {
		day := base.AddDate(0, 0, i)
		days[i] = c.month&(1<<day.Month()) != 0 && c.onDay(day)
	}
	means := func(m *clockMinute) bool {
		return c.hour&(1<<m.hour) != 0 && c.minute&(1<<m.minute) != 0 && days[m.day]
	}
	fired := map[int]bool{}
	if gap == GapNext {
		for i := range y.skipped {
			if means(&y.skipped[i].clockMinute) {
				fired[y.skipped[i].at] = true
			}
		}
	}
	for i := y.begin; i < y.end; i++ {
		m := &y.minutes[i]
		kept := repeat == RepeatBoth || repeat == RepeatFirst && !m.before || repeat == RepeatLast && !m.after
		if kept && means(m) || fired[i] {
			all = append(all, i)
		}
	}
	return all
}

// zoneNames are all zones of the database that Go comes with.
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

// TestYears compares the calendar with what clocks show at every minute of whole years.
func TestYears(t *testing.T) {
	type pair struct {
		zone string
		year int
	}
	pairs := []pair{{"Europe/Berlin", 2026}, {"Asia/Gaza", 2025}}
	if testing.Short() {
		pairs = pairs[:1]
	}
	if *wholeCalendar {
		pairs = nil
		for _, zone := range zoneNames(t) {
			for number := 2015; number <= 2040; number++ {
				pairs = append(pairs, pair{zone, number})
			}
		}
		rand.New(rand.NewPCG(5, 6)).Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] }) // so that a run that is stopped has seen some of everything
	}
	compared := map[string]bool{}
	for n, p := range pairs {
		if n%100 == 99 {
			t.Logf("%d of %d years, %d of them compared", n+1, len(pairs), len(compared))
		}
		zone, err := time.LoadLocation(p.zone)
		if err != nil {
			t.Fatal(err)
		}
		y := yearOf(zone, p.year)
		if compared[y.shows] {
			continue
		}
		compared[y.shows] = true
		for i, line := range yearLines {
			gap := []Gap{GapNext, GapSkip}[i%2]
			repeat := []Repeat{RepeatFirst, RepeatLast, RepeatBoth}[(i+p.year)%3]
			c, err := parseCron(line, "")
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			s := made(t, Spec{Cron: []string{line}, Zone: p.zone, Gap: gap, Repeat: repeat})
			at := y.from.Add(time.Duration(y.begin) * time.Minute).Add(-time.Nanosecond)
			want := y.times(&c, gap, repeat)
			dense, passed := len(want) > denseFrom, false
			for _, minute := range want {
				if dense && !y.nearChange(minute) {
					passed = true
					continue
				}
				if passed { // the one before this was not compared
					at, passed = y.from.Add(time.Duration(minute)*time.Minute).Add(-time.Nanosecond), false
				}
				next, comes := s.Next(at)
				if moment := y.from.Add(time.Duration(minute) * time.Minute); !comes || !next.Equal(moment) {
					t.Fatalf("%s in %s, gap %s, repeat %s: after %s comes %s, the clocks say %s", line, p.zone, gap, repeat, at.Format(time.RFC3339), next.Format(time.RFC3339), moment.Format(time.RFC3339))
				}
				at = next
			}
			if next, comes := s.Next(at); comes && next.Before(y.from.Add(time.Duration(y.end)*time.Minute)) {
				t.Fatalf("%s in %s, gap %s, repeat %s: after %s comes %s, which the clocks do not say", line, p.zone, gap, repeat, at.Format(time.RFC3339), next.Format(time.RFC3339))
			}
		}
	}
}
