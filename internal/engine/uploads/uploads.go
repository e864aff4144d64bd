// Package uploads keeps contents that clients have uploaded, by their checksums: for a while after the last upload, and as long as an
// execution names them. It also knows which names of blobs belong to an execution.
package uploads

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
)

const (
	// Kept is how long an upload is kept after it was last sent, whether or not an execution names it.
	Kept = 24 * time.Hour
	// arrives is when an unfinished upload is given up: a server that died left it behind.
	arrives = 24 * time.Hour
	// referencedAgain is when an expired upload that an execution references is checked again.
	referencedAgain = time.Hour
	// dropsAtOnce bounds the uploads that one transaction drops and forgets.
	dropsAtOnce = 500
)

// ErrWrongSum means that the bytes of an upload do not have its checksum.
var ErrWrongSum = errors.New("the content has another SHA-256")

// ErrNoBlobs means that this engine keeps no blobs.
var ErrNoBlobs = errors.New("this server keeps no blobs")

// Uploads keeps uploads in a store and their contents beside it.
type Uploads struct {
	Store  store.Store
	Blobs  blob.Store // nil: none are kept
	NewID  func() flow.ID
	Update Update
}

// Update runs a transaction of the store, and repeats it if its rows have changed.
type Update func(ctx context.Context, decide func(context.Context, store.Tx) error) error

// Name is the name of the blob of an upload.
func Name(id flow.ID) string { return "uploads/" + id.Text("up_") }

// Find returns the upload with a checksum, or store.ErrNotFound.
func (u *Uploads) Find(ctx context.Context, sum blob.Sum) (store.Upload, error) {
	return u.Store.Upload(ctx, sum)
}

// Open opens the content of an upload, or returns store.ErrNotFound.
func (u *Uploads) Open(ctx context.Context, sum blob.Sum) (io.ReadCloser, store.Upload, error) {
	found, err := u.Find(ctx, sum)
	if err != nil {
		return nil, found, err
	}
	r, err := u.Blobs.Get(ctx, Name(found.ID), 0)
	return r, found, err
}

// Keep keeps an existing upload for Kept from now on; otherwise the error is store.ErrNotFound.
func (u *Uploads) Keep(ctx context.Context, sum blob.Sum) (kept store.Upload, err error) {
	err = u.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err == nil {
			kept, err = tx.KeepUpload(ctx, sum, now.Add(Kept))
		}
		return err
	})
	return kept, err
}

// Put stores the bytes of r, which must have the checksum: otherwise the error is ErrWrongSum, and nothing is stored.
// It reports whether the upload existed before.
func (u *Uploads) Put(ctx context.Context, sum blob.Sum, r io.Reader) (kept store.Upload, existed bool, err error) {
	id := u.NewID()
	sums := sha256.New()
	kept, err = u.Receive(ctx, id, &summed{from: r, hash: sums, want: sum}, sums)
	return kept, err == nil && kept.ID != id, err
}

// Receive stores the bytes of r as an upload with an id, or finds the one with the same content. sum hashes r.
func (u *Uploads) Receive(ctx context.Context, id flow.ID, r io.Reader, sum hash.Hash) (kept store.Upload, err error) {
	if u.Blobs == nil {
		return kept, ErrNoBlobs
	}
	err = u.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err == nil {
			err = tx.BeginUpload(ctx, id, now.Add(arrives))
		}
		return err
	})
	if err != nil {
		return kept, err
	}
	sent := store.Upload{ID: id}
	if sent.Size, err = u.Blobs.Put(ctx, Name(id), r); err != nil {
		return kept, err // the row is dropped when it expires
	}
	sent.Sum = blob.Sum(sum.Sum(nil))
	err = u.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		now, err := tx.Now(ctx)
		if err == nil {
			sent.Until = now.Add(Kept)
			kept, err = tx.EndUpload(ctx, sent)
		}
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return kept, fmt.Errorf("the content took more than %g hours to arrive: send it again", arrives.Hours())
	}
	return kept, err
}

// Checked reads r, and ends with ErrWrongSum if its bytes have another checksum.
func Checked(sum blob.Sum, r io.Reader) io.Reader {
	return &summed{from: r, hash: sha256.New(), want: sum}
}

// CheckSum reads r until EOF, and returns ErrWrongSum if its bytes have another checksum.
func CheckSum(sum blob.Sum, r io.Reader) error {
	_, err := io.Copy(io.Discard, Checked(sum, r))
	return err
}

// summed reads bytes that must have a checksum, and reaches their end only if they have it.
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

// SumsIn are the uploads that payloads name, each once.
func SumsIn(payloads ...[]byte) []blob.Sum {
	var all []blob.Sum
	for _, p := range payloads {
		for _, r := range blob.References(p) {
			if sum, ok := blob.ParseSum(r.Name); ok && !slices.Contains(all, sum) {
				all = append(all, sum)
			}
		}
	}
	return all
}

// Check refuses code that names a missing upload.
func (u *Uploads) Check(ctx context.Context, r *flow.Request) error {
	if !r.Kind.RunsCode() {
		return nil
	}
	sums := SumsIn(r.Payload())
	if len(sums) == 0 {
		return nil
	}
	there := map[blob.Sum]flow.ID{}
	for _, sum := range sums {
		found, err := u.Find(ctx, sum)
		if err == nil {
			there[sum] = found.ID
		} else if !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("look for an upload: %w", err)
		}
	}
	return Missing(r, there)
}

// Missing returns the missing uploads that code names; nil: there are none.
func Missing(request *flow.Request, there map[blob.Sum]flow.ID) error {
	if !request.Kind.RunsCode() {
		return nil
	}
	at := "input."
	if len(request.With) > 0 { // it comes from the action's definition
		at = "with."
	}
	v := &fault.Invalid{}
	for _, r := range blob.References(request.Payload()) {
		sum, named := blob.ParseSum(r.Name)
		if _, ok := there[sum]; named && !ok {
			v.Problems = append(v.Problems, problem.Problem{Path: at + r.Path, Value: r.Name, Message: "there is no such upload: it was never sent, or its time is over",
				Fix: fmt.Sprintf("send it with PUT /api/v1/blobs/%s, or with pawl upload: it is kept for %g hours, and as long as an execution names it", r.Name, Kept.Hours())})
		}
	}
	if len(v.Problems) == 0 {
		return nil
	}
	return v
}

// Drop makes unused uploads unreachable, then removes their blobs, then their rows: a reachable upload has its blob,
// and a row stays until its blob is gone. It returns how many rows it has removed.
func (u *Uploads) Drop(ctx context.Context) (dropped int, err error) {
	for {
		var ids []flow.ID
		err := u.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			now, err := tx.Now(ctx)
			if err == nil {
				err = tx.DropUploads(ctx, now, now.Add(referencedAgain), dropsAtOnce)
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
			names[i] = Name(id)
		}
		if err := u.Blobs.Remove(ctx, names...); err != nil {
			return dropped, fmt.Errorf("remove blobs of %d uploads: %w", len(ids), err)
		}
		err = u.Update(ctx, func(ctx context.Context, tx store.Tx) error { return tx.ForgetUploads(ctx, ids) })
		if err != nil {
			return dropped, err
		}
		if dropped += len(ids); len(ids) < dropsAtOnce {
			return dropped, nil
		}
	}
}
