package store

import (
	"context"
	"errors"
)

// ErrNested means that a decision called the store instead of its own transaction. Such a call needs a second connection, and
// waits for it, or on it, while the transaction holds its locks. A wait for the transaction's own locks never ends: the
// database sees two sessions of which one is idle, and no deadlock.
var ErrNested = errors.New("the store was called from within a transaction: use the transaction's own methods")

type nested struct{}

// Nested returns the context of a transaction's decision. Backends hand it to decide, and refuse calls that come with it.
func Nested(ctx context.Context) context.Context { return context.WithValue(ctx, nested{}, true) }

// Outside returns ErrNested for a context that Nested made, or that was derived from one.
func Outside(ctx context.Context) error {
	if ctx.Value(nested{}) != nil {
		return ErrNested
	}
	return nil
}
