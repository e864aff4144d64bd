package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// WaitListReader reads the executions in a wait list, and the executions that sessions hold. It leaves out rows that cannot be decoded.
type WaitListReader interface {
	// Waiting returns executions that wait in a wait list, in the order of the wait list, without payload.
	Waiting(ctx context.Context, q WaitListQuery) ([]*flow.Execution, error)
	// LeasedBy returns the executions that each of the sessions holds, in the order of the sessions. For each session it reads up to each
	// executions, and for all together up to n: then the last sessions have fewer.
	LeasedBy(ctx context.Context, sessions []flow.ID, each, n int) ([]Leased, error)
}

// Leased are the executions that one session holds.
type Leased struct {
	Count int               // all executions, including those that cannot be decoded
	First []*flow.Execution // the first of them by id, without payload
}

// WaitListQuery selects a part of one wait list.
type WaitListQuery struct {
	RoutingKey string          // of a queue: executions that wait for a worker
	Key        string          // or a concurrency key: executions that wait for a slot of it
	After      *flow.Execution // the last one of the previous part; nil: start at the head
	Limit      int
}

// Behind returns the priority and the ticket after which the part begins.
func (q *WaitListQuery) Behind() (priority int, ticket int64) {
	if q.After == nil {
		const beyondAll = 1 << 20 // greater than any priority, which are at most 1,000
		return beyondAll, 0
	}
	return q.After.Priority, q.After.Ticket
}
