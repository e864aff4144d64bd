package sandbox

import (
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/verdict"
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
		"the host's memory":          {evidence{status: killed, oomKills: 1, hostFull: true}, runtime.InfraError, false, 0, ""},
		"a child and the host's":     {evidence{status: exit0, oomKills: 1, hostFull: true}, runtime.InfraError, false, 0, ""},
		"the host's reason is first": {evidence{ending: verdict.Wall(runtime.Limits{}), status: killed, oomKills: 3}, runtime.Timeout, false, 0, ""},
		"the init died":              {evidence{ending: endedWithInit}, runtime.InfraError, false, 0, ""},
		"the init died for memory":   {evidence{ending: endedWithInit, oomKills: 1}, runtime.OOM, false, 0, ""},
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
