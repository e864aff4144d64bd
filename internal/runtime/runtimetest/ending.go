//go:build unix

package runtimetest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

func kill(t testing.TB, r runtime.Runtime) {
	spec := shell("echo ready; sleep 60 & wait")
	out := newOutput()
	spec.Stdout = out
	run, err := r.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	out.await(t, "ready\n")
	begin := time.Now()
	run.Kill("first")
	run.Kill("second")
	result := run.Wait()
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the kill took %v", took)
	}
	wantVerdict(t, result, runtime.Killed)
	if result.Reason != "first" {
		t.Errorf("reason %q, want the first one given", result.Reason)
	}
	run.Kill("after the end")
	if again := run.Wait(); again.Reason != result.Reason || again.Verdict != result.Verdict {
		t.Errorf("Wait returned %+v and then %+v", result, again)
	}
	ended, err := r.Start(context.Background(), shell("exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	ended.Wait()
	ended.Kill("too late")
	wantVerdict(t, ended.Wait(), runtime.NonzeroExit)
}

// terminate ends programs that handle SIGTERM, that ignore it, and that meet another end within the grace period.
func terminate(t testing.TB, r runtime.Runtime) {
	begin := func(spec runtime.Spec) (runtime.Run, *output) {
		t.Helper()
		out := newOutput()
		spec.Stdout = out
		run, err := r.Start(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		out.await(t, "ready\n")
		return run, out
	}
	const hears = `trap 'echo cleaned up; echo kept > left; exit 3' TERM; echo ready; while :; do sleep 0.01; done`
	const deaf = `trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done`

	spec := shell(hears)
	spec.Collect, spec.CollectInto = []string{"left"}, t.TempDir()
	run, out := begin(spec)
	run.Terminate("cancelled", time.Hour)
	result := run.Wait()
	wantVerdict(t, result, runtime.Killed)
	if out.String() != "ready\ncleaned up\n" || result.Reason != "cancelled" || len(result.Files) != 1 {
		t.Errorf("a program that hears SIGTERM wrote %q: %+v", out, result)
	}

	run, out = begin(shell(deaf))
	asked := time.Now()
	const grace = 300 * time.Millisecond
	run.Terminate("cancelled", grace)
	wantVerdict(t, run.Wait(), runtime.Killed)
	if took := time.Since(asked); took < grace || !strings.Contains(out.String(), "asked") {
		t.Errorf("killed after %v of a grace of %v, with %q", took, grace, out)
	}

	run, _ = begin(shell(hears))
	run.Terminate("cancelled", 0)
	if result := run.Wait(); result.Verdict != runtime.Killed {
		t.Errorf("without a grace: %+v", result)
	}

	run, out = begin(shell(deaf)) // the grace is an hour: only Kill ends it within the test's time
	run.Terminate("cancelled", time.Hour)
	out.await(t, "asked\n")
	run.Kill("given up")
	if result := run.Wait(); result.Verdict != runtime.Killed || result.Reason != "cancelled" {
		t.Errorf("killed in its grace: %+v", result)
	}

	spec = shell(`trap 'echo asked; while :; do echo more; done' TERM; echo ready; while :; do sleep 0.01; done`)
	spec.Limits.Output = 10_000
	run, _ = begin(spec)
	run.Terminate("cancelled", time.Hour)
	if result := run.Wait(); result.Verdict != runtime.Killed || result.StdoutBytes+result.StderrBytes != 10_000 {
		t.Errorf("written in the grace, where the limit of output is 10,000: %+v", result)
	}
}

func closing(t testing.TB, factory Factory) {
	r := factory(t)
	out := newOutput()
	spec := shell("echo ready; sleep 60")
	spec.Stdout = out
	run, err := r.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	out.await(t, "ready\n")
	if err := r.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	wantVerdict(t, run.Wait(), runtime.Killed)
	if run, err := r.Start(context.Background(), shell("exit 0")); err == nil {
		t.Errorf("a closed runtime started a run: %+v", run.Wait())
	}
	if err := r.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// closingWhileStarting closes runtimes at random moments of a start.
func closingWhileStarting(t testing.TB, factory Factory) {
	for range 20 {
		r := factory(t)
		var starts sync.WaitGroup
		begun := make(chan struct{}, 2)
		for range 2 {
			starts.Go(func() {
				begun <- struct{}{}
				run, err := r.Start(context.Background(), shell("sleep 60"))
				if err == nil {
					wantVerdict(t, run.Wait(), runtime.Killed)
				}
			})
		}
		<-begun
		begin := time.Now()
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("closing took %v", took)
		}
		starts.Wait()
	}
}
