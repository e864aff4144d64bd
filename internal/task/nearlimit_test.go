package task_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
)

// scripted is a runtime whose runs end with scripted results, one after the other, and write their number.
type scripted struct {
	ends  []runtime.Result
	specs []runtime.Spec
	read  []string
}

func (s *scripted) Name() string                               { return "scripted" }
func (s *scripted) Isolation() runtime.Isolation               { return runtime.None }
func (s *scripted) Diagnose(context.Context) []runtime.Finding { return nil }
func (s *scripted) Close() error                               { return nil }
func (s *scripted) Start(_ context.Context, spec runtime.Spec) (runtime.Run, error) {
	if len(s.ends) == len(s.specs) {
		return nil, errors.New("it was not to be started again")
	}
	in, err := io.ReadAll(spec.Stdin)
	if err != nil {
		return nil, err
	}
	end := s.ends[len(s.specs)]
	s.specs, s.read = append(s.specs, spec), append(s.read, string(in))
	n, err := fmt.Fprintf(spec.Stdout, "run %d\n", len(s.specs))
	end.StdoutBytes = int64(n)
	return over(end), err
}

type over runtime.Result

func (over) Kill(string)                     {}
func (over) Terminate(string, time.Duration) {}
func (o over) Wait() runtime.Result          { return runtime.Result(o) }

// A run that exceeded a limit by less than a quarter is repeated, with the same input, until a run keeps its limits; that run counts, or
// else the first.
func TestRerunNearLimit(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	late := func(v runtime.Verdict, wall, cpu time.Duration) runtime.Result {
		return runtime.Result{Verdict: v, Reason: "late", Wall: wall, CPU: cpu, PeakMemory: 5}
	}
	const second = time.Second
	ok, wrong := runtime.Result{Verdict: runtime.OK, Wall: second / 2}, runtime.Result{Verdict: runtime.NonzeroExit, ExitCode: 1}
	near, loop := late(runtime.Timeout, 1200*time.Millisecond, second/2), late(runtime.Timeout, 1250*time.Millisecond, second/2)
	for name, c := range map[string]struct {
		ends    []runtime.Result
		verdict runtime.Verdict
		counts  int // the number of the run that counts, from 1
		runs    int // kept in the result
	}{
		"within its limits":            {[]runtime.Result{ok}, runtime.OK, 1, 0},
		"wrong":                        {[]runtime.Result{wrong}, runtime.NonzeroExit, 1, 0},
		"an endless loop":              {[]runtime.Result{loop}, runtime.Timeout, 1, 0},
		"many threads, far too much":   {[]runtime.Result{late(runtime.CPUTimeout, second/2, 2600*time.Millisecond)}, runtime.CPUTimeout, 1, 0},
		"in time at the second":        {[]runtime.Result{near, ok}, runtime.OK, 2, 2},
		"wrong at the third":           {[]runtime.Result{near, loop, wrong}, runtime.NonzeroExit, 3, 3},
		"late each time":               {[]runtime.Result{near, near, loop}, runtime.Timeout, 1, 3},
		"too much processor time once": {[]runtime.Result{late(runtime.CPUTimeout, second/2, 2400*time.Millisecond), ok}, runtime.OK, 2, 2},
		"too much memory once":         {[]runtime.Result{late(runtime.OOM, second/2, second/2), ok}, runtime.OK, 2, 2},
	} {
		for _, cases := range []bool{false, true} {
			s := &scripted{ends: c.ends}
			code := api.Code{Language: "bash", Source: "x", RerunNearLimit: 2, Limits: api.CodeLimits{Wall: api.Duration(second), CPU: api.Duration(2 * second)}}
			if cases {
				code.Cases = []api.Case{{Name: "a", Stdin: api.Text("in")}}
			} else {
				code.Stdin = api.Text("in")
			}
			r := with(t, s, nil, code)
			verdict, out, runs := r.result.Verdict, r.result.Stdout, r.result.Runs
			if cases {
				one := r.result.Cases[0]
				verdict, out, runs = one.Verdict, one.Stdout, one.Runs
			} else if logged := r.desk.text("stdout"); logged != out {
				t.Errorf("%s: the log has %q, the result %q", name, logged, out)
			}
			if verdict != string(c.verdict) || out != fmt.Sprintf("run %d\n", c.counts) || len(runs) != c.runs {
				t.Errorf("%s, cases %v: %s, %q, %d runs", name, cases, verdict, out, len(runs))
			}
			if len(s.specs) != len(c.ends) || slices.ContainsFunc(s.read, func(in string) bool { return in != "in" }) {
				t.Errorf("%s, cases %v: started %d times, which read %q", name, cases, len(s.specs), s.read)
			}
			if got := s.specs[0].Limits.EndWall(); got != 1250*time.Millisecond {
				t.Errorf("%s: it is ended after %v", name, got)
			}
			for i, run := range runs {
				if run.Verdict != string(c.ends[i].Verdict) || run.Counts != (i == c.counts-1) || run.CPUMS != float64(c.ends[i].CPU.Milliseconds()) {
					t.Errorf("%s: run %d is %+v", name, i+1, run)
				}
			}
		}
	}
	s := &scripted{ends: []runtime.Result{near}}
	if r := with(t, s, nil, api.Code{Language: "bash", Source: "x", Limits: api.CodeLimits{Wall: api.Duration(second)}}); s.specs[0].Limits.Overrun != 0 || r.result.Runs != nil {
		t.Errorf("not asked for: %+v, %+v", s.specs[0].Limits, r.result)
	}
}

// The runtimes let a program exceed its limits by a quarter, which shows how late it is, and end it after that. A busy machine starts to
// measure late, and measured 2,096 ms for a program that takes 2,100.
func TestRerunOfLatePrograms(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		code := api.Code{Language: "bash", Source: "sleep 2.1; echo late", RerunNearLimit: 1, Limits: api.CodeLimits{Wall: api.Duration(2 * time.Second)}}
		r := with(t, rt, nil, code)
		if r.result.Verdict != string(runtime.Timeout) || !strings.Contains(r.result.Reason, "limit of 2s") || r.result.WallMS <= 2000 {
			t.Errorf("%s: %+v", rt.Name(), r.result)
		}
		if r.result.WallMS < 2500 && (len(r.result.Runs) != 2 || r.result.Stdout != "late\n") {
			t.Errorf("%s: %d runs, %q", rt.Name(), len(r.result.Runs), r.result.Stdout)
		}
		code.Source, code.Limits.Wall = "while :; do :; done", api.Duration(400*time.Millisecond)
		if r := with(t, rt, nil, code); r.result.Verdict != string(runtime.Timeout) || r.result.WallMS < 500 || r.result.Runs != nil {
			t.Errorf("%s: %+v", rt.Name(), r.result)
		}
	}
}
