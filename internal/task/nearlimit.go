package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/runtime"
)

// overrun is the share of a time limit by which a run may exceed it before it is ended. Without it, a run that needed a
// tenth too long could not be told from an endless loop.
func (e *evaluation) overrun() float64 {
	if e.code.RerunNearLimit > 0 {
		return api.RerunMargin
	}
	return 0
}

// nearLimit reports whether a run has exceeded a limit, but not by more than overrun. A program that the kernel kills at its
// memory limit has never exceeded it further.
func nearLimit(r runtime.Result, l runtime.Limits) bool {
	switch r.Verdict {
	case runtime.OOM:
		return true
	case runtime.Timeout, runtime.CPUTimeout:
		return r.Wall < l.EndWall() && r.CPU < l.EndCPU()
	}
	return false
}

// overLimit reports whether a run has exceeded one of the limits that allow a repetition.
func overLimit(v runtime.Verdict) bool {
	return v == runtime.OOM || v == runtime.Timeout || v == runtime.CPUTimeout
}

// repeated is the result of a run that may have been repeated.
type repeated struct {
	runtime.Result               // of the run that counts
	counts         int           // the number of that run, from 0
	all            []api.CodeRun // all runs; nil if there was one
}

// untilKept runs a program. If the first run was near a limit, it repeats the run until one keeps its limits, at most as often as the
// code asks for. The first run that keeps its limits counts, or else the first of all: other load on the machine makes a program slower,
// never faster. A run that a stop ended counts, too. once runs the program; its argument is the number of the run, from 0.
func (e *evaluation) untilKept(limits runtime.Limits, once func(n int) (runtime.Result, error)) (repeated, error) {
	first, err := once(0)
	counting := repeated{Result: first}
	if err != nil || e.code.RerunNearLimit == 0 || !nearLimit(first, limits) {
		return counting, err
	}
	counting.all = []api.CodeRun{measured(first)}
	for n := 1; n <= e.code.RerunNearLimit && overLimit(counting.Verdict); n++ {
		// Writing to the log fails only when the attempt, and with it its context, has ended.
		_, _ = fmt.Fprintf(e.task.Log("log"), "run %d of %d at most: the first was over a limit by less than a quarter (%s)\n", n+1, e.code.RerunNearLimit+1, first.Reason)
		again, err := once(n)
		if err != nil {
			return counting, err
		}
		counting.all = append(counting.all, measured(again))
		if !overLimit(again.Verdict) {
			counting.Result, counting.counts = again, n
		}
	}
	counting.all[counting.counts].Counts = true
	return counting, nil
}

func measured(r runtime.Result) api.CodeRun {
	return api.CodeRun{Verdict: string(r.Verdict), WallMS: milliseconds(r.Wall), CPUMS: milliseconds(r.CPU), StarvedMS: milliseconds(r.Starved),
		PeakMemoryBytes: r.PeakMemory}
}

// startUntilKept is start for a run that may be repeated. The output of each run is kept in files, and that of the counting
// run is then written to the log.
func (e *evaluation) startUntilKept(ctx context.Context, spec runtime.Spec) (_ *api.CodeResult, _ []runtime.Collected, err error) {
	input, err := e.content(ctx, e.code.Stdin, "stdin")
	if err != nil {
		return nil, nil, err
	}
	var all []*kept
	defer func() {
		for _, k := range all {
			err = errors.Join(err, k.close())
		}
	}()
	r, err := e.untilKept(spec.Limits, func(n int) (runtime.Result, error) {
		stdin, err := open(input)
		if err != nil {
			return runtime.Result{}, err
		}
		defer stdin.Close()
		k, err := keepIn(filepath.Join(e.dir, fmt.Sprintf("run-%d", n)))
		if err != nil {
			return runtime.Result{}, err
		}
		all = append(all, k)
		again := spec
		again.Stdin, again.Stdout, again.Stderr, again.CollectInto = stdin, k.stdout, k.stderr, k.dir
		return e.launch(ctx, again)
	})
	if err != nil {
		return nil, nil, err
	}
	counts := all[r.counts]
	for stream, h := range map[string]*head{"stdout": counts.stdout, "stderr": counts.stderr} {
		f := h.then.(*os.File)
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, nil, fmt.Errorf("read the output of the program: %w", err)
		}
		_, _ = io.Copy(e.task.Log(stream), f) // writing to the log fails only when the attempt has ended
	}
	result := e.result(ctx, r.Result, spec.Limits, counts.stdout, counts.stderr)
	result.Runs = r.all
	return result, r.Files, nil
}

// kept is the output of one of several runs.
type kept struct {
	dir            string // for collected files
	stdout, stderr *head  // the whole streams are in files beside dir
}

func keepIn(dir string) (*kept, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for files: %w", err)
	}
	k := &kept{dir: dir}
	for name, into := range map[string]**head{".out": &k.stdout, ".err": &k.stderr} {
		f, err := os.Create(dir + name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make a file for the output of the program: %w", err), k.close())
		}
		*into = &head{most: blob.InlineLimit, then: f}
	}
	return k, nil
}

func (k *kept) close() (err error) {
	for _, h := range []*head{k.stdout, k.stderr} {
		if h != nil {
			err = errors.Join(err, h.then.(*os.File).Close())
		}
	}
	return err
}
