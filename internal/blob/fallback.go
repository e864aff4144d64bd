package blob

import (
	"context"
	"errors"
	"io"
)

// Fallback is a store that has moved: blobs are put into the first store, and those not found there are read from the second, the old one.
func Fallback(first, second Store) Store { return fallback{first, second} }

type fallback struct {
	Store
	before Store
}

func (f fallback) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	r, err := f.Store.Get(ctx, name, offset)
	if errors.Is(err, ErrNotFound) {
		return f.before.Get(ctx, name, offset)
	}
	return r, err
}

func (f fallback) Remove(ctx context.Context, prefixes ...string) error {
	return errors.Join(f.Store.Remove(ctx, prefixes...), f.before.Remove(ctx, prefixes...))
}

func (f fallback) Sweep(ctx context.Context) error {
	var all error
	for _, s := range []Store{f.Store, f.before} {
		if sweeper, ok := s.(Sweeper); ok {
			all = errors.Join(all, sweeper.Sweep(ctx))
		}
	}
	return all
}
