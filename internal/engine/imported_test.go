package engine

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/archive"
	"github.com/pawl-run/pawl/internal/engine/archives"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// aYearOlder is an archive of an execution with all its times a year before.
func aYearOlder(t *testing.T, from *rig, id flow.ID) []byte {
	t.Helper()
	var whole, old bytes.Buffer
	if err := from.e.Archives().Export(from.ctx, &whole, archive.Manifest{}, archives.Exporting{IDs: []flow.ID{id}}); err != nil {
		t.Fatal(err)
	}
	w, err := archive.NewWriter(&old, archive.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	err = archive.Read(&whole, archive.Contents{Definition: w.Definition, Row: func(row *archive.Row, _ []byte) error {
		const year = 365 * 24 * time.Hour
		if e := row.Execution; e != nil {
			for _, at := range []*time.Time{&e.CreatedAt, &e.QueuedAt, &e.ClaimedAt, &e.StartedAt, &e.FinishedAt} {
				*at = at.Add(-year)
			}
		}
		for i := range row.Events {
			row.Events[i].At = row.Events[i].At.Add(-year)
		}
		return w.Row(row)
	}})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return old.Bytes()
}

// Retention counts from the import.
func TestImportedAreKept(t *testing.T) {
	onEachStore(t, func(r *rig) {
		from := newRig(t, withBlobs(t))
		id := from.submit(Submission{Action: "noop"})
		h := from.worker()
		h.complete(h.take(1)[0], "1")
		from.ended(id)
		old := aYearOlder(t, from, id)
		importing := func() *archives.Imported {
			out, err := r.e.Archives().Import(r.ctx, bytes.NewReader(old))
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		importing()
		p := newPurger(r.e, time.Hour)
		if _, err := p.next(r.ctx); err != nil {
			t.Fatal(err)
		}
		r.get(id)
		if err := r.e.Archives().CheckExport(r.ctx, []flow.ID{id}); err != nil {
			t.Errorf("exported further: %v", err)
		}
		p.retention = -time.Hour // as if it had passed
		if _, err := p.next(r.ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := r.store.Get(r.ctx, id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after the retention: %v", err)
		}
		if out := importing(); out.Trees != 1 {
			t.Errorf("imported once more: %+v", out)
		}
	}, withBlobs(t), func(o *Options) { o.Retention = 1000 * time.Hour })
}
