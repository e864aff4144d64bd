package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/language"
)

// Code is a piece of code to evaluate: what POST /api/v1/evaluations takes and what a task of kind "code" has in `with`. The server reads
// it strictly: it refuses unknown fields and impossible values, and reports all errors at once. The tag "check" names the server's check of
// a field, "also" a second name that is accepted for it, and "hint" names that other systems use, which are refused with the right name.
type Code struct {
	Language string             `json:"language" check:"language" hint:"lang,language_id" doc:"Built-in language, an alias of one, or a language from a profile"`
	Source   string             `json:"source" check:"source" hint:"code,source_code,program,script" doc:"Source code of the program"`
	Std      string             `json:"std,omitempty" doc:"C and C++ only: standard, for example c11; default gnu17 or gnu++20"`
	Flags    []string           `json:"flags,omitempty" doc:"C and C++ only: more compiler flags, for example -O3 or -DLOCAL=1"`
	Files    map[string]Content `json:"files,omitempty" check:"files" doc:"Files for the working directory, by relative path"`
	Args     []string           `json:"args,omitempty" check:"args" doc:"Arguments of the program"`
	Env      map[string]string  `json:"env,omitempty" check:"env" doc:"Environment variables, in addition to those of the language"`
	Stdin    Content            `json:"stdin,omitzero" check:"stdin" hint:"input" doc:"Standard input; default: empty"`
	Limits   CodeLimits         `json:"limits,omitzero" hint:"memory_limit,time_limit" doc:"Limits of the run; defaults come from the language"`
	// CompileLimits apply to the compile step. A language that is not compiled has no such limits.
	CompileLimits CodeLimits `json:"compile_limits,omitzero" doc:"Compiled languages only: limits of the compiler; defaults come from the language"`
	Collect       []string   `json:"collect,omitempty" check:"patterns" doc:"Files to return: paths, directories or patterns"`
	Runtime       string     `json:"runtime,omitempty" doc:"Name of the runtime; default: the worker chooses"`
	Interactive   bool       `json:"interactive,omitempty" doc:"The program reads input sent to /api/v1/executions/{id}/stdin while it runs"`
	// RerunNearLimit is how often a run is repeated if it exceeded a limit by so little that the machine may be the cause; see [RerunMargin].
	RerunNearLimit int `json:"rerun_near_limit,omitempty" check:"reruns" doc:"Most repeats of a run that just missed a limit, 0 to 4"`

	// Cases are many inputs instead of one: the program is compiled once and run for each case. Compare selects how their outputs are
	// compared; the default is "trimmed". StopOnFailure skips the cases after the first one that does not pass.
	Cases         []Case      `json:"cases,omitempty" check:"cases" hint:"tests,test_cases" doc:"Test cases: the program is compiled once and run for each"`
	Compare       *Comparison `json:"compare,omitempty" doc:"How outputs of cases are compared; default trimmed"`
	StopOnFailure bool        `json:"stop_on_failure,omitempty" doc:"Skip the remaining cases after the first failure"`
}

// CodeLimits are the limits of one run. Durations are read as "10s" or as a number of seconds, sizes as "64MB" (10⁶), "64MiB" (2²⁰) or
// as a number of bytes. Zero means the default.
type CodeLimits struct {
	Wall   Duration `json:"wall,omitzero" check:"wall" also:"timeout" doc:"Time from start to exit"` // "timeout" is accepted as well
	CPU    Duration `json:"cpu,omitzero" check:"cpu" doc:"User and system time of all processes together"`
	Memory Size     `json:"memory,omitzero" check:"memory" doc:"Memory of all processes together"`
	Pids   int      `json:"pids,omitempty" check:"pids" doc:"Processes and threads at the same time"`
	CPUs   float64  `json:"cpus,omitempty" check:"cpus" doc:"Processors, for example 1 or 0.5; default: all that are free"`
	Output Size     `json:"output,omitzero" check:"output" doc:"Bytes of stdout and stderr together"`
	Disk   Size     `json:"disk,omitzero" check:"disk" doc:"Bytes of the working directory and /tmp together"`
	Stack  Size     `json:"stack,omitzero" check:"stack" doc:"Bytes of the stack of each process's first thread; default: the memory limit, up to 1GiB"`
}

// The ranges of limits.
const (
	MaxWall   = Duration(24 * time.Hour)
	MinMemory = Size(1 << 20)
	MaxMemory = Size(1 << 40)
	MaxPids   = 100_000
	MinCPUs   = 0.1
	MaxCPUs   = 1024
	MaxOutput = Size(1 << 30)
	MaxDisk   = Size(1 << 40)
	MinStack  = Size(256 << 10) // the kernel keeps a quarter of it for arguments and environment
	MaxStack  = Size(1 << 30)
)

// The bounds of Code.RerunNearLimit.
const (
	// RerunMargin is the fraction by which a run may exceed its limit on wall or processor time and still be repeated. The run is ended only
	// after this margin, so that the excess is known.
	RerunMargin = 0.25
	MaxReruns   = 4
)

// Languages lists the built-in languages by their proper names. Servers and workers may have more.
func Languages() []string { return language.BuiltIn().Names() }

// LanguageName returns the proper name of a built-in language for its name or an alias, in any case.
func LanguageName(s string) (string, bool) { return language.BuiltIn().Resolve(s) }

// Content is the bytes of a file or of stdin. It is written as a string, as {"base64": …} if the bytes are not text, or as {"blob": …}
// if they are in the blob store. For a file, the object form may have a "mode".
type Content struct {
	Bytes []byte
	Blob  string
	Mode  uint32 // permission bits; 0: the default
}

// Text is a Content of the string's bytes.
func Text(s string) Content { return Content{Bytes: []byte(s)} }

// IsZero reports whether the content has no bytes, no blob and no mode.
func (c Content) IsZero() bool { return len(c.Bytes) == 0 && c.Blob == "" && c.Mode == 0 }

// MarshalJSON writes the shortest form that keeps every byte.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Blob == "" && c.Mode == 0 && IsText(c.Bytes) {
		return json.Marshal(string(c.Bytes))
	}
	o := struct {
		Text   *string `json:"text,omitempty"`
		Base64 []byte  `json:"base64,omitempty"`
		Blob   string  `json:"blob,omitempty"`
		Mode   string  `json:"mode,omitempty"`
	}{Blob: c.Blob}
	if c.Mode != 0 {
		o.Mode = fmt.Sprintf("%04o", c.Mode)
	}
	switch {
	case c.Blob != "":
	case IsText(c.Bytes):
		s := string(c.Bytes)
		o.Text = &s
	default:
		o.Base64 = c.Bytes
	}
	return json.Marshal(o)
}

// IsText reports whether b can be kept as a JSON string without loss: valid UTF-8 without NUL.
func IsText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// The verdicts on a source that is not a valid program of its language.
const (
	// CompileError means that the compile step failed or met one of its limits: Compile has the details, and nothing was run.
	CompileError = "compile_error"
	// SyntaxError means that an interpreter refused the source: the run failed, and the interpreter's check of the source, made after it,
	// failed too. An interpreter that reads line by line, such as Bash, may have run the lines before.
	SyntaxError = "syntax_error"
)

// CodeResult is the result of an evaluation: the output of an execution of kind "code", whether it completed or not.
type CodeResult struct {
	// Verdict is "ok", "nonzero_exit", "signal", "timeout", "cpu_timeout", "oom", "output_limit", "idle", "killed", "infra_error",
	// "compile_error" or "syntax_error". With cases it is the verdict of the first case that did not pass.
	Verdict  string `json:"verdict" doc:"How it ended: ok, nonzero_exit, signal, timeout, cpu_timeout, oom, output_limit, idle, killed, infra_error, compile_error or syntax_error; of cases that of the first that did not pass"`
	ExitCode *int   `json:"exit_code,omitempty" doc:"Exit code, with verdict ok, nonzero_exit or syntax_error"`
	Signal   string `json:"signal,omitempty" doc:"Signal that ended the program, for example SIGSEGV; with verdict signal"`
	Reason   string `json:"reason,omitempty" doc:"One sentence: which limit was exceeded, or why the program was killed"`
	// Cause is set with "infra_error" if the cause is known: "node_lost", "node_shutdown", "preempted", "evicted" or "deleted". The details of
	// the error have it as the reason, too.
	Cause string `json:"cause,omitempty" doc:"With infra_error, if known: node_lost, node_shutdown, preempted, evicted or deleted"`

	// Stdout and Stderr are the first 100 KB of the output. If it is not text (see IsText), the string is empty and the bytes are in the
	// base64 field. If there was more output, Truncated is set and the log has all of it.
	Stdout          string `json:"stdout" doc:"First 100 KB of stdout; bytes that are not UTF-8 are shown as U+FFFD"`
	StdoutBase64    []byte `json:"stdout_base64,omitempty" doc:"The same bytes in base64, if they are not UTF-8"`
	StdoutBytes     int64  `json:"stdout_bytes" doc:"Bytes written to stdout in all"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty" doc:"stdout was longer; the log has all of it"`
	Stderr          string `json:"stderr" doc:"First 100 KB of stderr; bytes that are not UTF-8 are shown as U+FFFD"`
	StderrBase64    []byte `json:"stderr_base64,omitempty" doc:"The same bytes in base64, if they are not UTF-8"`
	StderrBytes     int64  `json:"stderr_bytes" doc:"Bytes written to stderr in all"`
	StderrTruncated bool   `json:"stderr_truncated,omitempty" doc:"stderr was longer; the log has all of it"`

	// Result is the JSON value that the program wrote to the file named by $PAWL_OUTPUT. ResultError says why that value was not accepted.
	Result json.RawMessage `json:"result,omitempty" doc:"JSON value that the program wrote to the file named by $PAWL_OUTPUT"`

	ResultError string `json:"result_error,omitempty" doc:"Why the content of that file was not accepted, for example invalid JSON"`

	Files   []ResultFile `json:"files,omitempty" doc:"Files that collect matched"`
	Refused []string     `json:"refused,omitempty" doc:"Files that were not returned, and patterns that matched nothing, with the reason"`

	// Cases are the results of the cases, in order, and Summary counts them. The times are then sums, the memory is the highest of any case,
	// and Stdout and Stderr are empty.
	Cases   []CaseResult `json:"cases,omitempty" doc:"Results of the cases, in order; times above are sums, memory is the highest"`
	Summary *CaseSummary `json:"summary,omitempty" doc:"Counts of the cases"`

	// LimitsHit names the limits that were reached, by their fields in CodeLimits. A run that reached "memory" or "pids" was not always
	// killed: a program can handle a failed fork and exit with 0.
	LimitsHit []string `json:"limits_hit,omitempty" doc:"Limits that were reached: wall, cpu, memory, pids, output, disk"`
	// Limits are the limits in force: those submitted, completed by the defaults. With cases they are those of a case without limits of its
	// own.
	Limits *CodeLimits `json:"limits,omitempty" doc:"Limits in force: those submitted, completed by the defaults"`

	WallMS float64 `json:"wall_ms" doc:"Time from start to exit, in milliseconds"`
	CPUMS  float64 `json:"cpu_ms" doc:"User and system time of all processes, in milliseconds"`
	// StarvedMS is the part of WallMS in which the run had work to do but none of its threads had a processor, since other work used them.
	StarvedMS float64 `json:"starved_ms,omitempty" doc:"Part of wall_ms in which the program was ready but had no processor"`
	// Runs are the measurements of all runs, in order, if the program was run more than once (see Code.RerunNearLimit). The figures above and
	// the outputs are those of the run that counts.
	Runs []CodeRun `json:"runs,omitempty" doc:"All runs, if rerun_near_limit repeated the program"`
	// PinnedCPUs are the processors of the worker's host that the run was restricted to, if the worker pins runs (its setting pin_cpus).
	// SharedCPUs means that another run of that worker had one of them at the same time.
	PinnedCPUs []int `json:"pinned_cpus,omitempty" doc:"Processor numbers of the host that the run was pinned to"`
	SharedCPUs bool  `json:"shared_cpus,omitempty" doc:"Another run was pinned to one of these processors at the same time"`
	// PeakMemoryBytes is the highest memory use of the run, to which the limit applies. HeldMemoryBytes is the highest use without
	// PageCacheBytes, the kernel's cache of files that this run was the first to read. A later run that reads the same files is not charged
	// for them.
	PeakMemoryBytes int64 `json:"peak_memory_bytes" doc:"Highest memory use; the memory limit applies to it"`
	HeldMemoryBytes int64 `json:"held_memory_bytes" doc:"Highest memory use without page_cache_bytes"`
	PageCacheBytes  int64 `json:"page_cache_bytes,omitempty" doc:"Memory of the kernel's page cache for files that this run read first"`

	ChildOOM bool `json:"child_oom,omitempty" doc:"A child process was killed for exceeding the memory limit; the program itself was not"`

	Enforcement string `json:"enforcement,omitempty" doc:"How limits were enforced: cgroup-v1, cgroup-v2, hybrid, rlimit+watchdog or none"`
	Runtime     string `json:"runtime,omitempty" doc:"Runtime that isolated the program, for example sandbox"`
	// Tool is the interpreter or compiler, on the worker's host or in the image; ToolVersion is its version if known.
	Tool        string      `json:"tool,omitempty" doc:"Interpreter or compiler"`
	ToolVersion string      `json:"tool_version,omitempty" doc:"Version of the tool, if known"`
	Compile     *CodeResult `json:"compile,omitempty" doc:"Run of the compiler, for compiled languages"`
}

// CodeRun has the measurements of one of several runs.
type CodeRun struct {
	Verdict         string  `json:"verdict" doc:"Verdict of this run"`
	WallMS          float64 `json:"wall_ms" doc:"Time from start to exit, in milliseconds"`
	CPUMS           float64 `json:"cpu_ms" doc:"User and system time of all processes, in milliseconds"`
	StarvedMS       float64 `json:"starved_ms,omitempty" doc:"Part of wall_ms in which the program was ready but had no processor"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes" doc:"Highest memory use"`
	Counts          bool    `json:"counts,omitempty" doc:"This run's result is the one reported"`
}

// ResultFile is a file that the program wrote. Its bytes are in exactly one of Content, Base64 and Blob.
type ResultFile struct {
	Path    string  `json:"path" doc:"Path relative to the working directory"`
	Size    int64   `json:"size" doc:"Size in bytes"`
	Mode    string  `json:"mode" doc:"Permission bits in octal, for example 0644"`
	Content *string `json:"content,omitempty" doc:"Text of a small file"`
	Base64  []byte  `json:"base64,omitempty" doc:"Bytes of a small file that is not UTF-8, in base64"`
	Blob    string  `json:"blob,omitempty" doc:"Name of the blob with the bytes of a large file"`
}

// Out is the inline part of stdout, byte-exact.
func (r *CodeResult) Out() []byte { return exact(r.Stdout, r.StdoutBase64) }

// Err is the inline part of stderr, byte-exact.
func (r *CodeResult) Err() []byte { return exact(r.Stderr, r.StderrBase64) }

func exact(text string, raw []byte) []byte {
	if raw != nil {
		return raw
	}
	return []byte(text)
}
