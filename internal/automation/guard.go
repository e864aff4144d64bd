package automation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
)

// Guard returns why a rule must not run on a signal that a chain of rules has led to; nil: it may.
func Guard(r *Rule, chain []string) *flow.Reason {
	path := strings.Join(append(slices.Clone(chain), r.Name), " → ")
	if !r.Reentry && slices.Contains(chain, r.Name) {
		return &flow.Reason{Code: flow.ReasonLoop, Path: "reentry", Message: fmt.Sprintf("the rule has led to this signal itself: %s", path)}
	}
	if len(chain) >= r.Depth {
		return &flow.Reason{Code: flow.ReasonTooDeep, Path: "depth", Message: fmt.Sprintf("%d rules have led to one another, and the rule allows %d: %s", len(chain), r.Depth, path)}
	}
	return nil
}

// Cycles are the cycles of rules that start one another by the ends of their executions, each from its first rule by name, without those in
// which a rule has reentry: allow. A rule that names neither actions nor labels is in no cycle. labels returns the labels that the
// executions of an action get from its definition.
func Cycles(rules []*Rule, labels func(action string, version int) map[string]string) (all [][]string) {
	byName := slices.SortedFunc(slices.Values(rules), func(a, b *Rule) int { return strings.Compare(a.Name, b.Name) })
	next := make([][]int, len(byName))
	for j, to := range byName {
		if to.Reentry || !slices.Contains(to.On, flow.TriggerEnded) {
			continue
		}
		actions, _, wanted := to.Ends()
		if len(actions) == 0 && len(wanted) == 0 {
			continue // it listens to the ends of all executions: Guard keeps it from its own chain
		}
		for i, r := range byName {
			action, _, _ := strings.Cut(r.Run.Action, "@") // an alias names the same action
			if r.Reentry || len(actions) > 0 && !slices.Contains(actions, action) {
				continue
			}
			if len(wanted) == 0 || flow.HasLabels(merged(labels(r.Run.Action, r.Run.Version), r.Run.Settings.Labels), wanted) {
				next[i] = append(next[i], j)
			}
		}
	}
	const (
		open = iota + 1
		done
	)
	state := make([]uint8, len(byName))
	var path []int
	var walk func(int)
	walk = func(i int) {
		state[i], path = open, append(path, i)
		for _, j := range next[i] {
			switch state[j] {
			case open:
				var names []string
				for _, k := range path[slices.Index(path, j):] {
					names = append(names, byName[k].Name)
				}
				all = append(all, names)
			case 0:
				walk(j)
			}
		}
		state[i], path = done, path[:len(path)-1]
	}
	for i := range byName {
		if state[i] == 0 {
			walk(i)
		}
	}
	return all
}

// merged are the labels of a definition with those of a rule over them.
func merged(defined, own map[string]string) map[string]string {
	all := maps.Clone(own)
	for name, value := range defined {
		if _, has := all[name]; !has {
			if all == nil {
				all = map[string]string{}
			}
			all[name] = value
		}
	}
	return all
}
