package task

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
)

// judge is the program that judges cases: a checker or an interactor.
type judge struct {
	*evaluation
	asked *api.Checker // its part of the submission
	noun  string
	files []runtime.File // placed in every run
}

// prepareJudge compiles the checker or the interactor. If its compiler fails, failed is the result of the evaluation.
func (b *batch) prepareJudge(ctx context.Context, at string, c *api.Checker) (failed *api.CodeResult, err error) {
	j := &judge{asked: c, noun: strings.TrimPrefix(at, "compare."), evaluation: &evaluation{Code: b.Code, task: b.task,
		code: api.Code{Language: c.Language, Source: c.Source, Files: c.Files, Limits: c.Limits, Runtime: b.code.Runtime}}}
	if err := j.ready(ctx); err != nil {
		return nil, fmt.Errorf("prepare the %s: %w", j.noun, err)
	}
	b.judge = j
	j.files, _, failed, err = j.build(ctx)
	if err == nil && failed == nil {
		return nil, nil
	}
	os.RemoveAll(j.dir)
	if failed != nil {
		failed.Verdict, failed.Reason = api.CheckerError, fmt.Sprintf("the %s: %s", j.noun, failed.Reason)
	}
	return failed, err
}

// opinion is the judgement of one run of a checker or interactor on a program.
type opinion struct {
	verdict runtime.Verdict // OK: right
	message string
	died    string // the signal, limit or uncaught error that ended it; "": it ended by itself
}

// check runs the checker on an output. If a checker dies, either the output has crashed it, and then the output is wrong, or the checker
// is broken. Running it on the expected output tells these apart.
func (b *batch) check(ctx context.Context, c *api.Case, r *api.CaseResult, input runtime.File, out []byte, expected runtime.File) error {
	o, err := b.judge.check(ctx, input, runtime.File{Content: append([]byte{}, out...)}, expected)
	if err == nil && o.died != "" && c.Expect != nil {
		var probe opinion
		probe, err = b.judge.check(ctx, input, expected, expected)
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

func (j *judge) check(ctx context.Context, input, output, expected runtime.File) (opinion, error) {
	output.Path, output.Mode = payload.CheckOutput, 0o644
	stdout := &head{most: caseStderr}
	spec := runtime.Spec{Limits: j.limits(), Stdout: stdout}
	if j.asked.Style == api.CheckerKattis {
		stdin, err := open(output)
		if err != nil {
			return opinion{}, err
		}
		defer stdin.Close()
		spec.Stdin = stdin
		return j.ask(ctx, spec, stdout, input, expected)
	}
	return j.ask(ctx, spec, stdout, input, output, expected)
}

// ask runs the checker or interactor with files as its arguments: the input, a checker's output, and the expected output. said gets its
// stdout, which is for people.
func (j *judge) ask(ctx context.Context, spec runtime.Spec, said *head, files ...runtime.File) (opinion, error) {
	stderr := &head{most: heardStderr}
	files[0].Path, files[len(files)-1].Path = payload.CheckInput, payload.CheckExpected
	spec.Argv = j.argv(j.lang.Run, spec.Limits)
	for _, f := range files {
		spec.Argv = append(spec.Argv, f.Path)
	}
	spec.Env, spec.Mounts, spec.Files, spec.Stderr = j.env(nil, spec.Limits), j.mounts(), append(slices.Clip(j.files), files...), stderr
	kattis := j.asked.Style == api.CheckerKattis
	if kattis {
		spec.Argv = append(spec.Argv, payload.Feedback+"/")
		spec.Files = append(spec.Files, runtime.File{Path: payload.JudgeMessage, Mode: 0o666, Content: []byte{}})
		spec.CollectInto = filepath.Join(j.dir, "feedback-"+rand.Text())
		defer os.RemoveAll(spec.CollectInto)
		spec.Collect = []string{payload.JudgeMessage}
	}
	res, err := j.launch(ctx, spec)
	if err != nil {
		return opinion{}, err
	}
	message := string(said.kept)
	if kattis {
		message = firstBytes(filepath.Join(spec.CollectInto, payload.JudgeMessage), caseStderr)
	}
	if message = plain(message); message == "" {
		message = j.lang.said(stderr.end())
	}
	return j.opinion(res, message, stderr.end())
}

// firstBytes is the beginning of a file; "" if there is none.
func firstBytes(name string, most int) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, most)
	n, _ := f.Read(text) // a file that cannot be read gives no text
	return string(text[:n])
}

func plain(text string) string {
	return strings.ToValidUTF8(string(bytes.ReplaceAll(bytes.TrimSpace([]byte(text)), []byte{0}, nil)), "")
}

// opinion derives the judgement from how a checker or interactor ended.
func (j *judge) opinion(res runtime.Result, said string, stderr []byte) (opinion, error) {
	accept, reject := payload.ExitCodes(j.asked)
	ended := res.Verdict == runtime.OK || res.Verdict == runtime.NonzeroExit
	rejects := slices.Contains(reject, res.ExitCode)
	why := withColon(j.lang.said(stderr))
	switch {
	case res.Verdict == runtime.InfraError:
		return opinion{}, fmt.Errorf("%s", res.Reason)
	case res.Verdict == runtime.Killed:
		return opinion{verdict: runtime.Killed, message: res.Reason}, nil
	case !ended:
		died := fmt.Sprintf("ended with %s: %s%s", res.Verdict, res.Reason, why)
		return opinion{api.CheckerError, "the " + j.noun + " " + died, died}, nil
	case slices.Contains(accept, res.ExitCode):
		return opinion{verdict: runtime.OK, message: said}, nil
	case j.lang.uncaught(stderr) && (!rejects || res.ExitCode == 1 && len(j.asked.Reject) == 0):
		died := "was ended by an error that it does not catch" + why
		return opinion{api.CheckerError, "the " + j.noun + " " + died, died}, nil
	case rejects:
		said = cmp.Or(said, "the "+j.noun+" rejected the program")
		return opinion{verdict: api.WrongAnswer, message: said}, nil
	}
	if said != "" && !strings.Contains(why, said) {
		why = withColon(said) + why
	}
	return opinion{verdict: api.CheckerError, message: fmt.Sprintf("the %s ended with exit code %d, which means neither accepted (%s) nor rejected (%s)%s",
		j.noun, res.ExitCode, listed(accept), listed(reject), why)}, nil
}

func listed(codes []int) string { return strings.Trim(fmt.Sprint(codes), "[]") }
