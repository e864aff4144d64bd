package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

func local(script string) runtime.Spec {
	return runtime.Spec{Name: "test", Argv: []string{"-c", script}, Container: &runtime.Container{Image: "i", Entrypoint: []string{"bash"}}, Limits: runtime.Limits{Wall: time.Minute, CPU: time.Minute}}
}

// waitFor is a script that waits for a file.
func waitFor(file string) string { return "while [ ! -e " + file + " ]; do sleep 0.02; done; " }

func TestRunOnPlayedCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer r.Close()
	spec := local(`cat; printf 'one\r\n\0'; echo err >&2; exit 3`)
	spec.Stdin = strings.NewReader("input ")
	if result, out, errs := finish(t, r, spec); result.Verdict != runtime.NonzeroExit || result.ExitCode != 3 || out != "input one\r\n\x00" || errs != "err\n" {
		t.Errorf("%q %q %+v", out, errs, result)
	}
	started, err := r.Start(t.Context(), local("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	started.Kill("the end")
	if result := started.Wait(); result.Verdict != runtime.Killed || result.Reason != "the end" || result.Cause != "" {
		t.Errorf("%+v", result)
	}
}

// A program gets its grace period, but no more than it needs or the worker waits.
func TestGraceOnPlayedCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer r.Close()
	begin := func(trap string) (runtime.Run, *noted) {
		var out noted
		spec := local(`trap '` + trap + `' TERM; echo ready; while :; do sleep 0.02; done`)
		spec.Stdout = &out
		started, err := r.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is ready", func() bool { return out.String() == "ready\n" })
		return started, &out
	}
	hears, out := begin("echo cleaned up; exit 3")
	hears.Terminate("cancelled", time.Hour)
	if result := hears.Wait(); result.Verdict != runtime.Killed || out.String() != "ready\ncleaned up\n" {
		t.Errorf("%q %+v", out, result)
	}
	for name, end := range map[string]func(runtime.Run, *noted){
		"for 200 ms": func(n runtime.Run, _ *noted) { n.Terminate("cancelled", 200*time.Millisecond) },
		"killed then": func(n runtime.Run, out *noted) {
			n.Terminate("cancelled", time.Hour)
			eventually(t, "it has been asked", func() bool { return strings.Contains(out.String(), "asked") })
			n.Kill("given up")
		},
	} {
		deaf, out := begin("echo asked")
		end(deaf, out)
		if result := deaf.Wait(); result.Verdict != runtime.Killed || result.Reason != "cancelled" || !strings.Contains(out.String(), "asked") {
			t.Errorf("%s: %q %+v", name, out, result)
		}
	}
}

// A helper of another release is refused at once: another exec would fail as well.
func TestHelperOfAnotherRelease(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	says := wire.Pack(wire.Status, 0, &wire.State{Version: 1})
	c.says = &says
	r := c.runtime(c.url, Options{})
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := r.Start(ctx, local("echo hi"))
	want := fmt.Sprintf("the helper speaks version 1 of its protocol and this worker version %d: use the helper image of this release", wire.Version)
	if !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// An image that cannot be pulled is reported, and waited for only for a limited time, although the keeper, whose image is there, answers.
func TestImageThatIsNotThere(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer r.Close()
	r.pullWithin = time.Second
	var said notes
	spec := local("true")
	spec.Container.Image, spec.Note = absent, said.note
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	const want = "node n1 cannot pull image absent:1: not found"
	if _, err := r.Start(ctx, spec); !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if _, ok := said.with(want); !ok {
		t.Errorf("told %q", said.String())
	}
}

// A worker that the cluster cannot tell from a dead one is replaced by the next of its name: runs that have started are taken up with all
// their output, and others are deleted.
func TestTakenUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	before := newCutter(t, strings.TrimPrefix(c.url, "http://"))
	r := c.runtime("http://"+before.listener.Addr().String(), Options{Worker: "/state/w"})
	dir := t.TempDir()
	lasts := local(`printf 'one\r\n\0'; echo err >&2; ` + waitFor(dir+"/go") + `printf two; exit 4`)
	lasts.Lasting, lasts.Labels = true, runtime.Labels{"execution": "ex_1", "attempt": "1"}
	var out noted
	lasts.Stdout = &out
	if _, err := r.Start(t.Context(), lasts); err != nil {
		t.Fatal(err)
	}
	other := local("sleep 1000")
	other.Labels = runtime.Labels{"execution": "ex_2", "attempt": "1"}
	if _, err := r.Start(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has begun", func() bool { return out.String() == "one\r\n\x00" })
	before.refuse(true)

	r = c.runtime(c.url, Options{Worker: "/state/w"})
	defer r.Close()
	kept, err := r.Outlived(t.Context())
	if err != nil || len(kept) != 1 || kept[0]["execution"] != "ex_1" || len(kept[0]) != 2 {
		t.Fatalf("%v %v", kept, err)
	}
	r.Settle(kept)
	eventually(t, "the other is deleted", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.pods) == 1
	})
	var again, errs noted
	lasts.Stdout, lasts.Stderr = &again, &errs
	var failed atomic.Int32
	c.mu.Lock()
	c.fails = func(r *http.Request) bool { // the pod is read again, from an API server that is just starting
		return r.Method == http.MethodGet && strings.Contains(path.Base(r.URL.Path), "pawl-") && failed.Add(1) <= 2
	}
	c.mu.Unlock()
	resumed, err := r.Resume(t.Context(), lasts)
	if err != nil || failed.Load() != 3 {
		t.Fatalf("%v, after %d requests", err, failed.Load())
	}
	eventually(t, "what it had written before", func() bool { return again.String() == "one\r\n\x00" })
	if n, err := r.sweep(t.Context(), time.Now().Add(2*takeUpWithin)); err != nil || n != 0 {
		t.Errorf("swept up %d, %v", n, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if result := resumed.Wait(); result.Verdict != runtime.NonzeroExit || result.ExitCode != 4 || again.String() != "one\r\n\x00two" || errs.String() != "err\n" || result.StdoutBytes != 9 {
		t.Errorf("%q %q %+v", again.String(), errs.String(), result)
	}
	if _, err := r.Resume(t.Context(), other); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("resumed: %v", err)
	}
}

// A silent node is reported within 15 s, and the run ends as soon as the cluster gives the node up, although no kubelet confirms it: the
// program is not at fault, and the next attempt waits for as long as the program may still run.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{OrphanAfter: 20 * time.Second})
	defer func() { c.freeze(false); _ = r.Close() }()
	var said notes
	spec := local("echo begun; sleep 1000")
	spec.Note, spec.Labels = said.note, runtime.Labels{"execution": "ex_1", "attempt": "1"}
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	c.freeze(true)
	frozen := time.Now()
	eventually(t, "it is told", func() bool {
		_, ok := said.with("pod " + started.(*run).name + " on node n1 has not answered since")
		return ok
	})
	if at, _ := said.with("has not answered"); at.Sub(frozen) > 15*time.Second {
		t.Errorf("told after %v", at.Sub(frozen))
	}
	c.mu.Lock()
	c.condemn(c.pods[started.(*run).name], "DeletionByTaintManager")
	c.mu.Unlock()
	condemned := time.Now()
	result := started.Wait()
	if took := time.Since(condemned); result.Verdict != runtime.InfraError || result.Cause != runtime.NodeLost || took > 5*time.Second {
		t.Errorf("after %v: %+v", took, result)
	}
	// In the next attempt, the time for which a program without its worker may run is nearly over.
	second := newRun(r, local("true"))
	second.spec.Labels = runtime.Labels{"execution": "ex_1", "attempt": "2"}
	r.options.OrphanAfter = fenceQuiet + 3*time.Second - orphanSlack
	var waits notes
	second.spec.Note = waits.note
	begin := time.Now()
	if err := second.fence(t.Context()); err != nil || time.Since(begin) < fenceQuiet {
		t.Errorf("the fence was passed after %v: %v", time.Since(begin), err)
	}
	if _, ok := waits.with("of an earlier attempt has not ended"); !ok {
		t.Errorf("told %q", waits.String())
	}
}

// A drained pod is reported as such, with all earlier output; so is one that a user deletes.
func TestTakenAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer r.Close()
	for reason, want := range map[string]runtime.Cause{"EvictionByEvictionAPI": runtime.Evicted, "PreemptionByScheduler": runtime.Preempted, "": runtime.Deleted} {
		var out noted
		spec := local("echo begun; sleep 1000")
		spec.Stdout = &out
		started, err := r.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "it has begun", func() bool { return out.String() == "begun\n" })
		c.mu.Lock()
		c.condemn(c.pods[started.(*run).name], reason)
		c.mu.Unlock()
		if result := started.Wait(); result.Verdict != runtime.InfraError || result.Cause != want || out.String() != "begun\n" {
			t.Errorf("%s: %q %+v", reason, out.String(), result)
		}
	}
}

// The worker waits for an exec that starts slowly: another would only add to the node's load. For a keeper that has answered the limit is
// short.
func TestSlowFirstExec(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer r.Close()
	n := newRun(r, local("true"))
	n.name = "pawl-test"
	for phase, want := range map[wire.Phase]time.Duration{"": firstAnswer, wire.Running: silence} {
		n.tell(func(s *wire.State) { s.Phase = phase })
		c.freeze(true)
		l, err := n.connect()
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(l.lastHeard()) + silence; left > want || left < want-10*time.Second {
			t.Errorf("in phase %q a keeper has %v for its answer, want %v", phase, left, want)
		}
		c.freeze(false)
		l.close()
	}
}

// A node that accepts an exec and never answers it does not delay the end of a run: its pod is deleted instead.
func TestKilledOutOfReach(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer func() { c.freeze(false); _ = r.Close() }()
	r.settled = 200 * time.Millisecond
	started, err := r.Start(t.Context(), local("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	p := c.of(started)
	c.freeze(true)
	c.mu.Lock()
	before := c.execs
	c.cut()
	c.mu.Unlock()
	eventually(t, "the worker waits for the answer to an exec", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.execs > before
	})
	started.Kill("the end")
	eventually(t, "the pod is deleted", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return p.pod.DeletionTimestamp != nil
	})
	c.freeze(false)
	if result := started.Wait(); result.Verdict != runtime.Killed || !strings.HasPrefix(result.Reason, "the end") {
		t.Errorf("%+v", result)
	}
}

// The files of a program that has ended well are fetched again if the stream was broken meanwhile, however long the node refused execs:
// deleting its pod would make the program run again.
func TestFilesAfterABreak(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer r.Close()
	r.settled = 200 * time.Millisecond
	asked := make(chan bool, 10)
	c.fetch = func(*played) bool {
		if len(asked) == 0 {
			c.deafen(true)
		}
		asked <- true
		return true
	}
	spec := local("echo done")
	spec.Collect, spec.CollectInto = []string{"out"}, t.TempDir()
	var out noted
	spec.Stdout = &out
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node has refused execs for longer than a stream may be away", func() bool { // pauses of 50, 100, 200 and 400 ms
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.refused >= 5
	})
	c.deafen(false)
	if result := started.Wait(); result.Verdict != runtime.OK || out.String() != "done\n" || len(asked) != 2 {
		t.Errorf("%q, asked for files %d times, %+v", out.String(), len(asked), result)
	}
}

// If process 1 ends before it has sent the files, the run ends at once, and not only at the pod's deadline.
func TestFilesThatNeverCome(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer r.Close()
	c.fetch = func(p *played) bool {
		c.terminated(p, v1.PodRunning, v1.ContainerStateTerminated{ExitCode: 120, Reason: "Error"})
		return false
	}
	spec := local("echo done")
	spec.Collect, spec.CollectInto = []string{"out"}, t.TempDir()
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan runtime.Result, 1)
	go func() { over <- started.Wait() }()
	select {
	case result := <-over:
		if result.Verdict != runtime.InfraError || !strings.Contains(result.Reason, "before the program's files had come") || !strings.Contains(result.Reason, "code 120") {
			t.Errorf("%+v", result)
		}
	case <-time.After(20 * time.Second):
		t.Error("the run does not end")
		c.mu.Lock()
		c.condemn(c.pods[started.(*run).name], "")
		c.mu.Unlock()
	}
}

// gated is a writer that blocks until open is closed.
type gated struct {
	noted
	open chan struct{}
}

func (g *gated) Write(p []byte) (int, error) {
	<-g.open
	return g.noted.Write(p)
}

// A program that was killed for its memory has run, even if the worker, which is still reading its output, does not know yet that it
// started: the result is the program's, and not that of a start that may be tried again.
func TestKilledWhileItsOutputComes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer r.Close()
	const size = 5_000_000
	written := filepath.Join(t.TempDir(), "written")
	out := &gated{open: make(chan struct{})}
	c.began = func(p *played) {
		for _, err := os.Stat(written); err != nil && t.Context().Err() == nil; _, err = os.Stat(written) {
			time.Sleep(time.Millisecond)
		}
		go func() {
			c.terminated(p, v1.PodRunning, v1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"})
			close(p.lost)
			close(out.open)
		}()
	}
	spec := local(fmt.Sprintf("head -c %d /dev/zero; touch %s; exec sleep 1000", size, written))
	spec.Stdout, spec.Limits.Output = out, 2*size
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if result := started.Wait(); result.Verdict != runtime.OOM || result.StdoutBytes != size || out.Len() != size {
		t.Errorf("%d bytes, %+v", out.Len(), result)
	}
}

// A pod that could not be deleted at the end of its run is deleted later by the same worker, and one that is still needed is not.
func TestDeletedLater(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var away atomic.Bool
	c.fails = func(r *http.Request) bool { return r.Method == http.MethodDelete && away.Load() }
	r := c.runtime(c.url, Options{})
	defer r.Close()
	away.Store(true)
	ended, err := r.Start(t.Context(), local("true"))
	if err != nil {
		t.Fatal(err)
	}
	left := c.of(ended)
	needed, err := r.Start(t.Context(), local("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if result := ended.Wait(); result.Verdict != runtime.OK {
		t.Errorf("%+v", result)
	}
	eventually(t, "its run is over", func() bool { return !r.watcher.follows(left.pod.Name) })
	away.Store(false)
	c.terminated(left, v1.PodSucceeded, v1.ContainerStateTerminated{Reason: "Completed"})
	c.terminated(c.of(needed), v1.PodFailed, v1.ContainerStateTerminated{Reason: "Error"})
	if _, err := r.sweep(t.Context(), time.Now()); err != nil {
		t.Error(err)
	}
	if p := c.of(ended); p != nil && p.pod.DeletionTimestamp == nil {
		t.Error("the pod is still there")
	}
	if p := c.of(needed); p == nil || p.pod.DeletionTimestamp != nil {
		t.Error("a pod was deleted whose run goes on")
	}
	needed.Kill("the end")
	needed.Wait()
}

// A program that exceeds its output limit before its worker knows that it started has run, and did not fail to start.
func TestTooMuchOutputAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.runtime(c.url, Options{})
	defer r.Close()
	var out noted
	c.began = func(*played) {
		for out.Len() < 1000 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	spec := local("head -c 5000 /dev/zero; exec sleep 1000")
	spec.Stdout, spec.Limits.Output = &out, 1000
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if result := started.Wait(); result.Verdict != runtime.OutputLimit || out.Len() != 1000 {
		t.Errorf("%d bytes, %+v", out.Len(), result)
	}
}
