package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// LineReader reads which executions wait in a line, and which a session holds. It leaves out rows that cannot be decoded.
type LineReader interface {
	// Waiting returns executions that wait in a line, in the order of the line, without payload.
	Waiting(ctx context.Context, q LineQuery) ([]*flow.Execution, error)
	// HeldBy returns up to n executions that a session holds, sorted by id, beyond after, without payload.
	HeldBy(ctx context.Context, session, after flow.ID, n int) ([]*flow.Execution, error)
}

// LineQuery selects a part of one line.
type LineQuery struct {
	Lane  string          // of a queue: executions that wait for a worker
	Key   string          // or a concurrency key: executions that wait for a slot of it
	After *flow.Execution // the last one of the previous part; nil: from the head
	Limit int
}

// Behind are the priority and the ticket after which the part begins.
func (q *LineQuery) Behind() (priority int, ticket int64) {
	if q.After == nil {
		const beyondAll = 1 << 20 // greater than any priority, which are at most 1,000
		return beyondAll, 0
	}
	return q.After.Priority, q.After.Ticket
}
