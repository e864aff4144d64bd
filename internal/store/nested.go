package store

import (
	"context"
	"errors"
)

// ErrNested means that a decision called the store instead of its own transaction. Such a call needs a second connection, which
// may wait for locks that the transaction holds, while the transaction waits for the call. That wait never ends, because the
// database sees one session idle and no deadlock.
var ErrNested = errors.New("the store was called from within a transaction: use the transaction's own methods")

type nested struct{}

// Nested returns the context for the decision of a transaction. Backends pass it to decide, and refuse calls with it.
func Nested(ctx context.Context) context.Context { return context.WithValue(ctx, nested{}, true) }

// Outside returns ErrNested for a context that Nested made, or that was derived from one.
func Outside(ctx context.Context) error {
	if ctx.Value(nested{}) != nil {
		return ErrNested
	}
	return nil
}
