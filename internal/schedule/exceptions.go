package schedule

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// exceptions are local times that are skipped.
type exceptions struct {
	dates map[int64]bool // by dayNumber
	lines []cron
	// The hours, minutes and seconds of all lines of the schedule. An exception of each minute of an hour then takes the whole hour from lines
	// of minutes, which do not need the other 59 seconds of each minute.
	hour, minute, second uint64
}

// add reads an exception, and reports whether it ever comes; one that does not, for example 30 February, is not kept.
func (e *exceptions) add(line string) (comes bool, err error) {
	if date, err := time.Parse(time.DateOnly, line); err == nil {
		if e.dates == nil {
			e.dates = map[int64]bool{}
		}
		e.dates[dayNumber(date)] = true
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

func (e *exceptions) empty() bool { return len(e.dates)+len(e.lines) == 0 }

// dayNumber counts the days of a local time from 1970 on.
func dayNumber(civil time.Time) int64 {
	const seconds = 24 * 60 * 60
	n := civil.Unix()
	if n < 0 {
		n -= seconds - 1
	}
	return n / seconds
}

// nextDay is the beginning of the day after that of a local time.
func nextDay(civil time.Time) time.Time {
	year, month, day := civil.Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
}

// beside adds the times of a line.
func (e *exceptions) beside(c *cron) {
	e.hour, e.minute, e.second = e.hour|c.hour, e.minute|c.minute, e.second|c.second
}

// partOf reports whether an exception takes only some seconds of the lines' minutes, or only some minutes of the lines' hours. Otherwise it
// takes whole hours.
func (e *exceptions) partOf(c *cron) (seconds, minutes bool) {
	return e.second&^c.second != 0, e.minute&^c.minute != 0
}

// Lines need of a day its month, its number, its weekday and, in February, whether the year has a 29th. dayKinds is how many kinds there
// are; some of them never come, for example 31 April.
const dayKinds = 13 * 31 * 7

// kind numbers the kinds of days. A February of 28 days is a thirteenth month.
func (d day) kind() int {
	month := int(d.month) - 1
	if d.length == 28 {
		month = 12
	}
	return (month*31+d.day-1)*7 + int(d.weekday)
}

// eachKind calls do with a day of every existing kind.
func eachKind(do func(day)) {
	for _, year := range []int{2027, 2028} { // without a 29 February and with one
		for t := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); t.Year() == year; t = nextDay(t) {
			d := dayOf(t)
			if year == 2027 && d.month != time.February {
				continue
			}
			for d.weekday = range 7 {
				do(d)
			}
		}
	}
}

// excepted is what exceptions take from a day of one kind.
type excepted struct {
	hours   uint64  // wholly
	minutes []*cron // lines that take whole minutes
	seconds []*cron // lines that take seconds
}

// on collects what the exceptions take from a day.
func (e *exceptions) on(d day) *excepted {
	x := &excepted{}
	for i := range e.lines {
		c := &e.lines[i]
		if c.month&(1<<d.month) == 0 || !c.onDay(d) {
			continue
		}
		switch seconds, minutes := e.partOf(c); {
		case seconds:
			x.seconds = append(x.seconds, c)
		case minutes:
			x.minutes = append(x.minutes, c)
		default:
			x.hours |= c.hour
		}
	}
	return x
}

// first is the first time of a line on a day, at or after a time, that is not excepted. steps is how many lines of exceptions were
// compared: up to cost of each.
func (x *excepted) first(c *cron, hour, minute, second int) (h, m, s, steps int, comes bool) {
	hours := c.hour &^ x.hours
	for h = atLeast(hours, hour); h < 64; h = atLeast(hours, h+1) {
		if h > hour {
			minute, second = 0, 0
		}
		steps += len(x.minutes)
		minutes := c.minute
		for _, l := range x.minutes {
			if l.hour&(1<<h) != 0 {
				minutes &^= l.minute
			}
		}
		for m = atLeast(minutes, minute); m < 64; m = atLeast(minutes, m+1) {
			if m > minute {
				second = 0
			}
			steps += len(x.seconds)
			seconds := c.second
			for _, l := range x.seconds {
				if l.hour&(1<<h) != 0 && l.minute&(1<<m) != 0 {
					seconds &^= l.second
				}
			}
			if s = atLeast(seconds, second); s < 64 {
				return h, m, s, steps, true
			}
		}
	}
	return h, m, s, steps, false
}

// cost is how often, at most, an exception is compared while one line is searched on one day.
func (e *exceptions) cost(c *cron) int {
	switch seconds, minutes := e.partOf(c); {
	case seconds:
		return bits.OnesCount64(e.hour) * bits.OnesCount64(e.minute)
	case minutes:
		return bits.OnesCount64(e.hour)
	}
	return 1
}

// Bounds of the cost of finding a time.
const (
	// mostTimes is how many times a day all lines may have together: every second of a day is 86,400.
	mostTimes = 100_000
	// mostSteps bounds how often exceptions are compared with lines in the longest search, over every kind of day: the days of each exception
	// times cost, summed, times the lines. A step takes about a nanosecond.
	mostSteps = 100_000_000
)

// tooCostly returns why the times of the lines would take too long to find.
func (s *Schedule) tooCostly() error {
	times := 0
	for _, l := range s.lines {
		times += l.set.(*line).cron.times()
	}
	if times > mostTimes {
		return Fault{"cron", fmt.Sprintf("the lines mean %d times a day, and at most %d are allowed", times, mostTimes), "write fewer lines, or lines that mean fewer times"}
	}
	steps := 0
	eachKind(func(d day) {
		for i := range s.except.lines {
			if c := &s.except.lines[i]; c.month&(1<<d.month) != 0 && c.onDay(d) {
				steps += s.except.cost(c)
			}
		}
	})
	lines := max(1, len(s.lines))
	if steps *= lines; steps > mostSteps {
		return Fault{"except", fmt.Sprintf("to compare %d cron lines with %d exceptions takes %d steps, and at most %d are allowed", lines, len(s.Except), steps, mostSteps),
			`except whole hours, such as "* 2-4 * * 1" or "* * 2-4 * * 1" beside lines of seconds, or fewer days, or write fewer lines`}
	}
	return nil
}
