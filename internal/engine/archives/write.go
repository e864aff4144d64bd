package archives

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// insert writes a tree. What it holds is a part of the tree.
func (im *importer) insert(ctx context.Context, tx store.Tx, t span) error {
	w := &treeWriter{im: im, tx: tx}
	err := im.each(t, func(r *archive.Row) error { return w.row(ctx, r) })
	if err == nil {
		err = w.apply(ctx)
	}
	return err
}

// treeWriter turns rows into what a transaction writes.
type treeWriter struct {
	im    *importer
	tx    store.Tx
	delta store.Delta
	bytes int
	x     *flow.Draft // the latest
	input int         // pieces of it
	sums  map[flow.ID][]blob.Sum
}

func (w *treeWriter) row(ctx context.Context, r *archive.Row) error {
	switch {
	case r.Execution != nil:
		if len(w.delta.Drafts) == WrittenAtOnce || w.bytes > writtenBytes {
			if err := w.apply(ctx); err != nil {
				return err
			}
		}
		x, err := w.im.execution(r.Execution)
		if err != nil {
			return err
		}
		w.x, w.input = store.Imported(x, nil), 0
		w.delta.Drafts = append(w.delta.Drafts, w.x)
		w.bytes += x.PayloadSize() + len(x.Outcome.Output)
		if sums := uploads.SumsIn(x.Input, x.With); len(sums) > 0 {
			if w.sums == nil {
				w.sums = map[flow.ID][]blob.Sum{}
			}
			w.sums[x.ID] = sums
		}
	case len(r.Events) > 0:
		for i := range r.Events {
			w.x.Events = append(w.x.Events, r.Events[i].Flow())
			w.bytes += len(r.Events[i].Data)
		}
	case r.Mark != nil:
		m := r.Mark
		w.delta.Marks = append(w.delta.Marks, store.Mark{Workflow: w.x.ID, Attempt: m.Attempt, Task: m.Task, State: m.State, Total: m.Total, Error: m.Error.Flow()})
	case r.Input != nil:
		w.input++
		w.bytes += len(r.Input.Data)
		w.delta.Input = append(w.delta.Input, store.InputPiece{Execution: w.x.ID, Number: w.input, Offset: r.Input.Offset, Data: r.Input.Data, Last: r.Input.Last})
	}
	return nil
}

// apply writes what was gathered, and holds the uploads that it names.
func (w *treeWriter) apply(ctx context.Context) error {
	if len(w.sums) > 0 {
		var all []blob.Sum
		for _, sums := range w.sums {
			all = append(all, sums...)
		}
		there, err := w.tx.LockUploads(ctx, all)
		if err != nil {
			return err
		}
		for id, sums := range w.sums {
			for _, sum := range sums {
				if u, is := there[sum]; is {
					w.delta.Holds = append(w.delta.Holds, store.Hold{Execution: id, Upload: u})
				}
			}
		}
	}
	err := w.tx.Apply(ctx, w.delta)
	w.delta, w.bytes, w.sums = store.Delta{}, 0, nil
	return err
}

// execution is the execution of a row as it is stored here.
func (im *importer) execution(e *archive.Execution) (*flow.Execution, error) {
	x, err := e.Flow()
	if err != nil {
		return nil, err
	}
	x.Imported = &flow.Import{From: im.result.From, At: im.at}
	if e.Definition != "" {
		if d := im.documents[documentKey(e.Action, e.Version, e.Definition)]; d != nil {
			x.Imported.Definition = d.stands
		}
	}
	return x, nil
}

// contents stores the logs and blobs of trees: before their rows, so that what can be seen has them.
func (im *importer) contents(ctx context.Context, trees []span) error {
	var chunks []flow.LogChunk
	size := 0
	flush := func() error {
		if len(chunks) == 0 {
			return nil
		}
		err := im.a.Store.AppendLogs(ctx, chunks)
		chunks, size = chunks[:0], 0
		return err
	}
	for _, t := range trees {
		err := im.each(t, func(r *archive.Row) error {
			switch {
			case r.Log != nil:
				chunks, size = append(chunks, *r.Log), size+len(r.Log.Data)
				if len(chunks) >= 500 || size >= exportLogs {
					return flush()
				}
			case r.Blob != nil && !r.Blob.Missing:
				return im.place(ctx, r.Blob)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return flush()
}

// place gives the content of an upload the name that an execution has for it. An uploaded content has that already.
func (im *importer) place(ctx context.Context, b *archive.Blob) error {
	sum, ok := blob.ParseSum("sha256:" + b.SHA256)
	if !ok {
		return fmt.Errorf("%w: %s has no checksum", archive.ErrBroken, b.Name)
	}
	if b.Name == archive.UploadName(sum) {
		return nil
	}
	u, err := im.a.Store.Upload(ctx, sum)
	if err != nil {
		return fmt.Errorf("find the content of %s: %w", b.Name, err)
	}
	from, err := im.a.Blobs.Get(ctx, uploads.Name(u.ID), 0)
	if err != nil {
		return fmt.Errorf("read the content of %s: %w", b.Name, err)
	}
	_, err = im.a.Blobs.Put(ctx, b.Name, uploads.Checked(sum, from))
	return errors.Join(err, from.Close())
}

// digest sums up what of a tree an archive and a store must have alike. Logs and blobs are left out: those of old executions may be gone.
type digest struct {
	hash  hash.Hash
	line  []byte
	bytes hash.Hash // of the input of the latest execution
}

func newDigest() *digest { return &digest{hash: sha256.New(), bytes: sha256.New()} }

func (d *digest) add(r *archive.Row) error {
	switch {
	case r.Execution != nil:
		x, err := r.Execution.Flow()
		if err != nil {
			return err
		}
		return d.write(&archive.Row{Execution: archive.ExecutionOf(x, r.Execution.Definition)})
	case len(r.Events) > 0:
		for i := range r.Events {
			e := r.Events[i].Flow()
			if err := d.write(&archive.Row{Events: archive.EventsOf([]flow.Event{e})}); err != nil {
				return err
			}
		}
	case r.Mark != nil:
		return d.write(r)
	case r.Input != nil: // in pieces that may be others
		_, err := d.bytes.Write(r.Input.Data)
		return err
	}
	return nil
}

func (d *digest) write(r *archive.Row) (err error) {
	if d.line, err = r.Appended(d.line[:0]); err != nil {
		return err
	}
	_, err = d.hash.Write(d.line)
	return err
}

func (d *digest) sum() [sha256.Size]byte {
	d.hash.Write(d.bytes.Sum(nil))
	return [sha256.Size]byte(d.hash.Sum(nil))
}
