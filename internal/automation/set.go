// Package automation evaluates rules for signals. It is pure: whether a rule fires depends on its document, the signal and the rules that
// have led to it, so the same functions fire rules, test them on past signals and explain why one did not fire.
package automation

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

// Rule is a version of a rule that is in force.
type Rule struct {
	Name    string
	Version int
	Paused  bool
	Reason  string // why it is paused
	Since   int64  // the generation of its latest change or switch
	*definition.Rule
}

// Set is the rules and triggers in force. It is immutable.
type Set struct {
	Generation int64
	Rules      []*Rule // by name
	Triggers   map[string]*definition.Trigger
	Unread     map[string]bool // triggers in force whose documents cannot be read

	exact        map[string][]*Rule // by trigger
	prefixes     []prefixed
	endListeners endListeners
}

// prefixed is a rule on all triggers below a prefix.
type prefixed struct {
	prefix string // "github."
	rule   *Rule
}

// endListeners are the ends of executions that rules listen to: ends of some actions, and ends with a status and labels, both
// optional.
type endListeners struct {
	actions map[string]bool
	others  []otherListeners
}

type otherListeners struct {
	statuses []string // empty: any
	labels   map[string]string
}

// NewSet is the set of rules and triggers in force at a generation.
func NewSet(generation int64, rules []*Rule, triggers map[string]*definition.Trigger) *Set {
	s := &Set{Generation: generation, Rules: slices.Clone(rules), Triggers: triggers, exact: map[string][]*Rule{}}
	slices.SortFunc(s.Rules, func(a, b *Rule) int { return strings.Compare(a.Name, b.Name) })
	for _, r := range s.Rules {
		for _, on := range r.On {
			if prefix, ok := strings.CutSuffix(on, "*"); ok {
				s.prefixes = append(s.prefixes, prefixed{prefix, r})
				continue
			}
			if on == flow.TriggerEnded && !r.Paused {
				s.endListeners.add(r)
			}
			if !slices.Contains(s.exact[on], r) {
				s.exact[on] = append(s.exact[on], r)
			}
		}
	}
	return s
}

func (e *endListeners) add(r *Rule) {
	actions, statuses, labels := r.Ends()
	if len(actions) == 0 {
		e.others = append(e.others, otherListeners{statuses, labels})
		return
	}
	if e.actions == nil {
		e.actions = map[string]bool{}
	}
	for _, name := range actions {
		e.actions[name] = true
	}
}

func (s *Set) ListensToEnds() bool { return len(s.endListeners.actions)+len(s.endListeners.others) > 0 }

// ListensToEnd reports whether a rule may listen to the end of an execution in a stage.
func (s *Set) ListensToEnd(r *flow.Request, in flow.Stage) bool {
	if s == nil {
		return false
	}
	if s.endListeners.actions[r.Action] {
		return true
	}
	return slices.ContainsFunc(s.endListeners.others, func(o otherListeners) bool {
		return (len(o.statuses) == 0 || slices.Contains(o.statuses, in.String())) && flow.HasLabels(r.Labels, o.labels)
	})
}

// On are the rules that listen to a trigger, by name, including paused ones.
func (s *Set) On(trigger string) []*Rule {
	if s == nil {
		return nil
	}
	all := s.exact[trigger]
	for _, p := range s.prefixes {
		if strings.HasPrefix(trigger, p.prefix) && !slices.Contains(all, p.rule) {
			all = append(slices.Clip(all), p.rule)
		}
	}
	if len(all) > len(s.exact[trigger]) {
		slices.SortFunc(all, func(a, b *Rule) int { return strings.Compare(a.Name, b.Name) })
	}
	return all
}

// Rule is the rule with a name; nil if none is in force.
func (s *Set) Rule(name string) *Rule {
	if s == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(s.Rules, name, func(r *Rule, name string) int { return strings.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return s.Rules[i]
}

func (r *Rule) ListensTo(trigger string) bool {
	return slices.ContainsFunc(r.On, func(on string) bool {
		prefix, below := strings.CutSuffix(on, "*")
		return on == trigger || below && strings.HasPrefix(trigger, prefix)
	})
}
