package sandbox

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/collect"
	"github.com/pawl-run/pawl/internal/runtime/drain"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
	"github.com/pawl-run/pawl/internal/runtime/verdict"
)

// run is a program in its sandbox.
type run struct {
	*box
	spec    runtime.Spec
	pinned  *pin
	stdin   *os.File // write end; nil when there is no input
	started time.Time
	// startedAt is started in nanoseconds of CLOCK_MONOTONIC, as the sandbox's init read it.
	startedAt int64
	// starvedAt is how long the sandbox had lacked a processor until then, as the init read it.
	starvedAt time.Duration
	refill    *time.Timer // of the pool
	warm      bool        // forked from a template
	cold      string      // the reason why it was not, if it should have been

	budget   *drain.Budget
	pumps    sync.WaitGroup
	outBytes int64
	errBytes int64

	ready chan struct{} // closed when the start has succeeded or failed
	ended verdict.Record

	// The readings of watch, for use after it has stopped.
	usedCPU    time.Duration
	usedMemory int64
	peakMemory int64
	oomKills   int64

	done   chan struct{}
	result runtime.Result
}

func newRun(b *box, d *delivery) *run {
	return &run{box: b, spec: d.spec, pinned: d.pinned, stdin: d.takeFeed(), ready: make(chan struct{}), done: make(chan struct{})}
}

// Wait blocks until every process of the run is gone.
func (n *run) Wait() runtime.Result {
	<-n.done
	return n.result
}

// Kill ends the run unless it has ended.
func (n *run) Kill(reason string) { n.end(verdict.Ending{Verdict: runtime.Killed, Reason: reason}) }

// Terminate sends SIGTERM to all processes of the program, and kills them after the grace period.
func (n *run) Terminate(reason string, grace time.Duration) {
	e := verdict.Ending{Verdict: runtime.Killed, Reason: reason}
	if grace <= 0 || !n.ended.Set(e) {
		n.end(e)
		return
	}
	n.terminate()
	go verdict.AfterGrace(grace, n.done, n.kill)
}

// end records why the run ends, if no reason is recorded yet, and ends it.
func (n *run) end(e verdict.Ending) {
	if n.ended.Kills(e) {
		n.kill()
	}
}

func (n *run) pumpOutput() {
	n.budget = drain.NewBudget(n.spec.Limits.Output, func() {
		<-n.ready // a short program may get here before the init has reported its start
		n.end(verdict.Output(n.spec.Limits))
	})
	n.pumps.Go(func() { n.outBytes = drain.Pump(n.stdout, n.spec.Stdout, n.budget) })
	n.pumps.Go(func() { n.errBytes = drain.Pump(n.stderr, n.spec.Stderr, n.budget) })
}

// pumpInput copies the program's input. It ends with the input or with the last reader; a Read of the caller's
// reader that never returns keeps only its goroutine.
func (n *run) pumpInput() {
	go func() {
		_, _ = io.Copy(n.stdin, n.spec.Stdin)
		n.stdin.Close()
	}()
}

// endedWithInit is the ending of a run whose init ended before it could report. Where the init shares the program's
// cgroup, the kernel may have killed it at the memory limit; judge decides that.
var endedWithInit = verdict.Ending{Verdict: runtime.InfraError, Reason: "the sandbox's init died before the program did"}

// supervise follows the run until its end.
func (n *run) supervise() {
	defer n.runtime.runs.Remove(n)
	defer close(n.done)
	defer n.pinned.release()
	defer func() {
		if n.refill.Stop() {
			n.runtime.pool.refill()
		}
	}()
	limits := n.spec.Limits
	wall := time.AfterFunc(limits.EndWall()-time.Since(n.started), func() { n.end(verdict.Wall(limits)) })
	defer wall.Stop()
	stopWatch := n.watch()
	if n.stdin != nil {
		n.pumpInput()
	}
	exit, exitErr := n.receive()
	ended := time.Now()
	if exitErr == nil && exit.Kind == pid1.Exited {
		// From here on a kill or a limit is too late; an earlier reason stays.
		n.ended.Set(verdict.Ending{})
		n.killInit() // no other process is left; the init is exiting and must not be able to linger
	} else {
		n.ended.Set(endedWithInit)
		n.kill()
	}
	usage := n.bury()
	stopWatch()
	if n.result.Wall = ended.Sub(n.started); exitErr == nil && exit.Kind == pid1.Exited {
		// The time that the host took to read the start and the end does not count as the program's.
		n.result.Wall = time.Duration(exit.Time - n.startedAt)
	}
	n.conclude(exit, usage)
}

// bury waits until no process of the sandbox is alive and all output has been read.
func (n *run) bury() syscall.Rusage {
	usage := n.box.bury()
	n.pumps.Wait() // all writers are dead
	n.stdout.Close()
	n.stderr.Close()
	n.control.Close()
	if n.stdin != nil {
		n.stdin.Close() // ends a write without a reader
	}
	return usage
}

// conclude fills in the result; every process is dead by then.
func (n *run) conclude(exit pid1.Message, usage syscall.Rusage) {
	r := &n.result
	r.StdoutBytes, r.StderrBytes = n.outBytes, n.errBytes
	// The usage of processes that are killed together with the init is not added to the init's.
	r.CPU = max(n.usedCPU, time.Duration(usage.Utime.Nano()+usage.Stime.Nano()))
	r.PeakMemory = usage.Maxrss << 10
	if exit.Kind == pid1.Exited {
		r.CPU, r.PeakMemory = time.Duration(exit.CPU), exit.MaxRSS
	}
	n.pinned.report(r)
	r.Warm = n.warm
	r.Enforcement, r.Stack = n.runtime.cgroups.enforcement(), stackOf(n.spec.Limits, n.runtime.cgroups)
	r.PeakMemory = max(r.PeakMemory, n.peakMemory)
	recorded, _ := n.ended.Get()
	found := evidence{
		ending: recorded, status: syscall.WaitStatus(exit.Status),
		oomKills: n.oomKills, memory: n.spec.Limits.Memory,
	}
	if n.cgroup != nil {
		if exit.Kind != pid1.Exited {
			r.CPU = max(r.CPU, n.cgroup.cpu())
		} else { // children without a waiting parent are in no process's usage
			r.CPU = max(r.CPU, n.cgroup.cpu()-initCPU)
		}
		if found.oomKills = n.cgroup.oomKills(); found.oomKills > 0 {
			found.hostFull = !n.cgroup.full(n.spec.Limits)
		}
		starved := time.Duration(exit.Starved)
		if exit.Kind != pid1.Exited {
			starved = n.cgroup.starved()
		}
		r.Starved = min(max(0, starved-n.starvedAt), r.Wall)
		if peak := n.cgroup.peakMemory(); peak > 0 {
			r.PeakMemory = peak
			r.PageCache = min(peak, n.cgroup.pageCache())
		}
	}
	found.ending = verdict.OnTime(found.ending, exit.Kind == pid1.Exited, *r, n.spec.Limits)
	if found.ending.Verdict == "" && n.budget.Exceeded() { // the program ended before it could be killed for that
		found.ending = verdict.Output(n.spec.Limits)
	}
	judge(found, r)
	pidsHit := n.cgroup != nil && n.cgroup.pidsHit()
	r.NoteLimits(pidsHit, false)
	var problems []error
	if len(n.sent) > 0 {
		var err error
		if len(n.spec.Collect) > 0 {
			r.Files, r.Refused, err = collect.From(n.sent[0], n.spec.Collect, n.spec.CollectInto, n.spec.Limits.Disk)
		}
		closeAll(n.sent)
		problems = append(problems, err)
	}
	n.leaveNetwork(exit.Kind == pid1.Exited)
	if n.cgroup != nil {
		problems = append(problems, n.cgroup.remove())
	}
	if err := errors.Join(problems...); err != nil {
		r.Verdict, r.Reason = runtime.InfraError, err.Error()
	}
}

func (n *run) abandon() {
	defer n.runtime.runs.Remove(n)
	defer close(n.done)
	n.ended.Set(verdict.Ending{Verdict: runtime.InfraError, Reason: "the start failed"})
	close(n.ready)
	n.discard()
	n.runtime.pool.refill()
}

// discard destroys the sandbox of a run that has not started.
func (n *run) discard() {
	n.box.kill()
	n.box.bury()
	n.pumps.Wait()
	_ = n.box.destroy() // the next New sweeps what remains
	closeAll([]*os.File{n.stdin})
}
