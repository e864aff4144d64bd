package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func made(t *testing.T, spec Spec) *Schedule {
	t.Helper()
	s, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UTC()
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  Spec
		after string
		want  []string // none: it never comes again
	}{
		{"weekdays", Spec{Cron: []string{"30 2 * * 1-5"}}, "2026-11-20T02:30:00Z", []string{"2026-11-23T02:30:00Z", "2026-11-24T02:30:00Z"}},
		{"two lines with a common time", Spec{Cron: []string{"0 * * * *", "0 */2 * * *"}}, "2026-11-20T00:30:00Z", []string{"2026-11-20T01:00:00Z", "2026-11-20T02:00:00Z", "2026-11-20T03:00:00Z"}},
		{"names and steps", Spec{Cron: []string{"0 9/4 * jan,Jul sun"}}, "2026-01-04T09:00:00Z", []string{"2026-01-04T13:00:00Z", "2026-01-04T17:00:00Z", "2026-01-04T21:00:00Z", "2026-01-11T09:00:00Z"}},
		{"seconds", Spec{Cron: []string{"*/20 * * * * *"}}, "2026-01-01T00:00:00Z", []string{"2026-01-01T00:00:20Z", "2026-01-01T00:00:40Z", "2026-01-01T00:01:00Z"}},
		{"29 February on a Monday", Spec{Cron: []string{"0 0 29 2 1"}, Days: BothDays}, "2026-01-01T00:00:00Z", []string{"2044-02-29T00:00:00Z", "2072-02-29T00:00:00Z"}},
		{"the 13th or a Friday", Spec{Cron: []string{"0 0 13 * 5"}, Days: EitherDay}, "2026-11-12T00:00:00Z", []string{"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"}},
		{"the last day of the month", Spec{Cron: []string{"0 0 L * *"}}, "2026-02-01T00:00:00Z", []string{"2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z", "2026-04-30T00:00:00Z"}},
		{"the second and the last Friday", Spec{Cron: []string{"0 0 * * 5#2,5L"}}, "2026-11-01T00:00:00Z", []string{"2026-11-13T00:00:00Z", "2026-11-27T00:00:00Z", "2026-12-11T00:00:00Z"}},
		{"7 is Sunday", Spec{Cron: []string{"0 0 * * 7"}}, "2026-11-20T00:00:00Z", []string{"2026-11-22T00:00:00Z"}},
		{"the last days of 9999", Spec{Cron: []string{"0 0 * * *"}, Zone: "America/New_York"}, "9999-12-29T05:00:00Z", []string{"9999-12-30T05:00:00Z", ""}},
		{"the last hours of 9999", Spec{Every: time.Hour}, "9999-12-30T22:00:00Z", []string{"9999-12-30T23:00:00Z", ""}},
		{"exceptions", Spec{Cron: []string{"0 8 * * *"}, Except: []string{"2026-12-25", "* * 26 12 *"}}, "2026-12-24T08:00:00Z", []string{"2026-12-27T08:00:00Z"}},
		{"every second but for a day", Spec{Every: time.Second, Except: []string{"2026-12-25"}}, "2026-12-24T23:59:58Z", []string{"2026-12-24T23:59:59Z", "2026-12-26T00:00:00Z"}},
		{"every second but for three days, on one of which clocks are put forward", Spec{Every: time.Second, Zone: "Europe/Berlin", Except: []string{"2026-03-28", "2026-03-29", "2026-03-30"}}, "2026-03-27T22:59:59Z", []string{"2026-03-30T22:00:00Z"}},
		{"every second but for a day on which clocks are set back", Spec{Every: time.Second, Zone: "Europe/Berlin", Except: []string{"2026-10-25"}}, "2026-10-24T21:59:59Z", []string{"2026-10-25T23:00:00Z"}},
		{"every second but for the days around one that Samoa never had", Spec{Every: time.Second, Zone: "Pacific/Apia", Except: []string{"2011-12-29", "2011-12-31"}}, "2011-12-29T09:59:59Z", []string{"2011-12-31T10:00:00Z"}},
		{"every second but for a day that is followed by one without a midnight", Spec{Every: time.Second, Zone: "America/Santiago", Except: []string{"2026-09-05"}}, "2026-09-05T03:59:59Z", []string{"2026-09-06T04:00:00Z"}},
		{"every second but for most of a day", Spec{Every: time.Second, Except: []string{"* * 0-22 25 12 *"}}, "2026-12-24T23:59:59Z", []string{"2026-12-25T23:00:00Z"}},
		{"a line of every second but for most of a day", Spec{Cron: []string{"* * * * * *"}, Except: []string{"* * 0-22 25 12 *"}}, "2026-12-24T23:59:59Z", []string{"2026-12-25T23:00:00Z"}},
		{"an interval", Spec{Every: 15 * time.Minute, Offset: 2 * time.Minute}, "2026-11-20T00:02:00Z", []string{"2026-11-20T00:17:00Z", "2026-11-20T00:32:00Z"}},
		{"a moment of the zone", Spec{At: "2026-12-24T08:00", Zone: "Europe/Berlin"}, "2026-11-20T00:00:00Z", []string{"2026-12-24T07:00:00Z", ""}},
		{"a moment of UTC", Spec{At: "2026-12-24T08:00:00Z", Zone: "Europe/Berlin"}, "2026-11-20T00:00:00Z", []string{"2026-12-24T08:00:00Z", ""}},
		{"a skipped moment", Spec{At: "2026-03-29T02:30", Zone: "Europe/Berlin"}, "2026-01-01T00:00:00Z", []string{"2026-03-29T01:00:00Z", ""}},

		{"from a day", Spec{Cron: []string{"0 8 * * *"}, Zone: "Europe/Berlin", From: "2026-12-01", Until: "2026-12-03"}, "2026-11-20T00:00:00Z", []string{"2026-12-01T07:00:00Z", "2026-12-02T07:00:00Z", ""}},
		{"until a moment, which does not come", Spec{Every: time.Hour, Until: "2026-11-20T02:00:00Z"}, "2026-11-20T00:30:00Z", []string{"2026-11-20T01:00:00Z", ""}},
		{"from a moment, which comes", Spec{Every: time.Hour, From: "2026-11-20T02:00", Zone: "Asia/Tokyo"}, "2026-11-01T00:00:00Z", []string{"2026-11-19T17:00:00Z", "2026-11-19T18:00:00Z"}},
		{"from a time that is skipped", Spec{Every: time.Minute, From: "2026-03-29T02:30", Zone: "Europe/Berlin"}, "2026-03-01T00:00:00Z", []string{"2026-03-29T01:00:00Z"}},

		{"a skipped time goes by the moment after the gap", Spec{Cron: []string{"30 2 * * *"}, Zone: "Europe/Berlin"}, "2026-03-28T02:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"a skipped time is left out", Spec{Cron: []string{"30 2 * * *"}, Zone: "Europe/Berlin", Gap: GapSkip}, "2026-03-28T02:00:00Z", []string{"2026-03-30T00:30:00Z"}},
		{"skipped and regular meet in one", Spec{Cron: []string{"30 2 * * *", "0 3 * * *"}, Zone: "Europe/Berlin"}, "2026-03-28T02:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"every hour knows no gap", Spec{Cron: []string{"30 * * * *"}, Zone: "Europe/Berlin"}, "2026-03-29T00:00:00Z", []string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}},
		{"first of two", Spec{Cron: []string{"30 2 * * *"}, Zone: "Europe/Berlin"}, "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"last of two", Spec{Cron: []string{"30 2 * * *"}, Zone: "Europe/Berlin", Repeat: RepeatLast}, "2026-10-24T12:00:00Z", []string{"2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		{"both", Spec{Cron: []string{"30 2 * * *"}, Zone: "Europe/Berlin", Repeat: RepeatBoth}, "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		{"every hour comes twice", Spec{Cron: []string{"0 * * * *"}, Zone: "Europe/Berlin"}, "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		{"half an hour", Spec{Cron: []string{"15 2 * * *"}, Zone: "Australia/Lord_Howe"}, "2026-10-03T00:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"a day that Samoa never had", Spec{Cron: []string{"0 12 * * *"}, Zone: "Pacific/Apia"}, "2011-12-29T23:00:00Z", []string{"2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
		{"a zone's rule over the end of a leap year", Spec{Cron: []string{"0 0 31 12 *", "0 12 1 1 *"}, Zone: "Europe/Berlin"}, "2040-12-01T00:00:00Z",
			[]string{"2040-12-30T23:00:00Z", "2041-01-01T11:00:00Z", "2041-12-30T23:00:00Z"}},
		{"the last day of a leap year, long after", Spec{Cron: []string{"30 12 31 12 *"}, Zone: "America/New_York"}, "2047-12-31T17:30:00Z", []string{"2048-12-31T17:30:00Z", "2049-12-31T17:30:00Z"}},
		{"a change at midnight", Spec{Cron: []string{"0 0 * * *"}, Zone: "America/Santiago"}, "2026-09-05T05:00:00Z", []string{"2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, at := made(t, c.spec), moment(t, c.after)
			for _, want := range c.want {
				next, ok := s.Next(at)
				if want == "" {
					if ok {
						t.Errorf("after %s comes %s, want nothing", at, next)
					}
					return
				}
				if !ok || !next.Equal(moment(t, want)) {
					t.Fatalf("after %s comes %s (%v), want %s", at, next, ok, want)
				}
				if !s.Holds(next) {
					t.Errorf("%s: Holds does not agree", next)
				}
				at = next
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		path string
	}{
		{Spec{}, ""}, {Spec{Cron: []string{"* * * * *"}, Every: time.Hour}, ""},
		{Spec{Cron: []string{"0 0 30 2 *"}}, "cron"}, {Spec{Cron: []string{"30 2 * 3 0L"}, Zone: "Europe/Berlin", Gap: GapSkip}, "cron"}, {Spec{Cron: []string{"0 0 * * *", "61 0 * * *"}}, "cron[1]"},
		{Spec{Cron: []string{"0 0 13 * 5"}}, "cron"}, {Spec{Cron: []string{"* * * *"}}, "cron"}, {Spec{Cron: []string{"5-1 * * * *"}}, "cron"},
		{Spec{Cron: []string{"*/0 * * * *"}}, "cron"}, {Spec{Cron: []string{"0 0 * * 5#6"}}, "cron"}, {Spec{Cron: []string{"TZ=UTC 0 0 * * *"}}, "cron"},
		{Spec{Cron: []string{"@often"}}, "cron"}, {Spec{Cron: []string{",,, * * * *"}}, "cron"},
		{Spec{Cron: []string{"0 0 1 1 *"}, Except: []string{"* * * * *"}}, "cron"},
		{Spec{Cron: []string{"0 0 * * *"}, Zone: "Mars/Olympus"}, "zone"}, {Spec{Cron: []string{"0 0 * * *"}, Zone: "Local"}, "zone"},
		{Spec{Cron: []string{"0 0 * * *"}, Except: []string{"2026-13-01"}}, "except[0]"},
		{Spec{Every: time.Millisecond}, "every"}, {Spec{Every: time.Hour, Offset: time.Hour}, "offset"}, {Spec{At: "noon"}, "at"},
		{Spec{Every: time.Hour, Days: BothDays}, "days"},
		{Spec{Every: time.Hour, From: "soon"}, "from"}, {Spec{Every: time.Hour, Until: "2026-02-30"}, "until"}, {Spec{At: "2026-12-24T08:00", Until: "2027-01-01"}, "at"},
		{Spec{Every: time.Hour, From: "2026-01-02", Until: "2026-01-02"}, "until"}, {Spec{Cron: []string{"0 0 1 1 *"}, From: "2026-01-02", Until: "2026-12-31"}, "until"},
		{Spec{At: "0000-01-01T00:00:00Z"}, "at"}, {Spec{At: "1999-12-31T23:59"}, "at"}, {Spec{At: "9999-12-31T23:59:59-12:00"}, "at"}, {Spec{At: "9999-12-31"}, "at"},
		{Spec{At: "2026-03-29T02:30", Zone: "Europe/Berlin", Gap: GapSkip}, "at"},
	} {
		_, err := New(c.spec)
		var f Fault
		if !errors.As(err, &f) || f.Path != c.path {
			t.Errorf("%+v: %v, want a fault of %q", c.spec, err, c.path)
		}
	}
}

// A schedule means the same on every machine, and its moments are those that are written; one that was stored before is read as it was.
func TestStrict(t *testing.T) {
	daily := []string{"0 0 * * *"}
	for _, c := range []struct {
		spec Spec
		path string
	}{
		{Spec{Cron: daily, Zone: "localtime"}, "zone"}, {Spec{Cron: daily, Zone: "posixrules"}, "zone"},
		{Spec{Cron: daily, Zone: "posix/Europe/Berlin"}, "zone"}, {Spec{Cron: daily, Zone: "right/Europe/Berlin"}, "zone"},
		{Spec{At: "2026-12-24T08:00:00.5Z"}, "at"}, {Spec{At: "2026-12-24 08:00:00.000000001"}, "at"},
		{Spec{Cron: daily, From: "2026-12-24T08:00:00.9Z"}, "from"}, {Spec{Cron: daily, Until: "2027-12-24T08:00:00.9"}, "until"},
		{Spec{At: "2026-12-24T08:00:00.000Z"}, ""}, {Spec{Cron: daily, Zone: "Etc/GMT+5", From: "2026-12-24T08:00:01"}, ""},
	} {
		s, err := New(c.spec)
		if c.path == "zone" && err != nil && strings.HasPrefix(err.Error(), "zone: ") {
			continue // this machine has no such file
		}
		if err != nil {
			t.Fatal(err)
		}
		var f Fault
		if errors.As(s.Strict(), &f); f.Path != c.path {
			t.Errorf("%+v: %v, want a fault of %q", c.spec, s.Strict(), c.path)
		}
	}
}

// Exceptions that never come change nothing, and are named.
func TestIdleExceptions(t *testing.T) {
	s, err := New(Spec{Cron: []string{"0 8 * * *"}, Except: []string{"2026-12-25", "0 0 30 2 *", "* * 26 12 *"}})
	if err != nil {
		t.Fatal(err)
	}
	var f Fault
	if idle := s.Strict(); !errors.As(idle, &f) || f.Path != "except[1]" || !strings.Contains(f.Message, `"0 0 30 2 *" never comes`) {
		t.Errorf("idle: %v", idle)
	}
	from := time.Date(2026, 12, 24, 9, 0, 0, 0, time.UTC)
	if next, ok := s.Next(from); !ok || !next.Equal(time.Date(2026, 12, 27, 8, 0, 0, 0, time.UTC)) {
		t.Errorf("next after %s: %s", from, next)
	}
	if _, err := New(Spec{Cron: []string{"0 8 * * *"}, Except: make([]string, mostExceptions+1)}); err == nil || !strings.Contains(err.Error(), "1001 exceptions") || strings.Contains(err.Error(), "except[0]") {
		t.Errorf("too many: %v", err)
	}
}

// rareExceptions are lines that hardly ever come, and further ones.
func rareExceptions(then ...string) (all []string) {
	for n := range mostExceptions - len(then) {
		all = append(all, fmt.Sprintf("%d %d 29 2 *", n%60, n/60))
	}
	return append(all, then...)
}

// A whole month of excepted minutes is skipped, whether one line excepts its days or two except a part of each.
func TestManyExceptions(t *testing.T) {
	for _, then := range [][]string{{"* * * 1 *"}, {"*/2 * * 1 *", "1-59/2 * * 1 *"}} {
		s, err := New(Spec{Cron: []string{"* * * * *"}, Except: rareExceptions(then...)})
		if err != nil {
			t.Fatal(err)
		}
		if next, ok := s.Next(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)); !ok || !next.Equal(time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%q: %s", then, next)
		}
	}
}

// BenchmarkExceptions finds the next time of a schedule whose minutes of January are excepted with 1,000 lines: by whole days, and each by
// itself.
func BenchmarkExceptions(b *testing.B) {
	for name, then := range map[string][]string{"days": {"* * * 1 *"}, "minutes": {"*/2 * * 1 *", "1-59/2 * * 1 *"}, "none": nil} {
		b.Run(name, func(b *testing.B) {
			s, err := New(Spec{Cron: []string{"* * * * *"}, Except: rareExceptions(then...)})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				s.Next(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
			}
		})
	}
}

// oracle reads the zone's clock at every minute from a moment on and applies the policies to it.
func oracle(c *cron, zone *time.Location, gap Gap, repeat Repeat, from time.Time, minutes int) (all []time.Time) {
	means := func(local time.Time) bool {
		return c.month&(1<<local.Month()) != 0 && c.onDay(dayOf(local)) && c.hour&(1<<local.Hour()) != 0 && c.minute&(1<<local.Minute()) != 0
	}
	local := func(t time.Time) time.Time {
		_, offset := t.In(zone).Zone()
		return t.Add(time.Duration(offset) * time.Second)
	}
	seen := map[time.Time][]time.Time{}
	fired := map[time.Time]bool{}
	for i := range minutes {
		t := from.Add(time.Duration(i) * time.Minute)
		l := local(t)
		seen[l] = append(seen[l], t)
		for skipped := local(t.Add(-time.Minute)).Add(time.Minute); skipped.Before(l); skipped = skipped.Add(time.Minute) {
			if gap == GapNext && means(skipped) {
				fired[t] = true
			}
		}
	}
	for l, at := range seen {
		if !means(l) {
			continue
		}
		switch repeat {
		case RepeatFirst:
			at = at[:1]
		case RepeatLast:
			at = at[len(at)-1:]
		}
		for _, t := range at {
			fired[t] = true
		}
	}
	for t := range fired {
		all = append(all, t)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

var oracleLines = []string{
	"* * * * *", "*/7 * * * *", "0 * * * *", "30 * * * *", "15 */2 * * *", "30 2 * * *", "0 3 * * *", "0 0 * * *", "59 23 * * *", "30 1 * * *",
	"0 2 * * 0", "15 2,3 * * *", "45 0-4 * * *", "0 0 L * *", "0 1 * * 0L", "30 0 1-7 * *", "5 5 29 2 *", "*/5 2 * 3,10 *",
}

// TestOracle compares the calendar with clocks, minute by minute, around the changes of the zones' clocks.
func TestOracle(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Santiago", "Africa/Casablanca", "Asia/Tehran",
		"Africa/Cairo", "Pacific/Chatham", "America/Havana", "Asia/Gaza", "Europe/Dublin", "Asia/Kathmandu", "Antarctica/Troll", "America/Sao_Paulo", "Asia/Pyongyang", "UTC"}
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 12 {
			at := time.Date(2005+random.IntN(35), time.Month(1+random.IntN(12)), 1+random.IntN(28), 0, 0, 0, 0, time.UTC)
			if in := spanAt(at, zone); !in.end.IsZero() {
				at = in.end.UTC().Truncate(24 * time.Hour)
			}
			from := at.Add(-36 * time.Hour)
			line := oracleLines[random.IntN(len(oracleLines))]
			gap := []Gap{GapNext, GapSkip}[random.IntN(2)]
			repeat := []Repeat{RepeatFirst, RepeatLast, RepeatBoth}[random.IntN(3)]
			s := made(t, Spec{Cron: []string{line}, Zone: name, Gap: gap, Repeat: repeat})
			c, err := parseCron(line, "")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			to := from.Add(96 * time.Hour)
			for next, ok := s.Next(from.Add(-time.Nanosecond)); ok && next.Before(to); next, ok = s.Next(next) {
				got = append(got, next.Format(time.RFC3339))
			}
			var want []string
			// The oracle looks a day further at both ends: a repeated time comes again within a day.
			for _, at := range oracle(&c, zone, gap, repeat, from.Add(-25*time.Hour), 60*146) {
				if !at.Before(from) && at.Before(to) {
					want = append(want, at.Format(time.RFC3339))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s in %s, gap %s, repeat %s, from %s:\n got %v\nwant %v", line, name, gap, repeat, from.Format(time.RFC3339), got, want)
			}
		}
	}
}

// Intervals come as if each of them were compared with every exception.
func TestIntervalsBesideExceptions(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	zones := []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Asia/Kathmandu"}
	exceptions := []string{"2026-03-29", "2026-03-30", "2026-04-05", "2026-09-05", "2026-09-06", "2026-10-04", "2026-10-25", "* * * * 3 0", "* * 1-3 * * *",
		"* 0-58 * 25 * *", "0-29 * 5 * * *", "*/5 2 * * *", "30 30 * * * 6"}
	days := []time.Time{moment(t, "2026-03-28T20:00:00Z"), moment(t, "2026-04-04T10:00:00Z"), moment(t, "2026-09-05T00:00:00Z"), moment(t, "2026-10-03T10:00:00Z"), moment(t, "2026-10-24T20:00:00Z")}
	for range 400 {
		spec := Spec{Every: time.Duration(1+random.IntN(5000)) * time.Second, Zone: zones[random.IntN(len(zones))]}
		spec.Offset = time.Duration(random.Int64N(int64(spec.Every/time.Second))) * time.Second
		for range 1 + random.IntN(4) {
			spec.Except = append(spec.Except, exceptions[random.IntN(len(exceptions))])
		}
		s := made(t, spec)
		at := days[random.IntN(len(days))].Add(time.Duration(random.IntN(86400)) * time.Second)
		for range 5 {
			want := at.Truncate(time.Second)
			for {
				want = want.Add(time.Second)
				if (want.Unix()-int64(spec.Offset/time.Second))%int64(spec.Every/time.Second) != 0 {
					continue
				}
				in := want.In(s.zone)
				_, offset := in.Zone()
				if local := want.Add(time.Duration(offset) * time.Second); !isExcepted(&s.except, local) {
					break
				}
			}
			next, ok := s.Next(at)
			if !ok || !next.Equal(want) {
				t.Fatalf("%+v: after %s comes %s (%t), want %s", spec, at, next, ok, want)
			}
			at = next
		}
	}
}

// fired writes a plan as text: the fired times, "-" and the missed ones.
func fired(p Plan) string {
	var b strings.Builder
	for _, f := range p.Fire {
		fmt.Fprintf(&b, "%s%s ", f.Nominal.Format("2T15:04"), map[string]string{FiredLate: "late"}[f.Why])
	}
	for _, m := range p.Missed {
		fmt.Fprintf(&b, "-%s..%s:%d ", m.First.Format("2T15:04"), m.Last.Format("2T15:04"), m.Count)
	}
	return b.String() + ">" + p.Next.Format("2T15:04")
}

func TestTick(t *testing.T) {
	hourly := Spec{Cron: []string{"0 * * * *"}}
	with := func(s Spec, policy CatchUp, within time.Duration, most int) Spec {
		s.CatchUp, s.Within, s.AtMost = policy, within, most
		return s
	}
	for _, c := range []struct {
		name      string
		spec      Spec
		next, now string
		want      string
	}{
		{"in time", hourly, "2026-11-20T01:00:00Z", "2026-11-20T01:00:00Z", "20T01:00 >20T02:00"},
		{"a little late", with(hourly, CatchUpNone, 0, 0), "2026-11-20T01:00:00Z", "2026-11-20T01:00:59Z", "20T01:00 >20T02:00"},
		{"none", with(hourly, CatchUpNone, 0, 0), "2026-11-20T01:00:00Z", "2026-11-20T03:30:00Z", "-20T01:00..20T03:00:3 >20T04:00"},
		{"none, and one in time", with(hourly, CatchUpNone, 0, 0), "2026-11-20T01:00:00Z", "2026-11-20T03:00:00Z", "20T03:00 -20T01:00..20T02:00:2 >20T04:00"},
		{"last", hourly, "2026-11-20T01:00:00Z", "2026-11-20T03:30:00Z", "20T03:00late -20T01:00..20T02:00:2 >20T04:00"},
		{"last, and one in time", hourly, "2026-11-20T01:00:00Z", "2026-11-20T03:00:00Z", "20T03:00 -20T01:00..20T02:00:2 >20T04:00"},
		{"last within", with(hourly, CatchUpLast, 10*time.Minute, 0), "2026-11-20T01:00:00Z", "2026-11-20T03:30:00Z", "-20T01:00..20T03:00:3 >20T04:00"},
		{"all", with(hourly, CatchUpAll, 0, 0), "2026-11-20T01:00:00Z", "2026-11-20T03:30:00Z", "20T01:00late 20T02:00late 20T03:00late >20T04:00"},
		{"all at most", with(hourly, CatchUpAll, 0, 2), "2026-11-20T01:00:00Z", "2026-11-20T03:30:00Z", "20T02:00late 20T03:00late -20T01:00..20T01:00:1 >20T04:00"},
		{"all within", with(hourly, CatchUpAll, 100*time.Minute, 0), "2026-11-20T00:00:00Z", "2026-11-20T03:30:00Z", "20T02:00late 20T03:00late -20T00:00..20T01:00:2 >20T04:00"},
		{"the one moment, too late", Spec{At: "2026-11-18T01:00"}, "2026-11-18T01:00:00Z", "2026-11-20T03:30:00Z", "-18T01:00..18T01:00:1 >1T00:00"},
		{"a year of downtime", Spec{Every: time.Minute}, "2025-11-20T01:00:00Z", "2026-11-20T01:00:30Z", "20T01:00 -20T01:00..20T00:59:100000 >20T01:01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := made(t, c.spec).Tick("x", moment(t, c.next), moment(t, c.now))
			if fired(got) != c.want {
				t.Errorf("got %s, want %s", fired(got), c.want)
			}
		})
	}
}

// TestEveryTickOnce checks that servers at random moments decide about each nominal time exactly once.
func TestEveryTickOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		spec := Spec{Cron: []string{oracleLines[random.IntN(6)]}, Zone: "Europe/Berlin", AtMost: 1 + random.IntN(5), Within: time.Duration(1+random.IntN(100)) * time.Hour / 10,
			CatchUp: []CatchUp{CatchUpNone, CatchUpLast, CatchUpAll}[random.IntN(3)], Jitter: time.Duration(random.IntN(3)) * time.Minute}
		s := made(t, spec)
		began := time.Date(2026, 10, 24, random.IntN(24), 7, 0, 0, time.UTC)
		next, _ := s.Next(began)
		first, now, decided := next, began, 0
		for range 30 {
			now = now.Add(time.Duration(random.IntN(200)) * time.Minute)
			if s.Due("x", next).After(now) {
				continue
			}
			p := s.Tick("x", next, now)
			for _, f := range p.Fire {
				if !s.Holds(f.Nominal) || f.Nominal.Before(next) || f.Nominal.After(now) {
					t.Fatalf("%+v: %s is fired at %s", spec, f.Nominal, now)
				}
			}
			decided += len(p.Fire)
			for _, m := range p.Missed {
				decided += m.Count
			}
			if !p.Next.After(next) {
				t.Fatalf("%+v: next goes from %s to %s", spec, next, p.Next)
			}
			next = p.Next
		}
		if n, _ := s.Count(first, next, countLimit); n != decided {
			t.Fatalf("%+v: %d decided of %d", spec, decided, n)
		}
	}
}

func TestChanges(t *testing.T) {
	s := made(t, Spec{Cron: []string{"30 2 * * *"}, Zone: "Europe/Berlin"})
	all := s.Changes(moment(t, "2026-01-01T00:00:00Z"), moment(t, "2027-01-01T00:00:00Z"))
	if len(all) != 2 || len(all[0].Skipped) != 1 || len(all[1].Repeated) != 1 {
		t.Fatalf("changes of 2026: %+v", all)
	}
	if at := all[0].Skipped[0].At; len(at) != 1 || !at[0].Equal(moment(t, "2026-03-29T01:00:00Z")) {
		t.Errorf("the skipped time goes by %v", at)
	}
	if at := all[1].Repeated[0].At; len(at) != 1 || !at[0].Equal(moment(t, "2026-10-25T00:30:00Z")) {
		t.Errorf("the repeated time goes by %v", at)
	}
}

func FuzzCron(f *testing.F) {
	for _, line := range append(oracleLines, "@daily", "0 0 ? * mon#1", "1-5/2,7 0 0 1 1 *") {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := parseCron(line, EitherDay)
		if err != nil {
			return
		}
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if at, ok := c.next(from); ok {
			if again, _ := c.next(at); !again.Equal(at) || at.Before(from) {
				t.Errorf("%q: %s, then %s", line, at, again)
			}
		}
	})
}
