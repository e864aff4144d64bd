package sandbox

import (
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// watch enforces what no timer can: the CPU budget and, without cgroups, memory. The function that it returns stops it
// and waits until it has stopped.
func (n *run) watch() (stop func()) {
	quit, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		timer := time.NewTimer(n.nextLook(0))
		defer timer.Stop()
		for {
			select {
			case <-quit:
				return
			case <-timer.C:
			}
			used, memory := n.sample()
			switch limits := n.spec.Limits; {
			case memory > limits.Memory:
				n.end(runtime.OOM, fmt.Sprintf("used %d bytes of memory and the limit is %d", memory, limits.Memory))
				return
			case used > limits.CPU:
				n.end(runtime.CPUTimeout, fmt.Sprintf("used more than %v of CPU time", limits.CPU))
				return
			}
			timer.Reset(n.nextLook(used))
		}
	}()
	return func() { close(quit); <-stopped }
}

const (
	closestLook  = 5 * time.Millisecond
	memoryPeriod = 10 * time.Millisecond // between two looks of the watchdog
)

// nextLook is when the budget can be used up at the earliest, if every core of the machine works on it.
func (n *run) nextLook(used time.Duration) time.Duration {
	next := max(closestLook, (n.spec.Limits.CPU-used)/time.Duration(goruntime.NumCPU()))
	if n.cgroup == nil {
		return min(next, memoryPeriod)
	}
	return next
}

// sample returns the CPU time used so far and, without cgroups, the memory in use; with them the kernel sees to that.
func (n *run) sample() (cpu time.Duration, memory int64) {
	if n.cgroup != nil {
		return n.cgroup.cpu(), 0
	}
	return sampleTree(n.pid, n.spec.Limits.Memory)
}
