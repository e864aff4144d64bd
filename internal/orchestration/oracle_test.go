package orchestration

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// fate is what the oracle knows of a task at the end: from the rows, by rules that are written a second time here, in
// other words than the code's.
type fate struct {
	ran                        bool // it has children, or an empty list of items
	bad, cancelled             bool
	skipped, swept, incomplete bool
	broken                     bool
	okay                       bool // counts as success for later tasks
	badAbove, cancelAbove      bool // including itself
}

func (x *world) fates() []fate {
	fates := make([]fate, len(x.w.Tasks))
	for i, t := range x.w.Tasks {
		f := &fates[i]
		created := 0
		last := flow.Stage(0)
		for _, key := range x.order {
			if key[0] != i {
				continue
			}
			created++
			last = x.children[key].stage
			switch x.children[key].stage {
			case flow.Failed, flow.TimedOut:
				f.bad = true
			case flow.Cancelled:
				f.cancelled = true
			}
		}
		m := x.marks[i]
		f.ran = created > 0 || m.Mark == Expanded
		f.broken = m.Mark == Broken
		f.bad = f.bad || f.broken
		if t.Repeat != nil && created > 0 {
			f.bad = m.Mark == NotReached || m.Mark == Broken || !t.ContinueOnError && (last == flow.Failed || last == flow.TimedOut)
			x.fateOfRounds(t, m.Mark, created, last)
		}
		f.skipped = m.Mark == Skipped
		f.swept = m.Mark == Cancelled
		f.incomplete = m.Mark == Expanded && created < m.Total
		f.okay = (f.ran || f.broken) && !f.cancelled && !f.swept && !f.incomplete && (!f.bad || t.ContinueOnError)
	}
	return fates
}

// fateOfRounds checks the decision about a repeated task against the ends of its rounds.
func (x *world) fateOfRounds(t *definition.Task, m Mark, created int, last flow.Stage) {
	bad := last == flow.Cancelled || !t.ContinueOnError && last != flow.Completed
	switch {
	case m == Broken, x.ending != 0:
	case bad && m != Unmarked:
		x.t.Fatalf("%s is %s after a round that ended it", t.Name, m)
	case bad:
	case x.held(t, created-1) != (m == Reached):
		x.t.Fatalf("%s is %q after round %d, and its until holds: %t", t.Name, m, created, x.held(t, created-1))
	case m == NotReached && created != t.Repeat.Max:
		x.t.Fatalf("%s has had %d rounds of %d", t.Name, created, t.Repeat.Max)
	case m == Unmarked:
		x.t.Fatalf("%s is undecided after round %d", t.Name, created)
	}
}

// judge recomputes the outcome and every task's fate.
func (x *world) judge(src string) {
	fates := x.fates()
	want := flow.Completed
	for _, f := range fates {
		if f.cancelled || f.incomplete || f.swept {
			want = flow.Cancelled
		}
	}
	for i, f := range fates {
		if f.bad && !x.w.Tasks[i].ContinueOnError {
			want = flow.Failed
		}
	}
	failed := want == flow.Failed
	if x.ending != 0 {
		want = x.ending
	}
	if x.stage != want {
		x.t.Fatalf("the workflow is %s, the oracle says %s\n%s\n%+v", x.stage, want, src, fates)
	}
	if (x.stage == flow.Failed) != (x.outcome.Error != nil) && x.stage != flow.Cancelled && x.ending == 0 {
		x.t.Fatalf("the workflow is %s with error %v", x.stage, x.outcome.Error)
	}
	if x.stage == flow.Completed {
		x.judgeOutput(src, fates)
	}
	for i := range x.w.Tasks { // document order is topological here
		x.judgeTask(src, i, fates, failed)
	}
}

func (x *world) judgeTask(src string, i int, fates []fate, failed bool) {
	t, f := x.w.Tasks[i], &fates[i]
	success, failedAbove, cancelAbove, unsure := true, false, false, false
	for _, n := range t.Needs {
		b := fates[n]
		success = success && b.okay
		failedAbove = failedAbove || b.badAbove
		cancelAbove = cancelAbove || b.cancelAbove
	}
	// If a child was cancelled and something elsewhere failed too, it counts as a failure or not depending on which was
	// first.
	unsure = cancelAbove && failed && !failedAbove
	f.badAbove = failedAbove || f.bad && !t.ContinueOnError || f.swept
	f.cancelAbove = cancelAbove || f.swept || (f.cancelled || f.incomplete) && (!f.bad || t.ContinueOnError)
	if x.ending != 0 {
		if x.cleaning && conditionOf(src, i) == "always()" && !f.ran && !f.broken {
			x.t.Fatalf("the clean-up has left t%d out\n%s", i, src)
		}
		return // nothing else starts after an ending; commit and check tested the rest
	}
	var run bool
	survives := false
	switch conditionOf(src, i) {
	case "", "success()", "success() && input.yes", "tasks.size() >= 0":
		run = success
	case "input.no":
		run = false
	case "always()":
		run, survives = true, true
	case "failed()":
		run, survives = failedAbove, true
	case "failed() || input.yes":
		run, survives = true, true
	case "cancelled()":
		run, survives, unsure = cancelAbove, true, false
	case "!success()":
		run, survives, unsure = !success, true, false
	default:
		x.t.Fatalf("the oracle does not know the condition of t%d", i)
	}
	started := f.ran || f.broken
	switch {
	case unsure && survives:
	case started && !run:
		x.t.Fatalf("t%d ran, and should not have\n%s\n%+v", i, src, fates)
	case !started && run && (survives || !failed):
		x.t.Fatalf("t%d did not run, and should have\n%s\n%+v", i, src, fates)
	case !started && !run && f.swept && survives:
		x.t.Fatalf("t%d survives a failure and was swept away\n%s", i, src)
	case f.incomplete && !failed && !f.bad:
		x.t.Fatalf("t%d stopped half way for no reason\n%s", i, src)
	}
}

// judgeOutput checks that the items of a foreach keep the order of its list.
func (x *world) judgeOutput(src string, fates []fate) {
	var out struct {
		All map[string]struct {
			Status definition.Status `json:"status"`
			Output json.RawMessage   `json:"output"`
		} `json:"all"`
	}
	if err := json.Unmarshal(x.outcome.Output, &out); err != nil {
		x.t.Fatalf("read outputs %s: %v", x.outcome.Output, err)
	}
	if len(out.All) != len(x.w.Tasks) {
		x.t.Fatalf("outputs name %d tasks of %d", len(out.All), len(x.w.Tasks))
	}
	for i, t := range x.w.Tasks {
		if t.Foreach == nil || !fates[i].ran || fates[i].bad {
			continue
		}
		var items []struct {
			Index int `json:"index"`
		}
		if err := json.Unmarshal(out.All[t.Name].Output, &items); err != nil {
			x.t.Fatalf("output of %s is %s: %v", t.Name, out.All[t.Name].Output, err)
		}
		if len(items) != x.marks[i].Total {
			x.t.Fatalf("%s has %d outputs of %d items\n%s", t.Name, len(items), x.marks[i].Total, src)
		}
		for k, item := range items {
			if item.Index != k {
				x.t.Fatalf("output %d of %s is that of item %d", k, t.Name, item.Index)
			}
		}
	}
}

// conditionOf reads the condition of t<i> from the text.
func conditionOf(src string, i int) string {
	var lines []string
	in := false
	for line := range strings.SplitSeq(src, "\n") {
		if len(line) > 2 && line[:2] == "  " && line[2] != ' ' {
			in = line == fmt.Sprintf("  t%d:", i)
		}
		if in {
			lines = append(lines, line)
		}
	}
	for _, line := range lines {
		var c string
		if n, err := fmt.Sscanf(line, "    if: %q", &c); n == 1 && err == nil {
			return c
		}
	}
	return ""
}
