package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/problem"
)

// Actions returns the actions that the condition allows, if it names them, or nil if it allows any.
func (q *Query) Actions() (names []string) {
	all, isAnd := q.root.(and)
	if !isAnd {
		all = and{q.root}
	}
	for _, n := range all {
		if t, isTerm := n.(*term); isTerm && t.field.about == ofAction && t.op == is && !t.negated {
			for _, v := range t.values {
				names = append(names, v.text)
			}
			return names
		}
	}
	return nil
}

// CheckMembers refuses members of inputs and outputs that no definition declares searchable. declared are the declared ones, among
// describes these definitions.
func (q *Query) CheckMembers(declared []string, among string) error {
	var all problem.List
	for _, t := range q.members {
		if slices.Contains(declared, t.field.name) {
			continue
		}
		fix := problem.Nearest(t.field.name, declared)
		if fix == "" {
			name := t.field.name
			if strings.Contains(name, "[") { // it would begin a list in YAML
				name = strconv.Quote(name)
			}
			fix = fmt.Sprintf("add searchable: [%s] to the definition, and apply it", name)
		}
		all = append(all, problem.Problem{Value: t.field.name, Message: fmt.Sprintf("%s declares %s searchable", among, t.field.name), Fix: fix, Line: t.line, Column: t.column})
	}
	if len(all) > 0 {
		return all.Sorted()
	}
	return nil
}
