//go:build unix

package collect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSwappedDuringCollection collects while another goroutine swaps files, directories and the working directory itself with links to a
// secret, and grows, shrinks and removes files that are being copied. No sandbox leaves a process alive that could do this; other
// backends may. Only the content of the directory may be collected, whatever the timing.
func TestSwappedDuringCollection(t *testing.T) {
	base := t.TempDir()
	secret := filepath.Join(base, "secret")
	write(t, filepath.Join(secret, "file"), "secret")
	dir := filepath.Join(base, "work")
	write(t, filepath.Join(dir, "file"), "good")
	write(t, filepath.Join(dir, "sub/file"), "good")
	write(t, filepath.Join(dir, "sub/deep/file"), "good")
	for link, target := range map[string]string{
		"file": filepath.Join(secret, "file"), "sub": secret, "deep": secret, "work": secret,
	} {
		if err := os.Symlink(target, filepath.Join(base, "bad-"+link)); err != nil {
			t.Fatal(err)
		}
	}
	work, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer work.Close()

	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		swaps := 0
		defer func() { stopped <- swaps }()
		swap := func(name string) {
			// The swap has three steps, so that each name is also absent at times.
			path, bad, aside := filepath.Join(base, name), filepath.Join(base, "bad-"+filepath.Base(name)), filepath.Join(base, "aside")
			if os.Rename(path, aside) == nil && os.Rename(bad, path) == nil && os.Rename(aside, bad) == nil {
				swaps++
			}
		}
		for {
			for _, name := range []string{"work/file", "work/sub", "work/sub/deep", "work"} {
				select {
				case <-stop:
					return
				default:
				}
				swap(name)
				if name != "work/sub/deep" {
					swap(name) // and back
				}
				// This uses the descriptor, because the directory may have another name by now.
				if fd, err := unix.Openat(int(work.Fd()), "file", unix.O_WRONLY|unix.O_NOFOLLOW, 0); err == nil {
					_ = unix.Ftruncate(fd, int64(swaps%9))
					_, _ = unix.Pwrite(fd, []byte("good"), 0)
					unix.Close(fd)
				}
			}
		}
	}()
	rounds := 150
	taken := 0
	for range rounds {
		if _, err := work.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		into := t.TempDir()
		files, _, err := From(work, []string{"."}, into, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f.Host)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "secret") || int64(len(text)) > 16 {
				t.Fatalf("%s holds %q", f.Path, text)
			}
			taken++
		}
	}
	close(stop)
	swaps := <-stopped
	t.Logf("%d files taken in %d rounds beside %d swaps", taken, rounds, swaps)
	if taken == 0 || swaps == 0 {
		t.Error("nothing was tried")
	}
	if text, err := os.ReadFile(filepath.Join(secret, "file")); err != nil || string(text) != "secret" {
		t.Errorf("the secret is %q (%v)", text, err)
	}
}
