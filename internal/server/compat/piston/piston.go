// Package piston serves version 2 of Piston's API: POST /api/v2/execute and GET /api/v2/runtimes. docs/leave-piston.md lists what is
// supported and what is not.
package piston

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/server/compat"
)

// Name is the wire's name in settings, paths and metrics.
const Name = "piston"

func New(o compat.Options) http.Handler {
	s := &wire{o.Shell(Name, map[string]string{
		"source": "files[0].content", "limits.wall": "run_timeout", "limits.cpu": "run_cpu_time", "limits.memory": "run_memory_limit",
		"compile_limits.wall": "compile_timeout", "compile_limits.cpu": "compile_cpu_time", "compile_limits.memory": "compile_memory_limit",
	}), nil}
	for _, l := range o.Languages {
		s.runtimes = append(s.runtimes, runtime{l.Name, anyVersion, append([]string{}, l.Aliases...)})
	}
	mux := http.NewServeMux()
	// Piston's public server had these paths below /api/v2/piston. Clients send them with or without a slash at the end.
	for _, at := range []string{"/api/v2/", "/api/v2/piston/"} {
		for _, end := range []string{"", "/{$}"} {
			mux.HandleFunc("POST "+at+"execute"+end, s.execute)
			mux.HandleFunc("GET "+at+"runtimes"+end, func(w http.ResponseWriter, _ *http.Request) { compat.Answer(w, http.StatusOK, s.runtimes) })
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		compat.Answer(w, http.StatusNotFound, message{"there is no " + r.Method + " " + r.URL.Path + " on this wire"})
	})
	return mux
}

type wire struct {
	compat.Shell
	runtimes []runtime
}

// runtime is one language. Only the worker knows its version, which is in the answer to a run.
type runtime struct {
	Language string   `json:"language"`
	Version  string   `json:"version"`
	Aliases  []string `json:"aliases"`
}

const anyVersion = "*"

type message struct {
	Message string `json:"message"`
}

type request struct {
	Language           string   `json:"language"`
	Version            string   `json:"version"`
	Files              []file   `json:"files"`
	Stdin              *string  `json:"stdin,omitempty"`
	Args               []string `json:"args,omitempty"`
	RunTimeout         *int64   `json:"run_timeout,omitempty"`
	CompileTimeout     *int64   `json:"compile_timeout,omitempty"`
	RunCPUTime         *int64   `json:"run_cpu_time,omitempty"`
	CompileCPUTime     *int64   `json:"compile_cpu_time,omitempty"`
	RunMemoryLimit     *int64   `json:"run_memory_limit,omitempty"`
	CompileMemoryLimit *int64   `json:"compile_memory_limit,omitempty"`
}

type file struct {
	Name     *string `json:"name,omitempty"`
	Content  string  `json:"content"`
	Encoding *string `json:"encoding,omitempty"`
}

type answer struct {
	Compile  *stage `json:"compile,omitempty"`
	Run      *stage `json:"run"`
	Language string `json:"language"`
	Version  string `json:"version"`
}

type stage struct {
	Stdout   string  `json:"stdout"`
	Stderr   string  `json:"stderr"`
	Output   string  `json:"output"`
	Code     *int    `json:"code"`
	Signal   *string `json:"signal"`
	Message  *string `json:"message"`
	Status   *string `json:"status"`
	CPUTime  int64   `json:"cpu_time"`  // milliseconds
	WallTime int64   `json:"wall_time"` // milliseconds
	Memory   int64   `json:"memory"`    // bytes
}

func (s *wire) execute(w http.ResponseWriter, r *http.Request) {
	var in request
	err := s.Read(r, &in)
	var e api.Evaluation
	if err == nil {
		e, err = in.evaluation()
		_ = s.Counted(err)
	}
	if err != nil {
		in.refuse(w, err)
		return
	}
	done, err := s.Run(r.Context(), e, time.Duration(e.Limits.Wall)+time.Duration(e.CompileLimits.Wall)+compat.Grace)
	var refused *compat.Refused
	switch {
	case errors.As(err, &refused):
		in.refuse(w, err)
	case err != nil:
		why, killed, status := err.Error(), "SIGKILL", "XX"
		compat.Answer(w, http.StatusOK, answer{Run: &stage{Signal: &killed, Message: &why, Status: &status}, Language: in.Language, Version: in.Version})
	case !matches(in.Version, version(done)):
		// Only the worker knows its version, and a program has no lasting effects, so the version is checked after the run.
		compat.Answer(w, http.StatusBadRequest, message{fmt.Sprintf("%s-%s runtime is unknown: the worker has %s; ask for version * to have any", in.Language, in.Version, version(done))})
	default:
		compat.Answer(w, http.StatusOK, in.answered(done, e.Language))
	}
}

func (in *request) refuse(w http.ResponseWriter, err error) {
	var refused *compat.Refused
	if !errors.As(err, &refused) {
		compat.Answer(w, http.StatusServiceUnavailable, message{err.Error()})
		return
	}
	status, all := http.StatusBadRequest, []string{}
	if refused.Status == http.StatusUnsupportedMediaType || refused.Status == http.StatusRequestEntityTooLarge {
		status = refused.Status
	}
	for _, e := range refused.Errors {
		if e.Path == "language" && in.Language != "" {
			all = append(all, fmt.Sprintf("%s-%s runtime is unknown: %s", in.Language, in.Version, e.Fix))
			continue
		}
		all = append(all, e.String())
	}
	compat.Answer(w, status, message{strings.Join(all, "; ")})
}

func (in *request) evaluation() (e api.Evaluation, err error) {
	wrong := compat.Refused{Status: http.StatusUnprocessableEntity}
	fault := func(path, value, message, fix string) {
		wrong.Errors = append(wrong.Errors, api.FieldError{Path: path, Value: value, Message: message, Fix: fix})
	}
	for _, l := range []struct {
		name      string
		given     *int64
		otherwise int64
		into      *api.Duration
	}{
		{"run_timeout", in.RunTimeout, 3000, &e.Limits.Wall}, {"compile_timeout", in.CompileTimeout, 10_000, &e.CompileLimits.Wall},
		{"run_cpu_time", in.RunCPUTime, 3000, &e.Limits.CPU}, {"compile_cpu_time", in.CompileCPUTime, 10_000, &e.CompileLimits.CPU},
	} {
		ms := l.otherwise
		if l.given != nil {
			ms = *l.given
		}
		if ms <= 0 || ms > time.Duration(api.MaxWall).Milliseconds() {
			fault(l.name, fmt.Sprint(ms), fmt.Sprintf("it is not a time limit: %d", ms), "give milliseconds, 1 to 86400000")
		}
		*l.into = api.Duration(ms * int64(time.Millisecond))
	}
	for _, l := range []struct {
		name  string
		given *int64
		into  *api.Size
	}{{"run_memory_limit", in.RunMemoryLimit, &e.Limits.Memory}, {"compile_memory_limit", in.CompileMemoryLimit, &e.CompileLimits.Memory}} {
		switch {
		case l.given == nil || *l.given == -1:
		case *l.given < int64(api.MinMemory) || *l.given > int64(api.MaxMemory):
			fault(l.name, fmt.Sprint(*l.given), fmt.Sprintf("it is not a size: %d", *l.given), "give bytes, at least 1048576, or -1 for the language's default")
		default:
			*l.into = api.Size(*l.given)
		}
	}
	if !wanted.MatchString(in.Version) {
		fault("version", in.Version, fmt.Sprintf("%s-%.40s runtime is unknown", in.Language, in.Version), `give "*", or numbers such as "3" or "3.11.x"`)
	}
	e.Language, e.Args = strings.ToLower(in.Language), in.Args
	if in.Stdin != nil {
		e.Stdin = api.Text(*in.Stdin)
	}
	main := -1
	for i, f := range in.Files {
		at := fmt.Sprintf("files[%d]", i)
		content, encoding, err := f.bytes()
		if err != nil {
			fault(at+".content", problem.Clip(f.Content, 60), "it is not "+encoding, "")
		}
		switch name := fmt.Sprintf("file%d.code", i); {
		case encoding == "":
			fault(at+".encoding", *f.Encoding, fmt.Sprintf("there is no such encoding: %q", *f.Encoding), "give utf8, base64 or hex")
		case main < 0 && encoding == "utf8":
			main, e.Source = i, compat.Visible(e.Language, f.Content)
		default:
			if f.Name != nil && *f.Name != "" {
				name = *f.Name
			}
			if _, twice := e.Files[name]; twice {
				fault(at+".name", name, fmt.Sprintf("there are two files of this name: %q", name), "give each a name of its own")
			}
			if e.Files == nil {
				e.Files = map[string]api.Content{}
			}
			e.Files[name] = api.Content{Bytes: content}
		}
	}
	if main < 0 {
		fault("files", "", "there is no program: the first file of encoding utf8 is the program", "give one")
	}
	if len(wrong.Errors) > 0 {
		return e, &wrong
	}
	return e, nil
}

// bytes returns the file's bytes and its encoding, "" if that is unknown.
func (f *file) bytes() (b []byte, encoding string, err error) {
	encoding = "utf8"
	if f.Encoding != nil {
		encoding = *f.Encoding
	}
	switch encoding {
	case "utf8":
		return []byte(f.Content), encoding, nil
	case "base64":
		b, err = base64.StdEncoding.DecodeString(f.Content)
	case "hex":
		b, err = hex.DecodeString(f.Content)
	default:
		encoding = ""
	}
	return b, encoding, err
}

// answered returns the result of a program in Piston's terms.
func (in *request) answered(d *compat.Done, language string) answer {
	out := answer{Language: language, Version: version(d)}
	if known, ok := api.LanguageName(language); ok {
		out.Language = known
	}
	if d.Compile != nil {
		out.Compile = staged(d.Compile, d.CompileStdout, d.CompileStderr)
		out.Run = out.Compile
	}
	if d.Verdict != api.CompileError {
		out.Run = staged(&d.CodeResult, d.Stdout, d.Stderr)
	}
	return out
}

func staged(r *api.CodeResult, stdout, stderr []byte) *stage {
	out := &stage{Code: r.ExitCode, CPUTime: int64(r.CPUMS), WallTime: int64(r.WallMS), Memory: r.PeakMemoryBytes}
	var notes []string
	for _, stream := range []struct {
		name  string
		bytes []byte
		into  *string
	}{{"stdout", stdout, &out.Stdout}, {"stderr", stderr, &out.Stderr}} {
		text, note := compat.Text(stream.name, stream.bytes)
		if *stream.into = text; note != "" {
			notes = append(notes, note)
		}
	}
	out.Output = out.Stdout + out.Stderr
	ended := func(status, signal string) {
		out.Status = &status
		if signal != "" {
			out.Code, out.Signal = nil, &signal
		}
		notes = append(notes, r.Reason)
	}
	switch r.Verdict {
	case "ok":
	case "timeout", "cpu_timeout":
		ended("TO", "SIGKILL")
	case "signal":
		ended("SG", r.Signal)
	case "oom":
		ended("SG", "SIGKILL")
	case "output_limit":
		if r.StderrBytes > r.StdoutBytes {
			ended("EL", "SIGKILL")
		} else {
			ended("OL", "SIGKILL")
		}
	default:
		ended("RE", "")
	}
	if notes = slices.DeleteFunc(notes, func(s string) bool { return s == "" }); len(notes) > 0 {
		all := strings.Join(notes, "; ")
		out.Message = &all
	}
	return out
}

var (
	// wanted is the form of a version in a request.
	wanted = regexp.MustCompile(`^(\*|x|[0-9]+(\.([0-9]+|x|\*))*)$`)
	// numbers finds the numbers in a tool's version, for example 20.20.2 in "v20.20.2".
	numbers = regexp.MustCompile(`[0-9]+(\.[0-9]+)*`)
)

// version returns the version numbers of the tool that ran or compiled the program.
func version(d *compat.Done) string {
	v := d.ToolVersion
	if d.Compile != nil && v == "" {
		v = d.Compile.ToolVersion
	}
	if v = numbers.FindString(v); v == "" {
		return anyVersion // the tool's version is unknown
	}
	return v
}

// matches reports whether a version has the requested numbers.
func matches(asked, has string) bool {
	parts := strings.Split(has, ".")
	for i, p := range strings.Split(asked, ".") {
		if p != "*" && p != "x" && (i >= len(parts) || parts[i] != p) {
			return false
		}
	}
	return true
}
