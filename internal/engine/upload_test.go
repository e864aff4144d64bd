package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/file"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
)

// withBlobs gives the engine a blob store.
func withBlobs(t *testing.T) func(*Options) {
	return func(o *Options) {
		s, err := file.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		o.Blobs = s
	}
}

// upload uploads a text and returns its name for submissions.
func (r *rig) upload(text string) string {
	r.Helper()
	sum := sha256.Sum256([]byte(text))
	if _, _, err := r.e.uploads.Put(r.ctx, sum, strings.NewReader(text)); err != nil {
		r.Fatal(err)
	}
	return blob.SumText(sum)
}

// read is what a worker reads of a blob that an execution names.
func (r *rig) read(h *hand, a handoff.Assignment, name string, from int64) string {
	r.Helper()
	f, err := r.e.GetBlob(r.ctx, h.session, handoff.BlobQuery{Execution: a.Execution, Attempt: a.Attempt, Name: name, From: from})
	if err != nil {
		r.Fatalf("read %s: %v", name, err)
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	if err != nil {
		r.Fatal(err)
	}
	return string(all)
}

// stdin is code that reads a blob.
func stdin(name string) Submission {
	return Submission{Action: "code", Input: fmt.Appendf(nil, `{"language": "python", "source": "1", "stdin": {"blob": %q}}`, name)}
}

// Code that names an upload gets it; code that names a missing one is refused with the place and the name, also in a batch, whose other
// submissions are accepted.
func TestSubmissionsNameUploads(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		h := r.worker()
		name, missing := r.upload("large"), blob.SumText(blob.Sum{1})
		r.submit(stdin(name))
		a := h.take(1)[0]
		if got := r.read(h, a, name, 0) + r.read(h, a, name, 3); got != "largege" {
			t.Errorf("the worker gets %q", got)
		}
		if _, err := r.e.GetBlob(r.ctx, h.session, handoff.BlobQuery{Execution: a.Execution, Attempt: a.Attempt, Name: missing}); !errors.Is(err, handoff.ErrBlobRefused) {
			t.Errorf("the worker asks for what its input does not name: %v", err)
		}
		subs := []Submission{stdin(missing), stdin(name)}
		for _, submit := range map[string]func() ([]Submitted, error){
			"alone": func() ([]Submitted, error) { return r.e.Submit(r.ctx, subs) },
			"batch": func() ([]Submitted, error) { return r.e.SubmitBatch(r.ctx, "a key", subs) },
		} {
			out, err := submit()
			if err != nil {
				t.Fatal(err)
			}
			var refused *fault.Invalid
			if !errors.As(out[0].Err, &refused) || refused.Problems[0].Path != "input.stdin.blob" || refused.Problems[0].Value != missing || out[1].Err != nil {
				t.Errorf("%v and %v", out[0].Err, out[1].Err)
			}
		}
		r.submit(Submission{Action: "noop", Input: fmt.Appendf(nil, `{"image": {"blob": %q}}`, missing)}) // the name may mean something else here
	}, withBlobs(t))
}

// An upload and its bytes are removed a day after it was sent, unless an execution names it: also a task of a workflow, also an ended one,
// until retention removes it.
func TestUploadsAreKeptForExecutions(t *testing.T) {
	t.Parallel()
	var blobs *file.Store
	r := newRig(t, withBlobs(t), func(o *Options) { o.Retention = 72 * time.Hour; blobs = o.Blobs.(*file.Store) })
	r.define(`
name: reads
tasks:
  wait: {action: sleep, with: {for: 100h}}
  read: {needs: [wait], action: code, with: {language: python, source: "1", stdin: "${{ input }}"}}`)
	h := r.worker()
	unused, used, passed := r.upload("unused"), r.upload("used"), r.upload("passed")
	at := map[string]store.Upload{}
	for _, name := range []string{unused, used, passed} {
		sum, _ := blob.ParseSum(name)
		u, err := r.e.uploads.Find(r.ctx, sum)
		if err != nil {
			t.Fatal(err)
		}
		at[name] = u
	}
	look := func(when string, want ...string) {
		t.Helper()
		if _, err := r.e.uploads.Drop(r.ctx); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{unused, used, passed} {
			_, err := r.e.uploads.Find(r.ctx, at[name].Sum)
			f, missing := blobs.Get(r.ctx, uploads.Name(at[name].ID), 0)
			if missing == nil {
				_ = f.Close()
			}
			if (err == nil) != (missing == nil) {
				t.Errorf("%s: the row of %s: %v, its bytes: %v", when, name, err, missing)
			}
			if err == nil {
				got = append(got, name)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s there are %v, want %v", when, got, want)
		}
	}
	r.submit(stdin(used))
	wf := r.submit(Submission{Action: "reads", Input: fmt.Appendf(nil, `{"blob": %q}`, passed)})
	a := h.take(1)[0]
	look("at first", unused, used, passed)
	r.pass(25 * time.Hour)
	look("a day later", used, passed)
	if got := r.read(h, a, used, 0); got != "used" {
		t.Errorf("the worker gets %q", got)
	}
	h.complete(a, `1`)
	r.pass(76 * time.Hour)
	r.decideDue()
	b := h.take(1)[0]
	if got := r.read(h, b, passed, 0); got != "passed" {
		t.Errorf("the task's worker gets %q", got)
	}
	h.complete(b, `1`)
	if x := r.ended(wf); x.Stage != flow.Completed {
		t.Fatalf("%s: %+v", x.Stage, x.Outcome)
	}
	p := newPurger(r.e, r.e.opts.Retention)
	if _, err := p.next(r.ctx); err != nil {
		t.Fatal(err)
	}
	look("once retention has removed the first", passed)
	r.pass(100 * time.Hour)
	if _, err := p.next(r.ctx); err != nil {
		t.Fatal(err)
	}
	look("in the end")
}

// A retry keeps the uploads of its request when retention has removed its original.
func TestRetriesKeepUploads(t *testing.T) {
	t.Parallel()
	r := newRig(t, withBlobs(t), func(o *Options) { o.Retention = time.Hour })
	h := r.worker()
	name := r.upload("typed")
	first := r.submit(stdin(name))
	h.fail(h.take(1)[0], "x")
	r.pass(30 * time.Minute)
	again, err := r.e.Retry(r.ctx, first, "")
	if err != nil {
		t.Fatal(err)
	}
	r.pass(25 * time.Hour)
	p := newPurger(r.e, r.e.opts.Retention)
	if _, err := p.next(r.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.e.opts.Store.Get(r.ctx, first); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("retention has left the first: %v", err)
	}
	if _, err := r.e.uploads.Drop(r.ctx); err != nil {
		t.Fatal(err)
	}
	a := h.take(1)[0]
	if got := r.read(h, a, name, 0); a.Execution != again.Execution || got != "typed" {
		t.Errorf("%s gets %q", a.Execution, got)
	}
}
