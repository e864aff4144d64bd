package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob"
)

// Get implements blob.Store. An open blob is read unchanged: when the connection breaks, reading continues at its position in the same
// object, or fails.
func (s *Store) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	if err := blob.CheckName(name); err != nil {
		return nil, fmt.Errorf("get blob: %w", err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("get blob %s: offset %d is negative", name, offset)
	}
	r := &reader{store: s, ctx: ctx, name: name, at: offset}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("get blob %s: %w", name, err)
	}
	return r, nil
}

// reader reads an object over as many connections as necessary.
type reader struct {
	store *Store
	ctx   context.Context
	name  string
	at    int64         // offset of the next read
	end   int64         // offset of the end; -1: unknown
	etag  string        // of the object
	body  io.ReadCloser // nil: there is none
	idle  int           // connections that broke since the last byte
	over  error         // error that ends the reading
}

var errReplaced = errors.New("it has been replaced meanwhile")

// open requests the object from the reader's offset on.
func (r *reader) open() error {
	s := r.store
	var opts minio.GetObjectOptions
	if r.at > 0 { // an empty object has no first byte
		if err := opts.SetRange(r.at, 0); err != nil {
			return err
		}
	}
	if r.etag != "" {
		if err := opts.SetMatchETag(r.etag); err != nil {
			return err
		}
	}
	body, info, header, err := s.core.GetObject(r.ctx, s.at.Bucket, s.key(r.name), opts)
	if status(err) == http.StatusRequestedRangeNotSatisfiable {
		return nil
	}
	if err != nil {
		return s.fault(r.ctx, err)
	}
	if want := fmt.Sprintf("bytes %d-", r.at); r.at > 0 && !strings.HasPrefix(header.Get("Content-Range"), want) {
		_ = body.Close() // it is not used
		return fmt.Errorf("the service answered a request for the bytes from %d on with %q", r.at, header.Get("Content-Range"))
	}
	if r.etag != "" && info.ETag != r.etag { // not every service and proxy supports If-Match
		_ = body.Close() // it is not used
		return errReplaced
	}
	if r.etag == "" {
		r.etag, r.end = info.ETag, -1
		if info.Size >= 0 {
			r.end = r.at + info.Size
		}
	}
	r.body = body
	return nil
}

func (r *reader) Read(p []byte) (int, error) {
	for {
		if r.over != nil {
			return 0, r.over
		}
		if r.body == nil {
			return 0, io.EOF
		}
		n, err := r.body.Read(p)
		r.at += int64(n)
		if n > 0 {
			r.idle = 0
			return n, nil // an error comes again
		}
		switch {
		case err == nil:
			return 0, nil
		case err == io.EOF && (r.end < 0 || r.at == r.end):
			return 0, io.EOF
		case err == io.EOF:
			err = io.ErrUnexpectedEOF
		}
		if err := r.again(err); err != nil {
			r.over = fmt.Errorf("read blob %s at %d: %w", r.name, r.at, err)
		}
	}
}

// again continues at the same position over another connection.
func (r *reader) again(broken error) error {
	_ = r.body.Close() // it is broken
	if r.idle++; r.idle > tries || r.etag == "" {
		return r.store.fault(r.ctx, broken)
	}
	select {
	case <-time.After(time.Duration(r.idle-1) * 200 * time.Millisecond):
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
	r.body = nil
	err := r.open()
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return errors.New("it has been removed meanwhile")
	case status(err) == http.StatusPreconditionFailed:
		return errReplaced
	case err == nil && r.body == nil && r.at != r.end:
		return broken
	}
	return err
}

func (r *reader) Close() error {
	if r.body == nil {
		return nil
	}
	return r.body.Close()
}
