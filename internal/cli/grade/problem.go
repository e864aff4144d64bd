package grade

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
)

var (
	//go:embed run.py
	runScript string
	//go:embed compare.py
	compareScript string
)

// task is how the programs of one task are graded: by asserts after the program, or by cases.
type task struct {
	id     string
	prompt string // a completion follows it
	tests  string // code after the program, which raises if the program is wrong
	cases  []api.Case
	// method allows the functions that cases call to be methods of a class Solution, as in programs for LeetCode.
	method bool
	// prelude goes before the program, and compare says how the outputs of cases are compared.
	prelude string
	compare *api.Comparison
}

// readProblems reads tasks in the formats of HumanEval, MBPP, EvalPlus and LiveCodeBench, or with cases of Pawl.
func readProblems(path string) (map[string]*task, error) {
	all := map[string]*task{}
	err := readLines(path, func(l line) error {
		t := &task{}
		var err error
		if t.id, err = l.task(); err != nil {
			return err
		}
		if all[t.id] != nil {
			return fmt.Errorf("%s: the task %s is there twice: leave one out", l.at, t.id)
		}
		all[t.id] = t
		switch l.first("cases", "test", "plus_input", "base_input", "test_list", "public_test_cases", "private_test_cases") {
		case "cases":
			return t.readOwn(l)
		case "test":
			return t.readTest(l)
		case "plus_input", "base_input":
			return t.readInputs(l)
		case "test_list":
			return t.readList(l)
		case "public_test_cases", "private_test_cases":
			return t.readCases(l)
		}
		return fmt.Errorf("%s: the task %s has no tests: give test (HumanEval), test_list (MBPP), base_input and plus_input (EvalPlus), public_test_cases (LiveCodeBench), or cases", l.at, t.id)
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no tasks", path)
	}
	return all, err
}

// readOwn reads cases in the format of an evaluation: calls of functions, or inputs and outputs.
func (t *task) readOwn(l line) error {
	var all []struct {
		Name   string
		Call   *api.Call
		Stdin  string
		Expect *string
		Args   []string
	}
	d := json.NewDecoder(bytes.NewReader(l.fields["cases"]))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return fmt.Errorf("%s: cases: %w; a case has call (function, args, kwargs, expect), or stdin, args and expect, which are texts", l.at, err)
	}
	if err := t.counted(l, len(all)); err != nil {
		return err
	}
	for i, c := range all {
		one := api.Case{Name: c.Name, Call: c.Call, Args: c.Args, Stdin: api.Text(c.Stdin)}
		switch {
		case c.Expect != nil:
			expect := api.Text(*c.Expect)
			one.Expect = &expect
		case c.Call == nil || c.Call.Expect == nil:
			return fmt.Errorf("%s: cases[%d] of the task %s expects nothing: every program would pass; give expect", l.at, i, t.id)
		}
		t.cases = append(t.cases, one)
	}
	return l.read("prompt", &t.prompt)
}

// counted checks the number of a task's cases.
func (t *task) counted(l line, n int) error {
	if n == 0 || n > api.MaxCases {
		return fmt.Errorf("%s: the task %s has %d cases: 1 to %d can be graded", l.at, t.id, n, api.MaxCases)
	}
	return nil
}

// readTest reads a task of HumanEval: its test defines check, which takes the function.
func (t *task) readTest(l line) error {
	entry := ""
	for name, into := range map[string]*string{"prompt": &t.prompt, "test": &t.tests, "entry_point": &entry} {
		if err := l.read(name, into); err != nil {
			return err
		}
	}
	if entry != "" && strings.Contains(t.tests, "def check(") {
		t.tests += "\ncheck(" + entry + ")\n"
	}
	return nil
}

// readInputs reads a task of EvalPlus: the program is compared with the canonical solution on its inputs.
func (t *task) readInputs(l line) error {
	var entry, solution string
	var tolerance float64
	for name, into := range map[string]any{"prompt": &t.prompt, "canonical_solution": &solution, "entry_point": &entry, "atol": &tolerance} {
		if err := l.read(name, into); err != nil {
			return err
		}
	}
	if entry == "" || solution == "" {
		return fmt.Errorf("%s: inputs of EvalPlus need entry_point and canonical_solution, which says what is right", l.at)
	}
	var inputs []json.RawMessage
	for _, name := range []string{"base_input", "plus_input"} {
		var some []json.RawMessage
		if err := l.read(name, &some); err != nil {
			return err
		}
		inputs = append(inputs, some...)
	}
	given, err := json.Marshal(inputs)
	if err != nil {
		return fmt.Errorf("%s: %w", l.at, err)
	}
	t.tests = fmt.Sprintf("%s\nimport json\n_pawl_check(json.loads(%s), %s, %s, %g, %s)\n", compareScript, quoted(string(given)), quoted(t.prompt+solution), quoted(entry), tolerance, entry)
	return nil
}

// readList reads a task of MBPP: a list of asserts.
func (t *task) readList(l line) error {
	var setup string
	var imports, asserts []string
	for name, into := range map[string]any{"test_setup_code": &setup, "test_imports": &imports, "test_list": &asserts} {
		if err := l.read(name, into); err != nil {
			return err
		}
	}
	if len(asserts) == 0 {
		return fmt.Errorf("%s: test_list is empty: every program would pass", l.at)
	}
	t.tests = strings.Join(append(append(imports, setup), asserts...), "\n") + "\n"
	return nil
}

// readCases reads a task of LiveCodeBench: inputs and outputs of a program that reads stdin or of a function.
func (t *task) readCases(l line) error {
	type given struct {
		Input    string `json:"input"`
		Output   string `json:"output"`
		TestType string `json:"testtype"`
	}
	var all []given
	for _, name := range []string{"public_test_cases", "private_test_cases"} {
		var some []given
		raw := l.fields[name]
		if text := ""; json.Unmarshal(raw, &text) == nil && text != "" { // lists are in texts
			if !strings.HasPrefix(strings.TrimSpace(text), "[") {
				return fmt.Errorf("%s: %s is packed by Python's pickle, which is not read: write its list of JSON in its place", l.at, name)
			}
			raw = json.RawMessage(text)
		}
		if len(raw) > 0 {
			if err := (line{at: l.at, fields: map[string]json.RawMessage{name: raw}}).read(name, &some); err != nil {
				return err
			}
		}
		all = append(all, some...)
	}
	if err := t.counted(l, len(all)); err != nil {
		return err
	}
	t.prelude, t.compare = harnessImports, &api.Comparison{Mode: "numeric", Absolute: new(float64)}
	for _, c := range all {
		one := api.Case{Stdin: api.Text(c.Input)}
		if c.TestType == "functional" {
			var err error
			if one, err = functional(l, c.Input, c.Output); err != nil {
				return err
			}
			t.method = true
		} else {
			expect := api.Text(c.Output)
			one.Expect = &expect
		}
		t.cases = append(t.cases, one)
	}
	return nil
}

// harnessImports are the imports that LiveCodeBench's own harness puts before each program: models rely on them, for example on List of
// typing. They are one line, so that line numbers in messages are off by at most one.
const harnessImports = "from string import *; from re import *; from datetime import *; from collections import *; from heapq import *; " +
	"from bisect import *; from copy import *; from math import *; from random import *; from statistics import *; from itertools import *; " +
	"from functools import *; from operator import *; from io import *; from sys import *; from json import *; from builtins import *; " +
	"from typing import *; import string, re, datetime, collections, heapq, bisect, copy, math, random, statistics, itertools, functools, " +
	"operator, io, sys, json; sys.setrecursionlimit(50000)\n"

// future matches imports that Python requires before all others.
var future = regexp.MustCompile(`(?m)^from __future__ import (\([^)]*\)|.*)\n`)

// prepared is a program after its task's prelude. An empty program becomes a comment: it is a wrong program, and not an error of the
// file.
func (t *task) prepared(program string) string {
	if strings.TrimSpace(program) == "" {
		program = "# an empty program\n"
	}
	at := 0
	if all := future.FindAllStringIndex(program, -1); all != nil && t.prelude != "" {
		at = all[len(all)-1][1]
	}
	return program[:at] + t.prelude + program[at:]
}

// functional is a case of LiveCodeBench that calls a function: each line of its input is an argument.
func functional(l line, input, output string) (api.Case, error) {
	name, err := functionName(l)
	if err != nil {
		return api.Case{}, err
	}
	call := &api.Call{Function: name, Expect: json.RawMessage(output)}
	if !json.Valid(call.Expect) {
		return api.Case{}, fmt.Errorf("%s: the output %.80q of a functional case is not JSON", l.at, output)
	}
	for text := range strings.SplitSeq(input, "\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if !json.Valid([]byte(text)) {
			return api.Case{}, fmt.Errorf("%s: the argument %.80q of a functional case is not JSON", l.at, text)
		}
		call.Args = append(call.Args, json.RawMessage(text))
	}
	return api.Case{Call: call}, nil
}

func functionName(l line) (string, error) {
	raw := l.fields["metadata"]
	if text := ""; json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var m struct {
		Name string `json:"func_name"`
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.Name == "" {
		return "", fmt.Errorf("%s: functional cases need func_name in metadata", l.at)
	}
	return m.Name, nil
}

// quoted is a text as a Python literal: JSON strings are valid ones.
func quoted(s string) string {
	b, _ := json.Marshal(s) // encoding a string cannot fail
	return string(b)
}

// solutionClass matches the start of the class whose methods LeetCode calls.
var solutionClass = regexp.MustCompile(`(?m)^class Solution\b`)

// code is the submission that grades a program.
func (t *task) code(program string, limits api.CodeLimits) api.Code {
	c := api.Code{Language: "python", Limits: limits, Cases: t.cases, Compare: t.compare}
	program = t.prepared(program)
	switch {
	case t.method && solutionClass.MatchString(program):
		c.Source, c.Cases = program, slices.Clone(t.cases)
		for i := range c.Cases {
			if c.Cases[i].Call == nil {
				continue // the case reads stdin
			}
			call := *c.Cases[i].Call
			call.Function = "Solution." + call.Function
			c.Cases[i].Call = &call
		}
	case len(t.cases) > 0:
		c.Source = program
	default:
		c.Source, c.Files = runScript, map[string]api.Content{"program.py": api.Text(program + "\n" + t.tests)}
	}
	return c
}

func (t *task) passed(verdict string, r *api.CodeResult) bool {
	return verdict == api.VerdictOK && (len(t.cases) > 0 || string(r.Result) == `"passed"`)
}
