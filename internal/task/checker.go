package task

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
)

// The files that a checker finds in its working directory; they are its arguments, in this order.
const (
	checkInput    = "input.txt"
	checkOutput   = "output.txt"
	checkExpected = "expected.txt"
)

// The directory that a checker in the style of Kattis gets as its third argument, and the file there whose text is the message.
const (
	feedback     = "feedback"
	judgeMessage = feedback + "/judgemessage.txt"
)

// prepareChecker compiles the checker. If its compiler fails, failed is the result of the evaluation.
func (b *batch) prepareChecker(ctx context.Context, c *api.Checker) (failed *api.CodeResult, err error) {
	b.checker = &evaluation{Code: b.Code, task: b.task,
		code: api.Code{Language: c.Language, Source: c.Source, Files: c.Files, Limits: c.Limits, Runtime: b.code.Runtime}}
	for _, taken := range []string{checkInput, checkOutput, checkExpected, judgeMessage} {
		if _, ok := c.Files[taken]; ok {
			return nil, Errorf(flow.CodeInvalidInput, "compare.checker.files[%q]: the name is taken by Pawl (use another one)", taken)
		}
	}
	if err := b.checker.ready(ctx); err != nil {
		return nil, fmt.Errorf("prepare the checker: %w", err)
	}
	b.checks, _, failed, err = b.checker.build(ctx)
	if err == nil && failed == nil {
		return nil, nil
	}
	os.RemoveAll(b.checker.dir)
	if failed != nil {
		failed.Verdict, failed.Reason = api.CheckerError, "the checker: "+failed.Reason
	}
	return failed, err
}

// opinion is what one run of a checker says of an output.
type opinion struct {
	verdict runtime.Verdict // OK: right
	message string
	died    string // how a signal, a limit or an error that it does not catch ended it; "": it ended by itself
}

// check runs the checker on an output. A checker that dies may have been broken by the output, which then is wrong, or be broken itself.
// What it makes of the expected output tells these apart.
func (b *batch) check(ctx context.Context, c *api.Case, r *api.CaseResult, input runtime.File, out []byte, expected runtime.File) error {
	o, err := b.ask(ctx, input, runtime.File{Content: append([]byte{}, out...)}, expected)
	if err == nil && o.died != "" && c.Expect != nil {
		var probe opinion
		probe, err = b.ask(ctx, input, expected, expected)
		switch probe.verdict {
		case runtime.OK:
			o.verdict, o.message = api.WrongAnswer, "the checker could not read the output, and accepts the expected one: it "+o.died
		case runtime.Killed:
			o = probe
		}
	}
	if err != nil {
		return fmt.Errorf("run the checker: %w", err)
	}
	r.Verdict, r.Message = string(o.verdict), o.message
	return nil
}

// ask runs the checker.
func (b *batch) ask(ctx context.Context, input, output, expected runtime.File) (opinion, error) {
	checker, limits := b.code.Compare.Checker, b.checker.limits()
	stdout, stderr := &head{most: caseStderr}, &head{most: heardStderr}
	output.Mode = 0o644
	input.Path, output.Path, expected.Path = checkInput, checkOutput, checkExpected
	spec := runtime.Spec{
		Argv: append(b.checker.argv(b.checker.lang.Run, limits), checkInput, checkOutput, checkExpected),
		Env:  b.checker.env(nil, limits), Mounts: b.checker.mounts(), Files: append(slices.Clip(b.checks), input, output, expected),
		Limits: limits, Stdout: stdout, Stderr: stderr,
	}
	var heard func() string
	if checker.Style == api.CheckerKattis {
		stdin, err := open(output)
		if err != nil {
			return opinion{}, err
		}
		defer stdin.Close()
		spec.Argv = append(b.checker.argv(b.checker.lang.Run, limits), checkInput, checkExpected, feedback+"/")
		spec.Stdin = stdin
		spec.Files = append(slices.Clip(b.checks), input, expected, runtime.File{Path: judgeMessage, Mode: 0o666, Content: []byte{}})
		if spec.CollectInto, err = os.MkdirTemp(b.checker.dir, "feedback-"); err != nil {
			return opinion{}, fmt.Errorf("make a directory for files: %w", err)
		}
		defer os.RemoveAll(spec.CollectInto)
		spec.Collect = []string{judgeMessage}
		heard = func() string { return firstBytes(filepath.Join(spec.CollectInto, judgeMessage), caseStderr) }
	}
	res, err := b.checker.launch(ctx, spec)
	if err != nil {
		return opinion{}, err
	}
	said := string(stdout.kept)
	if heard != nil {
		said = heard()
	}
	if said = plain(said); said == "" {
		said = b.checker.lang.said(stderr.end())
	}
	return b.opinion(res, said, stderr.end())
}

// firstBytes is the beginning of a file; "" if there is none.
func firstBytes(name string, most int) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, most)
	n, _ := f.Read(text) // a file that cannot be read says nothing
	return string(text[:n])
}

func plain(text string) string {
	return strings.ToValidUTF8(string(bytes.ReplaceAll(bytes.TrimSpace([]byte(text)), []byte{0}, nil)), "")
}

// opinion reads how a checker ended.
func (b *batch) opinion(res runtime.Result, said string, stderr []byte) (opinion, error) {
	accept, reject := payload.ExitCodes(b.code.Compare.Checker)
	ended := res.Verdict == runtime.OK || res.Verdict == runtime.NonzeroExit
	rejects := slices.Contains(reject, res.ExitCode)
	why := withColon(b.checker.lang.said(stderr))
	switch {
	case res.Verdict == runtime.InfraError:
		return opinion{}, fmt.Errorf("%s", res.Reason)
	case res.Verdict == runtime.Killed:
		return opinion{verdict: runtime.Killed, message: res.Reason}, nil
	case !ended:
		died := fmt.Sprintf("ended with %s: %s%s", res.Verdict, res.Reason, why)
		return opinion{api.CheckerError, "the checker " + died, died}, nil
	case slices.Contains(accept, res.ExitCode):
		return opinion{verdict: runtime.OK, message: said}, nil
	case b.checker.lang.uncaught(stderr) && (!rejects || res.ExitCode == 1 && len(b.code.Compare.Checker.Reject) == 0):
		died := "was ended by an error that it does not catch" + why
		return opinion{api.CheckerError, "the checker " + died, died}, nil
	case rejects:
		if said == "" {
			said = "the checker rejected the output"
		}
		return opinion{verdict: api.WrongAnswer, message: said}, nil
	}
	if said != "" && !strings.Contains(why, said) {
		why = withColon(said) + why
	}
	return opinion{verdict: api.CheckerError, message: fmt.Sprintf("the checker ended with exit code %d, which means neither accepted (%s) nor rejected (%s)%s",
		res.ExitCode, listed(accept), listed(reject), why)}, nil
}

func listed(codes []int) string { return strings.Trim(fmt.Sprint(codes), "[]") }
