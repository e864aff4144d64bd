//go:build unix

package task_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox"
	"github.com/pawl-run/pawl/internal/task"
)

// warmPython are the built-in languages with or without warm interpreters of Python.
func warmPython(tb testing.TB, warm *task.Warm) *task.Languages {
	tb.Helper()
	if warm == nil {
		return nil
	}
	languages, faults := task.BuiltInLanguages().With([]task.Profile{{Name: "python", Like: "python", Override: true, Warm: warm}})
	if len(faults) > 0 {
		tb.Fatal(faults)
	}
	return languages
}

// forks counts the runs of a runtime that were forked from a template.
type forks struct {
	runtime.Runtime
	warm atomic.Int64
}

func (f *forks) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	run, err := f.Runtime.Start(ctx, spec)
	return &fork{run, f}, err
}

func (f *forks) Series() runtime.Series { return &forkSeries{f.Runtime.(runtime.Serial).Series(), f} }

type forkSeries struct {
	runtime.Series
	*forks
}

func (s *forkSeries) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	run, err := s.Series.Start(ctx, spec)
	return &fork{run, s.forks}, err
}

func (s *forkSeries) Close() { s.Series.Close() }

type fork struct {
	runtime.Run
	of *forks
}

func (f *fork) Wait() runtime.Result {
	result := f.Run.Wait()
	if result.Warm {
		f.of.warm.Add(1)
	}
	return result
}

// Programs of a language with warm interpreters are forked, alone and as cases; those whose start a user controls are not.
func TestWarmPython(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has warm interpreters")
	}
	rt, err := sandbox.New(sandbox.Options{TemplateFailed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Skipf("no sandbox: %v: run as root on a kernel with user namespaces", err)
	}
	defer rt.Close()
	seen, languages := &forks{Runtime: rt}, warmPython(t, &task.Warm{Imports: []string{"json", "random"}})
	const source = "import os, sys\nprint(sys.argv[1:], input(), 'json' in sys.modules, os.environ['PAWL_ATTEMPT'], os.environ.get('PYTHONPATH'))"
	code := api.Code{Language: "python", Source: source, Stdin: api.Text("in\n"), Args: []string{"a", "-c"}}
	const want = "['a', '-c'] in True 1 None\n"
	// The first run makes the template, and is not one of its forks.
	for seen.warm.Load() == 0 && !t.Failed() {
		r := with(t, seen, languages, code)
		if seen.warm.Load() > 0 && r.result.Stdout != want {
			t.Errorf("%v %+v", r.err, r.result)
		}
	}
	seen.warm.Store(0)
	alone := code
	code.Stdin = api.Content{}
	for _, name := range []string{"one", "two", "three"} {
		code.Cases = append(code.Cases, api.Case{Name: name, Stdin: api.Text("in\n"), Expect: expect(want)})
	}
	if r := with(t, seen, languages, code); r.err != nil || seen.warm.Load() != 3 {
		t.Errorf("%v %+v; %d were forked", r.err, r.result, seen.warm.Load())
	}
	alone.Env = map[string]string{"PYTHONWARNINGS": "error"}
	if r := with(t, seen, languages, alone); r.err != nil || seen.warm.Load() != 3 || !strings.HasPrefix(r.result.Stdout, "['a', '-c'] in False") {
		t.Errorf("%v %+v; %d were forked", r.err, r.result, seen.warm.Load())
	}
}
