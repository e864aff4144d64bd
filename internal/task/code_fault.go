package task

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
)

// noProgram is the reason why the output of a successful compilation cannot be run: for example a class without main.
type noProgram struct{ lacks error }

func (n *noProgram) Error() string { return n.lacks.Error() }

// notCompiled is the result of an evaluation whose compile step failed. If the compiler or its limits ended the step, the
// source is at fault (compile_error); a kill, a failure of the host and the end of the attempt's time keep their own verdicts.
func notCompiled(ctx context.Context, compile *api.CodeResult) *api.CodeResult {
	r := &api.CodeResult{Verdict: api.CompileError, Reason: compile.Reason, Enforcement: compile.Enforcement, Runtime: compile.Runtime,
		Tool: compile.Tool, ToolVersion: compile.ToolVersion, Compile: compile}
	_, stopped := Stopped(ctx)
	switch runtime.Verdict(compile.Verdict) {
	case runtime.Killed, runtime.InfraError:
		r.Verdict = compile.Verdict
	case runtime.Timeout:
		if stopped {
			r.Verdict = compile.Verdict
		}
	case runtime.NonzeroExit:
		if line := firstError(compile.Err()); line != "" {
			r.Reason = line
		} else if line := firstError(compile.Out()); line != "" {
			r.Reason = line
		} else {
			r.Reason = exitCode(*compile.ExitCode)
		}
	}
	r.Reason = "compile: " + r.Reason
	return r
}

// Patterns of error messages of compilers and interpreters, in the order in which they are tried: "main.c:1:11: error: …",
// "error[E0425]: …" and "SyntaxError: …"; then the message of the linker, which precedes the compiler's "ld returned 1"; then
// any message with a place in a file.
var (
	errorLine = regexp.MustCompile(`(?i)\b\w*error( ?\[\w+\])?:|syntax error|undefined reference to`)
	placeLine = regexp.MustCompile(`^\S+:\d+(:\d+)?: `)
	asideLine = regexp.MustCompile(`: (warning|note|In function|In member)\b`)
)

// firstError is the line of a compiler's or interpreter's output with the first error, or else the last line.
func firstError(b []byte) string {
	for _, wanted := range []*regexp.Regexp{errorLine, placeLine} {
		for line := range bytes.Lines(b) {
			if line = bytes.TrimSpace(line); wanted.Match(line) && !asideLine.Match(line) {
				return clipped(line)
			}
		}
	}
	return lastLine(b)
}

// mayBeSyntax finds messages about syntax in the output of an interpreter. A program can print the same, so a match only makes
// the interpreter check the source. Ruby's start only with a place, as in `main.rb:1: unterminated string meets end of file`.
var mayBeSyntax = regexp.MustCompile(`(?im)syntax ?error|IndentationError|TabError|unexpected EOF|^\S+\.rb:\d+: `)

// syntaxError runs the language's check on the source of a program that failed with a message about syntax. The result is empty
// if the source is well-formed, if the profile has no check, or if the check cannot be run. The result is kept, because all
// cases of an evaluation have the same source.
func (e *evaluation) syntaxError(ctx context.Context, files []runtime.File, stderr []byte) string {
	if len(e.lang.CheckSource) == 0 || !mayBeSyntax.Match(stderr) || e.checked {
		return e.syntax
	}
	limits, said := limitsOf(e.lang.Limits), &head{most: caseStderr}
	limits.CPU = limits.Wall
	res, err := e.launch(ctx, runtime.Spec{
		Argv: e.argv(e.lang.CheckSource, limits), Env: e.env(nil, limits), Mounts: e.mounts(), Files: files, Limits: limits, Stderr: said,
	})
	if e.checked = true; err != nil || res.Verdict != runtime.NonzeroExit {
		return ""
	}
	if e.syntax = firstError(said.kept); e.syntax == "" {
		e.syntax = fmt.Sprintf("the check of the source ended with exit code %d", res.ExitCode)
	}
	if line := lineOf(e.file, said.kept); line != "" && !strings.Contains(e.syntax, e.file) {
		e.syntax = e.file + ":" + line + ": " + e.syntax
	}
	return e.syntax
}

// lineOf is the first line number of a file in a message, as in `main.js:3` or `File "main.py", line 3`; "" if there is none.
func lineOf(file string, said []byte) string {
	found := regexp.MustCompile(`(?m)^(?:\s*File "|\S*/)?` + regexp.QuoteMeta(file) + `(?:", line |:)(\d+)`).FindSubmatch(said)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// uncaught reports whether the program was ended by an error that it did not catch, according to the message of the language's tool.
func (p *Profile) uncaught(stderr []byte) bool {
	return p.Uncaught != "" && regexp.MustCompile("(?m)"+p.Uncaught).Match(stderr)
}
