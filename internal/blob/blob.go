// Package blob is the port to the storage of outputs, logs and files that are too large for a row.
package blob

import (
	"context"
	"errors"
	"io"
)

var (
	// ErrNotFound means that there is no blob of that name.
	ErrNotFound = errors.New("blob not found")
	// ErrUnavailable means that the blobs are unreachable at the moment: a later retry may succeed.
	ErrUnavailable = errors.New("blobs unavailable")
	// ErrRefused means that the caller may not have the blob, or that it is too large.
	ErrRefused = errors.New("blob refused")
)

// InlineLimit is how many bytes of an output, or of an attempt's logs, are stored in rows; the rest is stored in blobs.
const InlineLimit = 100 << 10

// Access is the part of a Store for components that only write and read blobs. It is safe for concurrent use.
type Access interface {
	// Put stores the content of r until EOF and returns its size; it replaces a blob with the same name. After an error, nothing has been
	// stored.
	Put(ctx context.Context, name string, r io.Reader) (int64, error)
	// Get opens a blob from the given offset, or returns ErrNotFound. After the end it reads nothing.
	Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
}

// Store stores blobs by name. Names are slash-separated paths of letters, digits, ".", "_" and "-". A blob is written once and as a whole:
// readers never see a part of one. It is safe for concurrent use.
type Store interface {
	Access
	// Remove deletes every blob whose name is one of the prefixes or begins with one and "/"; if there is none, it is not an error. Readers
	// that have already opened a blob can continue.
	Remove(ctx context.Context, prefixes ...string) error
}

// Sweeper is a Store in which failed operations may leave data.
type Sweeper interface {
	// Sweep removes the data of failed puts, and of blobs that were removed while they were read, once no reader or writer can need it. It
	// should be called regularly.
	Sweep(ctx context.Context) error
}
