// Package schedule computes the times at which schedules are due: cron expressions, intervals and single moments in the
// time zones of the IANA database. It is pure: the caller says what time it is.
package schedule

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Days is how a cron line that restricts both the day of the month and the day of the week is read.
type Days string

// The readings of such a line.
const (
	EitherDay Days = "either" // the 13th and every Friday, as Unix cron reads it
	BothDays  Days = "both"   // every Friday the 13th
)

// cron is one line. Bit n of a set is the value n.
type cron struct {
	second, minute, hour, month uint64
	day, weekday                uint64
	last                        bool    // L: the last day of the month
	nth                         [7]byte // 5#2: bit n of nth[5] is the nth Friday of the month, bit 0 the last one (5L)
	anyDay, anyWeekday          bool    // the field begins with *
	anyHour                     bool
	either                      bool
}

var named = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *",
	"@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

var (
	monthNames   = []string{"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// cronLimit bounds the bytes of a line.
const cronLimit = 1000

// parseCron reads a line of five fields, or of six with the seconds first.
func parseCron(line string, days Days) (c cron, err error) {
	if len(line) > cronLimit {
		return c, fmt.Errorf("the line has %d bytes: at most %d are allowed", len(line), cronLimit)
	}
	text := strings.ToLower(strings.TrimSpace(line))
	if strings.HasPrefix(text, "@") {
		whole, known := named[text]
		if span, every := strings.CutPrefix(text, "@every"); every {
			return c, fmt.Errorf("%.40q is not a cron line: write every: %s in the document, in place of cron", line, cmp.Or(strings.TrimSpace(span), "5m"))
		}
		if !known {
			return c, fmt.Errorf("%.40q is not a cron line: write five fields, or one of @hourly, @daily, @weekly, @monthly and @yearly", line)
		}
		text = whole
	}
	f := strings.Fields(text)
	if strings.HasPrefix(text, "tz=") || strings.HasPrefix(text, "cron_tz=") {
		return c, fmt.Errorf("%.60q names a time zone: write zone: NAME in the document instead", line)
	}
	switch len(f) {
	case 5:
		f = append([]string{"0"}, f...)
	case 6:
	default:
		return c, fmt.Errorf("%.60q has %d fields: write minute, hour, day of the month, month and day of the week, with or without a second before them", line, len(f))
	}
	for _, part := range []struct {
		set         *uint64
		text, what  string
		least, most int
		names       []string
	}{
		{&c.second, f[0], "second", 0, 59, nil}, {&c.minute, f[1], "minute", 0, 59, nil}, {&c.hour, f[2], "hour", 0, 23, nil},
		{&c.month, f[4], "month", 1, 12, monthNames},
	} {
		if *part.set, err = parseField(part.text, part.what, part.least, part.most, part.names); err != nil {
			return c, err
		}
	}
	if err := c.parseDays(f[3], f[5]); err != nil {
		return c, err
	}
	c.anyHour = strings.HasPrefix(f[2], "*")
	switch restricted := !c.anyDay && !c.anyWeekday; {
	case restricted && days == "":
		return c, fmt.Errorf("%.60q names a day of the month and a day of the week: say days: either, for a day that is one of them, or days: both, for a day that is both", line)
	default:
		c.either = restricted && days == EitherDay
	}
	return c, nil
}

// parseDays reads the day of the month and the day of the week.
func (c *cron) parseDays(day, weekday string) (err error) {
	c.anyDay, c.anyWeekday = day == "*" || day == "?", weekday == "*" || weekday == "?"
	var plain []string
	for item := range strings.SplitSeq(strings.ReplaceAll(day, "?", "*"), ",") {
		if item == "l" {
			c.last = true
		} else {
			plain = append(plain, item)
		}
	}
	if len(plain) > 0 {
		if c.day, err = parseField(strings.Join(plain, ","), "day of the month", 1, 31, nil); err != nil {
			return err
		}
	}
	plain = nil
	for item := range strings.SplitSeq(strings.ReplaceAll(weekday, "?", "*"), ",") {
		of, nth, numbered := strings.Cut(item, "#")
		if !numbered && len(item) > 1 && strings.HasSuffix(item, "l") {
			of, nth, numbered = strings.TrimSuffix(item, "l"), "0", true
		}
		if !numbered {
			plain = append(plain, item)
			continue
		}
		which, err := parseField(of, "day of the week", 0, 7, weekdayNames)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(nth)
		if err != nil || n < 0 || n > 5 || strings.Contains(item, "#0") || bits.OnesCount64(which) != 1 {
			return fmt.Errorf("day of the week %.20q: write 5#2 for the second Friday of the month, #1 to #5, or 5L for the last one", item)
		}
		c.nth[bits.TrailingZeros64(which)%7] |= 1 << n
	}
	if len(plain) > 0 {
		c.weekday, err = parseField(strings.Join(plain, ","), "day of the week", 0, 7, weekdayNames)
		c.weekday = (c.weekday | c.weekday>>7) & 0x7f
	}
	return err
}

// otherwise returns how to write here what other systems accept in a field; empty: unknown.
func otherwise(s string, names []string) string {
	for _, name := range names {
		if len(s) > 3 && name != "" && strings.HasPrefix(s, name) {
			return ": write its first three letters, " + name
		}
	}
	switch {
	case names != nil:
		return ", or three letters such as " + names[len(names)-1]
	case s == "l" || strings.HasSuffix(s, "w"):
		return ": of the end of a month only L is known, its last day; list days such as 28,29,30 in place of days before it or of the nearest weekday"
	}
	return ""
}

// parseField reads a list of values, ranges and steps.
func parseField(text, what string, least, most int, names []string) (set uint64, err error) {
	value := func(s string) (int, error) {
		if i := slices.Index(names, s); i >= 0 && s != "" {
			return i, nil
		}
		n, err := strconv.Atoi(s)
		if err != nil || strings.HasPrefix(s, "+") {
			return 0, fmt.Errorf("%s %.20q: %.20q is not a number from %d to %d%s", what, text, s, least, most, otherwise(s, names))
		}
		if n < least || n > most {
			return 0, fmt.Errorf("%s %.20q: %d is not from %d to %d", what, text, n, least, most)
		}
		return n, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		span, every, stepped := strings.Cut(item, "/")
		low, high, step := least, most, 1
		if span != "*" {
			from, to, ranged := strings.Cut(span, "-")
			if low, err = value(from); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if high, err = value(to); err != nil {
					return 0, err
				}
			case !stepped:
				high = low
			}
			if low > high {
				return 0, fmt.Errorf("%s %.20q: %d comes after %d; write the range from the lower to the higher, or two of them with a comma", what, text, low, high)
			}
		}
		if stepped {
			if step, err = strconv.Atoi(every); err != nil || step < 1 || step > most {
				return 0, fmt.Errorf("%s %.20q: the step %.20q is not a number from 1 to %d", what, text, every, most)
			}
		}
		for n := low; n <= high; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

// day is a day of the calendar, with what lines need of it.
type day struct {
	month   time.Month
	day     int
	length  int // of the month
	weekday time.Weekday
}

// dayOf is the day of a time written as if it were UTC.
func dayOf(civil time.Time) day {
	year, month, n := civil.Date()
	return day{month, n, time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day(), civil.Weekday()}
}

// onDay reports whether the line includes a day of one of its months.
func (c *cron) onDay(d day) bool {
	byMonth := c.day&(1<<d.day) != 0 || c.last && d.day == d.length
	byWeek := c.weekday&(1<<d.weekday) != 0 || c.nth[d.weekday]&(1<<((d.day-1)/7+1)) != 0 || c.nth[d.weekday]&1 != 0 && d.day+7 > d.length
	if c.either {
		return byMonth || byWeek
	}
	return (c.anyDay || byMonth) && (c.anyWeekday || byWeek)
}

// civilYears is how far ahead a line is searched. The days of the week of 29 February repeat within 40 years.
const civilYears = 41

// next is the first time of the line at or after civil. Both are times of a calendar without time zones, written as if they were UTC. It is
// false if there is none, for example for 30 February.
func (c *cron) next(civil time.Time) (time.Time, bool) {
	t := civil.Truncate(time.Second)
	if t.Before(civil) {
		t = t.Add(time.Second)
	}
	for most := t.Year() + civilYears; ; {
		year, month, day := t.Date()
		switch {
		case year > most:
			return t, false
		case c.month&(1<<month) == 0:
			t = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.onDay(dayOf(t)):
			t = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		default:
			hour, minute, second, comes := c.onClock(t.Clock())
			if comes {
				return time.Date(year, month, day, hour, minute, second, 0, time.UTC), true
			}
			t = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		}
	}
}

// onClock is the first time of the line on a day, at or after a time; false if there is none on that day.
func (c *cron) onClock(hour, minute, second int) (h, m, s int, comes bool) {
	h = atLeast(c.hour, hour)
	if h == hour {
		if m = atLeast(c.minute, minute); m == minute {
			if s = atLeast(c.second, second); s < 64 {
				return h, m, s, true
			}
			m = atLeast(c.minute, minute+1)
		}
		if m < 64 {
			return h, m, atLeast(c.second, 0), true
		}
		h = atLeast(c.hour, hour+1)
	}
	return h, atLeast(c.minute, 0), atLeast(c.second, 0), h < 64
}

// atLeast is the least value of a set that is at least n; 64 if there is none.
func atLeast(set uint64, n int) int {
	return bits.TrailingZeros64(set >> n << n)
}
