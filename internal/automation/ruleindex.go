package automation

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
)

// indexFrom is how many rules a trigger needs to get an index. Chosen: an expression takes some microseconds, so fewer
// are evaluated as they are.
const indexFrom = 8

// ruleIndex finds the rules that may hold of a signal without evaluating each. A rule of whose condition one part is
// false does not hold: an && with a false part is false, whatever becomes of its other parts. So what the rules compare
// with constants is looked up once for all of them, and compared without CEL; what only one rule computes is computed
// without CEL where that is possible; and rules that want one of a few texts somewhere are found by the text that is
// there.
type ruleIndex struct {
	operands []*definition.Operand
	by       []byText
	rest     []*indexedRule // that want no text
}

// byText finds the rules that compare one operand with a few texts, by the text that the operand has.
type byText struct {
	operand int // of ruleIndex.operands
	all     []*indexedRule
	rules   map[string][]*indexedRule
}

// indexedRule is a rule with the parts of its condition that are cheap to look at.
type indexedRule struct {
	*Rule
	parts    []part
	formulas []formula
}

type part struct {
	operand int // of ruleIndex.operands
	*definition.Predicate
}

type formula struct {
	*definition.Formula
	operands []int // of ruleIndex.operands: those of its paths
}

func newRuleIndex(rules []*Rule) *ruleIndex {
	a := &ruleIndex{}
	uses := map[string]int{} // operands, by text
	for _, r := range rules {
		for _, p := range r.predicates() {
			uses[p.Operand.Text()]++
		}
	}
	places := map[string]int{}
	placeOf := func(o *definition.Operand) int {
		place, known := places[o.Text()]
		if !known {
			place = len(a.operands)
			places[o.Text()], a.operands = place, append(a.operands, o)
		}
		return place
	}
	at := map[int]int{} // operand → place in by
	for _, r := range rules {
		s := &indexedRule{Rule: r}
		chosen := -1 // the part that wants the fewest texts
		for i := range r.predicates() {
			p := &r.predicates()[i]
			if uses[p.Operand.Text()] < 2 && (!p.Operand.IsPath() || p.Is == definition.Holds) {
				if p.Formula != nil { // without one the part needs CEL, as the whole rule does: nothing is saved
					f := formula{Formula: p.Formula}
					for _, o := range p.Formula.Paths() {
						f.operands = append(f.operands, placeOf(o))
					}
					s.formulas = append(s.formulas, f)
				}
				continue
			}
			s.parts = append(s.parts, part{placeOf(p.Operand), p})
			if p.Is == definition.OneOf && len(p.Numbers) == 0 && (chosen < 0 || len(p.Texts) < len(s.parts[chosen].Texts)) {
				chosen = len(s.parts) - 1
			}
		}
		if chosen < 0 {
			a.rest = append(a.rest, s)
			continue
		}
		wanted := s.parts[chosen]
		i, known := at[wanted.operand]
		if !known {
			i = len(a.by)
			at[wanted.operand], a.by = i, append(a.by, byText{operand: wanted.operand, rules: map[string][]*indexedRule{}})
		}
		k := &a.by[i]
		k.all = append(k.all, s)
		for _, text := range slices.Compact(slices.Sorted(slices.Values(wanted.Texts))) {
			k.rules[text] = append(k.rules[text], s)
		}
	}
	return a
}

// predicates are the parts of the rule's condition.
func (r *Rule) predicates() []definition.Predicate {
	if r.If == nil {
		return nil
	}
	return r.If.Predicates()
}

// lookup finds the rules for one signal. It evaluates each operand at the most once.
type lookup struct {
	*ruleIndex
	vars    *definition.Vars
	found   []found             // by operand
	scalars []definition.Scalar // by operand, those that read says
	read    []bool
}

type found struct {
	looked bool
	value  any
	err    error
}

func (l *lookup) at(operand int) *found {
	f := &l.found[operand]
	if !f.looked {
		f.value, f.err = l.operands[operand].Value(l.vars)
		f.looked = true
	}
	return f
}

// excludes reports whether a formula is false.
func (l *lookup) excludes(f *formula) bool {
	if l.read == nil {
		l.scalars, l.read = make([]definition.Scalar, len(l.operands)), make([]bool, len(l.operands))
	}
	for _, operand := range f.operands {
		if !l.read[operand] {
			l.scalars[operand], l.read[operand] = l.operands[operand].Scalar(l.vars), true
		}
	}
	return f.Excludes(l.scalars, f.operands)
}

// mayHold reports whether no part of the rule's condition is false. A part that has no value is not false: evaluating
// the rule reports the error.
func (l *lookup) mayHold(s *indexedRule) bool {
	for _, p := range s.parts {
		if f := l.at(p.operand); f.err == nil && p.Excludes(f.value) {
			return false
		}
	}
	for i := range s.formulas {
		if l.excludes(&s.formulas[i]) {
			return false
		}
	}
	return true
}

func (l *lookup) keep(few []*Rule, all []*indexedRule) []*Rule {
	for _, s := range all {
		if l.mayHold(s) {
			few = append(few, s.Rule)
		}
	}
	return few
}

// among are those of the rules on a trigger that may hold of a signal, by name.
func (s *Set) among(trigger string, rules []*Rule, vars *definition.Vars) []*Rule {
	a := s.indexes[trigger]
	if a == nil {
		return rules
	}
	l := &lookup{ruleIndex: a, vars: vars, found: make([]found, len(a.operands))}
	few := l.keep(nil, a.rest)
	for i := range a.by {
		k := &a.by[i]
		f := l.at(k.operand)
		if f.err != nil {
			few = l.keep(few, k.all)
		} else if text, is := f.value.(string); is {
			few = l.keep(few, k.rules[text])
		}
	}
	for _, p := range s.prefixes {
		if strings.HasPrefix(trigger, p.prefix) {
			few = append(few, p.rule)
		}
	}
	slices.SortFunc(few, func(a, b *Rule) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(few)
}
