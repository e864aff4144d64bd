package task

import (
	"bytes"
	"context"
	"fmt"
	"regexp"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
)

// notCompiled is the end of an evaluation whose compile step did not end well. An end that the compiler or its limits
// made is the source's fault; a kill, a failure of the host and the end of the attempt's time stay what they are.
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
			r.Reason = summary(compile)
		}
	}
	r.Reason = "compile: " + r.Reason
	return r
}

// What compilers and interpreters call an error, in the order in which they are looked for: "main.c:1:11: error: …",
// "error[E0425]: …" and "SyntaxError: …", or the linker's word, which the compiler's "ld returned 1" follows; then
// whatever is said about a place in a file.
var (
	errorLine = regexp.MustCompile(`(?i)\b\w*error(\[\w+\])?:|syntax error|undefined reference to`)
	placeLine = regexp.MustCompile(`^\S+:\d+(:\d+)?: `)
	asideLine = regexp.MustCompile(`: (warning|note|In function|In member)\b`)
)

// firstError is the line of a compiler's or interpreter's complaint that names the first error; without one, the last line.
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

// mayBeSyntax finds complaints about syntax in what an interpreter writes. A program can write the same: only the
// interpreter's own check of the source is believed.
var mayBeSyntax = regexp.MustCompile(`(?i)syntax ?error|IndentationError|TabError|unexpected EOF`)

// syntaxError asks the language's tool about the source of a program that has failed and whose last words are about
// syntax; empty when the source is well-formed, or when nothing can be found out: the language's profile has no way to ask, or
// the check cannot be run. The answer is kept, since the cases of an evaluation have one source.
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
	return e.syntax
}

// uncaught reports whether a program of the language that ended with 1 was ended by an error that it did not catch,
// according to what the language's tool has written about it.
func (p *Profile) uncaught(stderr []byte) bool {
	return p.Uncaught != "" && regexp.MustCompile("(?m)"+p.Uncaught).Match(stderr)
}
