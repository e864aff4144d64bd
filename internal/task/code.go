package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// CodeOptions configures the handler of kind "code".
type CodeOptions struct {
	// Runtimes are what a submission may ask for by name; the first is the default. An operator who lists one without
	// isolation trusts everybody who may submit.
	Runtimes []runtime.Runtime
	Blobs    blob.Store // for files too big for a row; nil: they are refused
	// Dir is a host directory for what must be prepared and for files on their way; it is created.
	Dir string
}

// Code evaluates code: it finds the language's tools, compiles where there is something to compile, and runs, all in a
// runtime. Its output is an api.CodeResult in every case.
type Code struct {
	CodeOptions
	finder finder
}

// NewCode checks the options.
func NewCode(o CodeOptions) (*Code, error) {
	if len(o.Runtimes) == 0 {
		return nil, errors.New("new code handler: at least one runtime is required")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil || o.Dir == "" {
		return nil, fmt.Errorf("new code handler: %q is no directory to work in", o.Dir)
	}
	o.Dir = dir
	if err := os.MkdirAll(filepath.Join(dir, "runs"), 0o700); err != nil {
		return nil, fmt.Errorf("new code handler: %w", err)
	}
	return &Code{CodeOptions: o, finder: finder{dir: filepath.Join(dir, "toolchains")}}, nil
}

// Diagnose says which languages this host has, and how to get the others. It looks anew and prepares nothing.
func (c *Code) Diagnose() []runtime.Finding {
	var out []runtime.Finding
	var looking finder
	for _, name := range api.Languages() {
		f := runtime.Finding{What: "language " + name}
		if tc, err := looking.find(context.Background(), name); err != nil {
			f.Say, f.Fix = err.Error(), languages[name].install
		} else {
			f.OK, f.Say = true, strings.TrimSpace(tc.tool+" "+tc.version)
		}
		out = append(out, f)
	}
	return out
}

// outputFile is what $PAWL_OUTPUT names, beneath the working directory.
const outputFile = ".pawl-output.json"

// evaluation is one run of the handler.
type evaluation struct {
	*Code
	task    *Task
	code    api.Code
	lang    *language
	tools   toolchain
	runtime runtime.Runtime
	dir     string // host directory of its own
	files   []runtime.File
}

// Run implements Handler.
func (c *Code) Run(ctx context.Context, t *Task) (json.RawMessage, error) {
	e := evaluation{Code: c, task: t}
	if err := e.prepare(ctx); err != nil {
		return nil, e.refuse(err)
	}
	defer os.RemoveAll(e.dir)
	result, err := e.evaluate(ctx)
	if err != nil {
		return nil, e.refuse(err)
	}
	output, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("write result: %w", err)
	}
	if result.Verdict == string(runtime.OK) {
		return output, nil
	}
	return nil, failure(result, output)
}

// refuse turns the reasons why nothing could be run into the end of the attempt.
func (e *evaluation) refuse(err error) error {
	if te, ok := errors.AsType[*Error](err); ok {
		return te
	}
	if s, ok := errors.AsType[*Stop](err); ok {
		return s
	}
	code := string(runtime.InfraError)
	if errors.Is(err, runtime.ErrSpec) {
		code = flow.CodeInvalidInput
	}
	return &Error{Code: code, Message: err.Error(), Output: e.infra(code, err)}
}

// infra is the result of a run that never began.
func (e *evaluation) infra(code string, err error) json.RawMessage {
	if code != string(runtime.InfraError) {
		return nil
	}
	r := api.CodeResult{Verdict: code, Reason: err.Error()}
	if e.runtime != nil {
		r.Runtime = e.runtime.Name()
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil // the error itself is reported all the same
	}
	return b
}

func (e *evaluation) prepare(ctx context.Context) (err error) {
	if e.code, err = api.DecodeCode(e.task.Payload); err != nil {
		return Errorf(flow.CodeInvalidInput, "%s", err)
	}
	e.lang = languages[e.code.Language]
	for _, taken := range []string{e.lang.file, program, outputFile} {
		if _, ok := e.code.Files[taken]; ok {
			return Errorf(flow.CodeInvalidInput, "files[%q]: the name is taken by Pawl (use another one)", taken)
		}
	}
	if e.runtime, err = e.pick(e.code.Runtime); err != nil {
		return err
	}
	if e.tools, err = e.finder.find(ctx, e.code.Language); err != nil {
		return err
	}
	if e.dir, err = os.MkdirTemp(filepath.Join(e.Dir, "runs"), "run-"); err != nil {
		return fmt.Errorf("make a directory for files: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(e.code.Files)) {
		f, err := e.input(ctx, path, e.code.Files[path])
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

// input is a file of the submission, fetched when it lies in the blob store.
func (e *evaluation) input(ctx context.Context, path string, c api.Content) (runtime.File, error) {
	f := runtime.File{Path: path, Mode: os.FileMode(c.Mode), Content: c.Bytes}
	if f.Mode == 0 {
		f.Mode = 0o644
	}
	if c.Blob == "" {
		if f.Content == nil {
			f.Content = []byte{}
		}
		return f, nil
	}
	f.Content = nil
	f.Source = filepath.Join(e.dir, fmt.Sprintf("in-%d", len(e.files)))
	return f, e.fetch(ctx, c.Blob, f.Source)
}

func (e *evaluation) fetch(ctx context.Context, name, to string) error {
	if e.Blobs == nil {
		return Errorf(flow.CodeInvalidInput, "blob %q: this worker has no blob store (give the bytes themselves)", name)
	}
	r, err := e.Blobs.Get(ctx, name, 0)
	if errors.Is(err, blob.ErrNotFound) {
		return Errorf(flow.CodeInvalidInput, "blob %q: there is none of that name", name)
	} else if err != nil {
		return fmt.Errorf("fetch blob %q: %w", name, err)
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("fetch blob %q: %w", name, err)
	}
	if _, err = io.Copy(w, r); err != nil {
		err = fmt.Errorf("fetch blob %q: %w", name, err)
	}
	return errors.Join(err, w.Close())
}

// evaluate compiles and runs.
func (e *evaluation) evaluate(ctx context.Context) (*api.CodeResult, error) {
	source := runtime.File{Path: e.lang.file, Mode: 0o644, Content: []byte(e.code.Source)}
	files := append(slices.Clip(e.files), source)
	var compiled *api.CodeResult
	if e.lang.compile != nil {
		result, binary, err := e.compile(ctx, files)
		if err != nil {
			return nil, err
		}
		if result.Verdict != string(runtime.OK) {
			return &api.CodeResult{Verdict: result.Verdict, ExitCode: result.ExitCode, Signal: result.Signal,
				Reason: "compile: " + summary(result), Enforcement: result.Enforcement, Runtime: result.Runtime, Compile: result}, nil
		}
		compiled = result
		files = append(slices.Clip(e.files), runtime.File{Path: program, Mode: 0o755, Source: binary})
	}
	spec := runtime.Spec{
		Argv: append(e.argv(e.lang.run), e.code.Args...), Env: e.env(e.code.Env), Mounts: e.tools.mounts, Files: files,
		Limits: e.limits(), Collect: append(slices.Clip(e.code.Collect), outputFile),
	}
	if e.lang.compile != nil {
		spec.Mounts = nil // what it was built with is not what it needs
	}
	stdin, err := e.stdin(ctx)
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	spec.Stdin = stdin
	result, files2, err := e.start(ctx, spec, "out")
	if err != nil {
		return nil, err
	}
	result.Compile = compiled
	e.collect(ctx, result, files2)
	return result, nil
}

// compile runs the compile step and returns where what it built lies on the host.
func (e *evaluation) compile(ctx context.Context, files []runtime.File) (*api.CodeResult, string, error) {
	result, built, err := e.start(ctx, runtime.Spec{
		Argv: e.argv(e.lang.compile), Env: e.env(nil), Mounts: e.tools.mounts, Files: files,
		Limits: compileLimits, Collect: []string{program},
	}, "built")
	if err != nil || result.Verdict != string(runtime.OK) {
		return result, "", err
	}
	if len(built) != 1 {
		return nil, "", fmt.Errorf("compile: %s ended well and built no %s: %s", e.tools.tool, program, strings.Join(result.Refused, "; "))
	}
	return result, built[0].Host, nil
}

// startWithin bounds the start of a program on a busy host.
const startWithin = 30 * time.Second

// start runs one program to its end.
func (e *evaluation) start(ctx context.Context, spec runtime.Spec, into string) (*api.CodeResult, []runtime.Collected, error) {
	if s, stopped := Stopped(ctx); stopped {
		return nil, nil, s
	}
	spec.Name = fmt.Sprintf("%s-%d", e.task.Execution, e.task.Attempt)
	spec.CollectInto = filepath.Join(e.dir, into)
	if err := os.Mkdir(spec.CollectInto, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make a directory for files: %w", err)
	}
	stdout, stderr := &head{then: e.task.Log("stdout")}, &head{then: e.task.Log("stderr")}
	spec.Stdout, spec.Stderr = stdout, stderr
	span := telemetry.StartIn(ctx, telemetry.SpanRuntime, slog.String(telemetry.Runtime, e.runtime.Name()))
	defer span.End()
	// A program may have written before Start returns: a stop that comes meanwhile ends the run and keeps that.
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startWithin)
	run, err := e.runtime.Start(starting, spec)
	cancel()
	if err != nil {
		span.Fail(err.Error())
		return nil, nil, fmt.Errorf("start: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		s, _ := Stopped(ctx)
		run.Kill(s.Reason)
	})
	res := run.Wait()
	stop()
	span.Set(slog.String(telemetry.Verdict, string(res.Verdict)))
	if res.Verdict != runtime.OK {
		span.Fail(string(res.Verdict))
	}
	return e.result(ctx, res, stdout, stderr), res.Files, nil
}

// result writes what the runtime found in the words of the API.
func (e *evaluation) result(ctx context.Context, res runtime.Result, stdout, stderr *head) *api.CodeResult {
	r := &api.CodeResult{
		Verdict: string(res.Verdict), Signal: res.Signal, Reason: res.Reason, Refused: res.Refused,
		WallMS: milliseconds(res.Wall), CPUMS: milliseconds(res.CPU), PeakMemoryBytes: res.PeakMemory, ChildOOM: res.ChildOOM,
		Enforcement: res.Enforcement, Runtime: e.runtime.Name(),
	}
	if s, stopped := Stopped(ctx); stopped && res.Verdict == runtime.Killed && s.As == flow.TimedOut {
		r.Verdict = string(runtime.Timeout) // the attempt's deadline is a wall-clock limit like any other
	}
	if res.Verdict == runtime.OK || res.Verdict == runtime.NonzeroExit {
		r.ExitCode = &res.ExitCode
	}
	r.SetOut(stdout.kept, res.StdoutBytes)
	r.SetErr(stderr.kept, res.StderrBytes)
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// argv fills in the table's placeholders.
func (e *evaluation) argv(list []string) []string {
	var out []string
	for _, arg := range list {
		switch arg {
		case "{tool}":
			out = append(out, e.tools.tool)
		case "{std}":
			out = append(out, e.tools.std)
		case "{file}":
			out = append(out, e.lang.file)
		case "{sources}":
			out = append(out, e.lang.file)
			for _, f := range e.files {
				if !strings.Contains(f.Path, "/") && strings.HasSuffix(f.Path, e.lang.ext) {
					out = append(out, "./"+f.Path)
				}
			}
		default:
			out = append(out, arg)
		}
	}
	return out
}

// env is the whole environment of a program. The submission's variables come before the language's.
func (e *evaluation) env(given map[string]string) []string {
	path := "/usr/local/bin:/usr/bin:/bin"
	if dir := filepath.Dir(e.tools.tool); len(e.tools.mounts) > 0 && e.lang.compile == nil {
		path = dir + ":" + path
	}
	all := map[string]string{"PATH": path, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
	for _, kv := range e.lang.env {
		k, v, _ := strings.Cut(kv, "=")
		all[k] = v
	}
	maps.Copy(all, given)
	all["PAWL_OUTPUT"] = outputFile
	all["PAWL_EXECUTION"] = e.task.Execution.String()
	all["PAWL_ATTEMPT"] = strconv.Itoa(e.task.Attempt)
	all["PAWL_IDEMPOTENCY_KEY"] = e.task.IdempotencyKey()
	out := make([]string, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, k+"="+all[k])
	}
	return out
}

// limits are the submission's, completed by the language's. A timeout of the attempt that leaves more time than the
// default is a limit that somebody chose.
func (e *evaluation) limits() runtime.Limits {
	g := e.code.Limits
	l := runtime.Limits{Wall: time.Duration(g.Wall), CPU: time.Duration(g.CPU), Memory: int64(g.Memory), Pids: g.Pids,
		Output: int64(g.Output), Disk: int64(g.Disk)}
	if l.Wall == 0 {
		l.Wall = e.task.Timeout
	}
	l = l.Or(e.lang.limits)
	if l.CPU == 0 {
		l.CPU = l.Wall
	}
	return l
}

func (e *evaluation) stdin(ctx context.Context) (io.ReadCloser, error) {
	c := e.code.Stdin
	if c.Blob == "" {
		return io.NopCloser(bytes.NewReader(c.Bytes)), nil
	}
	path := filepath.Join(e.dir, "stdin")
	if err := e.fetch(ctx, c.Blob, path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open stdin: %w", err)
	}
	return f, nil
}

// head keeps the first bytes of a stream and passes all of it on.
type head struct {
	kept []byte
	then io.Writer
}

func (h *head) Write(p []byte) (int, error) {
	if room := blob.InlineLimit - len(h.kept); room > 0 {
		h.kept = append(h.kept, p[:min(room, len(p))]...)
	}
	return h.then.Write(p)
}
