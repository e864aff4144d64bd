package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/file"
	blobs "github.com/pawl-run/pawl/internal/blob/postgres"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// blobConnections is how many connections a server opens at the most for blobs.
const blobConnections = 3

// BlobHouse is where blobs lie, and where they lay before.
type BlobHouse struct {
	blob.Store
	InDatabase bool // new ones do
	closers    []io.Closer
}

// Close gives back what was opened.
func (h *BlobHouse) Close() error {
	var all error
	for _, c := range h.closers {
		all = errors.Join(all, c.Close())
	}
	h.closers = nil
	return all
}

// OpenBlobs opens the place that the settings name. What lies where the blobs of these settings may have lain before is
// found there as well: in the directory beneath the state directory, and in the database.
func OpenBlobs(ctx context.Context, c *config.Config) (_ *BlobHouse, err error) {
	h := &BlobHouse{}
	defer func() {
		if err != nil {
			_ = h.Close()
		}
	}()
	usual, chosen := filepath.Join(c.Text("state_dir"), "blobs"), c.Text("blobs")
	dir := usual
	if chosen != config.InStore {
		dir = filepath.Clean(chosen)
		if err := h.add(openDir(dir)); err != nil {
			return nil, err
		}
	}
	if dsn := c.Text("store"); config.IsPostgres(dsn) {
		h.InDatabase = chosen == config.InStore
		pool, schema, err := postgres.Pool(ctx, dsn, postgres.Options{Limits: DatabaseLimits()}, blobConnections)
		if err != nil {
			return nil, Refused(fmt.Errorf("open blobs: %w", err))
		}
		if err := h.add(blobs.New(pool, schema), nil); err != nil {
			return nil, err
		}
	} else if chosen == config.InStore {
		return h, h.add(openDir(usual))
	}
	if _, missing := os.Stat(usual); missing == nil && (chosen == config.InStore || dir != usual) {
		return h, h.add(openDir(usual))
	}
	return h, nil
}

// closingStore is a store that must be closed.
type closingStore interface {
	blob.Store
	io.Closer
}

func openDir(dir string) (closingStore, error) {
	s, err := file.Open(dir)
	if err != nil {
		return nil, err // a nil *file.Store must not become a blob.Store
	}
	return s, nil
}

// add puts a store behind those that are there.
func (h *BlobHouse) add(s closingStore, err error) error {
	if err != nil {
		return err
	}
	h.closers = append(h.closers, s)
	if h.Store == nil {
		h.Store = s
	} else {
		h.Store = blob.Fallback(h.Store, s)
	}
	return nil
}

// Sweep implements blob.Sweeper.
func (h *BlobHouse) Sweep(ctx context.Context) error {
	if sweeper, ok := h.Store.(blob.Sweeper); ok {
		return sweeper.Sweep(ctx)
	}
	return nil
}
