package sqlite

import (
	"context"

	"github.com/pawl-run/pawl/internal/store"
)

// Check implements store.Store.
func (s *Store) Check(ctx context.Context) ([]store.Violation, error) { return nil, ctx.Err() }
