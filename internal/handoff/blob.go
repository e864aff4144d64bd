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

// BlobCarrier is implemented by a Handoff that carries blobs for workers which cannot reach the blob store themselves. Its
// methods return ErrNotHeld if the session does not hold the attempt, and ErrUnavailable if the same call may succeed later.
type BlobCarrier interface {
	// PutBlob stores the bytes of r until EOF under one of the attempt's own names, and returns their number. It stores
	// nothing if the session has lost the attempt by then.
	PutBlob(ctx context.Context, session flow.ID, q BlobQuery, r io.Reader) (int64, error)
	// GetBlob opens a blob that is the execution's own or that its input names. If there is none it returns ErrNoBlob.
	GetBlob(ctx context.Context, session flow.ID, q BlobQuery) (io.ReadCloser, error)
}
