package blob_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/blobtest"
	"github.com/pawl-run/pawl/internal/blob/file"
)

func open(t *testing.T) *file.Store {
	t.Helper()
	s, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestFallbackConforms(t *testing.T) {
	t.Parallel()
	blobtest.Exercise(t, func(t *testing.T) blob.Store { return blob.Fallback(open(t), open(t)) })
}

// Blobs in the old store are found, replaced and removed like all others; new ones are put into the new store.
func TestFallback(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	now, before := open(t), open(t)
	s := blob.Fallback(now, before)
	for _, name := range []string{"x/old", "x/replaced"} {
		if _, err := before.Put(ctx, name, strings.NewReader("before")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(ctx, "x/replaced", strings.NewReader("now")); err != nil {
		t.Fatal(err)
	}
	if old, replaced := blobtest.Read(t, s, "x/old", 2), blobtest.Read(t, s, "x/replaced", 0); old != "fore" || replaced != "now" {
		t.Errorf("read %q and %q", old, replaced)
	}
	if got := blobtest.Read(t, now, "x/replaced", 0); got != "now" {
		t.Errorf("the new place holds %q", got)
	}
	if err := s.Remove(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x/old", "x/replaced"} {
		if _, err := s.Get(ctx, name, 0); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s after the removal: %v", name, err)
		}
	}
}
