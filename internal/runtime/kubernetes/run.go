package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/drain"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
	"github.com/pawl-run/pawl/internal/runtime/verdict"
)

type run struct {
	runtime *Runtime
	spec    runtime.Spec
	command wire.Command
	name    string
	nonce   string
	user    [2]int64
	network string
	uid     types.UID
	started time.Time
	ordered bool   // the program may have begun
	waiting string // the last argument of Spec.Note; used by the goroutine that starts the run, and then by the one that supervises it

	unpulledSince time.Time // since when the pod's node has failed to pull an image; zero: it has not failed

	outputs [2]output
	pumps   sync.WaitGroup
	budget  *drain.Budget
	feed    *feeder // nil: no input
	fetches *fetch  // the current collection of files; guarded by mu

	mu      sync.Mutex
	link    *link // the newest
	state   wire.State
	changed chan struct{} // closed when state changes

	ended    verdict.Record
	endedAt  chan struct{} // closed when ended is set
	until    time.Time     // end of Terminate's grace period; written before endedAt is closed
	killAt   chan struct{} // closed when the run is to end at once
	killOnce sync.Once

	done   chan struct{}
	result runtime.Result
}

// output is one stream of the program: bytes that have arrived are written to a pipe.
type output struct {
	in   *io.PipeWriter
	got  int64 // bytes; used by the reader of the link
	kept int64 // bytes within the limit
}

func newRun(r *Runtime, spec runtime.Spec) *run {
	n := &run{runtime: r, spec: spec, changed: make(chan struct{}),
		endedAt: make(chan struct{}), killAt: make(chan struct{}), done: make(chan struct{})}
	if spec.Stdin != nil {
		n.feed = newFeeder()
	}
	return n
}

// Wait blocks until no process of the program is left.
func (n *run) Wait() runtime.Result {
	<-n.done
	return n.result
}

func (n *run) Kill(reason string) { n.end(verdict.Ending{Verdict: runtime.Killed, Reason: reason}) }

// Terminate has process 1 send SIGTERM to the program, and kill it after the grace period, even if no worker is connected by then.
func (n *run) Terminate(reason string, grace time.Duration) {
	e := verdict.Ending{Verdict: runtime.Killed, Reason: reason}
	if grace <= 0 || !n.ended.Set(e) {
		n.end(e)
		return
	}
	n.until = time.Now().Add(grace)
	close(n.endedAt)
	go verdict.AfterGrace(grace, n.killAt, func() { n.end(e) })
}

func (n *run) end(e verdict.Ending) {
	if n.ended.Set(e) {
		close(n.endedAt)
	}
	n.killOnce.Do(func() { close(n.killAt) })
}

// closed reports whether a channel that nothing is sent on has been closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// now is the last state that the keeper sent, and a channel that is closed when it sends another.
func (n *run) now() (wire.State, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state, n.changed
}

func (n *run) pump() {
	n.budget = drain.NewBudget(n.spec.Limits.Output, func() { n.end(verdict.Output(n.spec.Limits)) })
	for i, to := range []io.Writer{n.spec.Stdout, n.spec.Stderr} {
		out, in := io.Pipe()
		n.outputs[i].in = in
		n.pumps.Go(func() { n.outputs[i].kept = drain.Pump(out, to, n.budget) })
	}
}

// connect opens a stream to the keeper, which continues the output where it stopped. The previous stream must have ended.
func (n *run) connect() (*link, error) {
	within := silence
	if state, _ := n.now(); state.Phase == "" {
		within = firstAnswer
	}
	l, err := n.runtime.dial(n.name, wire.Greeting{Version: wire.Version, Out: n.outputs[0].got, Err: n.outputs[1].got}, within, n.take)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.link = l
	n.mu.Unlock()
	return l, nil
}

// take handles a frame of the keeper. Only one stream's reader calls it at a time.
func (n *run) take(f wire.Frame) error {
	switch f.Kind {
	case wire.Out:
		return n.outputs[0].take(f)
	case wire.Err:
		return n.outputs[1].take(f)
	case wire.File, wire.Data, wire.Fetched:
		n.mu.Lock()
		fetches := n.fetches
		n.mu.Unlock()
		if fetches == nil || f.Offset != fetches.request {
			return nil // answers a request from before a break
		}
		if fetches.take(f) {
			n.tell(func(*wire.State) {})
		}
		return nil
	case wire.Status:
	default:
		return fmt.Errorf("the keeper sent an unknown frame %q", f.Kind)
	}
	var s wire.State
	if err := f.Decode(&s); err != nil {
		return err
	}
	if s.Version != wire.Version {
		return versionError(s.Version)
	}
	if s.Phase == wire.Exited && (s.Out != n.outputs[0].got || s.Err != n.outputs[1].got) {
		return fmt.Errorf("the keeper has %d and %d bytes of output, %d and %d have come", s.Out, s.Err, n.outputs[0].got, n.outputs[1].got)
	}
	n.tell(func(was *wire.State) {
		if was.Epoch != "" && was.Epoch != s.Epoch {
			s.Phase = wire.Broken
		}
		*was = s
	})
	if n.feed != nil {
		n.feed.taken(s.Stdin)
	}
	return nil
}

// versionError is the version of a helper from another release. Another stream to it would fail as well.
type versionError int

func (v versionError) Error() string {
	return fmt.Sprintf("the helper speaks version %d of its protocol and this worker version %d: use the helper image of this release", int(v), wire.Version)
}

func (n *run) tell(change func(*wire.State)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.state)
	close(n.changed)
	n.changed = make(chan struct{})
}

func (o *output) take(f wire.Frame) error {
	if f.Offset > o.got {
		return fmt.Errorf("output at offset %d, expected at %d", f.Offset, o.got)
	}
	fresh := f.Data[min(o.got-f.Offset, int64(len(f.Data))):]
	o.got += int64(len(fresh))
	_, err := o.in.Write(fresh)
	return err
}

// deleteGrace is the grace period, in seconds, of a pod whose run is over or is ended by deleting the pod.
const deleteGrace = 1

var errInfra = errors.New("kubernetes")

func (n *run) supervise() {
	defer n.runtime.runs.Remove(n)
	defer n.runtime.watcher.drop(n.name)
	err := n.await(func(s wire.State) bool { return s.Phase == wire.Exited })
	if err != nil && !errors.Is(err, errOOM) {
		n.current().close() // nothing more is taken
	}
	n.end(verdict.Ending{})
	if n.feed != nil {
		n.feed.stop()
	}
	for i := range n.outputs {
		_ = n.outputs[i].in.Close()
	}
	n.pumps.Wait()
	state, _ := n.now()
	switch {
	case errors.Is(err, errOOM):
		n.judge(&wire.Report{Signal: "SIGKILL", OOMKills: 1, Wall: time.Since(n.started), Enforcement: "cgroup-v2"})
		err = nil
	case err == nil:
		n.judge(state.Report)
		err = n.collect()
	}
	if err != nil {
		n.result.Verdict, n.result.Reason = runtime.InfraError, err.Error()
		if e, _ := n.ended.Get(); e.Verdict != "" {
			n.result.Verdict, n.result.Reason = e.Verdict, e.Reason
			if e.Verdict != runtime.InfraError {
				n.result.Reason += " (" + err.Error() + ")"
			}
		}
		n.result.StdoutBytes, n.result.StderrBytes = n.outputs[0].kept, n.outputs[1].kept
		n.result.Enforcement = cmp.Or(n.result.Enforcement, "none")
	}
	if n.result.Verdict != runtime.InfraError {
		n.result.Cause = ""
	}
	close(n.done)
	l, said := n.current(), make(chan struct{})
	go func() { // a stalled stream blocks the write
		_ = l.send(wire.Frame{Kind: wire.Done})
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(time.Second):
	}
	_ = n.delete() // or a sweep will
	l.close()
}

func (n *run) current() *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link
}

// judge determines how the run ended: first from what Pawl recorded, then from the kernel's counters, then from the program's exit.
func (n *run) judge(report *wire.Report) {
	r, limits := &n.result, n.spec.Limits
	r.StdoutBytes, r.StderrBytes = n.outputs[0].kept, n.outputs[1].kept
	r.Wall, r.CPU, r.PeakMemory, r.Enforcement = max(report.Wall, 1), report.CPU, report.Peak, report.Enforcement
	r.Stack = limits.Stack
	defer func() {
		r.NoteLimits(report.Ending == wire.ByPids, report.Ending == wire.ByDisk && r.Verdict == runtime.OutputLimit)
	}()
	e, _ := n.ended.Get()
	if e.Verdict == "" {
		switch {
		case report.Ending == wire.ByWall:
			e = verdict.Wall(limits)
		case report.Ending == wire.ByCPU:
			e = verdict.CPU(limits)
		case report.Ending == wire.ByDisk:
			e = verdict.Ending{Verdict: runtime.OutputLimit, Reason: fmt.Sprintf("the working directory and /tmp hold more than the disk limit of %d bytes", limits.Disk)}
		case n.budget.Exceeded():
			e = verdict.Output(limits)
		case report.Ending == wire.ByKill:
			e = verdict.Ending{Verdict: runtime.InfraError, Reason: "kubernetes: the pod ended the program, because no worker was there or another told it to"}
		}
	}
	e = verdict.OnTime(e, report.Ending == "", *r, limits)
	failed := report.Code != 0 || report.Signal != ""
	switch {
	case e.Verdict != "":
		r.Verdict, r.Reason = e.Verdict, e.Reason
		return
	case report.Ending == wire.ByPids:
		r.Verdict, r.Signal = runtime.Signal, "SIGKILL"
		r.Reason = fmt.Sprintf("more than %d processes ran at once, and they were killed", limits.Pids)
		return
	case report.HostFull:
		e = verdict.HostFull(limits.Memory)
		r.Verdict, r.Reason = e.Verdict, e.Reason
		return
	case report.OOMKills > 0 && failed:
		r.Verdict = runtime.OOM
		r.Reason = fmt.Sprintf("the memory limit of %d bytes was reached and the kernel killed a process", limits.Memory)
		return
	case report.OOMKills > 0:
		r.ChildOOM = true
		r.Reason = fmt.Sprintf("a child was killed at the memory limit of %d bytes", limits.Memory)
	}
	switch {
	case report.Signal != "":
		r.Verdict, r.Signal = runtime.Signal, report.Signal
		r.Reason = "the program was ended by " + report.Signal
	case report.Code != 0:
		r.Verdict, r.ExitCode = runtime.NonzeroExit, report.Code
		r.Reason = fmt.Sprintf("the program exited with code %d", report.Code)
	default:
		r.Verdict = runtime.OK
	}
}

// delete asks for the deletion of the pod, several times when the cluster does not answer.
func (n *run) delete() error {
	var err error
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), callWithin)
		err = n.runtime.remove(ctx, n.name, n.uid)
		cancel()
		if err == nil || lasting(err) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return err
}

// discard removes what a start created. Where the program may have begun it waits until the program has certainly ended.
func (n *run) discard() {
	_ = n.delete()
	if !n.ordered {
		return
	}
	deadline := time.After(n.runtime.giveUp())
	for {
		pod, gone, changed := n.runtime.watcher.look(n.name)
		if gone || pod != nil && over(pod) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			return
		}
	}
}

// remove deletes one pod. A pod that does not exist is no error.
func (r *Runtime) remove(ctx context.Context, name string, uid types.UID) error {
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64(deleteGrace))}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := r.pods.delete(ctx, name, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // deleted already, or another pod has the name
		return nil
	}
	return err
}
