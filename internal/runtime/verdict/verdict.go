// Package verdict holds the decisions that the backends of package runtime share: why the host ended a run, and what its
// measured times mean.
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

// Output is the ending of a run that exceeded its output limit.
func Output(l runtime.Limits) Ending {
	return Ending{runtime.OutputLimit, fmt.Sprintf("wrote more than the output limit of %d bytes", l.Output)}
}

// CPU is the ending of a run that exceeded its CPU limit.
func CPU(l runtime.Limits) Ending {
	return Ending{runtime.CPUTimeout, fmt.Sprintf("used more than the limit of %v of CPU time", l.CPU)}
}

// Wall is the ending of a run that exceeded its wall limit.
func Wall(l runtime.Limits) Ending {
	return Ending{runtime.Timeout, fmt.Sprintf("ran longer than the limit of %v", l.Wall)}
}

// HostFull is the ending of a run whose process the kernel killed for memory before its own limit, in bytes, was reached.
func HostFull(limit int64) Ending {
	return Ending{runtime.InfraError, fmt.Sprintf("the memory of the machine, or of a cgroup above the program's, was full and the kernel killed a process; "+
		"the program's own limit of %d bytes was not reached", limit)}
}

// Record holds the first ending that is set. It is safe for concurrent use; the zero value is empty.
type Record struct{ first atomic.Pointer[Ending] }

// Set records e and reports whether it is the first.
func (r *Record) Set(e Ending) bool { return r.first.CompareAndSwap(nil, &e) }

// Kills records e, unless an ending was recorded, and reports whether the host must kill the run: not if the program has ended by
// itself, but if it was told to end and has not ended yet.
func (r *Record) Kills(e Ending) bool {
	r.Set(e)
	first, _ := r.Get()
	return first.Verdict != ""
}

// AfterGrace calls kill after the grace period, unless done is closed before.
func AfterGrace(grace time.Duration, done <-chan struct{}, kill func()) {
	select {
	case <-done:
	case <-time.After(grace):
		kill()
	}
}

// Get returns the recorded ending; ok is false if there is none.
func (r *Record) Get() (e Ending, ok bool) {
	if p := r.first.Load(); p != nil {
		return *p, true
	}
	return Ending{}, false
}

// OnTime decides about time limits by what was measured of the run, so that a program gets the same verdict whichever of the
// host's timers fires first, and also when it ends before the host can kill it:
//
//   - a program that has exited by itself within its wall-clock limit is in time, however late the host reads that;
//   - of two limits that are exceeded, the smaller one counts, and the wall-clock limit when they are equal. A single thread
//     on limits of wall=1s, cpu=1s is then always a timeout, since it cannot use more processor time than has passed.
//
// Limits.Overrun does not matter: a program that used it is late.
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
