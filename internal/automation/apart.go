package automation

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
)

// apartFrom is from how many rules on a trigger on those are told apart by what they compare. An expression takes about a microsecond.
const apartFrom = 8

// apart finds the rules that may hold of a signal without asking each. A rule whose condition is PATH == "text" && … cannot hold of a signal
// that has another text at the path: an && with a false part is false, whatever becomes of its other parts.
type apart struct {
	rest []*Rule                       // that compare nothing with a text
	by   map[string]map[string][]*Rule // by path, and by the text there
}

func tellApart(rules []*Rule) *apart {
	a := &apart{by: map[string]map[string][]*Rule{}}
	for _, r := range rules {
		path, texts := r.comparison()
		if path == "" {
			a.rest = append(a.rest, r)
			continue
		}
		if a.by[path] == nil {
			a.by[path] = map[string][]*Rule{}
		}
		for _, text := range texts {
			a.by[path][text] = append(a.by[path][text], r)
		}
	}
	return a
}

// comparison is the path that the rule's condition compares with the fewest texts; "" when it compares none.
func (r *Rule) comparison() (path string, texts []string) {
	if r.If == nil {
		return "", nil
	}
	all := r.If.Constants()
	for _, p := range slices.Sorted(maps.Keys(all)) {
		values := slices.Compact(slices.Sorted(slices.Values(all[p])))
		if path == "" || len(values) < len(texts) {
			path, texts = p, values
		}
	}
	return path, texts
}

// among are those of the rules on a trigger that may hold of a signal, by name.
func (s *Set) among(trigger string, rules []*Rule, vars *definition.Vars) []*Rule {
	a := s.apart[trigger]
	if a == nil {
		return rules
	}
	few := slices.Clone(a.rest)
	for path, by := range a.by {
		switch text, is, err := vars.TextAt(path); {
		case err != nil: // each of them says so itself
			for _, some := range by {
				few = append(few, some...)
			}
		case is:
			few = append(few, by[text]...)
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
