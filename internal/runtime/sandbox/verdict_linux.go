package sandbox

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/verdict"
)

type evidence struct {
	ending   verdict.Ending
	status   syscall.WaitStatus
	oomKills int64
	hostFull bool  // the kernel killed although the run's own memory limit was not reached
	memory   int64 // the limit, for the message
}

// judge determines how the run ended: first from what the host recorded, then from the kernel's counters, then from
// the program's exit. An exit code proves nothing: any program may exit with 137.
func judge(e evidence, r *runtime.Result) {
	lost := e.ending == endedWithInit
	if e.ending.Verdict != "" && !(lost && e.oomKills > 0) {
		r.Verdict, r.Reason = e.ending.Verdict, e.ending.Reason
		return
	}
	succeeded := !lost && e.status.Exited() && e.status.ExitStatus() == 0
	switch {
	case e.oomKills > 0 && e.hostFull:
		host := verdict.HostFull(e.memory)
		r.Verdict, r.Reason = host.Verdict, host.Reason
		return
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

// signalName is the name of a signal; real-time signals are numbered.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}
