package store

import (
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// RemovableQuery asks for executions that retention may remove: those of trees whose top has no parent and ended before a
// time. What one answer names fits into one transaction.
type RemovableQuery struct {
	Before time.Time
	After  flow.ID // tops beyond it, in order of their ids; zero: from the start
	Count  int     // executions at the most
	Bytes  int64   // about so much of their content at the most, and one execution at least
}

// Removable is a part of a walk through what retention may remove. Children come before their workflow and the items of a
// task from the last one on, so a tree of which only a part has been removed still keeps every promise.
type Removable struct {
	IDs   []flow.ID // may be empty before the walk is over
	After flow.ID   // where the walk goes on once they are removed
	More  bool      // false: the walk is over
}

// Cut is the answer to q that names ids, of the tops found: the walk goes on behind the last top among them.
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
