package api

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/comparison"
)

// Case is one input of a batch evaluation: the program, compiled once, is run for each, in a sandbox of its own.
type Case struct {
	Name   string     `json:"name,omitempty" check:"case_name" doc:"Name of the case; by default its number, from 1"`
	Stdin  Content    `json:"stdin,omitzero" check:"stdin" doc:"What the program reads"`
	Args   []string   `json:"args,omitempty" check:"args" doc:"Appended to those of the program"`
	Expect *Content   `json:"expect,omitempty" check:"stdin" doc:"What it should write to stdout; without it the case passes when the program ends with 0"`
	Call   *Call      `json:"call,omitempty" doc:"Calls a function of the program, in place of stdin, args and expect, and compares the value that it returns"`
	Limits CodeLimits `json:"limits,omitzero" doc:"Replace those of the program"`
}

// Call calls a function that the program defines. The function's arguments and its result are JSON values. The result is compared outside
// of the sandbox, which Expect never enters: values of the same type with the same content are equal, numbers when they have the same value,
// however they are written, or with the comparison "numeric" when they are within its tolerances.
type Call struct {
	Function string `json:"function" check:"function" hint:"name,fn,fn_name,method,entry_point" doc:"Its name, such as add; Class.method makes an object of the class first, without arguments"`
	// Args and Kwargs are the arguments by position and by name.
	Args   []json.RawMessage          `json:"args,omitempty" doc:"The arguments by position, as JSON values"`
	Kwargs map[string]json.RawMessage `json:"kwargs,omitempty" doc:"The arguments by name, as JSON values"`
	// Expect is what the function should return. Without it the case passes when the function returns.
	Expect json.RawMessage `json:"expect,omitempty" doc:"The JSON value that it should return; without it the case passes when the function returns"`
}

// Comparison is how a case's output is compared with what is expected. It is read from an object or from a mode alone.
type Comparison struct {
	// Mode is "exact", "trimmed" (the default), "tokens", "numeric" or "checker"; see docs/evaluations.md.
	Mode string `json:"mode,omitempty" check:"compare_mode"`
	// Absolute and Relative are the tolerances of "numeric"; a number within either is right, and two integers have to be equal.
	// Without both: 1e-6 each. Where one is given the other is zero.
	Absolute *float64 `json:"absolute,omitempty" check:"tolerance"`
	Relative *float64 `json:"relative,omitempty" check:"tolerance"`
	Checker  *Checker `json:"checker,omitempty"` // with "checker"
}

// ModeChecker is the mode in which a program decides.
const ModeChecker = "checker"

// CompareModes lists the modes of comparing.
func CompareModes() []string {
	var names []string
	for _, m := range comparison.Modes() {
		names = append(names, string(m))
	}
	return append(names, ModeChecker)
}

// Checker is a program that decides whether an output is right. It is run in the sandbox with the arguments input.txt,
// output.txt and expected.txt, which lie in its working directory. Its exit code says right or wrong, and what it writes
// to stdout, or else to stderr, is the message. Where a signal, a limit or an exception that it does not catch ends it, and it accepts the
// expected output, the program's output is at fault and wrong. Any other end is its own fault: the verdict is "checker_error".
type Checker struct {
	Language string             `json:"language" check:"language" doc:"Of the checker"`
	Source   string             `json:"source" check:"source" doc:"The checker; it is run with input.txt output.txt expected.txt and ends with 0 for right and 1 for wrong"`
	Files    map[string]Content `json:"files,omitempty" check:"files" doc:"Files put into the checker's working directory, by relative path"`
	Limits   CodeLimits         `json:"limits,omitzero" doc:"Limits of one run of the checker"`
	// Style is how the checker is called. "" is as above. [CheckerKattis] passes input.txt, expected.txt and a directory for feedback, and
	// the output on stdin; the exit codes are 42 and 43, and what is in judgemessage.txt of that directory is the message.
	Style string `json:"style,omitempty" check:"checker_style" doc:"kattis: called as a validator of Kattis is: input, answer and feedback directory as arguments, the output on stdin, 42 for right and 43 for wrong"`
	// Accept and Reject are the exit codes that say right and wrong; [0] and [1], or those of the style, when they are not given.
	Accept []int `json:"accept,omitempty" check:"exit_codes" doc:"Exit codes that say right; [0] when not given"`
	Reject []int `json:"reject,omitempty" check:"exit_codes" doc:"Exit codes that say wrong; [1] when not given"`
}

// CheckerKattis is the style of the output validators of Kattis and the ICPC.
const CheckerKattis = "kattis"

// The bounds of batch evaluations.
const (
	MaxCases = 1000
	// MaxCaseOutput is how much a program may write in one case: all of it is compared.
	MaxCaseOutput = Size(64 << 20)
)

// The verdicts of a case beside those of a run.
const (
	WrongAnswer  = "wrong_answer"
	CheckerError = "checker_error" // the checker did not say
	Skipped      = "skipped"       // not run: stopped before
)

// CaseResult is the end of one case.
type CaseResult struct {
	Name string `json:"name" doc:"Of the case; its number where it was given none"`
	// Verdict is that of a run (see CodeResult), or "wrong_answer", "checker_error" or "skipped".
	Verdict  string        `json:"verdict" doc:"That of a run, or wrong_answer, checker_error or skipped"`
	ExitCode *int          `json:"exit_code,omitempty" doc:"As of a run"`
	Signal   string        `json:"signal,omitempty" doc:"As of a run"`
	Message  string        `json:"message,omitempty" doc:"Why it did not pass, or the checker's words"`
	Mismatch *CaseMismatch `json:"mismatch,omitempty" doc:"The first difference, with wrong_answer"`
	// Returned is what the function of a Call returned, where that has no more than 4 KB.
	Returned json.RawMessage `json:"returned,omitempty" doc:"What the function of a call returned, where that has at most 4 KB"`

	// Stdout and Stderr are the beginning of what was written: up to 4 KB and 1 KB, and less when the cases of an
	// evaluation have more than 256 KB to show together. The rest is not kept.
	Stdout          string `json:"stdout" doc:"The first 4 KB, less where all cases have more than 256 KB"`
	StdoutBase64    []byte `json:"stdout_base64,omitempty" doc:"The same bytes exactly, where stdout is not text"`
	StdoutBytes     int64  `json:"stdout_bytes" doc:"All that was written"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty" doc:"There was more, which is not kept"`
	Stderr          string `json:"stderr,omitempty" doc:"The first 1 KB"`
	StderrBase64    []byte `json:"stderr_base64,omitempty" doc:"The same bytes exactly, where stderr is not text"`
	StderrBytes     int64  `json:"stderr_bytes,omitempty" doc:"All that was written"`
	StderrTruncated bool   `json:"stderr_truncated,omitempty" doc:"There was more, which is not kept"`

	LimitsHit       []string  `json:"limits_hit,omitempty" doc:"As of a run"`
	WallMS          float64   `json:"wall_ms" doc:"As of a run"`
	CPUMS           float64   `json:"cpu_ms" doc:"As of a run"`
	StarvedMS       float64   `json:"starved_ms,omitempty" doc:"As of a run"`
	Runs            []CodeRun `json:"runs,omitempty" doc:"All runs in their order, where the case was run again (rerun_near_limit)"`
	PinnedCPUs      []int     `json:"pinned_cpus,omitempty" doc:"The processors that the run was restricted to, by their numbers on the host, where the worker pins runs"`
	SharedCPUs      bool      `json:"shared_cpus,omitempty" doc:"Another run of the worker was restricted to one of pinned_cpus at the same time"`
	PeakMemoryBytes int64     `json:"peak_memory_bytes" doc:"As of a run"`
	HeldMemoryBytes int64     `json:"held_memory_bytes" doc:"As of a run"`
	PageCacheBytes  int64     `json:"page_cache_bytes,omitempty" doc:"As of a run"`
	ChildOOM        bool      `json:"child_oom,omitempty" doc:"As of a run"`
	// Uncompared says that the case had neither an expected output nor a checker: an "ok" means only that the program
	// ended with 0.
	Uncompared bool `json:"uncompared,omitempty" doc:"There was nothing to compare its output with"`
}

// CaseVerdict is how a case ended, in brief.
type CaseVerdict struct {
	Name    string `json:"name" doc:"Of the case; its number where it was given none"`
	Verdict string `json:"verdict" doc:"As in the result: ok, wrong_answer, timeout and so on"`
}

// CaseMismatch is the first place where an output is not what was expected.
type CaseMismatch struct {
	Line int    `json:"line,omitempty" doc:"Of the output, from 1"`
	Path string `json:"path,omitempty" doc:"Of a value that a function returned, such as [2].name; absent for the value as a whole"`
	Got  string `json:"got" doc:"The line or word, quoted and shortened"`
	Want string `json:"want" doc:"What was expected there"`
}

// CaseSummary counts cases.
type CaseSummary struct {
	Total   int `json:"total" doc:"All of them"`
	Passed  int `json:"passed" doc:"With the verdict ok"`
	Failed  int `json:"failed" doc:"Neither passed nor skipped"`
	Skipped int `json:"skipped,omitempty" doc:"Not run, because a case before did not pass"`
	// Uncompared counts the passed cases whose output was compared with nothing.
	Uncompared int `json:"uncompared,omitempty" doc:"Passed, and compared with nothing"`
}
