package sandbox

import (
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

func TestJudge(t *testing.T) {
	const (
		exit0  = syscall.WaitStatus(0)
		exit1  = syscall.WaitStatus(1 << 8)
		exit9  = syscall.WaitStatus(137 << 8)
		killed = syscall.WaitStatus(9)
		crash  = syscall.WaitStatus(11)
		exotic = syscall.WaitStatus(40)
	)
	for name, c := range map[string]struct {
		evidence evidence
		want     runtime.Verdict
		childOOM bool
		code     int
		signal   string
	}{
		"success":                    {evidence{status: exit0}, runtime.OK, false, 0, ""},
		"failure":                    {evidence{status: exit1}, runtime.NonzeroExit, false, 1, ""},
		"137 is a number":            {evidence{status: exit9}, runtime.NonzeroExit, false, 137, ""},
		"own SIGKILL":                {evidence{status: killed}, runtime.Signal, false, 0, "SIGKILL"},
		"crash":                      {evidence{status: crash}, runtime.Signal, false, 0, "SIGSEGV"},
		"a real-time signal":         {evidence{status: exotic}, runtime.Signal, false, 0, "SIG40"},
		"killed for memory":          {evidence{status: killed, oomKills: 1}, runtime.OOM, false, 0, ""},
		"failed for memory":          {evidence{status: exit1, oomKills: 2}, runtime.OOM, false, 0, ""},
		"child killed for memory":    {evidence{status: exit0, oomKills: 1}, runtime.OK, true, 0, ""},
		"the host's reason is first": {evidence{ending{runtime.Timeout, "t"}, killed, 3, 0}, runtime.Timeout, false, 0, ""},
		"the init died":              {evidence{ending{runtime.InfraError, initDied}, 0, 0, 0}, runtime.InfraError, false, 0, ""},
		"the init died for memory":   {evidence{ending{runtime.InfraError, initDied}, 0, 1, 0}, runtime.OOM, false, 0, ""},
	} {
		var r runtime.Result
		judge(c.evidence, &r)
		if r.Verdict != c.want || r.ChildOOM != c.childOOM || r.ExitCode != c.code || r.Signal != c.signal {
			t.Errorf("%s: %+v, want %s", name, r, c.want)
		}
		if r.Verdict != runtime.OK && r.Reason == "" {
			t.Errorf("%s: no reason is given", name)
		}
	}
}

// One program has one verdict, whichever timer of the host fires first.
func TestOnTime(t *testing.T) {
	const second = time.Second
	wall, cpu := ending{runtime.Timeout, "w"}, ending{runtime.CPUTimeout, "c"}
	equal := runtime.Limits{Wall: second, CPU: second}
	judged := runtime.Limits{Wall: 3 * second, CPU: second} // as a judge sets them
	for name, c := range map[string]struct {
		ending    ending
		exited    bool
		wall, cpu time.Duration
		limits    runtime.Limits
		want      runtime.Verdict
	}{
		"in time":                                    {ending{}, true, second - 1, second - 1, equal, ""},
		"ended before the timer's kill":              {wall, true, second - 1, second / 2, equal, ""},
		"ended before the kill, too late":            {ending{}, true, second + 1, second / 2, equal, runtime.Timeout},
		"killed by the wall timer":                   {wall, false, second, second / 2, equal, runtime.Timeout},
		"one thread, equal limits, wall timer first": {wall, false, second + 9, second + 5, equal, runtime.Timeout},
		"one thread, equal limits, watch first":      {cpu, false, second + 9, second + 5, equal, runtime.Timeout},
		"two threads, equal limits":                  {cpu, false, second / 2, second + 5, equal, runtime.CPUTimeout},
		"starved, wall timer first":                  {wall, false, 3*second + 9, second + 5, judged, runtime.CPUTimeout},
		"starved, watch first":                       {cpu, false, 3*second + 9, second + 5, judged, runtime.CPUTimeout},
		"over the CPU limit, and not seen in time":   {ending{}, true, 2 * second, second + 5, judged, runtime.CPUTimeout},
		"asleep": {wall, false, 3 * second, second / 9, judged, runtime.Timeout},
		"killed for another reason, over every limit": {ending{runtime.Killed, "k"}, false, 9 * second, 9 * second, equal, runtime.Killed},
	} {
		got := onTime(c.ending, c.exited, runtime.Result{Wall: c.wall, CPU: c.cpu}, c.limits)
		if got.verdict != c.want || (got.verdict != "") != (got.reason != "") {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
