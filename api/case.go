package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/comparison"
)

// Case is one input of a batch evaluation: the program, compiled once, is run for each, in a sandbox of its own.
type Case struct {
	Name   string     `json:"name,omitempty"` // of its own within the evaluation; by default its number, from 1
	Stdin  Content    `json:"stdin,omitzero"`
	Args   []string   `json:"args,omitempty"`   // after those of the program
	Expect *Content   `json:"expect,omitempty"` // what it should write to stdout; nil: anything
	Limits CodeLimits `json:"limits,omitzero"`  // zero fields: those of the program
}

// Comparison is how a case's output is compared with what is expected. It is read from an object or from a mode alone.
type Comparison struct {
	// Mode is "exact", "trimmed" (the default), "tokens", "numeric" or "checker"; see docs/evaluations.md.
	Mode string `json:"mode,omitempty"`
	// Absolute and Relative are the tolerances of "numeric"; a number within either is right. Both zero: 1e-6 each.
	Absolute float64  `json:"absolute,omitempty"`
	Relative float64  `json:"relative,omitempty"`
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
// to stdout, or else to stderr, is the message. Any other end, and an exception that it does not catch, is its own fault
// and not the program's: the verdict is "checker_error".
type Checker struct {
	Language string             `json:"language"`
	Source   string             `json:"source"`
	Files    map[string]Content `json:"files,omitempty"`
	Limits   CodeLimits         `json:"limits,omitzero"`
	// Accept and Reject are the exit codes that say right and wrong; [0] and [1] when they are not given.
	Accept []int `json:"accept,omitempty"`
	Reject []int `json:"reject,omitempty"`
}

// Codes are the exit codes that say right and wrong.
func (c *Checker) Codes() (accept, reject []int) {
	if accept, reject = c.Accept, c.Reject; len(accept) == 0 {
		accept = []int{0}
	}
	if len(reject) == 0 {
		reject = []int{1}
	}
	return accept, reject
}

// LanguagesUsed yields the languages that the code needs, by their place in it.
func (c *Code) LanguagesUsed() iter.Seq2[string, string] {
	return func(yield func(at, language string) bool) {
		if yield("language", c.Language) && c.Compare != nil && c.Compare.Checker != nil {
			yield("compare.checker.language", c.Compare.Checker.Language)
		}
	}
}

// The bounds of batch evaluations.
const (
	MaxCases = 1000
	// MaxCaseOutput is how much a program may write in one case: all of it is compared.
	MaxCaseOutput = Size(64 << 20)
	maxCaseName   = 200
)

// The verdicts of a case beside those of a run.
const (
	WrongAnswer  = "wrong_answer"
	CheckerError = "checker_error" // the checker did not say
	Skipped      = "skipped"       // not run: stopped before
)

// CaseResult is the end of one case.
type CaseResult struct {
	Name string `json:"name"`
	// Verdict is that of a run (see CodeResult), or "wrong_answer", "checker_error" or "skipped".
	Verdict  string        `json:"verdict"`
	ExitCode *int          `json:"exit_code,omitempty"`
	Signal   string        `json:"signal,omitempty"`
	Message  string        `json:"message,omitempty"`  // why it did not pass, or the checker's words
	Mismatch *CaseMismatch `json:"mismatch,omitempty"` // with "wrong_answer", unless a checker said so

	// Stdout and Stderr are the beginning of what was written: up to 4 KB and 1 KB, and less when the cases of an
	// evaluation have more than 256 KB to show together. The rest is not kept.
	Stdout          string `json:"stdout"`
	StdoutBase64    []byte `json:"stdout_base64,omitempty"`
	StdoutBytes     int64  `json:"stdout_bytes"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty"`
	Stderr          string `json:"stderr,omitempty"`
	StderrBase64    []byte `json:"stderr_base64,omitempty"`
	StderrBytes     int64  `json:"stderr_bytes,omitempty"`
	StderrTruncated bool   `json:"stderr_truncated,omitempty"`

	LimitsHit       []string  `json:"limits_hit,omitempty"` // see CodeResult
	WallMS          float64   `json:"wall_ms"`
	CPUMS           float64   `json:"cpu_ms"`
	StarvedMS       float64   `json:"starved_ms,omitempty"`
	Runs            []CodeRun `json:"runs,omitempty" doc:"All runs in their order, where the case was run again (rerun_near_limit)"`
	PinnedCPUs      []int     `json:"pinned_cpus,omitempty" doc:"The processors that the run was restricted to, by their numbers on the host, where the worker pins runs"`
	SharedCPUs      bool      `json:"shared_cpus,omitempty" doc:"Another run of the worker was restricted to one of pinned_cpus at the same time"`
	PeakMemoryBytes int64     `json:"peak_memory_bytes"`
	HeldMemoryBytes int64     `json:"held_memory_bytes"`
	PageCacheBytes  int64     `json:"page_cache_bytes,omitempty"`
	ChildOOM        bool      `json:"child_oom,omitempty"`
	// Uncompared says that the case had neither an expected output nor a checker: an "ok" means only that the program
	// ended with 0.
	Uncompared bool `json:"uncompared,omitempty"`
}

// CaseMismatch is the first place where an output is not what was expected.
type CaseMismatch struct {
	Line int    `json:"line"` // of the output, from 1
	Got  string `json:"got"`  // the line or word, quoted and shortened
	Want string `json:"want"`
}

// SetOut records the part of stdout that is kept.
func (r *CaseResult) SetOut(b []byte, all int64) {
	r.Stdout, r.StdoutBase64, r.StdoutTruncated = inline(b, all)
	r.StdoutBytes = all
}

// SetErr records the part of stderr that is kept.
func (r *CaseResult) SetErr(b []byte, all int64) {
	r.Stderr, r.StderrBase64, r.StderrTruncated = inline(b, all)
	r.StderrBytes = all
}

// CaseSummary counts cases.
type CaseSummary struct {
	Total   int `json:"total"`
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped,omitempty"`
	// Uncompared counts the passed cases whose output was compared with nothing.
	Uncompared int `json:"uncompared,omitempty"`
}

// Rule is the comparison without its checker.
func (c *Comparison) Rule() comparison.Rule {
	r := comparison.Rule{Mode: comparison.Mode(c.Mode), Absolute: c.Absolute, Relative: c.Relative}
	if r.Mode == "" {
		r.Mode = comparison.Trimmed
	}
	return r
}

// caseFields adds the fields of batch evaluations.
func (d *codeDecoder) caseFields(fields map[string]func(string, json.RawMessage), c *Code) {
	fields["cases"] = func(p string, r json.RawMessage) { c.Cases = d.cases(p, r) }
	fields["compare"] = func(p string, r json.RawMessage) { c.Compare = d.compare(p, r) }
	fields["stop_on_failure"] = func(p string, r json.RawMessage) { d.plain(p, r, &c.StopOnFailure) }
}

func (d *codeDecoder) cases(at string, raw json.RawMessage) []Case {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		d.fault(at, raw, "it is not a list of cases", `write [{"stdin": "…", "expect": "…"}]`)
		return nil
	}
	if len(items) == 0 || len(items) > MaxCases {
		d.fault(at, nil, fmt.Sprintf("it has %d cases", len(items)), fmt.Sprintf("give 1 to %d; several evaluations take more", MaxCases))
		return nil
	}
	all := make([]Case, len(items))
	names := map[string]int{}
	for i, item := range items {
		where := fmt.Sprintf("%s[%d]", at, i)
		c := &all[i]
		d.object(where, item, map[string]func(string, json.RawMessage){
			"name":  func(p string, r json.RawMessage) { c.Name = d.caseName(p, r) },
			"stdin": func(p string, r json.RawMessage) { c.Stdin = d.content(p, r, false) },
			"args":  func(p string, r json.RawMessage) { c.Args = d.list(p, r) },
			"expect": func(p string, r json.RawMessage) {
				content := d.content(p, r, false)
				c.Expect = &content
			},
			"limits": func(p string, r json.RawMessage) { c.Limits = d.limits(p, r) },
		})
		if c.Name == "" {
			c.Name = strconv.Itoa(i + 1)
		}
		if first, twice := names[c.Name]; twice {
			d.fault(where+".name", quote(c.Name), fmt.Sprintf("case %s[%d] has that name already", at, first), "give each case a name of its own")
		}
		names[c.Name] = i
		d.caseOutput(where, c.Limits)
	}
	return all
}

func (d *codeDecoder) caseName(at string, raw json.RawMessage) string {
	name := d.text(at, raw)
	if len(name) > maxCaseName || strings.ContainsAny(name, "\n\r") {
		d.fault(at, raw, "it is not a name for a case", fmt.Sprintf("write one line of at most %d bytes", maxCaseName))
	}
	return name
}

// caseOutput checks the output limit of what is held in memory to be compared.
func (d *codeDecoder) caseOutput(at string, l CodeLimits) {
	if l.Output > MaxCaseOutput {
		d.fault(join(at, "limits.output"), []byte(l.Output.String()), "with cases, all output is held to be compared", "at most "+MaxCaseOutput.String())
	}
}

func (d *codeDecoder) compare(at string, raw json.RawMessage) *Comparison {
	c := &Comparison{}
	if raw = bytes.TrimSpace(raw); raw[0] == '"' {
		c.Mode = d.mode(at, raw)
	} else {
		d.object(at, raw, map[string]func(string, json.RawMessage){
			"mode":     func(p string, r json.RawMessage) { c.Mode = d.mode(p, r) },
			"absolute": func(p string, r json.RawMessage) { c.Absolute = d.tolerance(p, r) },
			"relative": func(p string, r json.RawMessage) { c.Relative = d.tolerance(p, r) },
			"checker":  func(p string, r json.RawMessage) { c.Checker = d.checker(p, r) },
		})
	}
	if c.Mode == "" && c.Checker != nil {
		c.Mode = ModeChecker
	}
	if c.Mode == "" && (c.Absolute != 0 || c.Relative != 0) {
		c.Mode = string(comparison.Numeric)
	}
	switch {
	case c.Mode == ModeChecker && c.Checker == nil && len(d.errs) == 0:
		d.fault(join(at, "checker"), nil, "it is missing", `give the checker's "language" and "source"`)
	case c.Mode != ModeChecker && c.Checker != nil:
		d.fault(join(at, "checker"), nil, fmt.Sprintf("the mode %q has no checker", c.Mode), `leave it out, or use the mode "checker"`)
	case c.Mode != string(comparison.Numeric) && (c.Absolute != 0 || c.Relative != 0):
		d.fault(at, nil, fmt.Sprintf("the mode %q has no tolerances", c.Mode), `leave them out, or use the mode "numeric"`)
	}
	return c
}

func (d *codeDecoder) mode(at string, raw json.RawMessage) string {
	mode := d.text(at, raw)
	for _, m := range CompareModes() {
		if m == mode {
			return mode
		}
	}
	d.fault(at, raw, "it is not a way to compare", "one of "+strings.Join(CompareModes(), ", "))
	return mode
}

func (d *codeDecoder) tolerance(at string, raw json.RawMessage) float64 {
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil || f < 0 {
		d.fault(at, raw, "it is not a tolerance", "write a number that is not negative, such as 1e-6")
	}
	return f
}

func (d *codeDecoder) checker(at string, raw json.RawMessage) *Checker {
	var c Checker
	d.object(at, raw, map[string]func(string, json.RawMessage){
		"language": func(p string, r json.RawMessage) { c.Language = d.text(p, r) },
		"source":   func(p string, r json.RawMessage) { c.Source = d.text(p, r) },
		"files":    func(p string, r json.RawMessage) { c.Files = d.files(p, r) },
		"limits":   func(p string, r json.RawMessage) { c.Limits = d.limits(p, r) },
		"accept":   func(p string, r json.RawMessage) { c.Accept = d.exitCodes(p, r) },
		"reject":   func(p string, r json.RawMessage) { c.Reject = d.exitCodes(p, r) },
	})
	accept, reject := c.Codes()
	for _, code := range accept {
		if slices.Contains(reject, code) {
			d.fault(join(at, "accept"), []byte(strconv.Itoa(code)), "the same exit code says right and wrong", "give both accept and reject, without a code in common")
		}
	}
	if len(d.errs) == 0 {
		c.Language = d.language(join(at, "language"), c.Language)
		if strings.TrimSpace(c.Source) == "" {
			d.fault(join(at, "source"), nil, "it is missing or empty", "give the checker's text")
		}
	}
	return &c
}

// exitCodes reads a list of exit codes.
func (d *codeDecoder) exitCodes(at string, raw json.RawMessage) []int {
	var codes []int
	if err := json.Unmarshal(raw, &codes); err != nil || len(codes) == 0 || slices.Min(codes) < 0 || slices.Max(codes) > 255 {
		d.fault(at, raw, "it is not a list of exit codes", "write whole numbers from 0 to 255, such as [42]")
		return nil
	}
	return codes
}

// wholeCases checks what no single field shows.
func (d *codeDecoder) wholeCases(c *Code) {
	if len(c.Cases) == 0 {
		if c.Compare != nil {
			d.fault("compare", nil, "there are no cases to compare", "add cases, or leave it out")
		}
		if c.StopOnFailure {
			d.fault("stop_on_failure", nil, "there are no cases to stop", "add cases, or leave it out")
		}
		return
	}
	d.caseOutput("", c.Limits)
	if !c.Stdin.IsZero() {
		d.fault("stdin", nil, "each case has its own", "move it into the cases")
	}
	if c.Interactive {
		d.fault("interactive", nil, "each case has its own input", "leave it out")
	}
	if len(c.Collect) > 0 {
		d.fault("collect", nil, "nothing is collected from cases", "leave it out; what is written to stdout is compared")
	}
}
