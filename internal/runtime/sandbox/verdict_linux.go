package sandbox

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
)

// ending is why a run ended, as far as the host knows. The first one recorded stays.
type ending struct {
	verdict runtime.Verdict // empty when the program ended by itself
	reason  string
}

// evidence is all that a verdict is made of.
type evidence struct {
	ending   ending
	status   syscall.WaitStatus
	oomKills int64
	memory   int64 // the limit, for the sentence
}

func outputReason(l runtime.Limits) string {
	return fmt.Sprintf("wrote more than the output limit of %d bytes", l.Output)
}

func cpuReason(l runtime.Limits) string {
	return fmt.Sprintf("used more than the limit of %v of CPU time", l.CPU)
}

func wallReason(l runtime.Limits) string {
	return fmt.Sprintf("ran longer than the limit of %v", l.Wall)
}

// onTime decides about the limits of time by what was measured of the run, so that one program gets one verdict whichever
// of the host's timers fires first, and also when it ends before the host can kill it:
//
//   - a program that has exited by itself within its wall-clock limit is in time, however late the host reads that;
//   - of two limits that are exceeded, the smaller one counts, and the wall-clock limit when they are equal. A single thread
//     on limits of wall=1s, cpu=1s is then always a timeout, since it cannot use more processor time than has passed.
func onTime(e ending, exited bool, measured runtime.Result, l runtime.Limits) ending {
	switch e.verdict {
	case "", runtime.Timeout, runtime.CPUTimeout:
	default:
		return e
	}
	overWall := measured.Wall > l.Wall || e.verdict == runtime.Timeout && !exited
	overCPU := measured.CPU > l.CPU || e.verdict == runtime.CPUTimeout
	switch {
	case overCPU && (!overWall || l.CPU < l.Wall):
		return ending{runtime.CPUTimeout, cpuReason(l)}
	case overWall:
		return ending{runtime.Timeout, wallReason(l)}
	}
	return ending{}
}

// judge fills in how the run ended: what the host recorded, then what the kernel counted, then what the program did.
// An exit code proves nothing: a program may exit with 137 because it likes the number.
func judge(e evidence, r *runtime.Result) {
	lost := e.ending == ending{runtime.InfraError, initDied}
	if e.ending.verdict != "" && !(lost && e.oomKills > 0) {
		r.Verdict, r.Reason = e.ending.verdict, e.ending.reason
		return
	}
	succeeded := !lost && e.status.Exited() && e.status.ExitStatus() == 0
	switch {
	case e.oomKills > 0 && !succeeded:
		r.Verdict = runtime.OOM
		r.Reason = fmt.Sprintf("the memory limit of %d bytes was reached and the kernel killed a process", e.memory)
		return
	case e.oomKills > 0:
		r.ChildOOM = true
		r.Reason = fmt.Sprintf("a child was killed at the memory limit of %d bytes", e.memory)
	}
	switch {
	case e.status.Signaled():
		r.Verdict, r.Signal = runtime.Signal, signalName(e.status.Signal())
		r.Reason = "the program was ended by " + r.Signal
	case succeeded:
		r.Verdict = runtime.OK
	default:
		r.Verdict, r.ExitCode = runtime.NonzeroExit, e.status.ExitStatus()
		r.Reason = fmt.Sprintf("the program exited with code %d", r.ExitCode)
	}
}

// signalName names every signal; the real-time ones have no names of their own.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}
