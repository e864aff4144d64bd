package verification_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/verification"
)

// numbers finds the number of the invariant of each check in a source file.
var numbers = regexp.MustCompile("(?:\\.Add\\(|Invariant: |InvariantReplay = |^\t\\{)([0-9]+)(?:, |\\b)")

// Each checked invariant is among the promises, and each promise is checked somewhere and has the text of docs/invariants.md.
func TestPromisesAreThoseThatAreChecked(t *testing.T) {
	t.Parallel()
	checked := map[int]string{}
	for _, pattern := range []string{"*.go", "../sqlite/*.go", "../postgres/*.go", "../../engine/verify*.go", "../../engine/histories/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == "promises.go" {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.SplitSeq(string(text), "\n") {
				if m := numbers.FindStringSubmatch(line); m != nil {
					n, _ := strconv.Atoi(m[1])
					checked[n] = file
				}
			}
		}
	}
	document, err := os.ReadFile("../../../docs/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[int]bool{}
	for _, p := range verification.Promises {
		listed[p.Number] = true
		if checked[p.Number] == "" {
			t.Errorf("nothing checks promise %d", p.Number)
		}
		if row := "| " + strconv.Itoa(p.Number) + " | " + p.Says + " |"; !strings.Contains(strings.ReplaceAll(string(document), "`", ""), row) {
			t.Errorf("docs/invariants.md does not say %q", row)
		}
		if p.LookedAt == "" {
			t.Errorf("what is looked at for promise %d?", p.Number)
		}
	}
	for n, file := range checked {
		if !listed[n] {
			t.Errorf("%s checks invariant %d, which is not among the promises", file, n)
		}
	}
	if !slices.IsSortedFunc(verification.Promises, func(a, b verification.Promise) int { return a.Number - b.Number }) {
		t.Error("the promises are not in the order of their numbers")
	}
}

// A promise is kept only if all of it was checked.
func TestReport(t *testing.T) {
	t.Parallel()
	state := func(all []verification.Standing, n int) string {
		i := slices.IndexFunc(all, func(p verification.Standing) bool { return p.Number == n })
		if i < 0 {
			return "not listed"
		}
		return all[i].State
	}
	few := []store.Violation{{Invariant: 12, Execution: flow.ID{7}}, {Invariant: 12}}
	rows := verification.Report(few)
	if state(rows, 12) != verification.Broken || state(rows, 13) != verification.Kept || state(rows, 40) != "not listed" || state(rows, 61) != "not listed" {
		t.Errorf("rows alone: %+v", rows)
	}
	many := verification.Report(slices.Repeat(few, verification.Most/2), verification.Engine, verification.Replay)
	if state(many, 12) != verification.Broken || state(many, 13) != verification.Unknown || state(many, 40) != verification.Kept || state(many, 61) != verification.Kept {
		t.Errorf("where Check stopped: %+v", many)
	}
}
