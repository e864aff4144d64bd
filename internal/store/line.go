package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// LineReader reads which executions wait in a line, and which a session holds. Rows that cannot be decoded are passed over.
type LineReader interface {
	// Waiting returns executions that wait in a line, in the order in which they go, without payload.
	Waiting(ctx context.Context, q LineQuery) ([]*flow.Execution, error)
	// HeldBy returns up to n executions that a session holds, in order of id, beyond after, without payload.
	HeldBy(ctx context.Context, session, after flow.ID, n int) ([]*flow.Execution, error)
}

// LineQuery selects a part of one line.
type LineQuery struct {
	Lane  string          // of a queue: what waits there for a worker
	Key   string          // or a concurrency key: what waits for a slot of it
	After *flow.Execution // the last one of the part before; nil: from the head
	Limit int
}

// Behind are the priority and the ticket behind which the part begins.
func (q *LineQuery) Behind() (priority int, ticket int64) {
	if q.After == nil {
		const beyondAll = 1 << 20 // priorities are 1,000 at most
		return beyondAll, 0
	}
	return q.After.Priority, q.After.Ticket
}
