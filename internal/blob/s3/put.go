package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/pawl-run/pawl/internal/blob"
)

const (
	// smallSize is how much of a blob is read before a buffer of the size of a part is used: most blobs are smaller.
	smallSize = 128 << 10
	// partSize is the size of the parts of a large blob: smaller ones are not allowed, and at most 10,000 parts are, which makes 52 GB. The
	// heap grows to twice the buffers: with 8 MiB, a put of 16 GB needed 46 MB in a process.
	partSize, maxParts = 5 << 20, 10_000
	// inFlight is how many parts of one blob are being sent at the same time, and how many buffers it uses.
	inFlight = 2
	// abandoned is the age at which an unfinished upload belongs to a process that does not exist any more.
	abandoned = 24 * time.Hour
	// abortTimeout is how long aborting an upload may take. A sweep removes the rest.
	abortTimeout = 10 * time.Second
	// mark names the random value by which an upload recognizes its own object, because ETags are computed differently in each service.
	mark = "Pawl-Put"
)

var (
	smalls = sync.Pool{New: func() any { return new([smallSize]byte) }}
	parts  = sync.Pool{New: func() any { return new([partSize]byte) }}
)

// Put implements blob.Store. It uses two buffers of 5 MiB for a blob of any larger size, and 128 KiB for a small one.
func (s *Store) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := blob.CheckName(name); err != nil {
		return 0, fmt.Errorf("put blob: %w", err)
	}
	n, err := s.put(ctx, s.key(name), r)
	if err != nil {
		return 0, fmt.Errorf("put blob %s: %w", name, err)
	}
	return n, nil
}

func (s *Store) put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	small := smalls.Get().(*[smallSize]byte)
	defer smalls.Put(small)
	n, err := blob.ReadFull(r, small[:])
	if errors.Is(err, io.EOF) {
		return s.putWhole(ctx, key, small[:n])
	}
	if err != nil {
		return 0, err
	}
	part := parts.Get().(*[partSize]byte)
	copy(part[:], small[:])
	n, err = blob.ReadFull(r, part[smallSize:])
	if err == nil {
		return s.putParts(ctx, key, part, r)
	}
	defer parts.Put(part)
	if !errors.Is(err, io.EOF) {
		return 0, err
	}
	return s.putWhole(ctx, key, part[:smallSize+n])
}

// putWhole stores a blob with one request. If the answer to every try is lost, the blob may exist although this returns an error; then the
// next put stores the same bytes.
func (s *Store) putWhole(ctx context.Context, key string, content []byte) (int64, error) {
	opts := minio.PutObjectOptions{ServerSideEncryption: s.at.SSE, DisableContentSha256: true} // not in chunks: the sum is known
	_, err := s.core.PutObject(ctx, s.at.Bucket, key, bytes.NewReader(content), int64(len(content)), "", sum(content), opts)
	return int64(len(content)), s.putFault(ctx, err)
}

// putFault converts the error of a put. An upload or a part that does not exist any more was removed by a sweep or by a rule of the bucket:
// the whole blob must be put again.
func (s *Store) putFault(ctx context.Context, err error) error {
	e, _ := answer(err)
	found := s.fault(ctx, err)
	if found != nil && ctx.Err() == nil && (errors.Is(found, blob.ErrNotFound) || e.Code == minio.InvalidPart) {
		return fmt.Errorf("%w: %s: %s: %w", blob.ErrUnavailable, s.at, e.Code, err)
	}
	return found
}

// sum returns the SHA-256 with which the service checks the bytes.
func sum(content []byte) string {
	h := sha256.Sum256(content)
	return hex.EncodeToString(h[:])
}

// upload is a put in parts.
type upload struct {
	*Store
	key, id, mark string
	size          int64
	mu            sync.Mutex // for done
	done          []minio.CompletePart
}

// putParts stores a blob of which one part was already read. It releases the buffer.
func (s *Store) putParts(ctx context.Context, key string, part *[partSize]byte, r io.Reader) (int64, error) {
	u := &upload{Store: s, key: key, mark: rand.Text()}
	var err error
	u.id, err = s.core.NewMultipartUpload(ctx, s.at.Bucket, key, minio.PutObjectOptions{ServerSideEncryption: s.at.SSE, UserMetadata: map[string]string{mark: u.mark}})
	if err != nil {
		parts.Put(part)
		return 0, s.putFault(ctx, err)
	}
	if err = u.send(ctx, part, r); err == nil {
		err = u.complete(ctx)
	}
	if err != nil {
		u.abort(ctx)
		return 0, err
	}
	return u.size, nil
}

// send reads the rest and sends it, each part while the next one is read.
func (u *upload) send(ctx context.Context, part *[partSize]byte, r io.Reader) error {
	within, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	free := make(chan *[partSize]byte, inFlight)
	for range inFlight - 1 {
		free <- parts.Get().(*[partSize]byte)
	}
	defer func() { // every buffer is released, even if the reader panics; those in use, when their requests have ended
		fail(nil)
		if part != nil {
			free <- part
		}
		for range inFlight {
			parts.Put(<-free)
		}
	}()
	n := partSize
	for number := 1; n > 0; number++ {
		if number > maxParts {
			return fmt.Errorf("it is larger than the %d parts of %d MiB that it can have", maxParts, partSize>>20)
		}
		sent, length := part, n
		part = nil
		u.mu.Lock()
		u.done = append(u.done, minio.CompletePart{PartNumber: number})
		u.mu.Unlock()
		wg.Go(func() {
			if err := u.sendPart(within, number, sent[:length]); err != nil {
				fail(err)
			}
			free <- sent
		})
		u.size += int64(n)
		if n < partSize {
			break
		}
		part = <-free
		if within.Err() != nil {
			return u.cause(ctx, within)
		}
		var err error
		if n, err = blob.ReadFull(r, part[:]); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	wg.Wait()
	return u.cause(ctx, within)
}

// cause returns why no more parts are sent, or nil.
func (u *upload) cause(ctx, within context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Cause(within)
}

func (u *upload) sendPart(ctx context.Context, number int, content []byte) error {
	p, err := u.core.PutObjectPart(ctx, u.at.Bucket, u.key, u.id, number, bytes.NewReader(content), int64(len(content)),
		minio.PutObjectPartOptions{Sha256Hex: sum(content), DisableContentSha256: true})
	if err != nil {
		return u.putFault(ctx, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done[number-1].ETag = p.ETag
	return nil
}

// complete assembles the object from the parts. If an answer was lost, or if a second try no longer finds the upload, the object itself
// shows whether it is from this upload.
func (u *upload) complete(ctx context.Context) error {
	_, err := u.core.CompleteMultipartUpload(ctx, u.at.Bucket, u.key, u.id, u.done, minio.PutObjectOptions{})
	if err == nil || ctx.Err() != nil {
		return u.putFault(ctx, err)
	}
	o, e := u.core.StatObject(ctx, u.at.Bucket, u.key, minio.StatObjectOptions{})
	if e == nil && o.UserMetadata[mark] == u.mark && o.Size == u.size {
		return nil
	}
	return u.putFault(ctx, err)
}

// abort aborts an upload, even if the caller's context has ended. A part that the service is still writing may survive the first request,
// so the request is repeated until the service does not know the upload any more. A part that the service writes after that makes the
// upload appear again; a sweep removes it a day later.
func (u *upload) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	for range tries {
		if u.core.AbortMultipartUpload(ctx, u.at.Bucket, u.key, u.id) != nil { // a sweep does the rest
			return
		}
	}
}
