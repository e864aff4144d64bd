package handoff

import (
	"context"
	"io"

	"github.com/pawl-run/pawl/internal/flow"
)

// BlobQuery names a blob and the attempt that writes it or reads it.
type BlobQuery struct {
	Execution flow.ID
	Attempt   int
	Name      string
	From      int64 // offset of the first byte to read
}

// BlobCarrier is what a Handoff is as well where workers that cannot reach the blobs get at them through it. Its methods
// return ErrNotHeld to a session that does not hold the attempt, and ErrUnavailable when the same may succeed later.
type BlobCarrier interface {
	// PutBlob stores what r gives until EOF under one of the attempt's own names, and returns its size. Nothing is stored
	// when the attempt is no longer the session's by then.
	PutBlob(ctx context.Context, session flow.ID, q BlobQuery, r io.Reader) (int64, error)
	// GetBlob opens a blob that is the execution's own or that its input names. One that is not there is ErrNoBlob.
	GetBlob(ctx context.Context, session flow.ID, q BlobQuery) (io.ReadCloser, error)
}
