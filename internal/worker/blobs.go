package worker

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/handoff"
)

// blobs are the blobs that the attempt may write and read; nil if the worker has no access to a blob store.
func (a *attempt) blobs() blob.Access {
	near := a.session.w.Blobs
	carrier, carries := a.session.w.Handoff.(handoff.BlobCarrier)
	switch {
	case near != nil && carries:
		return nearby{near, carried{a, carrier}}
	case near != nil:
		return near
	case carries:
		return carried{a, carrier}
	}
	return nil
}

// nearby reads and writes the worker's own blob store. Uploads go through the hand-off, because only the engine knows under
// which name a content is stored.
type nearby struct {
	blob.Access
	carried carried
}

func (n nearby) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	if _, uploaded := blob.ParseSum(name); uploaded {
		return n.carried.Get(ctx, name, offset)
	}
	return n.Access.Get(ctx, name, offset)
}

// carried reads and writes blobs through the hand-off.
type carried struct {
	attempt *attempt
	carrier handoff.BlobCarrier
}

func (c carried) query(name string) handoff.BlobQuery {
	return handoff.BlobQuery{Execution: c.attempt.task.Execution, Attempt: c.attempt.task.Attempt, Name: name}
}

func (c carried) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	n, err := c.carrier.PutBlob(ctx, c.attempt.session.id, c.query(name), r)
	return n, c.translate(err)
}

func (c carried) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	q := c.query(name)
	q.From = offset
	r, err := c.carrier.GetBlob(ctx, c.attempt.session.id, q)
	if err != nil {
		return nil, c.translate(err)
	}
	return struct {
		io.Reader
		io.Closer
	}{translating{c, r}, r}, nil
}

// translating reads a blob whose transfer may break, and translates the errors.
type translating struct {
	carried
	from io.Reader
}

func (t translating) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	if err == io.EOF {
		return n, err
	}
	return n, t.translate(err)
}

// translate turns errors of the hand-off into those of package blob.
func (c carried) translate(err error) error {
	for from, to := range map[error]error{
		handoff.ErrNoBlob: blob.ErrNotFound, handoff.ErrBlobRefused: blob.ErrRefused, handoff.ErrUnavailable: blob.ErrUnavailable,
	} {
		if errors.Is(err, from) {
			return fmt.Errorf("%w: %w", to, err)
		}
	}
	if errors.Is(err, handoff.ErrSessionLost) {
		c.attempt.session.end(err)
	}
	return err
}
