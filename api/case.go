package api

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/comparison"
)

// Case is one input of a batch evaluation: the program is compiled once, and runs in a new sandbox for each case.
type Case struct {
	Name   string     `json:"name,omitempty" check:"case_name" doc:"Name of the case; default: its number, from 1"`
	Stdin  Content    `json:"stdin,omitzero" check:"stdin" doc:"Standard input of the program"`
	Args   []string   `json:"args,omitempty" check:"args" doc:"Arguments, added after those of the program"`
	Expect *Content   `json:"expect,omitempty" check:"stdin" doc:"Expected stdout; if absent, exit code 0 passes"`
	Call   *Call      `json:"call,omitempty" doc:"Call of a function of the program, instead of stdin, args and expect"`
	Limits CodeLimits `json:"limits,omitzero" doc:"Limits for this case, in place of those of the program"`
	// Set names an uploaded list that holds all cases; it is then the only element of Cases and has no other field. {"set": …} without the
	// list is read in the same way.
	Set string `json:"set,omitempty" check:"case_set" doc:"Name of an upload with the list of cases, for example sha256:9f86…; it is then the only element"`
}

// MaxSet is the largest size of an uploaded list of cases.
const MaxSet = Size(32 << 20)

// Call calls a function that the program defines. The function's arguments and its result are JSON values. Pawl compares the result outside
// of the sandbox, and Expect never enters it. Values are equal if they have the same type and content. Numbers are equal if they have the
// same value, in any notation, or with the comparison "numeric" if they are within its tolerances.
type Call struct {
	Function string `json:"function" check:"function" hint:"name,fn,fn_name,method,entry_point" doc:"Its name, such as add; Class.method makes an object of the class first, without arguments"`

	Args   []json.RawMessage          `json:"args,omitempty" doc:"Positional arguments, as JSON values"`
	Kwargs map[string]json.RawMessage `json:"kwargs,omitempty" doc:"Arguments by name, as JSON values"`
	// Expect is the expected result. Without it, the case passes if the function returns.
	Expect json.RawMessage `json:"expect,omitempty" doc:"JSON value that the function should return; if absent, any value passes"`
}

// Comparison selects how a case's output is compared with the expected output. It is read from an object, or from a string with only the
// mode.
type Comparison struct {
	// Mode is "exact", "trimmed" (the default), "tokens", "numeric", "checker" or "interactor"; see docs/evaluations.md.
	Mode string `json:"mode,omitempty" check:"compare_mode"`
	// Absolute and Relative are the tolerances of "numeric". A number within either of them is right; two integers must be equal. The default
	// is 1e-6 for each. If only one is given, the other is zero.
	Absolute *float64 `json:"absolute,omitempty" check:"tolerance"`
	Relative *float64 `json:"relative,omitempty" check:"tolerance"`
	Checker  *Checker `json:"checker,omitempty"` // with "checker"

	Interactor *Interactor `json:"interactor,omitempty"` // with "interactor"
}

// The modes in which another program decides.
const (
	ModeChecker    = "checker"
	ModeInteractor = "interactor"
)

// CompareModes lists the modes of comparing.
func CompareModes() []string {
	var names []string
	for _, m := range comparison.Modes() {
		names = append(names, string(m))
	}
	return append(names, ModeChecker, ModeInteractor)
}

// Checker is a program that decides whether an output is right. It runs in the sandbox with the arguments input.txt, output.txt and
// expected.txt, which are files in its working directory. Its exit code accepts or rejects; its stdout, or its stderr if stdout is empty,
// is the message. If a signal, a limit or an uncaught exception ends the checker although it accepts the expected output, the program's
// output is wrong. Any other end is an error of the checker: the verdict is "checker_error".
type Checker struct {
	Language string `json:"language" check:"language" doc:"Language of the checker"`

	Source string `json:"source" check:"source" doc:"Program run as: checker input.txt output.txt expected.txt; exit code 0 accepts"`

	Files  map[string]Content `json:"files,omitempty" check:"files" doc:"Files for the checker's working directory, by relative path"`
	Limits CodeLimits         `json:"limits,omitzero" doc:"Limits of one run of the checker"`
	// Style selects how the checker is called. "" calls it as described above. [CheckerKattis] passes input.txt, expected.txt and a directory
	// for feedback as arguments, and the output on stdin. It accepts with exit code 42 and rejects with 43; the message is in the file
	// judgemessage.txt of that directory.
	Style  string `json:"style,omitempty" check:"checker_style" doc:"kattis: call it as a Kattis output validator; 42 accepts, 43 rejects"`
	Accept []int  `json:"accept,omitempty" check:"exit_codes" doc:"Exit codes that accept; default [0]"`
	Reject []int  `json:"reject,omitempty" check:"exit_codes" doc:"Exit codes that reject; default [1]"`
}

// Interactor is a program that exchanges messages with the evaluated program, for example to answer its guesses of a number. Both run at
// the same time in separate sandboxes; each reads from its stdin what the other writes to its stdout. The arguments are input.txt and
// expected.txt, files with the stdin and expect of the case. The program does not see them. Exit code 0 accepts; stderr is the message.
type Interactor struct {
	Language string `json:"language" check:"language" doc:"Language of the interactor"`

	Source string `json:"source" check:"source" doc:"Program run as: interactor input.txt expected.txt; it reads what the program writes; exit code 0 accepts"`

	Files map[string]Content `json:"files,omitempty" check:"files" doc:"Files for the interactor's working directory, by relative path"`
	// Limits apply to each run. The wall time is counted on top of the program's, since the interactor waits for the program.
	Limits CodeLimits `json:"limits,omitzero" doc:"Limits of one run of the interactor; wall is counted on top of the program's"`
	// Style is "" or [CheckerKattis], which adds a directory for feedback as the third argument.
	Style  string `json:"style,omitempty" check:"checker_style" doc:"kattis: call it as an interactive Kattis validator; 42 accepts, 43 rejects"`
	Accept []int  `json:"accept,omitempty" check:"exit_codes" doc:"Exit codes that accept; default [0]"`
	Reject []int  `json:"reject,omitempty" check:"exit_codes" doc:"Exit codes that reject; default [1]"`
}

// CheckerKattis is the style of the output validators of Kattis and the ICPC.
const CheckerKattis = "kattis"

// The bounds of batch evaluations.
const (
	MaxCases = 1000
	// MaxCaseOutput is the most that a program may write in one case, since all of it is compared.
	MaxCaseOutput = Size(64 << 20)
)

// The verdicts that only a case can have.
const (
	WrongAnswer  = "wrong_answer"
	CheckerError = "checker_error" // the checker or the interactor gave no decision
	Skipped      = "skipped"       // not run, since an earlier case did not pass
)

// CaseResult is the result of one case.
type CaseResult struct {
	Name     string          `json:"name" doc:"Name of the case, or its number"`
	Verdict  string          `json:"verdict" doc:"Verdict of the run, or wrong_answer, checker_error or skipped"`
	ExitCode *int            `json:"exit_code,omitempty" doc:"Exit code; absent when a signal ended the program or Pawl stopped it"`
	Signal   string          `json:"signal,omitempty" doc:"Signal that ended the program, for example SIGSEGV"`
	Message  string          `json:"message,omitempty" doc:"Why the case did not pass, or the message of the checker"`
	Mismatch *CaseMismatch   `json:"mismatch,omitempty" doc:"First difference, with verdict wrong_answer"`
	Returned json.RawMessage `json:"returned,omitempty" doc:"Value that the called function returned, if it has at most 4 KB"`

	// Stdout and Stderr are the first 4 KB and 1 KB, or less if the cases of an evaluation have more than 256 KB to show together. The rest is
	// not kept.
	Stdout          string `json:"stdout" doc:"First 4 KB of stdout; less if all cases together have more than 256 KB"`
	StdoutBase64    []byte `json:"stdout_base64,omitempty" doc:"The same bytes in base64, if they are not UTF-8"`
	StdoutBytes     int64  `json:"stdout_bytes" doc:"Bytes written to stdout in all"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty" doc:"stdout was longer; the rest is not kept"`
	Stderr          string `json:"stderr,omitempty" doc:"First 1 KB of stderr"`
	StderrBase64    []byte `json:"stderr_base64,omitempty" doc:"The same bytes in base64, if they are not UTF-8"`
	StderrBytes     int64  `json:"stderr_bytes,omitempty" doc:"Bytes written to stderr in all"`
	StderrTruncated bool   `json:"stderr_truncated,omitempty" doc:"stderr was longer; the rest is not kept"`

	Transcript []CaseTurn `json:"transcript,omitempty" doc:"With an interactor: what both wrote, in order; the first and the last 2 KB"`

	LimitsHit       []string  `json:"limits_hit,omitempty" doc:"Limits that were reached: wall, cpu, memory, pids, output, disk"`
	WallMS          float64   `json:"wall_ms" doc:"Time from start to exit, in milliseconds"`
	CPUMS           float64   `json:"cpu_ms" doc:"User and system time of all processes, in milliseconds"`
	StarvedMS       float64   `json:"starved_ms,omitempty" doc:"Part of wall_ms in which the program was ready but had no processor"`
	Runs            []CodeRun `json:"runs,omitempty" doc:"All runs, if rerun_near_limit repeated the case"`
	PinnedCPUs      []int     `json:"pinned_cpus,omitempty" doc:"Processor numbers of the host that the run was pinned to"`
	SharedCPUs      bool      `json:"shared_cpus,omitempty" doc:"Another run was pinned to one of these processors at the same time"`
	PeakMemoryBytes int64     `json:"peak_memory_bytes" doc:"Highest memory use; the memory limit applies to it"`
	HeldMemoryBytes int64     `json:"held_memory_bytes" doc:"Highest memory use without page_cache_bytes"`
	PageCacheBytes  int64     `json:"page_cache_bytes,omitempty" doc:"Memory of the kernel's page cache for files that this run read first"`

	ChildOOM bool `json:"child_oom,omitempty" doc:"A child process was killed for exceeding the memory limit; the program itself was not"`

	// Uncompared is set if the case had neither an expected output nor a checker: then "ok" means only that the program exited with 0.
	Uncompared bool `json:"uncompared,omitempty" doc:"The case has no expected output and no checker, so nothing was compared"`
}

// CaseTurn is the text that one side of a dialogue wrote before the other one wrote again.
type CaseTurn struct {
	By      string `json:"by" doc:"Who wrote it: program or interactor"`
	Text    string `json:"text" doc:"What it wrote; bytes that are not UTF-8 are shown as U+FFFD"`
	Base64  []byte `json:"base64,omitempty" doc:"The same bytes in base64, if they are not UTF-8"`
	Omitted int64  `json:"omitted,omitempty" doc:"Bytes of the dialogue before this turn that were not kept"`
}

// The sides of a dialogue.
const (
	ByProgram    = "program"
	ByInteractor = "interactor"
)

// CaseVerdict is the name and the verdict of a case.
type CaseVerdict struct {
	Name    string `json:"name" doc:"Name of the case, or its number"`
	Verdict string `json:"verdict" doc:"Verdict of the case, for example ok, wrong_answer or timeout"`
}

// CaseMismatch is the first place where an output differs from the expected one.
type CaseMismatch struct {
	Line int    `json:"line,omitempty" doc:"Line of the output, from 1"`
	Path string `json:"path,omitempty" doc:"Place in a returned value, for example [2].name; absent for the whole value"`
	Got  string `json:"got" doc:"Line or word that was written, quoted and shortened"`
	Want string `json:"want" doc:"Line or word that was expected"`
}

// CaseSummary counts cases.
type CaseSummary struct {
	Total      int `json:"total" doc:"Number of cases"`
	Passed     int `json:"passed" doc:"Cases with verdict ok"`
	Failed     int `json:"failed" doc:"Cases that neither passed nor were skipped"`
	Skipped    int `json:"skipped,omitempty" doc:"Cases not run because an earlier case did not pass"`
	Uncompared int `json:"uncompared,omitempty" doc:"Passed cases whose output was not compared with anything"`
}
