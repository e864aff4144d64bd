package sandbox

import (
	"fmt"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/verdict"
)

// watch enforces the limits that no timer can: CPU and, without cgroups, memory. The returned function stops it and waits for its end.
func (n *run) watch() (stop func()) {
	quit, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		timer := time.NewTimer(n.nextLook())
		defer timer.Stop()
		for {
			select {
			case <-quit:
				return
			case <-timer.C:
			}
			if n.cgroup != nil {
				n.usedCPU = max(n.usedCPU, n.cgroup.cpu())
			} else {
				n.patrol()
			}
			if n.usedCPU > n.spec.Limits.EndCPU() {
				n.end(verdict.CPU(n.spec.Limits))
			}
			timer.Reset(n.nextLook())
		}
	}()
	return func() { close(quit); <-stopped }
}

const (
	closestLook  = 5 * time.Millisecond
	farthestLook = 50 * time.Millisecond // of the watchdog for memory
	fastestEater = 4 << 20               // most bytes per millisecond that a program is assumed to touch
	mostOOMKills = 16                    // by the watchdog in one run, before it ends the run
)

// nextLook is the time until a limit can be reached at the earliest: the CPU limit if every core of the machine
// works on it, the memory limit at the rate of fastestEater.
func (n *run) nextLook() time.Duration {
	next := (n.spec.Limits.EndCPU() - n.usedCPU) / time.Duration(goruntime.NumCPU())
	if n.cgroup == nil {
		memory := time.Duration((n.spec.Limits.Memory-n.usedMemory)/fastestEater) * time.Millisecond
		next = min(next, memory, farthestLook)
	}
	return max(next, closestLook)
}

// patrol does for a run without cgroups what the kernel does with them: it kills the largest process of a run that
// exceeds its memory limit, counts that, and leaves the rest alone; a run that keeps exceeding it is ended.
func (n *run) patrol() {
	limit := n.spec.Limits.Memory
	l := lookAt(n.pid, limit)
	n.usedCPU = max(n.usedCPU, l.cpu)
	n.usedMemory = l.memory
	n.peakMemory = max(n.peakMemory, l.memory)
	switch {
	case l.largest == 0 || l.memory <= limit:
	case n.oomKills > 0 && l.memory > 2*limit, n.oomKills >= mostOOMKills:
		n.end(verdict.Ending{Verdict: runtime.OOM, Reason: fmt.Sprintf("used %d bytes of memory and the limit is %d", l.memory, limit)})
	case signalInside(n.pid, []int{l.largest}, unix.SIGKILL) > 0:
		n.oomKills++
	}
}
