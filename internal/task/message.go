package task

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
)

// said is a program's message on stderr about its end: the last match of the first matching pattern of the profile, or else the last
// line. The text after such a message is not useful to people: a stack trace, a hint of the runtime.
func (p *Profile) said(stderr []byte) string {
	if found := p.fault(stderr); found != "" {
		return found
	}
	return lastLine(stderr)
}

// fault is the match of the profile's patterns; "" if none matches.
func (p *Profile) fault(stderr []byte) string {
	for _, pattern := range p.Message {
		all := regexp.MustCompile("(?m)"+pattern).FindAllSubmatch(stderr, -1)
		if len(all) == 0 {
			continue
		}
		last := all[len(all)-1]
		groups := last[1:]
		if len(groups) == 0 {
			groups = last
		}
		groups = slices.DeleteFunc(slices.Clone(groups), func(g []byte) bool { return len(bytes.TrimSpace(g)) == 0 })
		for i := range groups {
			groups[i] = bytes.TrimSpace(groups[i])
		}
		if text := bytes.Join(groups, []byte(": ")); api.IsText(text) {
			line, _, _ := bytes.Cut(text, []byte{'\n'})
			return clipped(line)
		}
	}
	return ""
}

// outOfStack matches the messages that language runtimes write when a stack that limits.stack bounds is exhausted.
var outOfStack = regexp.MustCompile(
	`(?m)\bjava\.lang\.StackOverflowError|^RangeError: Maximum call stack size exceeded|^thread .* has overflowed its stack`)

// ownStack matches the placeholders by which a language gets the size of a stack that it bounds itself.
var ownStack = regexp.MustCompile(`\{(stack|frames)\}`)

// stackHint reports that a program has exhausted its stack, if its language's runtime says so, or if it died of a SIGSEGV and had used as
// much memory as the stack takes. It does not affect the verdict.
func (p *Profile) stackHint(r runtime.Result, stderr []byte) string {
	const raises = ": limits.stack raises it"
	stack := ""
	if r.Stack > 0 {
		stack = " of " + api.Size(r.Stack).String()
	}
	switch {
	case outOfStack.Match(stderr) && slices.ContainsFunc(p.Run, ownStack.MatchString): // which is not the first thread's stack
		return "; its stack was used up" + raises
	case outOfStack.Match(stderr):
		return "; its stack" + stack + " was used up" + raises
	case r.Signal == "SIGSEGV" && r.Stack > 0 && r.PeakMemory >= r.Stack/10*9:
		return "; perhaps its stack" + stack + " was used up" + raises
	}
	return ""
}

// ended describes how a run ended by itself or by a signal, with the program's message about it.
func (p *Profile) ended(r runtime.Result, stderr []byte) string {
	if r.Verdict == runtime.NonzeroExit || r.Verdict == runtime.Signal {
		return p.endedBy(r, stderr) + p.stackHint(r, stderr)
	}
	return p.endedBy(r, stderr)
}

func (p *Profile) endedBy(r runtime.Result, stderr []byte) string {
	switch r.Verdict {
	case runtime.NonzeroExit:
		return exitCode(r.ExitCode) + withColon(p.said(stderr))
	case runtime.Signal:
		said := p.fault(stderr)
		if said == "" && r.Signal == "SIGABRT" { // a program that calls abort gives the reason in its last line
			said = lastLine(stderr)
		}
		return r.Reason + withColon(said)
	}
	return r.Reason
}

// outOfMemory changes the verdict to oom for a run that ended by itself because its language's runtime was out of memory: the runtime
// limits itself to a share of the run's limit, so the kernel has counted nothing.
func (p *Profile) outOfMemory(r *runtime.Result, stderr []byte) {
	if p.OutOfMemory == "" || r.Verdict != runtime.NonzeroExit && r.Verdict != runtime.Signal {
		return
	}
	found := regexp.MustCompile("(?m)" + p.OutOfMemory).Find(stderr)
	if found == nil {
		return
	}
	r.Verdict, r.Signal, r.Reason = runtime.OOM, "", "the program ran out of memory: "+clipped(bytes.TrimSpace(found))
	if !slices.Contains(r.LimitsHit, runtime.HitMemory) {
		r.LimitsHit = append(r.LimitsHit, runtime.HitMemory)
	}
}

// stackLine matches a line that Node.js or Java writes below the message of an uncaught error.
var stackLine = regexp.MustCompile(`^\s+at |^Node\.js v\d`)

// lastLine is the last line of a program's output that is valid text, and neither blank nor part of a stack trace of Node.js or Java.
func lastLine(b []byte) string {
	for b = bytes.TrimSpace(b); len(b) > 0; {
		i := bytes.LastIndexByte(b, '\n')
		line := bytes.TrimSpace(b[i+1:])
		if len(line) > 0 && api.IsText(line) && (i < 0 || !stackLine.Match(b[i+1:])) {
			return clipped(line)
		}
		if i < 0 {
			break
		}
		b = b[:i]
	}
	return ""
}

// clipped is a line of a program's output, shortened for a message.
func clipped(line []byte) string {
	const most = 200
	if len(line) > most {
		line = append(bytes.Clone(line[:most]), "…"...)
	}
	return strings.ReplaceAll(strings.ToValidUTF8(string(line), ""), "\x00", "")
}

// The messages that the tools of languages write about an error that has ended a program (see Profile.Message). A pattern that ends in
// (?s:.*) matches all that follows, so that its first match is its last: later messages are consequences of the first.
var (
	pythonMessage = []string{
		`^Traceback \(most recent call last\):\n(?:[ \t]+.*\n)+(\S.*)`,
		`^  \+ Exception Group Traceback .*\n(?:  \|  .*\n)+  \| (\S.*)`,
	}
	nodeMessage = []string{
		`^\S+:\d+\n(?:.*\n)?[ \t]*\^+[ \t]*\n\s*(\S.*)`, // the place, the source line and carets precede it
		`^(FATAL ERROR: .*)`,
		`^(\S.*)\n\s+at .*`,
	}
	goMessage   = []string{`^((?:panic|fatal error): .*)(?:\n.*)*?\n(?:runtime stack:|goroutine \d+ )(?s:.*)`}
	rustMessage = []string{
		`^(thread .* panicked at .*):\n(.*)(?s:.*)`,
		`^(thread .* (?:panicked at|has overflowed) .*)(?s:.*)`,
	}
	javaMessage   = []string{`^(Exception in thread .*)`, `^(Error: .*)(?s:.*)`}
	rubyMessage   = []string{`^(\S+:\d+:in .* \((?:[A-Z]\w*::)*[A-Z]\w*\))$(?s:.*)`, `^(\S+:\d+:in .*)(?s:.*)`}
	nativeMessage = []string{
		`^==\d+==ERROR: (\w+Sanitizer: .*)(?s:.*)`,
		`^(\S+:\d+:\d+: runtime error: .*)(?s:.*)`,
		`^(terminate called .*)\n  what\(\): (.*)`,
		`^(terminate called .*)`,
	}
)
