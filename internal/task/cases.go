package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
)

// How many bytes of the cases' outputs are kept: per case, and for all together.
const (
	caseStdout = 4 << 10
	caseStderr = 1 << 10
	casesKept  = 256 << 10

	// heardStderr is how many bytes of stderr are searched for the message.
	heardStderr = 64 << 10
)

// batch is the evaluation of one program on many cases.
type batch struct {
	*evaluation
	files []runtime.File // placed in every run
	judge *judge         // nil: outputs are compared without a program
	talks bool           // the judge is an interactor
	room  int            // bytes of outputs that may still be kept
}

// evaluateCases compiles once and runs the cases one after the other, each in its own sandbox (see runtime.Serial). They
// do not run in parallel because an execution has one slot.
func (e *evaluation) evaluateCases(ctx context.Context) (*api.CodeResult, error) {
	files, compiled, failed, err := e.build(ctx)
	if err != nil || failed != nil {
		return failed, err
	}
	b := &batch{evaluation: e, files: files, room: casesKept}
	if err := b.callable(); err != nil {
		return nil, err
	}
	if err := b.joinable(); err != nil {
		return nil, err
	}
	r := &api.CodeResult{Verdict: string(runtime.OK), Limits: inForce(b.caseLimits(&api.Case{})), Runtime: e.runtime.Name(), Tool: e.tools.name(), ToolVersion: e.tools.version, Compile: compiled}
	if at, judge := payload.Judge(&e.code); judge != nil {
		if failed, err := b.prepareJudge(ctx, at, judge); err != nil || failed != nil {
			return failed, err
		}
		defer os.RemoveAll(b.judge.dir)
	}
	defer b.share()()
	log := e.task.Log("log")
	r.Summary = &api.CaseSummary{Total: len(e.code.Cases)}
	for i := range e.code.Cases {
		c := &e.code.Cases[i]
		result := api.CaseResult{Name: c.Name, Verdict: api.Skipped}
		if _, stopped := Stopped(ctx); !stopped && (r.Summary.Failed == 0 || !e.code.StopOnFailure) {
			enforcement, err := b.run(ctx, i, c, &result)
			if _, between := errors.AsType[*Stop](err); between {
				result = api.CaseResult{Name: c.Name, Verdict: api.Skipped}
			} else if err != nil {
				return nil, fmt.Errorf("case %q: %w", c.Name, err)
			}
			r.Enforcement = enforcement
			// Writing to the log fails only when the attempt, and with it ctx, has ended.
			_, _ = fmt.Fprintf(log, "case %s: %s (%.0f ms)%s\n", c.Name, result.Verdict, result.WallMS, withColon(result.Message))
		}
		r.Cases = append(r.Cases, result)
		count(r, &result)
	}
	conclude(ctx, r)
	return r, nil
}

// share lets the runs of the program share what no program can change, and those of the checker or interactor as well, if the
// runtime supports that.
func (b *batch) share() (end func()) {
	var all []runtime.Series
	of := []*evaluation{b.evaluation}
	if b.judge != nil {
		of = append(of, b.judge.evaluation)
	}
	for _, e := range of {
		if serial, ok := e.runtime.(runtime.Serial); ok {
			e.series = serial.Series()
			all = append(all, e.series)
		}
	}
	return func() {
		for _, s := range all {
			s.Close()
		}
	}
}

func withColon(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

func count(r *api.CodeResult, c *api.CaseResult) {
	switch c.Verdict {
	case string(runtime.OK):
		if r.Summary.Passed++; c.Uncompared {
			r.Summary.Uncompared++
		}
	case api.Skipped:
		r.Summary.Skipped++
	default:
		if r.Summary.Failed++; r.Summary.Failed == 1 {
			r.Verdict = c.Verdict
		}
	}
	for _, limit := range c.LimitsHit {
		if !slices.Contains(r.LimitsHit, limit) {
			r.LimitsHit = append(r.LimitsHit, limit)
		}
	}
	r.WallMS += c.WallMS
	r.CPUMS += c.CPUMS
	r.StarvedMS += c.StarvedMS
	r.SharedCPUs = r.SharedCPUs || c.SharedCPUs
	r.PeakMemoryBytes = max(r.PeakMemoryBytes, c.PeakMemoryBytes)
	r.HeldMemoryBytes = max(r.HeldMemoryBytes, c.HeldMemoryBytes)
	r.PageCacheBytes = max(r.PageCacheBytes, c.PageCacheBytes)
}

// conclude fills in the result of the evaluation from the results of its cases.
func conclude(ctx context.Context, r *api.CodeResult) {
	s := r.Summary
	if stop, stopped := Stopped(ctx); stopped && s.Passed < s.Total {
		r.Verdict = string(runtime.Killed)
		if stop.As == flow.TimedOut {
			r.Verdict = string(runtime.Timeout)
		}
		r.Reason = fmt.Sprintf("%s; %d of %d cases passed before", stop.Reason, s.Passed, s.Total)
		return
	}
	if s.Failed == 0 {
		return
	}
	r.Reason = fmt.Sprintf("%d of %d cases passed", s.Passed, s.Total)
	if s.Skipped > 0 {
		r.Reason += fmt.Sprintf(", %d were not run", s.Skipped)
	}
	first := r.Cases[slices.IndexFunc(r.Cases, func(c api.CaseResult) bool { return c.Verdict != string(runtime.OK) })]
	r.Reason += fmt.Sprintf("; the first that did not is %s (%s)%s", first.Name, strings.ReplaceAll(first.Verdict, "_", " "), withColon(first.Message))
}

// caseLimits are the limits of a case; those of the code apply where it sets none.
func (b *batch) caseLimits(c *api.Case) runtime.Limits {
	l := limitsOf(c.Limits).Or(limitsOf(b.code.Limits)).Or(limitsOf(b.lang.Limits))
	l.CPU = cmp.Or(l.CPU, l.Wall)
	l.Output = min(l.Output, int64(api.MaxCaseOutput))
	return l
}

func (b *batch) run(ctx context.Context, i int, c *api.Case, r *api.CaseResult) (enforcement string, err error) {
	limits := b.caseLimits(c)
	limits.Overrun = b.overrun()
	var input runtime.File
	var mark string
	files := b.files
	if c.Call != nil {
		input, mark, err = callInput(c.Call)
		files = append(slices.Clip(files), runtime.File{Path: b.lang.caller.file, Mode: 0o644, Content: []byte(b.lang.caller.source)})
	} else {
		input, err = b.content(ctx, c.Stdin, fmt.Sprintf("case-%d.in", i))
	}
	if err != nil {
		return "", err
	}
	if input.Source != "" {
		defer os.Remove(input.Source)
	}
	most := int(limits.Output)
	switch {
	case c.Call != nil:
		r.Uncompared = c.Call.Expect == nil
	case c.Expect == nil && b.judge == nil:
		r.Uncompared, most = true, caseStdout
	}
	var expected runtime.File
	if b.talks {
		if expected, err = b.expected(ctx, i, c); err != nil {
			return "", err
		}
		if expected.Source != "" {
			defer os.Remove(expected.Source)
		}
		most = caseStdout
	}
	var outputs, errs []*head // of each run
	var talks []*dialogue
	all, err := b.untilKept(limits, func(int) (runtime.Result, error) {
		outputs, errs = append(outputs, &head{most: most}), append(errs, &head{most: heardStderr})
		argv := b.argvOf(c, limits)
		spec := runtime.Spec{
			Argv: slices.Concat(argv, b.code.Args, c.Args), Template: b.template(argv, limits), Env: b.env(b.code.Env, limits), Mounts: b.mounts(), Files: files,
			Limits: limits, Stdout: outputs[len(outputs)-1], Stderr: errs[len(errs)-1],
		}
		if b.talks {
			talk, res, err := b.converse(ctx, spec, input, expected)
			talks = append(talks, talk)
			return res, err
		}
		stdin, err := open(input)
		if err != nil {
			return runtime.Result{}, err
		}
		defer stdin.Close()
		spec.Stdin = stdin
		return b.launch(ctx, spec)
	})
	if err != nil {
		return "", err
	}
	res, stdout, stderr := all.Result, outputs[all.counts], errs[all.counts]
	r.Runs = all.all
	if res.Verdict == runtime.InfraError {
		return "", fmt.Errorf("run: %s", res.Reason)
	}
	b.record(ctx, r, res, stderr.end())
	var result []byte
	var early bool
	if c.Call != nil && res.Verdict == runtime.OK {
		all := int64(len(stdout.kept))
		stdout.kept, result, early = cutResult(stdout.kept, mark)
		res.StdoutBytes -= all - int64(len(stdout.kept))
	}
	r.StdoutBytes = res.StdoutBytes
	r.Stdout, r.StdoutBase64, r.StdoutTruncated = inline(b.keep(stdout.kept, caseStdout), res.StdoutBytes)
	r.StderrBytes = res.StderrBytes
	r.Stderr, r.StderrBase64, r.StderrTruncated = inline(b.keep(stderr.kept, caseStderr), res.StderrBytes)
	switch {
	case b.talks:
		talk := talks[all.counts]
		r.Transcript = talk.shown(b)
		talk.decide(r, res)
		return res.Enforcement, nil
	case res.Verdict != runtime.OK:
		return res.Enforcement, nil
	case c.Call != nil:
		return res.Enforcement, b.called(c, r, result, early)
	}
	return res.Enforcement, b.compare(ctx, i, c, r, input, stdout.kept)
}

// record notes how the program of a case ended.
func (b *batch) record(ctx context.Context, r *api.CaseResult, res runtime.Result, stderr []byte) {
	r.Verdict, r.Signal, r.Message, r.ChildOOM = string(res.Verdict), res.Signal, b.lang.ended(res, stderr), res.ChildOOM
	r.WallMS, r.CPUMS, r.StarvedMS, r.LimitsHit = milliseconds(res.Wall), milliseconds(res.CPU), milliseconds(res.Starved), res.LimitsHit
	r.PinnedCPUs, r.SharedCPUs = res.PinnedCPUs, res.SharedCPUs
	r.PeakMemoryBytes, r.HeldMemoryBytes, r.PageCacheBytes = res.PeakMemory, res.PeakMemory-res.PageCache, res.PageCache
	if res.Verdict == runtime.OK || res.Verdict == runtime.NonzeroExit {
		r.ExitCode = &res.ExitCode
	}
	if res.Verdict == runtime.NonzeroExit {
		if say := b.syntaxError(ctx, b.files, stderr); say != "" {
			r.Verdict, r.Message = api.SyntaxError, say
		}
	}
	if res.Verdict != runtime.OK {
		r.Message += alsoHit(res.LimitsHit)
	}
}

// keep is the part of an output that is kept in the result.
func (b *batch) keep(out []byte, most int) []byte {
	out = out[:min(len(out), most, b.room)]
	b.room -= len(out)
	return out
}

// expected is the expected output of a case; empty if it has none.
func (b *batch) expected(ctx context.Context, i int, c *api.Case) (runtime.File, error) {
	if c.Expect == nil {
		return runtime.File{Content: []byte{}}, nil
	}
	return b.content(ctx, *c.Expect, fmt.Sprintf("case-%d.out", i))
}

// compare judges a case whose program ended with exit code 0.
func (b *batch) compare(ctx context.Context, i int, c *api.Case, r *api.CaseResult, input runtime.File, out []byte) error {
	if r.Uncompared {
		return nil
	}
	expected, err := b.expected(ctx, i, c)
	if err != nil {
		return err
	}
	if expected.Source != "" {
		defer os.Remove(expected.Source)
	}
	if b.judge != nil {
		return b.check(ctx, c, r, input, out, expected)
	}
	want := expected.Content
	if expected.Source != "" {
		info, err := os.Stat(expected.Source)
		if err != nil {
			return fmt.Errorf("read the expected output: %w", err)
		}
		if info.Size() > int64(api.MaxCaseOutput) {
			return Errorf(flow.CodeInvalidInput, "blob %q: the expected output has %d bytes (at most %s)", c.Expect.Blob, info.Size(), api.MaxCaseOutput)
		}
		if want, err = os.ReadFile(expected.Source); err != nil {
			return fmt.Errorf("read the expected output: %w", err)
		}
	}
	if m := payload.Rule(b.code.Compare).Compare(out, want); m != nil {
		r.Verdict, r.Message = api.WrongAnswer, m.Say
		r.Mismatch = &api.CaseMismatch{Line: m.Line, Got: m.Got, Want: m.Want}
	}
	return nil
}
