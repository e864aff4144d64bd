package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/collect"
	"github.com/pawl-run/pawl/internal/runtime/drain"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// run is one sandbox and its program.
type run struct {
	runtime *Runtime
	spec    runtime.Spec
	cgroup  *group // nil without cgroups
	pid     int    // of the init, on the host
	uid     int
	gid     int
	started time.Time

	stdin          *os.File // write end; nil when there is no input
	stdout, stderr *os.File // read ends
	control        *os.File
	pending        []byte   // received on control and not yet decoded
	work           *os.File // the working directory, which outlives the sandbox's mounts

	budget   *drain.Budget
	pumps    sync.WaitGroup
	outBytes int64
	errBytes int64

	ready chan struct{}          // closed when the start has succeeded or failed
	ended atomic.Pointer[ending] // set once: why the run ended

	// What watch has seen, to be read after it has stopped.
	usedCPU    time.Duration
	usedMemory int64
	peakMemory int64
	oomKills   int64

	handle sync.Mutex // guards pidfd
	pidfd  int        // -1 when there is none, or no more

	done   chan struct{}
	result runtime.Result
}

func newRun(r *Runtime, spec runtime.Spec) *run {
	return &run{runtime: r, spec: spec, pidfd: -1, ready: make(chan struct{}), done: make(chan struct{})}
}

// Wait blocks until nothing of the run is left.
func (n *run) Wait() runtime.Result {
	<-n.done
	return n.result
}

// Kill ends the run unless it has ended.
func (n *run) Kill(reason string) { n.end(runtime.Killed, reason) }

// end records why the run ends and then ends it; when the reason has been given before, nothing happens.
func (n *run) end(v runtime.Verdict, reason string) {
	if n.ended.CompareAndSwap(nil, &ending{v, reason}) {
		n.kill()
	}
}

// born takes note of the init; when the run has been ended meanwhile, so is the init.
func (n *run) born(pid, pidfd int) {
	n.handle.Lock()
	n.pid, n.pidfd = pid, pidfd
	n.handle.Unlock()
	if n.ended.Load() != nil {
		n.kill()
	}
}

// kill destroys the sandbox. The death of its process 1 is enough: the kernel kills all that is in a pid namespace and
// reaps it before process 1 itself can be reaped. Where there is a cgroup.kill it does the same in one sweep.
func (n *run) kill() {
	n.handle.Lock()
	defer n.handle.Unlock()
	if n.pidfd < 0 {
		return
	}
	if n.cgroup != nil {
		n.cgroup.kill()
	}
	_ = unix.PidfdSendSignal(n.pidfd, unix.SIGKILL, nil, 0) // it may be dead already
}

// pumpOutput starts to drain the program's output.
func (n *run) pumpOutput() {
	n.budget = drain.NewBudget(n.spec.Limits.Output, func() {
		<-n.ready // a quick program can be here before the init has reported its start
		n.end(runtime.OutputLimit, n.outputReason())
	})
	n.pumps.Go(func() { n.outBytes = drain.Pump(n.stdout, n.spec.Stdout, n.budget) })
	n.pumps.Go(func() { n.errBytes = drain.Pump(n.stderr, n.spec.Stderr, n.budget) })
}

func (n *run) outputReason() string {
	return fmt.Sprintf("wrote more than the output limit of %d bytes", n.spec.Limits.Output)
}

func (n *run) cpuReason() string {
	return fmt.Sprintf("used more than the limit of %v of CPU time", n.spec.Limits.CPU)
}

// pumpInput feeds the program. It ends when the input does or when the last reader is gone; a Read of the caller's
// reader that never returns keeps its goroutine and nothing else.
func (n *run) pumpInput() {
	go func() {
		_, _ = io.Copy(n.stdin, n.spec.Stdin)
		n.stdin.Close()
	}()
}

// initDied is the reason of a run whose init ended before it could report. Where it shares the program's cgroup, the
// kernel may have chosen it at the memory limit; judge knows.
const initDied = "the sandbox's init died before the program did"

// supervise sees the run through to its end.
func (n *run) supervise() {
	defer n.runtime.unregister(n)
	defer close(n.done)
	limits := n.spec.Limits
	wall := time.AfterFunc(limits.Wall-time.Since(n.started), func() {
		n.end(runtime.Timeout, fmt.Sprintf("ran longer than the limit of %v", limits.Wall))
	})
	defer wall.Stop()
	stopWatch := n.watch()
	if n.stdin != nil {
		n.pumpInput()
	}
	exit, exitErr := n.receive()
	ended := time.Now()
	if exitErr == nil && exit.Kind == pid1.Exited {
		// From here on a kill or a limit comes too late; a reason given before stays.
		n.ended.CompareAndSwap(nil, &ending{})
	} else {
		n.ended.CompareAndSwap(nil, &ending{runtime.InfraError, initDied})
	}
	n.kill() // the init is on its way out; it must not be able to linger
	usage := n.bury()
	stopWatch()
	n.result.Wall = ended.Sub(n.started)
	n.conclude(exit, usage)
}

// bury waits until the kernel has ended every process of the sandbox and returns what they used, the init included.
func (n *run) bury() syscall.Rusage {
	var usage syscall.Rusage
	for {
		_, err := syscall.Wait4(n.pid, nil, 0, &usage)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	n.handle.Lock()
	if n.pidfd >= 0 {
		unix.Close(n.pidfd)
		n.pidfd = -1
	}
	n.handle.Unlock()
	n.pumps.Wait() // all writers are dead
	n.stdout.Close()
	n.stderr.Close()
	n.control.Close()
	if n.stdin != nil {
		n.stdin.Close() // ends a write that nobody reads
	}
	return usage
}

// conclude writes the result; every process is dead.
func (n *run) conclude(exit pid1.Message, usage syscall.Rusage) {
	r := &n.result
	r.StdoutBytes, r.StderrBytes = n.outBytes, n.errBytes
	// What is killed together with the init is not added to the init's usage.
	r.CPU = max(n.usedCPU, time.Duration(usage.Utime.Nano()+usage.Stime.Nano()))
	r.PeakMemory = usage.Maxrss << 10
	if exit.Kind == pid1.Exited {
		r.CPU, r.PeakMemory = time.Duration(exit.CPU), exit.MaxRSS
	}
	r.Enforcement = n.runtime.cgroups.enforcement()
	r.PeakMemory = max(r.PeakMemory, n.peakMemory)
	found := evidence{
		ending: *n.ended.Load(), status: syscall.WaitStatus(exit.Status),
		oomKills: n.oomKills, memory: n.spec.Limits.Memory,
	}
	if n.cgroup != nil {
		if exit.Kind != pid1.Exited {
			r.CPU = max(r.CPU, n.cgroup.cpu())
		}
		found.oomKills = n.cgroup.oomKills()
		if peak := n.cgroup.peakMemory(); peak > 0 {
			r.PeakMemory = peak
		}
	}
	if found.ending.verdict == "" { // it may have ended before it could be killed for what it did
		switch {
		case n.budget.Exceeded():
			found.ending = ending{runtime.OutputLimit, n.outputReason()}
		case r.CPU > n.spec.Limits.CPU:
			found.ending = ending{runtime.CPUTimeout, n.cpuReason()}
		}
	}
	judge(found, r)
	var problems []error
	if n.work != nil {
		var err error
		if len(n.spec.Collect) > 0 {
			r.Files, r.Refused, err = collect.From(n.work, n.spec.Collect, n.spec.CollectInto, n.spec.Limits.Disk)
		}
		n.work.Close()
		problems = append(problems, err)
	}
	if n.cgroup != nil {
		problems = append(problems, n.cgroup.remove())
	}
	if err := errors.Join(problems...); err != nil {
		r.Verdict, r.Reason = runtime.InfraError, err.Error()
	}
}

// abandon takes back a start that has failed.
func (n *run) abandon() {
	defer n.runtime.unregister(n)
	defer close(n.done)
	n.ended.CompareAndSwap(nil, &ending{runtime.InfraError, "the start failed"})
	close(n.ready)
	if n.pid != 0 {
		n.kill()
		n.bury()
	} else {
		closeAll([]*os.File{n.stdin, n.stdout, n.stderr, n.control})
	}
	if n.work != nil {
		n.work.Close()
	}
	if n.cgroup != nil {
		_ = n.cgroup.remove() // what remains is swept by the next New
	}
}

// receive reads the init's next message; the working directory's descriptor, which comes with the first, goes to n.work.
func (n *run) receive() (pid1.Message, error) {
	for {
		if m, rest, ok := pid1.DecodeMessage(n.pending); ok {
			n.pending = rest
			return m, nil
		}
		if err := n.receiveBytes(); err != nil {
			return pid1.Message{}, err
		}
	}
}

func (n *run) receiveBytes() error {
	conn, err := n.control.SyscallConn()
	if err != nil {
		return err
	}
	var data [1024]byte
	var rights [64]byte
	var size, rightsSize int
	var callErr error
	err = conn.Read(func(fd uintptr) bool {
		size, rightsSize, _, _, callErr = unix.Recvmsg(int(fd), data[:], rights[:], unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(callErr, unix.EAGAIN) && !errors.Is(callErr, unix.EINTR)
	})
	switch {
	case err != nil:
		return err
	case callErr != nil:
		return callErr
	case size == 0:
		return io.EOF
	}
	n.pending = append(n.pending, data[:size]...)
	if rightsSize == 0 {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rightsSize])
	if err != nil {
		return err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return err
		}
		for _, fd := range fds {
			if n.work != nil {
				unix.Close(fd)
				continue
			}
			n.work = os.NewFile(uintptr(fd), pid1.WorkDir)
		}
	}
	return nil
}
