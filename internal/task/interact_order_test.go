package task_test

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

// dying is a runtime whose program closes its stdout at once, and ends with a verdict some time later unless it is killed before. Its
// interactor rejects when it has read to the end.
type dying struct {
	runtime.Runtime
	as    runtime.Verdict
	after time.Duration
}

func (dying) Name() string                 { return "dying" }
func (dying) Isolation() runtime.Isolation { return runtime.None }

type dyingRun struct {
	once   sync.Once
	killed chan struct{}
	wait   func(killed <-chan struct{}) runtime.Result
}

func (r *dyingRun) Kill(string)                     { r.once.Do(func() { close(r.killed) }) }
func (r *dyingRun) Terminate(string, time.Duration) { r.Kill("") }
func (r *dyingRun) Wait() runtime.Result            { return r.wait(r.killed) }

func (d dying) Start(_ context.Context, spec runtime.Spec) (runtime.Run, error) {
	end := spec.Stdout.(interface{ End() }).End
	run := &dyingRun{killed: make(chan struct{})}
	if !slices.ContainsFunc(spec.Files, func(f runtime.File) bool { return f.Path == "input.txt" }) {
		end()
		run.wait = func(killed <-chan struct{}) runtime.Result {
			select {
			case <-killed:
				return runtime.Result{Verdict: runtime.Killed}
			case <-time.After(d.after):
				return runtime.Result{Verdict: d.as, ExitCode: 1}
			}
		}
		return run, nil
	}
	run.wait = func(<-chan struct{}) runtime.Result {
		_, _ = io.Copy(io.Discard, spec.Stdin) // a stream of a dialogue does not fail
		end()
		return runtime.Result{Verdict: runtime.NonzeroExit, ExitCode: 1}
	}
	return run, nil
}

// A dying program closes its stdout before the runtime knows that it is dead. The interactor, which reads the end of file, may be faster:
// its rejection must not hide why the program died. A program that has only closed its stdout is killed all the same.
func TestInteractorIsQuickerThanTheRuntime(t *testing.T) {
	languages := profiles(t, task.Profile{Name: "plain", Extensions: []string{"p"}, Run: []string{"./main.p"}})
	for want, d := range map[string]dying{
		"oom":           {as: runtime.OOM, after: time.Second},
		"nonzero_exit":  {as: runtime.NonzeroExit, after: 100 * time.Millisecond},
		api.WrongAnswer: {as: runtime.OK, after: time.Hour},
		"cpu_timeout":   {as: runtime.CPUTimeout, after: time.Millisecond},
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := interactive(api.Interactor{Language: "plain", Source: "x"}, "x", api.Case{})
				c.Language = "plain"
				r := with(t, d, languages, c)
				if verdicts(r.result) != "1="+want {
					t.Errorf("%s after %s: %s, %v", d.as, d.after, verdicts(r.result), r.err)
				}
			})
		})
	}
}
