// Package verdict has what the backends of package runtime decide alike: why the host ended a run, and what the times that were
// measured of it mean.
package verdict

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// Ending is why a run ended, as far as the host knows. Its Verdict is empty when the program ended by itself.
type Ending struct {
	Verdict runtime.Verdict
	Reason  string
}

// Output is the ending of a run that has written more than it may.
func Output(l runtime.Limits) Ending {
	return Ending{runtime.OutputLimit, fmt.Sprintf("wrote more than the output limit of %d bytes", l.Output)}
}

// CPU is the ending of a run that has used more processor time than it may.
func CPU(l runtime.Limits) Ending {
	return Ending{runtime.CPUTimeout, fmt.Sprintf("used more than the limit of %v of CPU time", l.CPU)}
}

// Wall is the ending of a run that has gone on for longer than it may.
func Wall(l runtime.Limits) Ending {
	return Ending{runtime.Timeout, fmt.Sprintf("ran longer than the limit of %v", l.Wall)}
}

// HostFull is the ending of a run of which the kernel killed a process for memory before its own limit, in bytes, was reached.
func HostFull(limit int64) Ending {
	return Ending{runtime.InfraError, fmt.Sprintf("the memory of the machine, or of a cgroup above the program's, was full and the kernel killed a process; "+
		"the program's own limit of %d bytes was not reached", limit)}
}

// Record holds the first ending that is given to it. It is safe for concurrent use; the zero value is empty.
type Record struct{ first atomic.Pointer[Ending] }

// Set records e and reports whether it is the first.
func (r *Record) Set(e Ending) bool { return r.first.CompareAndSwap(nil, &e) }

// Kills records e, unless an ending was recorded, and reports whether the host is to kill the run: it is not when the program has
// ended by itself, and it is when the program has been told to end and has not yet.
func (r *Record) Kills(e Ending) bool {
	r.Set(e)
	first, _ := r.Get()
	return first.Verdict != ""
}

// AfterGrace calls kill when the grace is over, unless done is closed before.
func AfterGrace(grace time.Duration, done <-chan struct{}, kill func()) {
	over := time.NewTimer(grace)
	defer over.Stop()
	select {
	case <-done:
	case <-over.C:
		kill()
	}
}

// Get returns what was recorded; ok is false while nothing was.
func (r *Record) Get() (e Ending, ok bool) {
	if p := r.first.Load(); p != nil {
		return *p, true
	}
	return Ending{}, false
}

// OnTime decides about the limits of time by what was measured of the run, so that one program gets one verdict whichever
// of the host's timers fires first, and also when it ends before the host can kill it:
//
//   - a program that has exited by itself within its wall-clock limit is in time, however late the host reads that;
//   - of two limits that are exceeded, the smaller one counts, and the wall-clock limit when they are equal. A single thread
//     on limits of wall=1s, cpu=1s is then always a timeout, since it cannot use more processor time than has passed.
//
// Limits.Overrun does not matter: a program that has used it is late.
func OnTime(e Ending, exited bool, measured runtime.Result, l runtime.Limits) Ending {
	switch e.Verdict {
	case "", runtime.Timeout, runtime.CPUTimeout:
	default:
		return e
	}
	overWall := measured.Wall > l.Wall || e.Verdict == runtime.Timeout && !exited
	overCPU := measured.CPU > l.CPU || e.Verdict == runtime.CPUTimeout
	switch {
	case overCPU && (!overWall || l.CPU < l.Wall):
		return CPU(l)
	case overWall:
		return Wall(l)
	}
	return Ending{}
}
