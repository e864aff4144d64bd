package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
)

type CodeOptions struct {
	// Runtimes are the runtimes that a submission may name; the first is the default. An operator who lists one without
	// isolation trusts every client that may submit.
	Runtimes []runtime.Runtime
	// Languages are the profiles of languages; nil: the built-in ones.
	Languages *Languages
	// Dir is a host directory for prepared libraries and for files that go into or come out of runs. It is created.
	Dir string
	// Most are the upper limits for one program. Servers refuse what their own settings do not allow; this refuses what
	// the worker's machine cannot give.
	Most payload.Ceilings
	// KillGrace is the time between SIGTERM and SIGKILL for a program whose attempt is cancelled or exceeds its timeout; 0: it is killed
	// at once, as it always is when it exceeds a limit of its own or when the worker gives up the attempt.
	KillGrace time.Duration
	// IdleLimit is how long an interactive program may neither get input nor write output before it is ended; 0: until its limits.
	IdleLimit time.Duration
}

// Code evaluates code: it finds the language's tools, compiles if the language has a compile step, and runs the program, all in
// a runtime. Its output is always an api.CodeResult.
type Code struct {
	CodeOptions
	finder finder
	shell  bool // see Shell
}

func NewCode(o CodeOptions) (*Code, error) {
	if len(o.Runtimes) == 0 {
		return nil, errors.New("new code handler: at least one runtime is required")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil || o.Dir == "" {
		return nil, fmt.Errorf("new code handler: %q is not a directory to work in", o.Dir)
	}
	o.Dir = dir
	if err := os.MkdirAll(filepath.Join(dir, "runs"), 0o700); err != nil {
		return nil, fmt.Errorf("new code handler: %w", err)
	}
	if o.Languages == nil {
		o.Languages = BuiltInLanguages()
	}
	return &Code{CodeOptions: o, finder: finder{dir: filepath.Join(dir, "toolchains")}}, nil
}

// Offers implements Advertiser: the names of the runtimes, and of the languages that profiles add.
func (c *Code) Offers() []string {
	all := c.runtimes()
	for _, name := range c.Languages.Added() {
		all = append(all, flow.OfferLanguage(name))
	}
	return all
}

type evaluation struct {
	*Code
	task    *Task
	code    api.Code
	lang    *Profile
	tools   toolchain
	file    string // the source's name in the working directory
	runtime runtime.Runtime
	series  runtime.Series // starts the runs; nil: the runtime starts them
	// dir is this evaluation's own host directory. It is made with the first file in it, since most evaluations have none: to make and
	// remove a directory takes ext4 up to 1 ms.
	dir   string
	files []runtime.File

	idle    *time.Timer // ends an interactive program that is idle; nil: no such limit
	checked bool        // syntaxError has run the language's check
	syntax  string      // the result of the check
}

func (c *Code) Run(ctx context.Context, t *Task) (json.RawMessage, error) {
	e := evaluation{Code: c, task: t}
	if err := e.prepare(ctx); err != nil {
		return nil, e.refuse(err)
	}
	defer os.RemoveAll(e.dir)
	evaluate := e.evaluate
	if len(e.code.Cases) > 0 && !e.shell {
		evaluate = e.evaluateCases
	}
	result, err := evaluate(ctx)
	if err != nil {
		return nil, e.refuse(err)
	}
	output, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("write result: %w", err)
	}
	if result.Verdict == string(runtime.OK) && result.ResultError == "" {
		return output, nil
	}
	end := failure(result, output)
	if _, stopped := Stopped(ctx); len(result.Cases) > 0 && !stopped {
		end.As = flow.Failed // a case that exceeded its time is the program's fault; the attempt itself had time left
	}
	return nil, end
}

// refuse makes the end of the attempt from the error because of which nothing could be run.
func (e *evaluation) refuse(err error) error {
	if te, ok := errors.AsType[*Error](err); ok {
		return te
	}
	if s, ok := errors.AsType[*Stop](err); ok {
		return s
	}
	if gone := e.finder.recheck(e.lang, e.tools); gone != nil {
		err = gone
	}
	code := string(runtime.InfraError)
	if errors.Is(err, runtime.ErrSpec) {
		code = flow.CodeInvalidInput
		// The names of the steps that found the fault precede its message.
		if _, fault, ok := strings.Cut(err.Error(), runtime.ErrSpec.Error()+": "); ok {
			err = errors.New(fault)
		}
	}
	end := &Error{Code: code, Message: err.Error(), Output: e.infra(code, err)}
	if taken, ok := errors.AsType[*runtime.TakenError](err); ok {
		end.Details = detailsOf(&api.CodeResult{Cause: string(taken.Cause)})
	}
	return end
}

// infra is the output of an attempt whose program was never started.
func (e *evaluation) infra(code string, err error) json.RawMessage {
	if code != string(runtime.InfraError) {
		return nil
	}
	r := api.CodeResult{Verdict: code, Reason: err.Error()}
	if taken, ok := errors.AsType[*runtime.TakenError](err); ok {
		r.Cause = string(taken.Cause)
	}
	if e.runtime != nil {
		r.Runtime = e.runtime.Name()
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil // the error itself is still reported
	}
	return b
}

func (e *evaluation) prepare(ctx context.Context) (err error) {
	if e.code, err = payload.Code(e.task.Payload); err != nil {
		return Errorf(flow.CodeInvalidInput, "%s", err)
	}
	if set := payload.SetOf(&e.code); set != "" {
		if err := e.fetchSet(ctx, set); err != nil {
			return err
		}
	}
	if err = e.Most.Code(&e.code); err != nil {
		return Errorf(flow.CodeInvalidInput, "%s", err)
	}
	return e.ready(ctx)
}

// fetchSet replaces the name of an uploaded list of cases with the cases.
func (e *evaluation) fetchSet(ctx context.Context, set string) error {
	dir, err := os.MkdirTemp(filepath.Join(e.Dir, "runs"), "set-")
	if err != nil {
		return fmt.Errorf("make a directory for a set: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "set")
	if err := e.fetch(ctx, set, path); err != nil {
		return err
	}
	list, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read a set: %w", err)
	}
	if e.code, err = payload.WithSet(e.code, list); err != nil {
		return Errorf(flow.CodeInvalidInput, "the set %s: %s", set, err)
	}
	return nil
}

// ready finds the tools that the code needs and fetches its files.
func (e *evaluation) ready(ctx context.Context) (err error) {
	var known bool
	if e.lang, known = e.Languages.Profile(e.code.Language); !known {
		return fmt.Errorf("language: this worker has no profile of %q (it has %s): add one to its configuration, or send such work to a queue whose workers have one",
			e.code.Language, strings.Join(e.Languages.Set().Names(), ", "))
	}
	e.file = e.lang.fileOf(e.code.Source)
	if list := payload.Placed("files", e.code.Files, e.lang.taken(e.file)...); list != nil {
		return Errorf(flow.CodeInvalidInput, "%s", list)
	}
	if (e.code.Std != "" || len(e.code.Flags) > 0) && !slices.Contains(e.lang.Compile, "{flags}") {
		return Errorf(flow.CodeInvalidInput, "std and flags: the profile of %s takes none (its compile has no {flags})", e.lang.Name)
	}
	if e.runtime, err = e.pick(e.code.Runtime); err != nil {
		return err
	}
	if _, imaged := e.runtime.(runtime.Imaged); imaged {
		e.tools, err = e.lang.inImage()
	} else {
		e.tools, err = e.finder.find(ctx, e.lang)
	}
	if err != nil {
		return err
	}
	e.dir = filepath.Join(e.Dir, "runs", "run-"+rand.Text())
	for _, name := range slices.Sorted(maps.Keys(e.lang.Files)) {
		e.files = append(e.files, runtime.File{Path: name, Mode: 0o644, Content: []byte(e.lang.Files[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(e.code.Files)) {
		f, err := e.input(ctx, name, e.code.Files[name])
		if err != nil {
			os.RemoveAll(e.dir)
			return err
		}
		e.files = append(e.files, f)
	}
	return nil
}

func (c *Code) pick(name string) (runtime.Runtime, error) {
	if name == "" {
		return c.Runtimes[0], nil
	}
	var names []string
	for _, r := range c.Runtimes {
		if r.Name() == name {
			return r, nil
		}
		names = append(names, r.Name())
	}
	return nil, Errorf(flow.CodeInvalidInput, "runtime: this worker does not offer %q (it offers %s)", name, strings.Join(names, ", "))
}

// build returns the files that a run needs: the source, or the output of the compile step, with the result of that step. If the
// compile step failed, failed is the result of the evaluation.
func (e *evaluation) build(ctx context.Context) (files []runtime.File, compiled, failed *api.CodeResult, err error) {
	source := runtime.File{Path: e.file, Mode: 0o644, Content: []byte(e.code.Source)}
	files = append(slices.Clip(e.files), source)
	if !e.lang.compiled() {
		return files, nil, nil, nil
	}
	result, built, err := e.compile(ctx, files)
	if no, ok := errors.AsType[*noProgram](err); ok {
		result.Reason = no.Error()
		return nil, nil, notCompiled(ctx, result), nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if result.Verdict != string(runtime.OK) {
		return nil, nil, notCompiled(ctx, result), nil
	}
	return append(slices.Clip(e.files), built...), result, nil, nil
}

func (e *evaluation) evaluate(ctx context.Context) (*api.CodeResult, error) {
	files, compiled, failed, err := e.build(ctx)
	if err != nil || failed != nil {
		return failed, err
	}
	limits := e.limits()
	argv := e.argv(e.lang.Run, limits)
	spec := runtime.Spec{
		Argv: append(slices.Clip(argv), e.code.Args...), Template: e.template(argv, limits), Env: e.env(e.code.Env, limits), Mounts: e.mounts(), Files: files,
		Limits: limits, Collect: append([]string{payload.OutputFile}, e.code.Collect...),
	}
	if e.shell {
		return e.openShell(ctx, spec)
	}
	result, left, err := e.startAs(ctx, spec)
	if err != nil {
		return nil, err
	}
	result.Compile = compiled
	if result.Verdict == string(runtime.NonzeroExit) {
		if say := e.syntaxError(ctx, files, result.Err()); say != "" {
			result.Verdict, result.Reason = api.SyntaxError, say
		}
	}
	result.Refused = append(result.Refused, unmatched(e.code.Collect, left, result.Refused)...)
	return result, e.collect(ctx, result, left)
}

// startAs starts the program with its input, and repeats the run if the submission asks for that.
func (e *evaluation) startAs(ctx context.Context, spec runtime.Spec) (*api.CodeResult, []runtime.Collected, error) {
	if e.code.RerunNearLimit > 0 {
		return e.startUntilKept(ctx, spec)
	}
	if e.code.Interactive && e.IdleLimit > 0 {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		e.idle = time.AfterFunc(e.IdleLimit, func() {
			cancel(&Stop{As: flow.TimedOut, Code: flow.CodeIdle, Reason: fmt.Sprintf("nobody typed and it wrote nothing for %s (idle_limit)", e.IdleLimit)})
		})
		defer e.idle.Stop()
	}
	stdin, err := e.stdin(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer stdin.Close()
	spec.Stdin = stdin
	if e.idle != nil {
		spec.Stdin = heard{stdin, e.active}
	}
	return e.start(ctx, spec, "out")
}

// active resets the idle limit of an interactive program, which has got input or written output.
func (e *evaluation) active() {
	if e.idle != nil {
		e.idle.Reset(e.IdleLimit)
	}
}

// heard is an input that calls a function when input arrives.
type heard struct {
	io.Reader
	came func()
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.came()
	}
	return n, err
}

// compile runs the compile step and returns the files that it built for the run.
func (e *evaluation) compile(ctx context.Context, files []runtime.File) (*api.CodeResult, []runtime.File, error) {
	limits := limitsOf(e.code.CompileLimits).Or(limitsOf(e.lang.CompileLimits))
	result, collected, err := e.start(ctx, runtime.Spec{
		Argv: e.argv(e.lang.Compile, limits), Env: e.env(nil, limits), Mounts: e.tools.mounts, Files: files,
		Limits: limits, Collect: e.lang.Built,
	}, "built")
	if err != nil || result.Verdict != string(runtime.OK) {
		return result, nil, err
	}
	if len(collected) == 0 && e.lang.built == nil {
		return nil, nil, fmt.Errorf("compile: %s ended well and built no %s: %s", e.tools.tool, strings.Join(e.lang.Built, ", "), strings.Join(result.Refused, "; "))
	}
	built := make([]runtime.File, len(collected))
	for i, c := range collected {
		built[i] = runtime.File{Path: c.Path, Mode: c.Mode.Perm() | 0o444, Source: c.Host}
	}
	if e.lang.built == nil {
		return result, built, nil
	}
	more, err := e.lang.built(e.file, built)
	return result, append(built, more...), err
}
