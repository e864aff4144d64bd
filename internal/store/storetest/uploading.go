package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// upload stores an upload of a text that is kept until a time.
func (b *bench) upload(text string, until time.Time) store.Upload {
	b.Helper()
	u := store.Upload{ID: b.id(), Sum: sha256.Sum256([]byte(text)), Size: int64(len(text)), Until: until}
	b.update(func(ctx context.Context, t store.Tx) error { return t.BeginUpload(ctx, u.ID, until) })
	return inTx(b, func(ctx context.Context, t store.Tx) (store.Upload, error) { return t.EndUpload(ctx, u) })
}

// holding submits n executions that refer to the upload, which must exist.
func (b *bench) holding(u store.Upload, n int) (ids []flow.ID) {
	b.Helper()
	b.update(func(ctx context.Context, t store.Tx) error {
		there, err := t.LockUploads(ctx, [][sha256.Size]byte{u.Sum})
		if err != nil {
			return err
		}
		var d store.Delta
		ids = ids[:0]
		for range n {
			x := b.submit()
			d.Drafts = append(d.Drafts, x)
			d.UploadReferences = append(d.UploadReferences, store.UploadReference{Execution: x.ID, Upload: there[u.Sum]})
			ids = append(ids, x.ID)
		}
		return t.Apply(ctx, d)
	})
	return ids
}

// drop drops uploads that nothing keeps, and returns all uploads that are dropped and not forgotten.
func (b *bench) drop(now, again time.Time) []flow.ID {
	b.Helper()
	b.update(func(ctx context.Context, t store.Tx) error { return t.DropUploads(ctx, now, again, 10) })
	return inTx(b, func(ctx context.Context, t store.Tx) ([]flow.ID, error) { return t.DroppedUploads(ctx, 10) })
}

// there reports whether an upload can be referred to.
func (b *bench) there(u store.Upload) bool {
	b.Helper()
	got, err := b.s.Upload(b.ctx(), u.Sum)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		b.Fatal(err)
	}
	locked := inTx(b, func(ctx context.Context, t store.Tx) (map[[sha256.Size]byte]flow.ID, error) {
		return t.LockUploads(ctx, [][sha256.Size]byte{{1}, u.Sum})
	})
	if id, ok := locked[u.Sum]; ok != (err == nil) || id != got.ID {
		b.Errorf("a reader finds upload %s (%v), a transaction finds %s (%v)", got.ID, err, id, ok)
	}
	return err == nil
}

// uploads checks the states of an upload: it cannot be referred to before it has ended, a second upload with the same sum gives the first
// one, and it is kept until its time and as long as an execution refers to it.
func uploads(b *bench) {
	soon, late := b.now.Add(time.Hour), b.now.Add(24*time.Hour)
	first := b.upload("text", soon)
	equal(b, "the upload", first, store.Upload{ID: first.ID, Sum: sha256.Sum256([]byte("text")), Size: 4, Until: soon})
	if !b.there(first) {
		b.Fatal("what was uploaded is not there")
	}
	second := b.upload("text", late)
	equal(b, "the second one of the same sum", second, store.Upload{ID: first.ID, Sum: first.Sum, Size: 4, Until: late})
	dropped := b.drop(b.now, b.now)
	if len(dropped) != 1 || dropped[0] == first.ID {
		b.Errorf("dropped %v: want the second of one sum alone", dropped)
	}
	kept := inTx(b, func(ctx context.Context, t store.Tx) (store.Upload, error) { return t.KeepUpload(ctx, first.Sum, soon) })
	equal(b, "its time, which gets no shorter", kept.Until, late)
	arriving := b.id()
	b.update(func(ctx context.Context, t store.Tx) error { return t.BeginUpload(ctx, arriving, soon) })

	// An hour later unfinished uploads are dropped, and a day later uploads without references.
	equal(b, "dropped in time", asSet(b.drop(soon, soon)), asSet(append(slices.Clone(dropped), arriving)))
	err := b.s.Update(b.ctx(), func(ctx context.Context, t store.Tx) error {
		_, err := t.EndUpload(ctx, store.Upload{ID: arriving, Sum: [sha256.Size]byte{7}, Size: 1, Until: late})
		return err
	})
	if !errors.Is(err, store.ErrNotFound) {
		b.Errorf("an upload that was given up arrives: %v", err)
	}
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.ForgetUploads(ctx, append(slices.Clone(dropped), arriving, first.ID))
	})
	ids := b.holding(first, 2)
	again := late.Add(time.Hour)
	if got := b.drop(late, again); len(got) != 0 || !b.there(first) {
		b.Errorf("dropped %v: executions hold it", got)
	}
	b.clean()
	for _, id := range ids {
		x := b.load(id)
		must(b, x.Cancel(flow.Cancelled, flow.CodeCancelled, "", b.now))
		b.apply(x)
	}
	b.remove(ids[0])
	if got := b.drop(again, again.Add(time.Hour)); len(got) != 0 {
		b.Errorf("dropped %v: one execution still holds it", got)
	}
	b.remove(ids[1])
	if got := b.drop(again, again); len(got) != 0 {
		b.Errorf("dropped %v before it is looked at again", got)
	}
	equal(b, "dropped when nothing holds it", b.drop(again.Add(time.Hour), again), []flow.ID{first.ID})
	if b.there(first) {
		b.Error("what was dropped can still be named")
	}
	if _, err := b.s.Upload(b.ctx(), first.Sum); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("what was dropped is read: %v", err)
	}

	// The same content can be uploaded again before the dropped one is forgotten.
	third := b.upload("text", late)
	if third.ID == first.ID || !b.there(third) {
		b.Errorf("uploaded again as %s, which was dropped", third.ID)
	}
	b.update(func(ctx context.Context, t store.Tx) error {
		return t.ForgetUploads(ctx, []flow.ID{first.ID, third.ID})
	})
	if len(b.drop(b.now, b.now)) != 0 || !b.there(third) {
		b.Error("what is there was forgotten")
	}
}

// racingUploads checks that no execution refers to a dropped upload, whichever comes first.
func racingUploads(b *bench) {
	for i := range 20 {
		u := b.upload(string(rune('a'+i)), b.now)
		x := b.submit()
		var held bool
		var wg sync.WaitGroup
		wg.Go(func() {
			b.update(func(ctx context.Context, t store.Tx) error {
				return t.DropUploads(ctx, b.now, b.now.Add(time.Hour), 10)
			})
		})
		wg.Go(func() {
			b.update(func(ctx context.Context, t store.Tx) error {
				there, err := t.LockUploads(ctx, [][sha256.Size]byte{u.Sum})
				if err != nil {
					return err
				}
				d := store.Delta{Drafts: []*flow.Draft{x}}
				id, ok := there[u.Sum]
				if held = ok; ok {
					d.UploadReferences = []store.UploadReference{{Execution: x.ID, Upload: id}}
				}
				return t.Apply(ctx, d)
			})
		})
		wg.Wait()
		if there := b.there(u); there != held {
			b.Errorf("there: %v, held: %v", there, held)
		}
		b.clean()
	}
}
