package store

import (
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// RemovableQuery selects executions that retention may remove: those of trees whose root ended before a time. The executions of one answer
// can be removed in one transaction.
type RemovableQuery struct {
	Before time.Time
	After  flow.ID // roots beyond this one, sorted by id; zero: from the start
	Count  int     // at most
	Bytes  int64   // approximate bytes of their content at most, but at least one execution
}

// Removable is a step of a walk through the executions that retention may remove. Children come before their workflow, and the items of a
// task from the last one on, so a partly removed tree still satisfies every invariant.
type Removable struct {
	IDs   []flow.ID // may be empty before the walk has ended
	After flow.ID   // where the walk continues after them
	More  bool      // false: the walk has ended
}

// Cut returns the answer to q with these ids, which belong to some of the roots in tops. The walk continues after the last root among the
// ids.
func (r Removable) Cut(q RemovableQuery, ids, tops []flow.ID) Removable {
	r.IDs = ids
	named := make(map[flow.ID]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}
	if named[tops[len(tops)-1]] {
		return r
	}
	r.After, r.More = q.After, true
	for _, id := range tops {
		if named[id] {
			r.After = id
		}
	}
	return r
}
