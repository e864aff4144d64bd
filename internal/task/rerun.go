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

// overrun is how far beyond its limits of time a run goes on before it is ended: without it, a run that needed a tenth too much could not
// be told from an endless loop.
func (e *evaluation) overrun() float64 {
	if e.code.RerunNearLimit > 0 {
		return api.RerunMargin
	}
	return 0
}

// nearLimit reports whether a run has exceeded a limit by no more than what it was let go beyond it. What the kernel ends for its memory
// is never further beyond.
func nearLimit(r runtime.Result, l runtime.Limits) bool {
	switch r.Verdict {
	case runtime.OOM:
		return true
	case runtime.Timeout, runtime.CPUTimeout:
		return r.Wall < l.EndWall() && r.CPU < l.EndCPU()
	}
	return false
}

// overLimit reports whether a run has exceeded a limit that a run near it is made again for.
func overLimit(v runtime.Verdict) bool {
	return v == runtime.OOM || v == runtime.Timeout || v == runtime.CPUTimeout
}

// repeated is a run with all that were made of it.
type repeated struct {
	runtime.Result               // of the one that counts
	counts         int           // its place
	all            []api.CodeRun // nil where there was one
}

// untilKept runs a program, and once more as long as it has exceeded a limit, up to the number of times that the code asks for, if
// the first run was near that limit. The first run that keeps its limits counts, and when none does, the first of all: other work on the
// machine makes a program slower and never faster. What a stop ends counts, too. once is given the place of the run, from 0.
func (e *evaluation) untilKept(limits runtime.Limits, once func(n int) (runtime.Result, error)) (repeated, error) {
	first, err := once(0)
	counting := repeated{Result: first}
	if err != nil || e.code.RerunNearLimit == 0 || !nearLimit(first, limits) {
		return counting, err
	}
	counting.all = []api.CodeRun{measured(first)}
	for n := 1; n <= e.code.RerunNearLimit && overLimit(counting.Verdict); n++ {
		// A log that cannot be written has ended with the attempt, which the attempt's context tells as well.
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

// startUntilKept is start for a run that may be made again. What each run writes is kept in files, and the log gets what
// the run that counts has written, once that is known.
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
			return nil, nil, fmt.Errorf("read what the program has written: %w", err)
		}
		_, _ = io.Copy(e.task.Log(stream), f) // a log that cannot be written has ended with the attempt
	}
	result := e.result(ctx, r.Result, spec.Limits, counts.stdout, counts.stderr)
	result.Runs = r.all
	return result, r.Files, nil
}

// kept is what one of several runs leaves.
type kept struct {
	dir            string // for collected files
	stdout, stderr *head  // which pass everything on to files beside dir
}

func keepIn(dir string) (*kept, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for files: %w", err)
	}
	k := &kept{dir: dir}
	for name, into := range map[string]**head{".out": &k.stdout, ".err": &k.stderr} {
		f, err := os.Create(dir + name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make a file for what the program writes: %w", err), k.close())
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
