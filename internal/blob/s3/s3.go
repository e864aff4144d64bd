// Package s3 stores blobs in a bucket of an S3 service, where every server can reach them. It uses only what all services with that
// protocol do in the same way: plain puts, uploads in parts, ranges, lists and deletes. It does not depend on versions, conditional writes
// or the computation of ETags.
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

// suffix is the end of each key. No name contains "~", so no key is another key's prefix up to a "/": services that store objects as files
// refuse a/b/c next to a/b.
const suffix = "~"

// tries is how often a request is sent at most, with growing pauses of up to a second in between. If the last try fails too, the blobs are
// unavailable, and the caller decides how long to retry.
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

// Open stores blobs at an address, after one request that checks whether it is reachable. An error that is not blob.ErrUnavailable says
// what to change.
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

// reach requests one key of the bucket. Unlike for a HEAD of the bucket, which has no body, a refusal has the reason.
func (s *Store) reach(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range s.core.ListObjectsIter(ctx, s.at.Bucket, minio.ListObjectsOptions{Prefix: s.at.Prefix, MaxKeys: 1, Recursive: true}) {
		found, _ := s.diagnose(ctx, o.Err) // errors that an operator can fix must be fixed before anything is stored here
		return found
	}
	return ctx.Err()
}

// Close closes idle connections.
func (s *Store) Close() error {
	s.silence.CloseIdleConnections()
	return nil
}

// Skew returns by how much the service's clock was ahead of this machine's at its last answer, to about a second.
func (s *Store) Skew() time.Duration { return time.Duration(s.silence.skew.Load()) }

func (s *Store) key(name string) string { return s.at.Prefix + name + suffix }

// Sweep implements blob.Sweeper: it aborts uploads of processes that do not exist any more. Uploads of other programs in the same bucket
// are not touched. A service that cannot list uploads has its own rule for them, or the bucket needs a lifecycle rule.
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
			if err = s.fault(ctx, err); err != nil && !errors.Is(err, blob.ErrNotFound) { // another server may have been faster
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
