// Package runcode serves the protocol of SandboxFusion: POST /run_code and GET /v1/ping. docs/leave-sandboxfusion.md lists what is
// supported and what is not.
package runcode

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/server/compat"
)

// Name is the wire's name in settings, paths and metrics.
const Name = "run_code"

func New(o compat.Options) http.Handler {
	s := &wire{o.Shell(Name, map[string]string{
		"source": "code", "limits.wall": "run_timeout", "limits.memory": "memory_limit_MB", "compile_limits.wall": "compile_timeout", "collect": "fetch_files",
	})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run_code", s.runCode)
	mux.HandleFunc("GET /v1/ping", func(w http.ResponseWriter, _ *http.Request) { compat.Answer(w, http.StatusOK, "pong") })
	mux.HandleFunc("/", compat.NoSuch)
	return mux
}

type wire struct{ compat.Shell }

type request struct {
	Code           string             `json:"code"`
	Language       string             `json:"language,omitempty"`
	CompileTimeout *float64           `json:"compile_timeout,omitempty"`
	RunTimeout     *float64           `json:"run_timeout,omitempty"`
	MemoryLimitMB  *int64             `json:"memory_limit_MB,omitempty"`
	Stdin          *string            `json:"stdin,omitempty"`
	Files          map[string]*string `json:"files,omitempty"`
	FetchFiles     []string           `json:"fetch_files,omitempty"`
	Args           []string           `json:"args,omitempty"`
}

type answer struct {
	Status        string            `json:"status"`
	Message       string            `json:"message"`
	CompileResult *stage            `json:"compile_result"`
	RunResult     *stage            `json:"run_result"`
	Executor      *string           `json:"executor_pod_name"` // id of the execution
	Files         map[string]string `json:"files"`
}

const (
	success      = "Success"
	failed       = "Failed"
	sandboxError = "SandboxError"
)

type stage struct {
	Status        string  `json:"status"` // Finished or TimeLimitExceeded
	ExecutionTime float64 `json:"execution_time"`
	ReturnCode    *int    `json:"return_code"`
	Stdout        string  `json:"stdout"`
	Stderr        string  `json:"stderr"`
}

// defaultTimeout is the default for compiling and for running, in seconds.
const defaultTimeout = 10.0

func (s *wire) runCode(w http.ResponseWriter, r *http.Request) {
	var in request
	if err := s.Read(r, &in); err != nil {
		compat.FastAPI(w, err)
		return
	}
	e, err := in.evaluation()
	if s.Counted(err) != nil {
		compat.FastAPI(w, err)
		return
	}
	within := time.Duration(e.Limits.Wall) + time.Duration(e.CompileLimits.Wall) + compat.Grace
	done, err := s.Run(r.Context(), e, within)
	if lost, ok := errors.AsType[*compat.Lost](err); ok {
		compat.Answer(w, http.StatusOK, answer{Status: sandboxError, Message: lost.Error(), Files: map[string]string{}})
		return
	}
	if err != nil {
		compat.FastAPI(w, err)
		return
	}
	out := answered(done)
	for _, f := range done.Files {
		if !slices.Contains(in.FetchFiles, f.Path) {
			continue // a file below a directory that was named
		}
		content, err := s.Contents(r.Context(), done.ID, f)
		if err != nil {
			compat.FastAPI(w, err)
			return
		}
		out.Files[f.Path] = base64.StdEncoding.EncodeToString(content)
	}
	compat.Answer(w, http.StatusOK, out)
}

// modes are languages of SandboxFusion that are not plain languages: test runners, and machines of another kind.
var modes = []string{"go_test", "pytest", "junit", "jest", "D_ut", "cuda", "python_gpu"}

func (in *request) evaluation() (e api.Evaluation, err error) {
	var wrong compat.Refused
	wrong.Status = http.StatusUnprocessableEntity
	fault := func(path, value, message, fix string) {
		wrong.Errors = append(wrong.Errors, api.FieldError{Path: path, Value: problem.Clip(value, 60), Message: message, Fix: fix})
	}
	seconds := func(name string, given *float64) api.Duration {
		d, _ := compat.Seconds(defaultTimeout)
		if given == nil {
			return d
		}
		d, ok := compat.Seconds(*given)
		if !ok {
			fault(name, fmt.Sprint(*given), "it is not a time limit", "give seconds, more than 0 and at most 86400")
		}
		return d
	}
	// The tutorial of verl sends no language and means Python.
	if e.Language = strings.ToLower(in.Language); e.Language == "" {
		e.Language = "python"
	}
	if slices.Contains(modes, in.Language) {
		fault("language", in.Language, "this wire runs programs, and no test runners or GPUs", "give the program's language, such as python, and let the program end with 1 when its tests fail")
	}
	e.Source = compat.Visible(e.Language, in.Code)
	e.Limits.Wall, e.CompileLimits.Wall = seconds("run_timeout", in.RunTimeout), seconds("compile_timeout", in.CompileTimeout)
	// SandboxFusion does not limit processor time; a program may have up to 64 threads.
	e.Limits.CPU = min(64*e.Limits.Wall, api.MaxWall)
	switch m := in.MemoryLimitMB; {
	case m == nil || *m == -1:
	case *m <= 0 || *m > int64(api.MaxMemory>>20):
		fault("memory_limit_MB", fmt.Sprint(*m), "it is not a size", "give MiB, at least 1, or -1 for the language's default")
	default:
		e.Limits.Memory = api.Size(*m << 20)
	}
	if in.Stdin != nil {
		e.Stdin = api.Text(*in.Stdin)
	}
	if len(in.Args) > 0 {
		fault("args", strings.Join(in.Args, " "), "they are for pytest, which this wire does not run", "leave them out")
	}
	for _, name := range slices.Sorted(maps.Keys(in.Files)) {
		content := in.Files[name]
		if content == nil {
			continue // SandboxFusion makes no file for it either
		}
		b, err := base64.StdEncoding.DecodeString(*content)
		if err != nil {
			fault(problem.Join("files", name), *content, "it is not base64", "encode the file's bytes with the standard alphabet and padding")
		}
		if e.Files == nil {
			e.Files = map[string]api.Content{}
		}
		e.Files[name] = api.Content{Bytes: b}
	}
	for _, name := range in.FetchFiles {
		// A name is literal, not a pattern.
		e.Collect = append(e.Collect, strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name))
	}
	if len(wrong.Errors) > 0 {
		return e, &wrong
	}
	return e, nil
}

// answered returns the result of a program in SandboxFusion's terms.
func answered(d *compat.Done) answer {
	out := answer{Status: failed, Executor: &d.ID, Files: map[string]string{}}
	var notes []string
	text := func(name string, b []byte) string {
		s, note := compat.Text(name, b)
		if note != "" {
			notes = append(notes, note)
		}
		return s
	}
	if c := d.Compile; c != nil {
		out.CompileResult = staged(c)
		out.CompileResult.Stdout, out.CompileResult.Stderr = text("compile_result.stdout", d.CompileStdout), text("compile_result.stderr", d.CompileStderr)
	}
	if d.Verdict != api.CompileError {
		out.RunResult = staged(&d.CodeResult)
		out.RunResult.Stdout, out.RunResult.Stderr = text("run_result.stdout", d.Stdout), text("run_result.stderr", d.Stderr)
		if out.RunResult.ReturnCode != nil && *out.RunResult.ReturnCode == 0 {
			out.Status = success
		}
	}
	if d.Verdict != "ok" && d.Reason != "" {
		notes = append(notes, d.Reason)
	}
	for _, why := range d.Refused {
		notes = append(notes, "fetch_files: "+why)
	}
	out.Message = strings.Join(notes, "; ")
	return out
}

// staged returns the result of one program. If a signal or a size limit ended it, the return code is the negative number of the signal, as
// in Python's subprocess.
func staged(r *api.CodeResult) *stage {
	out := &stage{Status: "Finished", ExecutionTime: r.WallMS / 1000, ReturnCode: r.ExitCode}
	switch r.Verdict {
	case "timeout", "cpu_timeout":
		out.Status, out.ReturnCode = "TimeLimitExceeded", nil
	case "signal", "oom", "output_limit":
		number := -compat.Signal("SIGKILL")
		if n := compat.Signal(r.Signal); n > 0 {
			number = -n
		}
		out.ReturnCode = &number
	}
	return out
}
