package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

var _ handoff.BlobCarrier = (*Engine)(nil)

// mostBlob is the largest blob from a remote worker. Limits of disk keep files far below it.
const mostBlob = 16 << 30

// PutBlob implements handoff.BlobCarrier. A late writer is refused by its attempt number, even if it becomes late while it writes.
func (e *Engine) PutBlob(ctx context.Context, session flow.ID, q handoff.BlobQuery, r io.Reader) (int64, error) {
	if err := e.mayUse(ctx, session, q); err != nil {
		return 0, err
	}
	parts := strings.Split(q.Name, "/")
	if !uploads.Owns(q.Execution, q.Name) || len(parts) < 4 || parts[2] != fmt.Sprint(q.Attempt) {
		return 0, fmt.Errorf("%w: attempt %d of %s may not write %.80q: its own names begin with files/%s/%d/", handoff.ErrBlobRefused,
			q.Attempt, q.Execution, q.Name, q.Execution, q.Attempt)
	}
	n, err := e.opts.Blobs.Put(ctx, q.Name, &fenced{from: r, left: mostBlob, still: func() error {
		return e.checkHeld(ctx, session, q.Execution, q.Attempt)
	}})
	return n, blobError(err)
}

// GetBlob implements handoff.BlobCarrier.
func (e *Engine) GetBlob(ctx context.Context, session flow.ID, q handoff.BlobQuery) (io.ReadCloser, error) {
	if err := e.mayUse(ctx, session, q); err != nil {
		return nil, err
	}
	if !uploads.Owns(q.Execution, q.Name) {
		x, err := e.opts.Store.Get(ctx, q.Execution)
		if err != nil {
			return nil, sessionError(err)
		}
		if !uploads.Named(x.Payload(), q.Name) {
			return nil, fmt.Errorf("%w: attempt %d of %s may not read %.80q: its input does not name it", handoff.ErrBlobRefused, q.Attempt, q.Execution, q.Name)
		}
	}
	return e.openBlob(ctx, q.Name, q.From)
}

// openBlob opens a blob for a worker or a client, by its name or by the checksum of an upload.
func (e *Engine) openBlob(ctx context.Context, name string, from int64) (io.ReadCloser, error) {
	if sum, uploaded := blob.ParseSum(name); uploaded {
		u, err := e.uploads.Find(ctx, sum)
		if errors.Is(err, store.ErrNotFound) {
			return nil, blobError(fmt.Errorf("%w: %w", blob.ErrNotFound, err))
		}
		if err != nil {
			return nil, sessionError(err)
		}
		name = uploads.Name(u.ID)
	}
	r, err := e.opts.Blobs.Get(ctx, name, from)
	return r, blobError(err)
}

func checkBlobName(name string) error {
	if _, uploaded := blob.ParseSum(name); uploaded {
		return nil // it is found by its checksum
	}
	if err := blob.CheckName(name); err != nil {
		return fmt.Errorf("%w: %w", handoff.ErrBlobRefused, err)
	}
	return nil
}

// mayUse makes the checks that every use of a blob needs.
func (e *Engine) mayUse(ctx context.Context, session flow.ID, q handoff.BlobQuery) error {
	if e.opts.Blobs == nil {
		return fmt.Errorf("%w: this server keeps none", handoff.ErrBlobRefused)
	}
	if err := checkBlobName(q.Name); err != nil {
		return err
	}
	if q.From < 0 {
		return fmt.Errorf("%w: offset %d of %s is negative", handoff.ErrBlobRefused, q.From, q.Name)
	}
	if _, err := e.sessionOf(ctx, session); err != nil {
		return err
	}
	return e.checkHeld(ctx, session, q.Execution, q.Attempt)
}

// fenced reads a blob's bytes and reaches their end only if the writer may still write.
type fenced struct {
	from  io.Reader
	left  int64 // bytes that may follow
	still func() error
}

func (f *fenced) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if f.left -= int64(n); f.left < 0 {
		return 0, fmt.Errorf("%w: it is larger than %d bytes", handoff.ErrBlobRefused, int64(mostBlob))
	}
	if err == io.EOF {
		if gone := f.still(); gone != nil {
			return 0, gone
		}
	}
	return n, err
}

func blobError(err error) error {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return fmt.Errorf("%w: %w", handoff.ErrNoBlob, err)
	case errors.Is(err, blob.ErrUnavailable):
		return fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
	}
	return err
}
