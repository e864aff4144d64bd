package file_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/blobtest"
)

// A full disk may have space again later: the error is ErrUnavailable, and nothing of the failed put stays.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("pawl-test", dir, "tmpfs", 0, "size=256k"); errors.Is(err, unix.EPERM) {
		t.Skipf("no small disk: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := open(t, dir)
	if _, err := s.Put(t.Context(), "a/large", strings.NewReader(strings.Repeat("x", 1<<20))); !errors.Is(err, blob.ErrUnavailable) || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("put what does not fit: %v", err)
	}
	if _, err := s.Put(t.Context(), "a/small", strings.NewReader("small")); err != nil || blobtest.Read(t, s, "a/small", 0) != "small" {
		t.Errorf("put what fits: %v", err)
	}
}
