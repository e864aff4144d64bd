package orchestration

import (
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/definition"
)

// Refusal is why a rerun of only some items is impossible.
type Refusal struct {
	Item Item // of the named ones
	Say  string
	Fix  string
}

func (r *Refusal) Error() string { return r.Say }

// PlanOnly plans a rerun that runs only the named items: everything before them is reused, and so are other tasks where possible.
// Everything else is left out. It returns a *Refusal if something before them would have to run, or if they themselves would not.
func PlanOnly(w *definition.Workflow, o *Original, only []Item, f Facts) (*RerunPlan, error) {
	var targets, before, after []string
	for _, t := range w.Tasks {
		if slices.ContainsFunc(only, func(i Item) bool { return i.Task == t.Name }) {
			targets = append(targets, t.Name)
			before = append(before, w.Upstream(t)...)
			after = append(after, After(w, t)...)
		}
	}
	for _, i := range only {
		if slices.Contains(after, i.Task) {
			return nil, &Refusal{i, fmt.Sprintf("%s comes after another task that was named, so it does not run alone", i.Task), "rerun one after the other, or from the first on: --from"}
		}
	}
	needed := func(name string) bool { return slices.Contains(targets, name) || slices.Contains(before, name) }
	// Their needs, without other tasks.
	alone := PlanRerun(w.Only(targets, without(w, needed)), o, only, f)
	if err := alone.refuses(only, needed); err != nil {
		return nil, err
	}
	// Other tasks that a rerun from them on would reuse are kept.
	all := PlanRerun(w, o, only, f)
	leave := without(w, func(name string) bool {
		return needed(name) || !slices.Contains(after, name) && slices.Contains([]Decision{Reuse, Override},
			all.Tasks[w.Task(name).Index].Decision)
	})
	// A reused task may need a task that is left out because its condition does not hold: then it is left out, too.
	for n := -1; n != len(leave); {
		n = len(leave)
		leave = without(w, func(name string) bool {
			return needed(name) || !slices.Contains(leave, name) && !slices.ContainsFunc(w.Upstream(w.Task(name)), func(up string) bool { return slices.Contains(leave, up) })
		})
	}
	plan := PlanRerun(w.Only(targets, leave), o, only, f)
	plan.LeftOut = leave
	return plan, plan.refuses(only, needed)
}

// refuses returns why a plan cannot run only some items. It ignores tasks that are not needed.
func (p *RerunPlan) refuses(only []Item, needed func(string) bool) error {
	for _, t := range p.Tasks {
		at := slices.IndexFunc(only, func(i Item) bool { return i.Task == t.Task })
		if !needed(t.Task) {
			continue
		}
		switch {
		case at < 0 && t.Runs == 0 && (t.Decision == Reuse || t.Decision == Override || t.Decision == Skip):
		case at < 0:
			return &Refusal{only[0], fmt.Sprintf("%s, which comes before it, cannot be reused: %s", t.Task, t.Reason),
				"rerun without --only: what did not complete runs, with everything after it"}
		case t.Decision != Run && t.Decision != Partly:
			return &Refusal{only[at], fmt.Sprintf("%s would not run: %s", t.Task, t.Reason), "name a task that runs, or leave --only out"}
		}
	}
	return p.runsBeside(only)
}

// runsBeside finds items of the named tasks that would run although they were not named.
func (p *RerunPlan) runsBeside(only []Item) error {
	for _, t := range p.Tasks {
		at := slices.IndexFunc(only, func(i Item) bool { return i.Task == t.Task })
		if at < 0 || slices.Contains(only, Item{t.Task, AllItems}) {
			continue
		}
		for _, n := range t.Items {
			if !slices.Contains(only, Item{t.Task, n}) {
				return &Refusal{only[at], fmt.Sprintf("%s[%d], beside it, did not complete either, and would run as well", t.Task, n),
					fmt.Sprintf("name it too, as in --only '%s[%d]', or the whole task: --only %s", t.Task, n, t.Task)}
			}
		}
	}
	return nil
}

// without names the tasks that are not kept.
func without(w *definition.Workflow, kept func(name string) bool) (names []string) {
	for _, t := range w.Tasks {
		if !kept(t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}
