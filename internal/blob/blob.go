// Package blob is the port to where outputs, logs and files lie that are too big for a row.
package blob

import (
	"context"
	"errors"
	"io"
)

var (
	// ErrNotFound means that there is no blob of that name.
	ErrNotFound = errors.New("blob not found")
	// ErrUnavailable means that the blobs cannot be reached just now: doing the same again later may succeed.
	ErrUnavailable = errors.New("blobs unavailable")
	// ErrRefused means that the caller may not have that blob, or that it is too large.
	ErrRefused = errors.New("blob refused")
)

// InlineLimit is how many bytes of an output, or of an attempt's logs, are kept in rows before blobs take over.
const InlineLimit = 100 << 10

// Access is what those need who write blobs and read them. It is safe for concurrent use.
type Access interface {
	// Put stores what r gives until EOF and returns its size; a blob of that name is replaced. After an error, nothing
	// has been stored.
	Put(ctx context.Context, name string, r io.Reader) (int64, error)
	// Get opens a blob from the given offset, or returns ErrNotFound. Beyond the end there is nothing.
	Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
}

// Store keeps blobs by name. Names are slash-separated paths of letters, digits, ".", "_" and "-"; a blob is written once
// and whole: readers never see a part of one. It is safe for concurrent use.
type Store interface {
	Access
	// Remove deletes every blob whose name is one of the prefixes or begins with one and "/"; none is no error. Whoever
	// is reading a blob meanwhile goes on reading it.
	Remove(ctx context.Context, prefixes ...string) error
}

// Sweeper is a Store in which something may be left of what did not end well.
type Sweeper interface {
	// Sweep removes what is left of puts that broke off and of blobs that were removed while they were read, once nobody
	// can want it any more. Call it now and then.
	Sweep(ctx context.Context) error
}
