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
	"github.com/pawl-run/pawl/internal/blob/s3"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/store/postgres"
)

// blobConnections bounds the connections that a server opens for blobs.
const blobConnections = 3

// BlobPlaces are the locations of blobs: the one for new blobs, and earlier ones.
type BlobPlaces struct {
	blob.Store
	InlineLogs bool // log chunks stay in their rows: as blobs, each would be a row in the same database, or a request to a bucket
	closers    []io.Closer
}

func (h *BlobPlaces) Close() error {
	var all error
	for _, c := range h.closers {
		all = errors.Join(all, c.Close())
	}
	h.closers = nil
	return all
}

// OpenBlobs opens the locations of the settings: new blobs are put into the first, and reads search all. Locations that these settings
// may have used earlier are searched even if they are not named: the database, and the directory beneath the state directory.
func OpenBlobs(ctx context.Context, c *config.Config) (_ *BlobPlaces, err error) {
	h := &BlobPlaces{}
	defer func() {
		if err != nil {
			_ = h.Close()
		}
	}()
	inDatabase, usual := config.IsPostgres(c.Text("store")), filepath.Join(c.Text("state_dir"), "blobs")
	places := c.List("blobs")
	h.InlineLogs = config.IsBucket(places[0]) || inDatabase && places[0] == config.InStore
	if inDatabase {
		places = append(places, config.InStore)
	}
	if _, missing := os.Stat(usual); missing == nil {
		places = append(places, usual)
	}
	opened := map[string]bool{}
	for _, place := range places {
		switch {
		case place == config.InStore && !inDatabase:
			place = usual
		case filepath.IsAbs(place):
			place = filepath.Clean(place)
		}
		if opened[place] {
			continue
		}
		opened[place] = true
		switch {
		case config.IsBucket(place):
			err = h.add(OpenBucket(ctx, place))
		case place == config.InStore:
			err = h.add(openDatabase(ctx, c.Text("store")))
		default:
			err = h.add(openDir(place))
		}
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}

// OpenBucket opens an S3 bucket. An error that only the operator can fix is reported as wrong usage.
func OpenBucket(ctx context.Context, url string) (*s3.Store, error) {
	at, err := s3.Parse(url, os.Getenv)
	if err != nil {
		return nil, &exit.Error{Code: exit.Misuse, Err: fmt.Errorf("open blobs: %w", err)}
	}
	s, err := s3.Open(ctx, at)
	if err != nil && !errors.Is(err, blob.ErrUnavailable) {
		return nil, &exit.Error{Code: exit.Misuse, Err: err}
	}
	return s, err
}

func openDatabase(ctx context.Context, dsn string) (closingStore, error) {
	pool, schema, err := postgres.Pool(ctx, dsn, postgres.Options{Limits: DatabaseLimits()}, blobConnections)
	if err != nil {
		return nil, Refused(fmt.Errorf("open blobs: %w", err))
	}
	return blobs.New(pool, schema), nil
}

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

// add appends a store to those that are searched.
func (h *BlobPlaces) add(s closingStore, err error) error {
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

func (h *BlobPlaces) Sweep(ctx context.Context) error {
	if sweeper, ok := h.Store.(blob.Sweeper); ok {
		return sweeper.Sweep(ctx)
	}
	return nil
}
