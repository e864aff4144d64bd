package submit

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/terminal"
)

type caseOptions struct {
	dir           string
	compare       string
	tolerance     string // "": not given, which differs from zero
	checker       string
	interactor    string
	style         string
	stopOnFailure bool
	noExpect      bool
	accept        []int
	reject        []int
}

func (o *caseOptions) declare(f *pflag.FlagSet) {
	f.StringVar(&o.dir, "cases", "", "directory of test cases: NAME.in is the input, NAME.out or NAME.ans the expected output; or sha256:…, an uploaded list of cases")
	f.StringVar(&o.compare, "compare", "", "how outputs are compared: "+strings.Join(api.CompareModes()[:4], ", ")+" (default trimmed)")
	f.StringVar(&o.tolerance, "tolerance", "",
		"allowed absolute or relative difference of numbers that are not integers, for example 1e-6; implies --compare numeric")
	f.StringVar(&o.checker, "checker", "", "program that decides instead; its arguments are the files of input, output and expected output")
	f.StringVar(&o.interactor, "interactor", "", "program that talks with the one that is evaluated, and decides; its arguments are the files of input and expected output")
	f.StringVar(&o.style, "checker-style", "",
		"how the checker or interactor is called; kattis: arguments are input, answer and feedback directory, output on stdin, exit "+
			"code 42 accepts and 43 rejects")
	f.IntSliceVar(&o.accept, "checker-accept", nil, "exit codes by which the checker or interactor says right (default 0)")
	f.IntSliceVar(&o.reject, "checker-reject", nil, "exit codes by which it says wrong (default 1); every other one is checker_error")
	f.BoolVar(&o.noExpect, "no-expect", false, "allow cases without expected output; such a case passes with exit code 0")
	f.BoolVar(&o.stopOnFailure, "stop-on-failure", false, "skip the remaining cases after the first failure")
}

func addCases(a *app.App, e *api.Evaluation, o *caseOptions, stdin bool, c *contents) error {
	if o.dir == "" {
		ofChecker := o.checker != "" || o.interactor != "" || o.style != "" || len(o.accept)+len(o.reject) > 0
		if ofChecker || o.compare != "" || o.tolerance != "" || o.stopOnFailure || o.noExpect {
			return exit.Usagef("--compare, --tolerance, --checker, --interactor, --no-expect and --stop-on-failure are about cases, and so are " +
				"--checker-style, -accept and -reject: name their directory with --cases")
		}
		return nil
	}
	if stdin || e.Interactive {
		return exit.Usagef("--cases: each case has its own input: leave --stdin and -i out")
	}
	if len(e.Collect) > 0 {
		return exit.Usagef("--cases: nothing is collected from cases: leave --collect out")
	}
	var err error
	if strings.HasPrefix(o.dir, "sha256:") {
		e.Cases, o.noExpect = []api.Case{{Set: o.dir}}, true
	} else if e.Cases, err = readCases(o.dir, c); err != nil {
		return &exit.Error{Code: exit.Misuse, Err: fmt.Errorf("--cases: %w", err)}
	}
	e.StopOnFailure = o.stopOnFailure
	by, err := o.comparison(a)
	if err != nil {
		return err
	}
	if by != (api.Comparison{}) {
		e.Compare = &by
	}
	if by.Checker == nil && by.Interactor == nil && !o.noExpect {
		if err := expectAll(o.dir, e.Cases); err != nil {
			return &exit.Error{Code: exit.Misuse, Err: fmt.Errorf("--cases: %w", err)}
		}
	}
	return nil
}

func (o *caseOptions) comparison(a *app.App) (by api.Comparison, err error) {
	by.Mode = o.compare
	flag, file := "--checker", o.checker
	if o.interactor != "" {
		flag, file = "--interactor", o.interactor
	}
	switch modes := api.CompareModes()[:4]; {
	case o.checker != "" && o.interactor != "":
		return by, exit.Usagef("--checker and --interactor: each decides by itself; leave one of them out")
	case file == "" && len(o.accept)+len(o.reject) > 0:
		return by, exit.Usagef("--checker-accept and --checker-reject are the exit codes of a checker: name it with --checker, or an interactor with --interactor")
	case file == "" && o.style != "":
		return by, exit.Usagef("--checker-style %s is about a checker: name it with --checker, or an interactor with --interactor", o.style)
	case o.style != "" && o.style != api.CheckerKattis:
		return by, exit.Usagef("--checker-style %q: write %s, or leave it out", o.style, api.CheckerKattis)
	case file != "" && (o.compare != "" || o.tolerance != ""):
		return by, exit.Usagef("%s decides by itself: leave --compare and --tolerance out", flag)
	case o.compare != "" && !slices.Contains(modes, o.compare):
		return by, exit.Usagef("--compare %q: one of %s; --checker or --interactor names a program that decides", o.compare, strings.Join(modes, ", "))
	case o.tolerance != "" && o.compare != "" && o.compare != "numeric":
		return by, exit.Usagef("--tolerance is of --compare numeric, not of %s", o.compare)
	case o.tolerance != "":
		most, ok := app.Number(o.tolerance)
		if !ok || most < 0 {
			return by, exit.Usagef("--tolerance %s: give a number that is not negative, such as 1e-6", o.tolerance)
		}
		by.Mode, by.Absolute, by.Relative = "numeric", &most, &most
	case file != "":
		source, err := app.ReadBounded(file)
		if err != nil {
			return by, &exit.Error{Code: exit.Misuse, Err: fmt.Errorf("%s: %w", flag, err)}
		}
		language, err := languageOf(a, "", file, source)
		if err != nil {
			return by, fmt.Errorf("%s: %w", flag, err)
		}
		judge := &api.Checker{Language: language, Source: string(source), Style: o.style, Accept: o.accept, Reject: o.reject}
		if by.Mode, by.Checker = api.ModeChecker, judge; o.interactor != "" {
			by = api.Comparison{Mode: api.ModeInteractor, Interactor: (*api.Interactor)(judge)}
		}
	}
	return by, nil
}

// readCases reads the cases in a directory and its subdirectories, with numbers in natural order.
func readCases(dir string, from *contents) ([]api.Case, error) {
	inputs, answers := map[string]string{}, map[string]string{}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name the directory with the cases, NAME.in and NAME.out (or NAME.ans)", dir)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		ext := filepath.Ext(rel)
		name := filepath.ToSlash(strings.TrimSuffix(rel, ext))
		if ext == ".in" || ext == ".out" || ext == ".ans" {
			if info, err := os.Stat(path); err != nil {
				return err // names the path
			} else if !info.Mode().IsRegular() { // the end of a FIFO may never come
				return fmt.Errorf("%s is not a regular file: put a copy of what it has there", path)
			}
		}
		switch ext {
		case ".in":
			inputs[name] = path
		case ".out", ".ans":
			if other, twice := answers[name]; twice {
				return fmt.Errorf("%s and %s both have the expected output: leave one", other, path)
			}
			answers[name] = path
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(inputs) == 0 {
		return nil, fmt.Errorf("%s has no cases: put NAME.in and NAME.out (or NAME.ans) there", dir)
	}
	names := slices.SortedFunc(maps.Keys(inputs), countedOrder)
	for name, path := range answers {
		if _, ok := inputs[name]; !ok {
			return nil, fmt.Errorf("%s has no %s beside it", path, filepath.Base(name)+".in")
		}
	}
	if len(names) > api.MaxCases {
		return nil, fmt.Errorf("%s has %d cases: one evaluation takes %d; split the directory", dir, len(names), api.MaxCases)
	}
	all := make([]api.Case, len(names))
	for i, name := range names {
		c := &all[i]
		c.Name = name
		if err := from.add(inputs[name], 0, func(in api.Content) { c.Stdin = in }); err != nil {
			return nil, err
		}
		if path, ok := answers[name]; ok {
			c.Expect = &api.Content{} // a large one is filled in after its upload
			if err := from.add(path, 0, func(out api.Content) { *c.Expect = out }); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// expectAll refuses cases without an expected output: without a checker such a case would pass with any output, and
// one misnamed file (2.expected for 2.out) would give full marks.
func expectAll(dir string, cases []api.Case) error {
	var bare []string
	for _, c := range cases {
		if c.Expect == nil {
			bare = append(bare, c.Name)
		}
	}
	if len(bare) == 0 {
		return nil
	}
	stem := filepath.Join(dir, filepath.FromSlash(bare[0]))
	which := stem + ".in"
	if more := len(bare) - 1; more > 0 {
		which += fmt.Sprintf(" (and %d more)", more)
	}
	say := fmt.Sprintf("%s has nothing to be compared with: there is neither %s.out nor %s.ans", which, stem, stem)
	if similar, _ := filepath.Glob(stem + ".*"); len(similar) > 1 {
		similar = slices.DeleteFunc(similar, func(s string) bool { return s == stem+".in" })
		say += fmt.Sprintf("; is %s meant? rename it", similar[0])
	} else {
		say += "; write what is expected there"
	}
	return fmt.Errorf("%s, or give --checker or --interactor, or --no-expect when only the exit code counts", say)
}

// countedOrder orders 2 before 10.
func countedOrder(a, b string) int {
	rest := func(s string) (digits, behind string) {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		return s[:n], s[n:]
	}
	for x, y := a, b; x != "" && y != ""; {
		dx, bx := rest(x)
		dy, by := rest(y)
		if dx != "" && dy != "" {
			nx, ny := strings.TrimLeft(dx, "0"), strings.TrimLeft(dy, "0")
			if len(nx) != len(ny) {
				return len(nx) - len(ny)
			}
			if c := strings.Compare(nx, ny); c != 0 {
				return c
			}
			x, y = bx, by
			continue
		}
		if x[0] != y[0] {
			return int(x[0]) - int(y[0])
		}
		x, y = x[1:], y[1:]
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// followCases forwards the compiler's output, and on a terminal counts the cases: out of total if it is known (> 0).
func followCases(ctx context.Context, a *app.App, c *client.Client, id string, q *client.LogQuery, total int) error {
	counting, done := terminal.IsTerminal(a.Err), 0
	for chunk, err := range c.FollowLogs(ctx, id, *q) {
		if err != nil {
			return err
		}
		q.After = client.AfterLog(chunk)
		if chunk.Stream != "log" {
			if _, err := a.Err.Write(chunk.Bytes()); err != nil {
				return fmt.Errorf("pass on %s: %w", chunk.Stream, err)
			}
			continue
		}
		if done += bytes.Count(chunk.Bytes(), []byte{'\n'}); counting {
			of := ""
			if total > 0 {
				of = " of " + strconv.Itoa(total)
			}
			fmt.Fprintf(a.Err, "\r\x1b[K%d%s cases", done, of)
		}
	}
	if counting && done > 0 {
		fmt.Fprint(a.Err, "\r\x1b[K")
	}
	return nil
}

// writeCases shows how each case ended, and the first difference.
func writeCases(a *app.App, r *api.CodeResult) {
	t := output.Titled("CASE", "VERDICT", "TIME", "MEMORY", "")
	var differs, talked *api.CaseResult // the first that failed
	for i, c := range r.Cases {
		if c.Verdict == api.Skipped {
			t.Row(c.Name, c.Verdict)
			continue
		}
		message := c.Message
		if c.Uncompared && c.Verdict == "ok" {
			message = "not compared"
		}
		t.Row(c.Name, c.Verdict, fmt.Sprintf("%.0f ms", c.WallMS), fmt.Sprintf("%.0f MiB", float64(c.HeldMemoryBytes)/(1<<20)), message)
		if c.Mismatch != nil && differs == nil {
			differs = &r.Cases[i]
		}
		if c.Transcript != nil && c.Verdict != "ok" && talked == nil {
			talked = &r.Cases[i]
		}
	}
	t.Write(a.Out)
	if differs != nil {
		m := differs.Mismatch
		output.Printf(a.Out, "\nfirst difference: case %s, line %d of its output\n  - %s\n  + %s\n",
			terminal.Clean(differs.Name), m.Line, terminal.Clean(m.Want), terminal.Clean(m.Got))
	}
	if talked != nil {
		writeDialogue(a, talked)
	}
	s := r.Summary
	passed := "passed"
	if s.Uncompared > 0 && s.Uncompared == s.Passed {
		passed = "ran" // to its end, with exit code 0: nothing else is known
	}
	output.Printf(a.Out, "\n%d of %s %s", s.Passed, output.Plural(s.Total, "case", "cases"), passed)
	if s.Uncompared > 0 {
		output.Printf(a.Out, ", %d not compared", s.Uncompared)
	}
	if s.Skipped > 0 {
		output.Printf(a.Out, ", %d skipped", s.Skipped)
	}
	fmt.Fprintln(a.Out)
}
