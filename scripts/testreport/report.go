package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/pawl-run/pawl/"

// mostPanics bounds the packages that are run again as a whole after a panic: if there are more, they are not flaky but broken.
const mostPanics = 2

// event is a line of go test -json; go doc test2json lists the actions.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// key identifies a test, or a package if the test is empty.
type key struct{ pkg, test string }

// result is the latest end of a test or a package.
type result struct {
	action  string // of the latest end: pass, fail or skip
	failure string // output of the first failure
	output  strings.Builder
	elapsed float64
}

type report struct {
	results  map[key]*result
	panicked bool // the process of a package ended with a panic, so that some of its tests may not have run
}

func newReport() *report { return &report{results: map[key]*result{}} }

// read reads the events of one step. A test that ends twice was run again: its latest end counts.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("%q is not an event of go test -json: %w", line, err)
			}
			r.add(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	k := key{strings.TrimPrefix(e.Package, module), e.Test}
	if e.Action == "start" || k.pkg == "" { // build-output and build-fail name no package; the package fails as well
		return
	}
	res := r.results[k]
	if res == nil {
		res = &result{}
		r.results[k] = res
	}
	switch e.Action {
	case "output":
		res.output.WriteString(e.Output)
		r.panicked = r.panicked || strings.HasPrefix(e.Output, "panic: ")
	case "fail":
		if res.failure == "" {
			res.failure = res.output.String()
		}
		fallthrough
	case "pass", "skip":
		res.action = e.Action
		res.elapsed += e.Elapsed
		if e.Action != "skip" {
			res.output.Reset()
		}
	}
}

// write prints the report and returns whether the tests have passed.
func (r *report) write(w io.Writer, name string, allowed skipList, strict bool) bool {
	ok := true
	var passed, failed, skipped, top, flaky int
	keys := r.sorted()
	byTest := map[string]bool{} // packages with a flaky test
	r.writeSlowest(w)
	for _, k := range keys {
		res := r.results[k]
		if k.test == "" {
			continue
		}
		if !strings.Contains(k.test, "/") {
			top++
		}
		switch res.action {
		case "skip":
			skipped++
			reason, listed := skipReason(res.output.String()), allowed.has(k)
			fmt.Fprintf(w, "SKIPPED %s %s: %s\n", k.pkg, k.test, reason)
			if strict && !listed {
				ok = false
				fmt.Fprintf(w, "  this skip is not in the list of skips that are allowed where every test must run\n")
			}
		case "pass":
			passed++
			if res.failure != "" {
				flaky++
				byTest[k.pkg] = true
				fmt.Fprintf(w, "FLAKY %s %s: it passed when it was run again alone; the output of its failure:\n%s", k.pkg, k.test, indented(res.failure))
			}
		default: // fail, or no end at all because the process ended
			failed++
			fmt.Fprintf(w, "FAILED %s %s\n", k.pkg, k.test)
		}
	}
	for _, k := range r.failedPackages(keys) {
		failed++
		fmt.Fprintf(w, "FAILED %s: the package, outside of its tests\n%s", k.pkg, indented(r.results[k].failure))
	}
	for _, k := range keys {
		if res := r.results[k]; k.test == "" && res.action == "pass" && res.failure != "" && !byTest[k.pkg] {
			flaky++
			fmt.Fprintf(w, "FLAKY %s: its tests passed when the package was run again; the output of its failure:\n%s", k.pkg, indented(res.failure))
		}
	}
	fmt.Fprintf(w, "\n%s ran %d tests with %d subtests; %d flaky\n", name, top, passed+failed+skipped-top, flaky)
	fmt.Fprintf(w, "%s: %d passed, %d failed, %d skipped\n", name, passed, failed, skipped)
	return ok && failed == 0 && passed > 0
}

// failedPackages returns the packages that failed for good although none of their tests did: they do not compile, or TestMain failed.
// A package with a flaky test fails once, too, and passes through the run of that test alone.
func (r *report) failedPackages(keys []key) []key {
	byTest := map[string]bool{}
	for _, k := range keys {
		if res := r.results[k]; k.test != "" && res.action != "pass" && res.action != "skip" {
			byTest[k.pkg] = true
		}
	}
	var all []key
	for _, k := range keys {
		if k.test == "" && r.results[k].action == "fail" && !byTest[k.pkg] {
			all = append(all, k)
		}
	}
	return all
}

// panics returns the packages to run again because of a panic: all that failed, because gotestsum runs nothing again after a panic.
func (r *report) panics() []string {
	var all []string
	for k, res := range r.results {
		if k.test == "" && res.action == "fail" {
			all = append(all, module+k.pkg)
		}
	}
	if !r.panicked || len(all) > mostPanics {
		return nil
	}
	slices.Sort(all)
	return all
}

func (r *report) sorted() []key {
	var keys []key
	for k := range r.results {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test)) })
	return keys
}

// writeSlowest prints the ten slowest packages, so that a slow-down is visible in every run.
func (r *report) writeSlowest(w io.Writer) {
	var keys []key
	for k := range r.results {
		if k.test == "" {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(r.results[b].elapsed, r.results[a].elapsed), cmp.Compare(a.pkg, b.pkg))
	})
	for _, k := range keys[:min(10, len(keys))] {
		fmt.Fprintf(w, "%7.1f s %s\n", r.results[k].elapsed, k.pkg)
	}
}

var position = regexp.MustCompile(`(?m)^\s*\S+_test\.go:\d+: |^\s*\S+\.go:\d+: `)

// skipReason is the reason of a skipped test: its output without the lines of go test and without positions in files.
func skipReason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- ") {
			said = append(said, strings.TrimSpace(position.ReplaceAllString(line, "")))
		}
	}
	return cmp.Or(strings.Join(said, " "), "no reason given")
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
	return b.String()
}
