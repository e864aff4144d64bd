package definition

import (
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/query"
)

// maxSearchable is how many members one definition may declare searchable.
const maxSearchable = 50

// searchable reads the members of inputs and outputs by which executions can be searched.
func (b *builder) searchable(v *value) (members []string) {
	if v == nil {
		return nil
	}
	if v.kind != listValue {
		b.fail(v, "searchable", "write searchable: [input.customer, output.score]", "want a list of members, not %s", v.kind)
		return nil
	}
	if len(v.list) > maxSearchable {
		b.fail(v, "searchable", "remove some", "there are %d members; at most %d are allowed", len(v.list), maxSearchable)
		return nil
	}
	for i, el := range v.list {
		at := fmt.Sprintf("searchable[%d]", i)
		name := b.plainText(el, at, 200)
		switch {
		case name == "":
		case !query.Member(name):
			b.fail(el, at, "write a path such as input.customer or output.items[0].score, of letters, digits, _ and -", "%q is not a member of an input or output", problem.Clip(name, 60))
		case slices.Contains(members, name):
			b.fail(el, at, "remove one of them", "%q is listed twice", name)
		default:
			members = append(members, name)
		}
	}
	return members
}
