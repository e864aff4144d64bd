package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/drain"
	"github.com/pawl-run/pawl/internal/runtime/runs"
	"github.com/pawl-run/pawl/internal/runtime/verdict"
)

type run struct {
	runtime *Runtime
	spec    runtime.Spec
	facts   *facts
	id      string
	started time.Time
	wall    time.Duration // for a run that had ended when it was taken up; else 0

	stream             client.HijackedResponse
	hangUp             func()        // ends the streams at once
	linger             time.Duration // how long the streams may continue after the end
	exit               client.ContainerWaitResult
	pumps              sync.WaitGroup
	budget             *drain.Budget
	outBytes, errBytes int64

	ended   verdict.Record
	endedAt chan struct{} // closed when the container is to be killed, or has ended
	endOnce sync.Once
	usage   *usage
	// overDisk is true when the run was ended because its working directory exceeded the disk limit.
	overDisk atomic.Bool

	answered chan struct{} // closed when the wait for the container has returned
	where    sync.Once
	lies     string // path of the volume on this host

	done   chan struct{}
	result runtime.Result
}

func newRun(r *Runtime, spec runtime.Spec) *run {
	return &run{runtime: r, spec: spec, endedAt: make(chan struct{}), answered: make(chan struct{}), done: make(chan struct{})}
}

func (n *run) Wait() runtime.Result {
	<-n.done
	return n.result
}

func (n *run) Kill(reason string) { n.end(verdict.Ending{Verdict: runtime.Killed, Reason: reason}) }

// Terminate has the engine's init forward a SIGTERM to the program, and kills the container after the grace period.
func (n *run) Terminate(reason string, grace time.Duration) {
	e := verdict.Ending{Verdict: runtime.Killed, Reason: reason}
	if grace <= 0 || !n.ended.Set(e) {
		n.end(e)
		return
	}
	go n.signal("TERM")
	go verdict.AfterGrace(grace, n.endedAt, func() { n.end(e) })
}

func (n *run) end(e verdict.Ending) {
	n.ended.Set(e)
	n.endOnce.Do(func() { close(n.endedAt) })
}

// start does everything up to the moment when the program executes, or undoes it.
func (n *run) start(ctx context.Context) (err error) {
	r := n.runtime
	if n.facts, err = r.known(ctx); err != nil {
		return err
	}
	begun, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // closing the runtime does not wait for an image
		select {
		case <-n.endedAt:
			cancel()
		case <-begun.Done():
		}
	}()
	waiting, stopWaiting := context.WithCancel(context.Background())
	defer func() {
		if err == nil {
			return
		}
		stopWaiting()
		if n.stream.Conn != nil {
			n.stream.Close()
		}
		n.forget()
		if gone := n.discard(); gone != nil {
			err = errors.Join(err, gone)
		}
		if _, ended := n.ended.Get(); ended && ctx.Err() == nil {
			err = fmt.Errorf("start %s: %w", n.spec.Name, runs.ErrClosed)
		}
	}()
	if err := n.create(begun); err != nil {
		return err
	}
	// The stream and the wait exist before the program starts, so that no output is missed.
	attached, err := r.engine.ContainerAttach(begun, n.id, client.ContainerAttachOptions{
		Stream: true, Stdin: n.spec.Stdin != nil, Stdout: true, Stderr: true,
	})
	if err != nil {
		return r.refused("attach to the container", err)
	}
	n.stream, n.linger = attached.HijackedResponse, drainGrace
	n.hangUp = n.stream.Close
	n.exit = r.engine.ContainerWait(waiting, n.id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	n.usage = newUsage(r, n.id, n.spec.Limits.Memory)
	unwatch := n.watch() // a short program ends before the engine reports its start
	if _, err := r.engine.ContainerStart(begun, n.id, client.ContainerStartOptions{}); err != nil {
		unwatch()
		n.usage.close()
		return r.refused("start the container", err)
	}
	n.started = time.Now()
	n.pump(func(out, errs io.Writer) error {
		_, err := stdcopy.StdCopy(out, errs, n.stream.Reader)
		return err
	})
	if n.spec.Stdin != nil {
		// The copy ends with the input or with the stream; a Read that never returns keeps only its goroutine.
		go func() {
			_, _ = io.Copy(n.stream.Conn, n.spec.Stdin)
			_ = n.stream.CloseWrite() // the program may have ended
		}()
	}
	go n.supervise(func() { unwatch(); stopWaiting() })
	return nil
}

// pump forwards the streams. The engine sends both outputs in one stream, which split separates; each gets its own goroutine.
func (n *run) pump(split func(out, errs io.Writer) error) {
	n.budget = drain.NewBudget(n.spec.Limits.Output, func() { n.end(verdict.Output(n.spec.Limits)) })
	out, outIn := io.Pipe()
	errs, errsIn := io.Pipe()
	n.pumps.Go(func() {
		err := split(outIn, errsIn)
		n.usage.look() // the program has just ended: its cgroup still exists
		outIn.CloseWithError(err)
		errsIn.CloseWithError(err)
	})
	n.pumps.Go(func() { n.outBytes = drain.Pump(out, n.spec.Stdout, n.budget) })
	n.pumps.Go(func() { n.errBytes = drain.Pump(errs, n.spec.Stderr, n.budget) })
}

const (
	// drainGrace is how long output may still arrive after the container has ended.
	drainGrace = 2 * time.Second
	// killAgain is the interval at which the order to kill is repeated until the container has ended.
	killAgain = 5 * time.Second
	// giveUp is how long the engine may take to confirm that a container is gone.
	giveUp = 2 * time.Minute
	// callWithin bounds one call that should be answered at once.
	callWithin = 20 * time.Second
)

func (n *run) supervise(stop func()) {
	defer n.runtime.runs.Remove(n)
	defer close(n.done)
	defer n.forget()
	defer stop()
	defer n.usage.close()
	limits := n.spec.Limits
	code, err := n.awaitWithin(limits)
	n.end(verdict.Ending{})
	late := time.AfterFunc(n.linger, n.hangUp)
	n.pumps.Wait()
	late.Stop()
	n.hangUp()
	if err == nil {
		err = n.judge(code)
	}
	if err == nil {
		err = n.collect()
	}
	if err = errors.Join(err, n.discard()); err != nil {
		n.result.Verdict, n.result.Reason = runtime.InfraError, err.Error()
	}
}

// awaitWithin is await with the time limit, counted from the program's start.
func (n *run) awaitWithin(limits runtime.Limits) (code int64, err error) {
	if n.result.Wall = n.wall; n.wall > 0 { // it has ended; judge compares it with the limit
		return n.await()
	}
	wall := time.AfterFunc(limits.EndWall()-time.Since(n.started), func() { n.end(verdict.Wall(limits)) })
	code, err = n.await()
	wall.Stop()
	n.result.Wall = time.Since(n.started)
	return code, err
}

// forget stops waiting for the exit; the wait's answer must still be received.
func (n *run) forget() {
	if n.exit.Result == nil {
		return
	}
	go func() {
		select {
		case <-n.exit.Result:
		case <-n.exit.Error:
		case <-n.answered:
		}
	}()
}

// await blocks until the container has ended, and kills it when the run is ended.
func (n *run) await() (code int64, err error) {
	var again <-chan time.Time
	ended := n.endedAt
	var since time.Time
	for {
		select {
		case answer := <-n.exit.Result:
			close(n.answered)
			if answer.Error != nil {
				return 0, fmt.Errorf("docker: the engine says of the container: %s", answer.Error.Message)
			}
			return answer.StatusCode, nil
		case err := <-n.exit.Error:
			close(n.answered)
			return n.poll(err)
		case <-ended:
			since, ended = time.Now(), nil
			again = time.Tick(killAgain)
			n.kill()
		case <-again:
			if time.Since(since) > giveUp {
				return 0, fmt.Errorf("docker: the engine has not ended container %.12s within %v of being told to", n.id, giveUp)
			}
			n.kill()
		}
	}
}

func (n *run) kill() { n.signal("KILL") }

func (n *run) signal(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	_, _ = n.runtime.engine.ContainerKill(ctx, n.id, client.ContainerKillOptions{Signal: name}) // await notices whether it worked
}

// poll asks for the state of the container after the wait was cut off: the engine may have been restarted.
func (n *run) poll(cut error) (int64, error) {
	tick := time.Tick(time.Second)
	for begin := time.Now(); time.Since(begin) < giveUp; <-tick {
		ctx, cancel := context.WithTimeout(context.Background(), callWithin)
		found, err := n.runtime.engine.ContainerInspect(ctx, n.id, client.ContainerInspectOptions{})
		cancel()
		switch {
		case errdefs.IsNotFound(err):
			return 0, fmt.Errorf("docker: container %.12s was removed while it ran", n.id)
		case err != nil:
			continue
		case found.Container.State != nil && !found.Container.State.Running:
			if _, ended := n.ended.Get(); !ended {
				return 0, fmt.Errorf("docker: the engine was lost while the container ran: %w", cut)
			}
			return int64(found.Container.State.ExitCode), nil
		}
		n.end(verdict.Ending{Verdict: runtime.InfraError, Reason: fmt.Sprintf("docker: the connection to the engine was lost: %v", cut)})
		n.kill()
	}
	return 0, fmt.Errorf("docker: the engine does not answer, and container %.12s may still be there: %w", n.id, cut)
}

// discard removes the container and confirms that it is gone.
func (n *run) discard() error {
	if n.id == "" {
		return nil
	}
	pause := 50 * time.Millisecond
	for begin := time.Now(); ; pause = min(2*pause, killAgain) {
		ctx, cancel := context.WithTimeout(context.Background(), callWithin)
		err := n.runtime.remove(ctx, n.id)
		cancel()
		if err == nil || time.Since(begin) > giveUp {
			return err
		}
		time.Sleep(pause)
	}
}

// judge determines how the run ended: first from what Pawl recorded, then from the kernel's counters, then from the program's exit. The
// engine reports a signal as 128 plus its number, which a program may also exit with: that proves nothing.
func (n *run) judge(code int64) error {
	r := &n.result
	defer func() { r.NoteLimits(false, n.overDisk.Load()) }()
	r.StdoutBytes, r.StderrBytes = n.outBytes, n.errBytes
	r.Enforcement, r.Stack = n.facts.cgroups, n.spec.Limits.Stack
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	found, err := n.runtime.engine.ContainerInspect(ctx, n.id, client.ContainerInspectOptions{})
	if err != nil {
		return n.runtime.refused("ask how the container ended", err)
	}
	seen := n.usage.close()
	r.CPU, r.PeakMemory = seen.cpu, seen.peak
	state := found.Container.State
	e, _ := n.ended.Get()
	if state != nil && (state.Dead || state.Status == container.StateRemoving) && e.Verdict == "" {
		return fmt.Errorf("docker: container %.12s was removed by another program while it ran", n.id)
	}
	oom := seen.oomKills > 0 || state != nil && state.OOMKilled
	memory := n.spec.Limits.Memory
	if e.Verdict == "" && n.budget.Exceeded() { // the program ended before it could be killed for that
		e = verdict.Output(n.spec.Limits)
	}
	e = verdict.OnTime(e, e.Verdict == "", *r, n.spec.Limits)
	switch {
	case e.Verdict != "":
		r.Verdict, r.Reason = e.Verdict, e.Reason
		return nil
	case oom && seen.hostFull:
		e = verdict.HostFull(memory)
		r.Verdict, r.Reason = e.Verdict, e.Reason
		return nil
	case oom && code != 0:
		r.Verdict = runtime.OOM
		r.Reason = fmt.Sprintf("the memory limit of %d bytes was reached and the kernel killed a process", memory)
		return nil
	case oom:
		r.ChildOOM = true
		r.Reason = fmt.Sprintf("a child was killed at the memory limit of %d bytes", memory)
	}
	if code == 0 {
		r.Verdict = runtime.OK
		return nil
	}
	r.Verdict, r.ExitCode = runtime.NonzeroExit, int(code)
	r.Reason = fmt.Sprintf("the program exited with code %d", code)
	if name := unix.SignalName(unix.Signal(code - 128)); name != "" {
		r.Reason += ", which is also what the engine says of one that was ended by " + name
	}
	return nil
}
