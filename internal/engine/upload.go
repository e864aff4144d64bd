package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// UploadKept is how long an upload is kept after it was sent last, whether or not an execution names it.
	UploadKept = 24 * time.Hour
	// uploadArrives is when an upload that has begun is given up: a server that died left it behind.
	uploadArrives = 24 * time.Hour
	// heldAgain is when an upload whose time is over and that an execution holds is looked at again.
	heldAgain = time.Hour
	// dropsAtOnce bounds the uploads that one transaction drops and forgets.
	dropsAtOnce = 500
)

// ErrWrongSum means that an upload has other bytes than the sum says.
var ErrWrongSum = errors.New("the content has another SHA-256")

// ErrNoBlobs means that this engine keeps no blobs.
var ErrNoBlobs = errors.New("this server keeps no blobs")

// uploadName is the name of the blob of an upload.
func uploadName(id flow.ID) string { return "uploads/" + id.Text("up_") }

// Upload finds the upload of a sum; one that is not there is store.ErrNotFound.
func (e *Engine) Upload(ctx context.Context, sum blob.Sum) (store.Upload, error) {
	return e.opts.Store.Upload(ctx, sum)
}

// KeepUpload keeps an upload that is there for UploadKept from now on; one that is not there is store.ErrNotFound.
func (e *Engine) KeepUpload(ctx context.Context, sum blob.Sum) (u store.Upload, err error) {
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err == nil {
			u, err = tx.KeepUpload(ctx, sum, now.Add(UploadKept))
		}
		return err
	})
	return u, err
}

// PutUpload stores what r gives until EOF, which must have the sum: otherwise it is ErrWrongSum, and nothing is stored. It
// reports whether it was there before.
func (e *Engine) PutUpload(ctx context.Context, sum blob.Sum, r io.Reader) (u store.Upload, existed bool, err error) {
	id := e.opts.NewID()
	sums := sha256.New()
	u, err = e.receive(ctx, id, &summed{from: r, hash: sums, want: sum}, sums)
	return u, err == nil && u.ID != id, err
}

// receive stores what r gives until EOF, and sum sums up, as an upload with an id, or finds the one with the same content.
func (e *Engine) receive(ctx context.Context, id flow.ID, r io.Reader, sum hash.Hash) (u store.Upload, err error) {
	if e.opts.Blobs == nil {
		return u, ErrNoBlobs
	}
	u.ID = id
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err == nil {
			err = tx.BeginUpload(ctx, u.ID, now.Add(uploadArrives))
		}
		return err
	})
	if err != nil {
		return u, err
	}
	if u.Size, err = e.opts.Blobs.Put(ctx, uploadName(u.ID), r); err != nil {
		return u, err // the row is dropped when its time is over
	}
	u.Sum = blob.Sum(sum.Sum(nil))
	var kept store.Upload
	err = e.update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err == nil {
			u.Until = now.Add(UploadKept)
			kept, err = tx.EndUpload(ctx, u)
		}
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return u, fmt.Errorf("the content took more than %g hours to arrive: send it again", uploadArrives.Hours())
	}
	return kept, err
}

// CheckSum reads r until EOF, and returns ErrWrongSum when it has another sum.
func CheckSum(sum blob.Sum, r io.Reader) error {
	_, err := io.Copy(io.Discard, &summed{from: r, hash: sha256.New(), want: sum})
	return err
}

// summed reads what must have a sum, and comes to its end only if it has.
type summed struct {
	from io.Reader
	hash hash.Hash
	want blob.Sum
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.hash.Write(p[:n])
	if err == io.EOF {
		if got := blob.Sum(s.hash.Sum(nil)); got != s.want {
			return n, fmt.Errorf("%w: %s", ErrWrongSum, blob.SumText(got))
		}
	}
	return n, err
}

// getUpload opens an upload that the input of an execution names.
func (e *Engine) getUpload(ctx context.Context, sum blob.Sum, from int64) (io.ReadCloser, error) {
	u, err := e.opts.Store.Upload(ctx, sum)
	if errors.Is(err, store.ErrNotFound) {
		return nil, blobError(fmt.Errorf("%w: %w", blob.ErrNotFound, err))
	}
	if err != nil {
		return nil, sessionError(err)
	}
	r, err := e.opts.Blobs.Get(ctx, uploadName(u.ID), from)
	return r, blobError(err)
}

// sumsIn are the uploads that payloads name, each once.
func sumsIn(payloads ...[]byte) []blob.Sum {
	var all []blob.Sum
	for _, p := range payloads {
		for _, r := range blob.References(p) {
			if sum, is := blob.ParseSum(r.Name); is && !slices.Contains(all, sum) {
				all = append(all, sum)
			}
		}
	}
	return all
}

// checkUploads refuses code that names an upload that is not there.
func (e *Engine) checkUploads(ctx context.Context, r *flow.Request) error {
	if !r.Kind.RunsCode() {
		return nil
	}
	sums := sumsIn(r.Payload())
	if len(sums) == 0 {
		return nil
	}
	there := map[blob.Sum]flow.ID{}
	for _, sum := range sums {
		u, err := e.opts.Store.Upload(ctx, sum)
		if err == nil {
			there[sum] = u.ID
		} else if !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("look for an upload: %w", err)
		}
	}
	return missingUpload(r, there)
}

// missingUpload says which uploads code names that are not there; nil when all are.
func missingUpload(of *flow.Request, there map[blob.Sum]flow.ID) error {
	if !of.Kind.RunsCode() {
		return nil
	}
	at := "input."
	if len(of.With) > 0 { // it comes from the action's definition
		at = "with."
	}
	v := &fault.Invalid{}
	for _, r := range blob.References(of.Payload()) {
		sum, is := blob.ParseSum(r.Name)
		if _, ok := there[sum]; is && !ok {
			v.Problems = append(v.Problems, problem.Problem{Path: at + r.Path, Value: r.Name, Message: "there is no such upload: it was never sent, or its time is over",
				Fix: fmt.Sprintf("send it with PUT /api/v1/blobs/%s, or with pawl upload: it is kept for %g hours, and as long as an execution names it", r.Name, UploadKept.Hours())})
		}
	}
	if len(v.Problems) == 0 {
		return nil
	}
	return v
}

// holds has a new execution hold the uploads of these sums that are there.
func (t *transaction) holds(id flow.ID, sums []blob.Sum) {
	for _, sum := range sums {
		if upload, ok := t.loaded.uploads[sum]; ok {
			t.changes.hold(store.Hold{Execution: id, Upload: upload})
		}
	}
}

// sweepUploads removes, now and then, uploads that nothing keeps.
func (e *Engine) sweepUploads(ctx context.Context) {
	rest := newTidying(purgeEvery, tidyAtMost)
	for pause := rest.least; ; {
		select {
		case <-time.After(e.jittered(pause)):
		case <-ctx.Done():
			return
		}
		dropped, err := e.dropUploads(ctx)
		if err != nil && ctx.Err() == nil {
			e.opts.Log.Warn("removing old uploads failed; it will be tried again", telemetry.Err, err)
		}
		pause = rest.next(dropped > 0 || err != nil)
	}
}

// dropUploads takes uploads that nothing keeps out of reach, then removes their blobs, then forgets them: what can be named
// has its blob, and a row stays until its blob is gone. It returns how many have been forgotten.
func (e *Engine) dropUploads(ctx context.Context) (dropped int, err error) {
	for {
		var ids []flow.ID
		err := e.update(ctx, func(ctx context.Context, tx store.Tx) error {
			now, err := tx.Now(ctx)
			if err == nil {
				err = tx.DropUploads(ctx, now, now.Add(heldAgain), dropsAtOnce)
			}
			if err == nil {
				ids, err = tx.DroppedUploads(ctx, dropsAtOnce)
			}
			return err
		})
		if err != nil || len(ids) == 0 {
			return dropped, err
		}
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = uploadName(id)
		}
		if err := e.opts.Blobs.Remove(ctx, names...); err != nil {
			return dropped, fmt.Errorf("remove blobs of %d uploads: %w", len(ids), err)
		}
		err = e.update(ctx, func(ctx context.Context, tx store.Tx) error { return tx.ForgetUploads(ctx, ids) })
		if err != nil {
			return dropped, err
		}
		if dropped += len(ids); len(ids) < dropsAtOnce {
			return dropped, nil
		}
	}
}
