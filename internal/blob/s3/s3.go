// Package s3 keeps blobs in a bucket of an S3 service, where every server reaches them. It holds to what all services of that
// protocol do alike: plain puts, uploads in parts, ranges, lists and deletes; nothing depends on versions, on conditional
// writes or on what an ETag is made of.
package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob"
)

// suffix ends each key. No name has a "~", so no key is the beginning of another up to a "/": services that keep objects as
// files refuse a/b/c beside a/b.
const suffix = "~"

// tries is how often a request is sent at the most, with growing pauses of up to a second in between. Where the last one fails
// as well the blobs are unavailable, and the caller decides how long it goes on.
const tries = 5

// Store implements blob.Store.
type Store struct {
	core    minio.Core
	at      Address
	silence *patience
}

var (
	_ blob.Store   = (*Store)(nil)
	_ blob.Sweeper = (*Store)(nil)
)

// Open keeps blobs at an address, after one request that shows whether they can be reached there. An error that is no
// blob.ErrUnavailable says what to change.
func Open(ctx context.Context, at Address) (*Store, error) {
	s := &Store{at: at, silence: newPatience()}
	core, err := at.client(s.silence)
	if err != nil {
		return nil, fmt.Errorf("open blobs: %s: %w", at, err)
	}
	s.core = *core
	if err := s.reach(ctx); err != nil {
		s.silence.CloseIdleConnections()
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	return s, nil
}

// reach asks for one key of the bucket. Unlike a HEAD of the bucket, which has no body, a refusal says why.
func (s *Store) reach(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range s.core.ListObjectsIter(ctx, s.at.Bucket, minio.ListObjectsOptions{Prefix: s.at.Prefix, MaxKeys: 1, Recursive: true}) {
		found, _ := s.diagnose(ctx, o.Err) // what is to be cured is so before anything is kept here
		return found
	}
	return ctx.Err()
}

// Close ends the connections that are idle.
func (s *Store) Close() error {
	s.silence.CloseIdleConnections()
	return nil
}

// Skew is by how much the service's clock was ahead of this machine's when it last answered, to about a second.
func (s *Store) Skew() time.Duration { return time.Duration(s.silence.skew.Load()) }

// key is under which key the service has a blob.
func (s *Store) key(name string) string { return s.at.Prefix + name + suffix }

// Sweep implements blob.Sweeper: it gives up the uploads of processes that are gone. Those of other programs in the same bucket are
// left alone. A service that cannot list uploads has a rule of its own for them, or the bucket's lifecycle needs one.
func (s *Store) Sweep(ctx context.Context) error {
	if err := s.sweep(ctx); err != nil {
		return fmt.Errorf("sweep blobs: %w", err)
	}
	return nil
}

func (s *Store) sweep(ctx context.Context) error {
	var all error
	for keyMarker, idMarker := "", ""; ; {
		page, err := s.core.ListMultipartUploads(ctx, s.at.Bucket, s.at.Prefix, keyMarker, idMarker, "", batch)
		if unsupported(err) {
			return all
		}
		if err != nil {
			return errors.Join(all, s.fault(ctx, err))
		}
		for _, u := range page.Uploads {
			if !strings.HasPrefix(u.Key, s.at.Prefix) || !strings.HasSuffix(u.Key, suffix) || u.Initiated.IsZero() || time.Since(u.Initiated) < abandoned {
				continue
			}
			err := s.core.AbortMultipartUpload(ctx, s.at.Bucket, u.Key, u.UploadID)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err = s.fault(ctx, err); err != nil && !errors.Is(err, blob.ErrNotFound) { // another server may have been first
				all = errors.Join(all, fmt.Errorf("give up the upload of %s: %w", u.Key, err))
			}
		}
		if !page.IsTruncated {
			return all
		}
		if page.NextKeyMarker < keyMarker || page.NextKeyMarker == keyMarker && page.NextUploadIDMarker == idMarker {
			return errors.Join(all, fmt.Errorf("%s: the list of uploads does not go on after %q", s.at, keyMarker))
		}
		keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
}
