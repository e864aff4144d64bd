package task

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
)

// caller is a program of a language that calls a function of another program: see call.py for its input and output. It is placed beside
// the program and started with the program's file as its argument.
type caller struct{ file, source string }

//go:embed call.py
var callPython string

// callInput is the call as the caller reads it, and the mark: a random text that marks the line with the result among the program's
// output.
func callInput(c *api.Call) (input runtime.File, mark string, err error) {
	mark = rand.Text()
	kwargs := c.Kwargs
	if kwargs == nil {
		kwargs = map[string]json.RawMessage{}
	}
	b, err := json.Marshal(struct {
		Mark     string                     `json:"mark"`
		Function string                     `json:"function"`
		Args     []json.RawMessage          `json:"args"`
		Kwargs   map[string]json.RawMessage `json:"kwargs"`
	}{mark, c.Function, append([]json.RawMessage{}, c.Args...), kwargs})
	return runtime.File{Content: b}, mark, err
}

// cutResult splits the stdout of a caller into the program's output, and the result after the mark. ended: there is no result, because the
// program ended the process before the function returned.
func cutResult(stdout []byte, mark string) (printed, result []byte, ended bool) {
	at := bytes.LastIndex(stdout, []byte("\n"+mark))
	if at < 0 {
		return stdout, nil, true
	}
	result, _, _ = bytes.Cut(stdout[at+1+len(mark):], []byte("\n"))
	return stdout[:at], result, false
}

// called judges a case of a function whose process ended with exit code 0. result is the text after the mark.
func (b *batch) called(c *api.Case, r *api.CaseResult, result []byte, ended bool) error {
	wrong := func(format string, args ...any) error {
		r.Verdict, r.Message = api.WrongAnswer, c.Call.Function+": "+fmt.Sprintf(format, args...)
		return nil
	}
	if ended {
		return wrong("the program ended the process before the function returned")
	}
	var answer struct {
		Value json.RawMessage
		Error string
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return wrong("what stands where its result should stand is not JSON (%v)", err)
	}
	if answer.Error != "" && r.Uncompared { // it has returned
		return nil
	}
	if answer.Error != "" {
		return wrong("%s", answer.Error)
	}
	if kept := b.keep(answer.Value, caseStdout); len(kept) == len(answer.Value) {
		r.Returned = answer.Value
	}
	if r.Uncompared {
		return nil
	}
	m, err := payload.Rule(b.code.Compare).Values(answer.Value, c.Call.Expect)
	if err != nil {
		return wrong("%v", err)
	}
	if m != nil {
		r.Mismatch = &api.CaseMismatch{Path: m.Path, Got: m.Got, Want: m.Want}
		return wrong("%s", m.Say)
	}
	return nil
}

// callable refuses cases that call functions of a language whose profile has no caller.
func (b *batch) callable() error {
	for i := range b.code.Cases {
		if b.code.Cases[i].Call != nil && b.lang.caller == nil {
			return Errorf(flow.CodeInvalidInput,
				"cases[%d].call: functions of %s programs cannot be called (give stdin and expect, or use python)", i, b.lang.Name)
		}
	}
	return nil
}

// argvOf is the command of a case's program, without the arguments of the code and of the case.
func (b *batch) argvOf(c *api.Case, limits runtime.Limits) []string {
	list := b.lang.Run
	if c.Call != nil {
		list = nil
		for _, arg := range b.lang.Run {
			if arg == "{file}" {
				list = append(list, b.lang.caller.file)
			}
			list = append(list, arg)
		}
	}
	return b.argv(list, limits)
}
