package verdict

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

func TestRecordKeepsTheFirst(t *testing.T) {
	t.Parallel()
	var r Record
	if _, ok := r.Get(); ok {
		t.Error("it holds something")
	}
	if !r.Set(Ending{}) || r.Set(Ending{runtime.Killed, "too late"}) {
		t.Error("the second was taken")
	}
	if e, ok := r.Get(); !ok || e != (Ending{}) {
		t.Errorf("it holds %+v", e)
	}
}

// A program gets the same verdict whichever timer of the host fires first.
func TestOnTime(t *testing.T) {
	const second = time.Second
	wall, cpu := Ending{runtime.Timeout, "w"}, Ending{runtime.CPUTimeout, "c"}
	equal := runtime.Limits{Wall: second, CPU: second}
	judged := runtime.Limits{Wall: 3 * second, CPU: second} // as a judge sets them
	for name, c := range map[string]struct {
		ending    Ending
		exited    bool
		wall, cpu time.Duration
		limits    runtime.Limits
		want      runtime.Verdict
	}{
		"in time":                                    {Ending{}, true, second - 1, second - 1, equal, ""},
		"ended before the timer's kill":              {wall, true, second - 1, second / 2, equal, ""},
		"ended before the kill, too late":            {Ending{}, true, second + 1, second / 2, equal, runtime.Timeout},
		"killed by the wall timer":                   {wall, false, second, second / 2, equal, runtime.Timeout},
		"one thread, equal limits, wall timer first": {wall, false, second + 9, second + 5, equal, runtime.Timeout},
		"one thread, equal limits, watch first":      {cpu, false, second + 9, second + 5, equal, runtime.Timeout},
		"two threads, equal limits":                  {cpu, false, second / 2, second + 5, equal, runtime.CPUTimeout},
		"starved, wall timer first":                  {wall, false, 3*second + 9, second + 5, judged, runtime.CPUTimeout},
		"starved, watch first":                       {cpu, false, 3*second + 9, second + 5, judged, runtime.CPUTimeout},
		"over the CPU limit, and not seen in time":   {Ending{}, true, 2 * second, second + 5, judged, runtime.CPUTimeout},
		"asleep": {wall, false, 3 * second, second / 9, judged, runtime.Timeout},
		"killed for another reason, over every limit": {Ending{runtime.Killed, "k"}, false, 9 * second, 9 * second, equal, runtime.Killed},
		"late, by less than it may overrun":           {Ending{}, true, second + second/9, second / 2, runtime.Limits{Wall: second, CPU: second, Overrun: 0.25}, runtime.Timeout},
	} {
		got := OnTime(c.ending, c.exited, runtime.Result{Wall: c.wall, CPU: c.cpu}, c.limits)
		if got.Verdict != c.want || (got.Verdict != "") != (got.Reason != "") {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
