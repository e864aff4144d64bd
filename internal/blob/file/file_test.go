package file_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/blobtest"
	"github.com/pawl-run/pawl/internal/blob/file"
)

func open(t *testing.T, dir string) *file.Store {
	t.Helper()
	s, err := file.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	blobtest.Exercise(t, func(t *testing.T) blob.Store { return open(t, filepath.Join(t.TempDir(), "made", "here")) })
}

func TestReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := open(t, dir).Put(context.Background(), "a/b", strings.NewReader("kept")); err != nil {
		t.Fatal(err)
	}
	if got := blobtest.Read(t, open(t, dir), "a/b", 0); got != "kept" {
		t.Errorf("after reopening got %q, want %q", got, "kept")
	}
}

// Files that a dead process left half-written are removed; files that another process may be writing stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir)
	old, fresh := filepath.Join(dir, "tmp", "old"), filepath.Join(dir, "tmp", "fresh")
	for _, p := range []string{old, fresh} {
		if err := os.WriteFile(p, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the abandoned file: %v, want it gone", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the fresh file: %v", err)
	}
}

// A symbolic link in the directory does not lead outside.
func TestNoEscape(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	s := open(t, dir)
	if err := os.Symlink(outside, filepath.Join(dir, "blobs", "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(context.Background(), "link/x", strings.NewReader("out")); err == nil {
		t.Error("a blob was put through a symbolic link")
	}
	left, err := os.ReadDir(outside)
	if err != nil || len(left) > 0 {
		t.Errorf("outside the directory lie %v, %v", left, err)
	}
	if left, err = os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("after a failed put, unfinished files are left: %v, %v", left, err)
	}
}
