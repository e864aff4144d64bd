package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/file"
	blobs "github.com/pawl-run/pawl/internal/blob/postgres"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// inStore is the setting by which blobs lie where executions do.
const inStore = "store"

// blobConnections is how many connections a server opens at the most for blobs.
const blobConnections = 3

// blobHouse is where blobs lie, and where they lay before.
type blobHouse struct {
	blob.Store
	inDatabase bool // new ones do
	closers    []io.Closer
}

// Close gives back what was opened.
func (h *blobHouse) Close() error {
	var all error
	for _, c := range h.closers {
		all = errors.Join(all, c.Close())
	}
	h.closers = nil
	return all
}

// openBlobs opens the place that the settings name. What lies where the blobs of these settings may have lain before is
// found there as well: in the directory beneath the state directory, and in the database.
func (c *config) openBlobs(ctx context.Context) (_ *blobHouse, err error) {
	h := &blobHouse{}
	defer func() {
		if err != nil {
			_ = h.Close()
		}
	}()
	usual, chosen := filepath.Join(c.text("state_dir"), "blobs"), c.text("blobs")
	dir := usual
	if chosen != inStore {
		dir = filepath.Clean(chosen)
		if err := h.add(openDir(dir)); err != nil {
			return nil, err
		}
	}
	if dsn := c.text("store"); isPostgres(dsn) {
		h.inDatabase = chosen == inStore
		pool, schema, err := postgres.Pool(ctx, dsn, postgres.Options{Limits: databaseLimits()}, blobConnections)
		if err != nil {
			return nil, refused(fmt.Errorf("open blobs: %w", err))
		}
		if err := h.add(blobs.New(pool, schema), nil); err != nil {
			return nil, err
		}
	} else if chosen == inStore {
		return h, h.add(openDir(usual))
	}
	if _, missing := os.Stat(usual); missing == nil && (chosen == inStore || dir != usual) {
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
func (h *blobHouse) add(s closingStore, err error) error {
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
func (h *blobHouse) Sweep(ctx context.Context) error {
	if sweeper, ok := h.Store.(blob.Sweeper); ok {
		return sweeper.Sweep(ctx)
	}
	return nil
}

func checkBlobs(s string) error {
	if s == inStore || filepath.IsAbs(s) {
		return nil
	}
	return fmt.Errorf("%.60q is neither %s nor a directory's path from the root", s, inStore)
}

// checkBlobDir tries to put something into the directory.
func checkBlobDir(dir string) checkup {
	c := checkup{What: "blobs", Needed: true, OK: true, Say: dir + " can be written; all servers of a database must share it"}
	s, err := file.Open(dir)
	if err == nil {
		_, err = s.Put(context.Background(), "doctor", strings.NewReader("ok"))
		err = errors.Join(err, s.Remove(context.Background(), "doctor"), s.Close())
	}
	if err != nil {
		c.OK, c.Say, c.Fix = false, err.Error(), "give a directory that this user can write, or set blobs to "+inStore
	}
	return c
}
