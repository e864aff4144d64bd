//go:build unix

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/collect"
	"github.com/pawl-run/pawl/internal/runtime/drain"
	"github.com/pawl-run/pawl/internal/runtime/verdict"
)

// run is one process group.
type run struct {
	runtime *Runtime
	spec    runtime.Spec
	dir     string
	process *os.Process
	started time.Time

	stdin              *os.File // write end; nil when there is no input
	stdout, stderr     *os.File // read ends
	budget             *drain.Budget
	pumps              sync.WaitGroup
	outBytes, errBytes int64

	ended verdict.Record
	group sync.Mutex // guards process and gone
	gone  bool       // the kernel may have reused the group's id

	done   chan struct{}
	result runtime.Result
}

// Wait blocks until the process group is gone.
func (n *run) Wait() runtime.Result {
	<-n.done
	return n.result
}

func (n *run) Kill(reason string) { n.end(verdict.Ending{Verdict: runtime.Killed, Reason: reason}) }

// Terminate sends SIGTERM to the program, and kills it after the grace period.
func (n *run) Terminate(reason string, grace time.Duration) {
	e := verdict.Ending{Verdict: runtime.Killed, Reason: reason}
	if grace <= 0 || !n.ended.Set(e) {
		n.end(e)
		return
	}
	n.signalGroup(unix.SIGTERM)
	go verdict.AfterGrace(grace, n.done, n.killGroup)
}

func (n *run) end(e verdict.Ending) {
	if n.ended.Kills(e) {
		n.killGroup()
	}
}

func (n *run) killGroup() { n.signalGroup(unix.SIGKILL) }

func (n *run) signalGroup(signal unix.Signal) {
	n.group.Lock()
	defer n.group.Unlock()
	if n.process != nil && !n.gone {
		_ = unix.Kill(-n.process.Pid, signal) // the group may be empty
	}
}

// start does everything up to the moment when the program executes, or undoes it.
func (n *run) start() (err error) {
	base, err := n.runtime.base()
	if err != nil {
		return err
	}
	if n.dir, err = os.MkdirTemp(base.dir, "run-"); err != nil {
		return fmt.Errorf("make a working directory: %w", err)
	}
	var inside []*os.File
	defer func() {
		closeAll(inside)
		if err != nil {
			closeAll([]*os.File{n.stdin, n.stdout, n.stderr})
			err = errors.Join(err, removeAll(n.dir))
		}
	}()
	if err := placeFiles(n.dir, n.spec); err != nil {
		return err
	}
	path, err := lookUp(n.spec.Argv[0], n.dir, n.spec.Env)
	if err != nil {
		return err
	}
	if inside, err = n.openStreams(); err != nil {
		return err
	}
	env := n.spec.Env
	if env == nil {
		env = []string{} // nil would mean Pawl's own
	}
	var process *os.Process
	n.runtime.thread.Do(func() {
		withStack(n.spec.Limits, func() {
			process, err = os.StartProcess(path, n.spec.Argv, &os.ProcAttr{
				Dir: n.dir, Env: env, Files: inside, Sys: attributes(),
			})
		})
	})
	if err != nil {
		return fmt.Errorf("%w: %w", runtime.ErrSpec, err)
	}
	n.group.Lock()
	n.process, n.started = process, time.Now()
	n.group.Unlock()
	if _, ended := n.ended.Get(); ended { // the run was ended while it started
		n.killGroup()
	}
	limitProcess(n.process.Pid, n.spec.Limits)
	n.pump()
	go n.supervise()
	return nil
}

// openStreams creates the pipes and returns the program's ends in the order of their descriptors.
func (n *run) openStreams() (inside []*os.File, err error) {
	var stdin *os.File
	if n.spec.Stdin == nil {
		stdin, err = os.Open(os.DevNull)
	} else {
		stdin, n.stdin, err = os.Pipe()
	}
	if err != nil {
		return nil, fmt.Errorf("open the run's streams: %w", err)
	}
	inside = append(inside, stdin)
	for _, end := range []**os.File{&n.stdout, &n.stderr} {
		read, write, err := os.Pipe()
		if err != nil {
			return inside, fmt.Errorf("open the run's streams: %w", err)
		}
		*end = read
		inside = append(inside, write)
	}
	return inside, nil
}

func (n *run) pump() {
	n.budget = drain.NewBudget(n.spec.Limits.Output, func() { n.end(verdict.Output(n.spec.Limits)) })
	n.pumps.Go(func() { n.outBytes = drain.Pump(n.stdout, n.spec.Stdout, n.budget) })
	n.pumps.Go(func() { n.errBytes = drain.Pump(n.stderr, n.spec.Stderr, n.budget) })
	if n.stdin != nil {
		// The copy ends with the input or with the last reader; a Read that never returns keeps only its goroutine.
		go func() {
			_, _ = io.Copy(n.stdin, n.spec.Stdin)
			n.stdin.Close()
		}()
	}
}

// drainGrace is how long output may be read after the whole group is dead. Only a process that left the session can
// hold the pipes open longer, and it must not hold up the run.
const drainGrace = time.Second

func (n *run) supervise() {
	defer n.runtime.runs.Remove(n)
	defer close(n.done)
	limits := n.spec.Limits
	wall := time.AfterFunc(limits.EndWall()-time.Since(n.started), func() { n.end(verdict.Wall(limits)) })
	state, err := n.process.Wait()
	wall.Stop()
	n.result.Wall = time.Since(n.started)
	n.ended.Set(verdict.Ending{})
	n.killGroup()
	groupErr := n.awaitGroup()
	n.stdout.SetReadDeadline(time.Now().Add(drainGrace))
	n.stderr.SetReadDeadline(time.Now().Add(drainGrace))
	n.pumps.Wait()
	closeAll([]*os.File{n.stdout, n.stderr, n.stdin})
	if err = errors.Join(err, groupErr); err == nil {
		n.judge(state)
	}
	err = errors.Join(err, n.collect(), removeAll(n.dir))
	if err != nil {
		n.result.Verdict, n.result.Reason = runtime.InfraError, err.Error()
	}
}

// awaitGroup waits until the process group is empty.
func (n *run) awaitGroup() error {
	defer func() {
		n.group.Lock()
		n.gone = true
		n.group.Unlock()
	}()
	deadline := time.Now().Add(groupGone)
	for wait := 50 * time.Microsecond; groupLives(n.process.Pid); wait = min(2*wait, 10*time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process group %d is still there %v after it was killed", n.process.Pid, groupGone)
		}
		time.Sleep(wait)
	}
	return nil
}

// judge determines how the run ended: first from what Pawl decided, then from the program's exit.
func (n *run) judge(state *os.ProcessState) {
	r := &n.result
	defer r.NoteLimits(false, false)
	r.StdoutBytes, r.StderrBytes = n.outBytes, n.errBytes
	r.CPU = state.UserTime() + state.SystemTime()
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.PeakMemory = int64(usage.Maxrss) * maxrssUnit
	}
	r.Enforcement, r.Stack = enforcement, n.spec.Limits.StackOf(mostStack)
	status, _ := state.Sys().(syscall.WaitStatus)
	e, _ := n.ended.Get()
	if e.Verdict == "" && status.Signaled() && status.Signal() == syscall.SIGXCPU {
		e = verdict.CPU(n.spec.Limits)
	}
	if e = verdict.OnTime(e, e.Verdict == "", *r, n.spec.Limits); e.Verdict == "" && n.budget.Exceeded() { // it ended before the kill
		e = verdict.Output(n.spec.Limits)
	}
	switch {
	case e.Verdict != "":
		r.Verdict, r.Reason = e.Verdict, e.Reason
	case status.Signaled():
		r.Verdict, r.Signal = runtime.Signal, unix.SignalName(status.Signal())
		r.Reason = "the program was ended by " + r.Signal
	case status.ExitStatus() == 0:
		r.Verdict = runtime.OK
	default:
		r.Verdict, r.ExitCode = runtime.NonzeroExit, status.ExitStatus()
		r.Reason = fmt.Sprintf("the program exited with code %d", r.ExitCode)
	}
}

func (n *run) collect() error {
	if len(n.spec.Collect) == 0 {
		return nil
	}
	dir, err := os.Open(n.dir)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	defer dir.Close()
	n.result.Files, n.result.Refused, err = collect.From(dir, n.spec.Collect, n.spec.CollectInto, n.spec.Limits.Disk)
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
