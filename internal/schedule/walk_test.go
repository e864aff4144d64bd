package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// isExcepted compares one second with every exception.
func isExcepted(e *exceptions, civil time.Time) bool {
	d := dayOf(civil)
	hour, minute, second := civil.Clock()
	return e.dates[dayNumber(civil)] || slices.ContainsFunc(e.lines, func(c cron) bool {
		return c.hour&(1<<hour) != 0 && c.minute&(1<<minute) != 0 && c.second&(1<<second) != 0 && c.month&(1<<d.month) != 0 && c.onDay(d)
	})
}

// The times between exceptions are the times of each line that no exception, compared one by one, contains.
func TestTimesBetweenExceptions(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	of := func(all ...string) string { return all[random.IntN(len(all))] }
	exception := func() string {
		if random.IntN(4) == 0 {
			return time.Date(2027, time.Month(random.IntN(24)), random.IntN(31), 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		}
		clock := of("* *", "*/2 *", "10-50 *", "* 0-22", "* */2", "0 0-11", "30 2", "* 1-3")
		if random.IntN(3) == 0 {
			clock = of("*", "0-58", "1-59", "0", "*/7") + " " + clock
		}
		return clock + " " + of("* * *", "1-30 * *", "29 2 *", "* 2-11 *", "* * 1-6", "* * 5L", "L * *", "* * 0#2")
	}
	compared := 0
	for range 200 {
		spec := Spec{Days: BothDays}
		for range 1 + random.IntN(3) {
			spec.Cron = append(spec.Cron, of("30 2", "0 0", "59 23", "*/20 *", "15 1-3", "* 2", "0 */5")+" "+of("* * *", "29 2 *", "L * *", "* * 0L", "13 * 5", "* 3,10 0", "1-7 * 1"))
		}
		for range random.IntN(6) {
			spec.Except = append(spec.Except, exception())
		}
		spec.Zone = of("", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Kathmandu")
		spec.Gap, spec.Repeat = Gap(of("", "next", "skip")), Repeat(of("", "first", "last", "both"))
		s, err := New(spec)
		if err != nil {
			continue
		}
		from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.Int64N(400*86400)) * time.Second)
		to := from.AddDate(0, 0, 40)
		want := map[time.Time]bool{}
		for i := range s.lines {
			l := s.lines[i]
			plain := seeker{times: &times{set: &line{l.set.(*line).cron, &exceptions{}}, zone: l.zone, gap: l.gap, repeat: l.repeat}}
			each := seeker{times: &times{set: unexcepted{&plain, &s.except}, zone: l.zone, gap: l.gap, repeat: l.repeat}}
			for at, comes := each.after(from, to); comes; at, comes = each.after(at, to) {
				want[at] = true
			}
		}
		got, w := 0, s.walk(from)
		at, comes := w.next()
		for last := from; comes && at.Before(to); at, comes = w.next() {
			if !want[at] || !at.After(last) {
				t.Fatalf("%+v: %s after %s is not a time", spec, at, last)
			}
			got, last = got+1, at
		}
		if got != len(want) {
			t.Fatalf("%+v from %s: %d times, want %d", spec, from, got, len(want))
		}
		compared += got
	}
	if compared < 3000 {
		t.Errorf("only %d times were compared", compared)
	}
}

// unexcepted compares each time of a line with the exceptions.
type unexcepted struct {
	of     *seeker
	except *exceptions
}

func (u unexcepted) within(_ *seeker, low, high time.Time) (time.Time, bool) {
	for {
		t, comes := u.of.set.within(u.of, low, high)
		if !comes || !isExcepted(u.except, t) {
			return t, comes
		}
		low = t.Add(time.Second)
	}
}

// hostile are accepted schedules whose times are hard to find.
func hostile() map[string]Spec {
	lines := func(n int, line func(int) string) (all []string) {
		for i := range n {
			all = append(all, line(i))
		}
		return all
	}
	every := func(i int) string { return fmt.Sprintf("%d %d-59/2 * * * *", i%60, i%2) }
	almost := []string{"0-58 * * * * *", "59 0-58 * * * *", "59 59 0-10,12-22 * * *"}
	thirtyFirst := lines(997, func(int) string { return "* * * 31 * *" })
	var leapDays []string
	for year := 2000; len(leapDays) < 8; year += 4 {
		if day := time.Date(year, 2, 29, 0, 0, 0, 0, time.UTC); day.Month() == time.February {
			leapDays = append(leapDays, day.Format(time.DateOnly))
		}
	}
	return map[string]Spec{
		"one time of a day":          {Cron: []string{"* * * * * *"}, Except: append(thirtyFirst, almost...)},
		"leap days":                  {Cron: lines(100, func(i int) string { return fmt.Sprintf("%d 3 29 2 1", i%60) }), Days: BothDays, Except: lines(1000, func(i int) string { return fmt.Sprintf("%d %d 29 2 *", i%60, 4+i/60) }), Zone: "Europe/Berlin"},
		"all but 29 February":        {Cron: []string{"* * * * *"}, Except: []string{"* * 1-28 * *", "* * 30,31 * *", "* * 29 1,3-12 *", "0-58 * 29 2 *", "59 0-22 29 2 *"}, Zone: "Australia/Lord_Howe"},
		"many minutes":               {Cron: lines(60, func(i int) string { return fmt.Sprintf("%d * * * *", i) }), Except: lines(15, func(i int) string { return fmt.Sprintf("%d %d * * *", i%60, i/60) })},
		"minutes of many":            {Cron: lines(4, every), Except: lines(6, func(i int) string { return fmt.Sprintf("%d-%d * * *", i*10, i*10+7) + " *" })},
		"weeks of seconds":           {Cron: []string{"* * * * * *"}, Except: lines(1000, func(i int) string { return fmt.Sprintf("%d * * %d 12 *", i%59, 1+i%31) }), Zone: "Asia/Kathmandu"},
		"dates":                      {Cron: lines(100, func(int) string { return "0 0 29 2 *" }), Except: leapDays},
		"an interval never free":     {Every: 2 * time.Second, Offset: time.Second, Except: []string{"1-59/2 * * * * *"}},
		"an interval excepted whole": {Every: time.Second, Except: []string{"*/2 * * * *", "1-59/2 * * * *"}},
		"an interval beside seconds": {Every: 7 * time.Second, Except: lines(20, func(i int) string { return fmt.Sprintf("%d-%d */2 * * * *", i, i+38) }), Zone: "Europe/Berlin"},
		"a gap":                      {Cron: lines(100, func(i int) string { return fmt.Sprintf("%d 2 * 3 0L", i%60) }), Zone: "Europe/Berlin", Gap: GapNext, Except: lines(500, func(i int) string { return fmt.Sprintf("%d 2 25-30 3 *", i%60) })},
	}
}

// TestCostOfTimes counts the cost of searches, in searched days and comparisons with exceptions: for any accepted schedule, the next time
// is found in a fraction of a second, and so are the missed times of a month.
func TestCostOfTimes(t *testing.T) {
	for name, spec := range hostile() {
		t.Run(name, func(t *testing.T) {
			s, err := New(spec)
			if s.Costly() != nil || err != nil {
				t.Fatalf("refused: %v %v", s.Costly(), err)
			}
			steps := func(w *walk) (sum int) {
				for i := range w.lines {
					sum += w.lines[i].steps
				}
				if w.free != nil {
					sum += w.free.steps
				}
				return sum
			}
			most, from := 0, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
			for day := range 12 {
				w := s.walk(from.AddDate(0, 0, 150*day))
				w.next()
				most = max(most, steps(w))
			}
			if most > mostSteps {
				t.Errorf("the next time takes %d steps", most)
			}
			w := s.walk(from)
			n := 0
			for at, comes := w.next(); comes && at.Before(from.AddDate(0, 1, 0)) && n < countLimit; at, comes = w.next() {
				n++
			}
			if steps(w) > 4*mostSteps {
				t.Errorf("%d times of a month take %d steps", n, steps(w))
			}
			t.Logf("next: %d steps; a month: %d steps for %d times", most, steps(w), n)
		})
	}
}

// Schedules whose times cost more than the bounds are named, and have no times: a stored one is missed once.
func TestCostlySchedules(t *testing.T) {
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	many := func(n int, line string) []string { return slices.Repeat([]string{line}, n) }
	for _, c := range []struct {
		spec Spec
		path string
	}{
		{Spec{Cron: many(20, "* * * * * *")}, "cron"}, {Spec{Cron: many(2, "* * * * * *"), Zone: "Europe/Berlin"}, "cron"},
		{Spec{Cron: []string{"* * * * * *"}, Except: many(1000, "0-58 * * * * *")}, "except"}, {Spec{Every: time.Minute, Except: many(1000, "0-58 1 * * *")}, ""},
		{Spec{Every: time.Second, Except: many(1000, "0-57 * * * * *")}, "except"}, {Spec{Cron: many(100, "*/5 * * * *"), Except: many(1000, "30 1 * * *")}, "except"},
		{Spec{Cron: many(60, "* * * * *")}, ""}, {Spec{Cron: many(100, "0 0 * * *"), Except: many(1000, "* * 25 12 *")}, ""},
	} {
		s, err := New(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if c.path == "" {
			if s.Costly() != nil {
				t.Errorf("%d lines, %d exceptions: %v", len(c.spec.Cron), len(c.spec.Except), s.Costly())
			}
			continue
		}
		f, ok := s.Costly().(Fault)
		if !ok || f.Path != c.path || f.Fix == "" || !strings.ContainsAny(f.Message, "0123456789") {
			t.Fatalf("%d lines, %d exceptions: %v, want a fault of %q", len(c.spec.Cron), len(c.spec.Except), s.Costly(), c.path)
		}
		if next, comes := s.Next(at); comes {
			t.Errorf("%q: comes at %s", f.Message, next)
		}
		p := s.Tick("s", at, at.AddDate(0, 0, 3))
		missed, left := s.Passed(at, at.AddDate(0, 0, 3), MissedPaused)
		if !p.Next.IsZero() || len(p.Fire) > 0 || !slices.Equal(p.Missed, missed) || !left.IsZero() {
			t.Fatalf("%+v; passed %+v, then %s", p, missed, left)
		}
		if want := (Missed{First: at, Last: at, Count: 1, Why: MissedFault, Message: f.Error()}); missed[0] != want {
			t.Errorf("missed %+v, want %+v", missed[0], want)
		}
	}
}
