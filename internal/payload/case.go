package payload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/comparison"
	"github.com/pawl-run/pawl/internal/language"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// maxCaseName is the largest size of a case's name in bytes.
const maxCaseName = 200

// Rule returns how outputs are compared without a checker; nil is the default.
func Rule(c *api.Comparison) comparison.Rule {
	c = cmp.Or(c, &api.Comparison{})
	r := comparison.Rule{Mode: comparison.Mode(c.Mode)}
	r.Mode = cmp.Or(r.Mode, comparison.Trimmed)
	if c.Absolute == nil && c.Relative == nil {
		r.Absolute, r.Relative = comparison.DefaultTolerance, comparison.DefaultTolerance
	}
	if c.Absolute != nil {
		r.Absolute = *c.Absolute
	}
	if c.Relative != nil {
		r.Relative = *c.Relative
	}
	return r
}

// Judge returns the program that decides about the cases, and its place in the code: the checker, or the interactor, which has the same
// fields. nil: outputs are compared without a program.
func Judge(c *api.Code) (at string, program *api.Checker) {
	switch {
	case c.Compare == nil:
	case c.Compare.Checker != nil:
		return "compare.checker", c.Compare.Checker
	case c.Compare.Interactor != nil:
		return "compare.interactor", (*api.Checker)(c.Compare.Interactor)
	}
	return "", nil
}

func ExitCodes(c *api.Checker) (accept, reject []int) {
	accept, reject = []int{0}, []int{1}
	if c.Style == api.CheckerKattis {
		accept, reject = []int{42}, []int{43}
	}
	if len(c.Accept) > 0 {
		accept = c.Accept
	}
	if len(c.Reject) > 0 {
		reject = c.Reject
	}
	return accept, reject
}

type list []api.Case

// readCases reads a list of cases, or an object that names an uploaded one.
func readCases(r *strictjson.Reader, into reflect.Value) {
	if r.Kind() != '{' {
		var all list
		r.Value(reflect.ValueOf(&all).Elem())
		into.Set(reflect.ValueOf([]api.Case(all)))
		return
	}
	var named struct {
		Set string `json:"set" check:"case_set"`
	}
	if r.Struct(reflect.ValueOf(&named).Elem()) {
		into.Set(reflect.ValueOf([]api.Case{{Set: named.Set}}))
	}
}

// checkSet refuses a text that is not the name of an upload.
func checkSet(r *strictjson.Reader, at string, v reflect.Value) {
	if name := v.String(); !setName.MatchString(name) {
		r.ProblemAt(at, strconv.Quote(problem.Clip(name, 60)), "it is not the name of an upload", "give sha256: and the 64 hexadecimal digits that pawl upload prints")
	}
}

var setName = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// SetOf returns the name of the uploaded list with the cases of the code; "": there is none.
func SetOf(c *api.Code) string {
	if len(c.Cases) != 1 {
		return ""
	}
	return c.Cases[0].Set
}

// WithSet returns code with the cases of an uploaded list. The error is a *strictjson.Error that lists all errors of both together.
func WithSet(c api.Code, cases []byte) (api.Code, error) {
	c.Cases = nil
	rest, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	whole := append([]byte(`{"cases":`), cases...)
	whole = append(append(whole, ','), rest[1:]...)
	if c, err = decode[api.Code](whole); err != nil {
		return c, err
	}
	var e strictjson.Error
	if !json.Valid(cases) { // it must be a complete list, or else text after it would be read as fields of the code
		e.Problems = append(e.Problems,
			problem.Problem{Path: "cases", Message: "something follows the list", Fix: "leave it out: a set is one JSON list"})
	}
	for i := range c.Cases {
		one, at := &c.Cases[i], fmt.Sprintf("cases[%d]", i)
		switch {
		case one.Set != "":
			e.Problems = append(e.Problems, problem.Problem{Path: at + ".set", Message: "a set names no other set", Fix: "put the cases themselves into it"})
		case one.Stdin.Blob != "" || one.Expect != nil && one.Expect.Blob != "":
			e.Problems = append(e.Problems, problem.Problem{Path: at, Message: "a case of a set names no other upload", Fix: "put its stdin and expect themselves into the set"})
		}
	}
	if len(e.Problems) > 0 {
		return c, &e
	}
	return c, nil
}

// checkCases gives cases without a name their number, from 1.
func checkCases(r *strictjson.Reader, at string, v reflect.Value) {
	cases := v.Interface().([]api.Case)
	if len(cases) == 0 || len(cases) > api.MaxCases {
		r.ProblemAt(at, "", fmt.Sprintf("it has %d cases", len(cases)), fmt.Sprintf("give 1 to %d; several evaluations take more", api.MaxCases))
		return
	}
	if i := slices.IndexFunc(cases, func(c api.Case) bool { return c.Set != "" }); i >= 0 {
		if len(cases) > 1 || !reflect.DeepEqual(cases[i], api.Case{Set: cases[i].Set}) {
			r.ProblemAt(fmt.Sprintf("%s[%d].set", at, i), strconv.Quote(cases[i].Set), "it stands for all cases, and there is more beside it",
				"leave the rest out, or put it into the set")
		}
		return
	}
	names := map[string]int{}
	for i := range cases {
		c, where := &cases[i], fmt.Sprintf("%s[%d]", at, i)
		c.Name = cmp.Or(c.Name, strconv.Itoa(i+1))
		if first, twice := names[c.Name]; twice {
			r.ProblemAt(where+".name", strconv.Quote(c.Name), fmt.Sprintf("case cases[%d] has that name already", first), "give each case a name of its own")
		}
		names[c.Name] = i
		checkCaseOutput(r, where, c.Limits)
	}
}

// functionName matches a function, or a method of a class.
var functionName = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)?$`)

func checkFunction(r *strictjson.Reader, at string, v reflect.Value) {
	if v.String() == "" {
		r.ProblemAt(at, "", "it is missing", `name the function that is called, such as "add"`)
		return
	}
	if name := v.String(); len(name) > maxCaseName || !functionName.MatchString(name) {
		r.ProblemAt(at, strconv.Quote(problem.Clip(name, 60)), "it is not the name of a function",
			`write one such as "add", or "Solution.add" for a method of a class`)
	}
}

// checkCalls checks cases that call functions: the language, and that they have no fields which a call does not use.
func checkCalls(r *strictjson.Reader, c *api.Code) {
	for i := range c.Cases {
		one, at := &c.Cases[i], fmt.Sprintf("cases[%d]", i)
		if one.Call == nil {
			continue
		}
		if name, known := language.BuiltIn().Resolve(c.Language); known && !language.BuiltIn().Calls(name) {
			r.ProblemAt(at+".call", "", fmt.Sprintf("functions of %s programs cannot be called", name),
				"give stdin and expect, or a program in Python")
			return
		}
		if !one.Stdin.IsZero() {
			r.ProblemAt(at+".stdin", "", "a function that is called reads no stdin", "give what it needs in call.args")
		}
		if len(one.Args) > 0 {
			r.ProblemAt(at+".args", "", "these are arguments of the program as a whole", "move them into call.args")
		}
		if one.Expect != nil {
			r.ProblemAt(at+".expect", "", "this is what the program as a whole should print",
				"give the value that the function should return, in call.expect")
		}
		if m := c.Compare; m != nil && m.Mode != string(comparison.Numeric) {
			r.ProblemAt("compare.mode", strconv.Quote(m.Mode), at+" calls a function, and values are compared as values",
				`leave compare out, or use the mode "numeric" for tolerances`)
			return
		}
		for k, arg := range one.Call.Args {
			checkNumbers(r, fmt.Sprintf("%s.call.args[%d]", at, k), arg)
		}
		for _, name := range slices.Sorted(maps.Keys(one.Call.Kwargs)) {
			checkNumbers(r, problem.Join(at+".call.kwargs", name), one.Call.Kwargs[name])
		}
		checkNumbers(r, at+".call.expect", one.Call.Expect)
	}
}

// checkNumbers refuses numbers that a program would read differently: 1e400 as infinite, and 1e-400 as 0. Any number of digits is allowed.
func checkNumbers(r *strictjson.Reader, at string, value json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		n, ok := token.(json.Number)
		if !ok || !strings.ContainsAny(n.String(), ".eE") {
			continue
		}
		digits, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
		switch f, err := n.Float64(); {
		case err != nil:
			r.ProblemAt(at, problem.Clip(n.String(), 60), "it is too large a number", "write one within 1.8e308, or a whole number in digits")
		case f == 0 && strings.ContainsAny(digits, "123456789"):
			r.ProblemAt(at, problem.Clip(n.String(), 60), "it is too small a number", "write 0, or one of at least 1e-300")
		}
	}
}

func checkCaseName(r *strictjson.Reader, at string, v reflect.Value) {
	if name := v.String(); len(name) > maxCaseName || strings.ContainsAny(name, "\n\r") {
		r.ProblemAt(at, strconv.Quote(name), "it is not a name for a case", fmt.Sprintf("write one line of at most %d bytes", maxCaseName))
	}
}

// checkCaseOutput checks the output limit, because the output is held in memory for the comparison.
func checkCaseOutput(r *strictjson.Reader, at string, l api.CodeLimits) {
	if l.Output > api.MaxCaseOutput {
		r.ProblemAt(beneath(at, "limits.output"), l.Output.String(), "with cases, all output is held to be compared", "at most "+api.MaxCaseOutput.String())
	}
}

// readComparison reads a comparison, which is an object or only a mode.
func readComparison(r *strictjson.Reader, into reflect.Value) {
	c := into.Addr().Interface().(*api.Comparison)
	if r.Kind() == '"' {
		mode, ok := r.Text()
		if !ok {
			return
		}
		c.Mode = mode
		if !slices.Contains(api.CompareModes(), mode) {
			checkCompareMode(r, "", reflect.ValueOf(mode))
			return
		}
	} else if !r.Struct(into) {
		return
	}
	if c.Mode == "" && c.Checker != nil {
		c.Mode = api.ModeChecker
	}
	if c.Mode == "" && c.Interactor != nil {
		c.Mode = api.ModeInteractor
	}
	if c.Mode == "" && (c.Absolute != nil || c.Relative != nil) {
		c.Mode = string(comparison.Numeric)
	}
	switch {
	case c.Mode == api.ModeChecker && c.Checker == nil:
		r.ProblemAt("checker", "", "it is missing", `give the checker's "language" and "source"`)
	case c.Mode != api.ModeChecker && c.Checker != nil:
		r.ProblemAt("checker", "", fmt.Sprintf("the mode %q has no checker", c.Mode), `leave one of the two out, or use the mode "checker"`)
	case c.Mode == api.ModeInteractor && c.Interactor == nil:
		r.ProblemAt("interactor", "", "it is missing", `give the interactor's "language" and "source"`)
	case c.Mode != api.ModeInteractor && c.Interactor != nil:
		r.ProblemAt("interactor", "", fmt.Sprintf("the mode %q has no interactor", c.Mode), `leave one of the two out, or use the mode "interactor"`)
	case c.Mode != string(comparison.Numeric) && (c.Absolute != nil || c.Relative != nil):
		r.ProblemAt("", "", fmt.Sprintf("the mode %q has no tolerances", c.Mode), `leave them out, or use the mode "numeric"`)
	}
}

func checkCompareMode(r *strictjson.Reader, at string, v reflect.Value) {
	if !slices.Contains(api.CompareModes(), v.String()) {
		r.ProblemAt(at, strconv.Quote(v.String()), "it is not a way to compare", "one of "+strings.Join(api.CompareModes(), ", "))
	}
}

func checkTolerance(r *strictjson.Reader, _ string, v reflect.Value) {
	if f := reflect.Indirect(v).Float(); f < 0 {
		r.Problem("it is not a tolerance", "write a number that is not negative, such as 1e-6")
	}
}

func checkCheckerStyle(r *strictjson.Reader, at string, v reflect.Value) {
	if style := v.String(); style != api.CheckerKattis {
		r.ProblemAt(at, strconv.Quote(style), "it is not a way to call a checker", fmt.Sprintf("write %q, or leave it out", api.CheckerKattis))
	}
}

func checkExitCodes(r *strictjson.Reader, _ string, v reflect.Value) {
	codes := v.Interface().([]int)
	if len(codes) == 0 || slices.Min(codes) < 0 || slices.Max(codes) > 255 {
		r.Problem("it is not a list of exit codes", "write whole numbers from 0 to 255, such as [42]")
	}
}

// The files in the working directory of a checker or interactor. The first three are its arguments, in this order.
const (
	CheckInput    = "input.txt"
	CheckOutput   = "output.txt"
	CheckExpected = "expected.txt"

	// Feedback is the directory that a Kattis program gets as its third argument, and JudgeMessage is the file in it with the message.
	Feedback     = "feedback"
	JudgeMessage = Feedback + "/judgemessage.txt"
)

func wholeChecker(r *strictjson.Reader, c *api.Checker) {
	checkPlaced(r, c.Files, CheckInput, CheckOutput, CheckExpected, JudgeMessage)
	accept, reject := ExitCodes(c)
	for _, code := range accept {
		if slices.Contains(reject, code) {
			r.ProblemAt("accept", strconv.Itoa(code), "the same exit code says right and wrong", "give both accept and reject, without a code in common")
		}
	}
}
