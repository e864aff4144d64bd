// Package blob is the port to where outputs, logs and files lie that are too big for a row.
package blob

import (
	"context"
	"errors"
	"io"
)

// ErrNotFound means that there is no blob of that name.
var ErrNotFound = errors.New("blob not found")

// InlineLimit is how many bytes of an output, or of an attempt's logs, are kept in rows before blobs take over.
const InlineLimit = 100 << 10

// Store keeps blobs by name. Names are slash-separated paths of letters, digits, ".", "_" and "-"; a blob is written once
// and whole: readers never see a part of one. It is safe for concurrent use.
type Store interface {
	// Put stores what r gives until EOF and returns its size; a blob of that name is replaced.
	Put(ctx context.Context, name string, r io.Reader) (int64, error)
	// Get opens a blob from the given offset, or returns ErrNotFound.
	Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
	// Remove deletes every blob whose name is prefix or begins with prefix and "/"; none is no error.
	Remove(ctx context.Context, prefix string) error
}
