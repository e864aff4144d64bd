package blob

import (
	"context"
	"errors"
	"io"
)

// Fallback is a store that has moved: what is put goes to the first of two stores, and what is not there is looked for in
// the second, where it was kept before.
func Fallback(first, second Store) Store { return fallback{first, second} }

type fallback struct {
	Store
	before Store
}

// Get implements Store.
func (f fallback) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	r, err := f.Store.Get(ctx, name, offset)
	if errors.Is(err, ErrNotFound) {
		return f.before.Get(ctx, name, offset)
	}
	return r, err
}

// Remove implements Store.
func (f fallback) Remove(ctx context.Context, prefixes ...string) error {
	return errors.Join(f.Store.Remove(ctx, prefixes...), f.before.Remove(ctx, prefixes...))
}

// Sweep implements Sweeper.
func (f fallback) Sweep(ctx context.Context) error {
	var all error
	for _, s := range []Store{f.Store, f.before} {
		if sweeper, ok := s.(Sweeper); ok {
			all = errors.Join(all, sweeper.Sweep(ctx))
		}
	}
	return all
}
