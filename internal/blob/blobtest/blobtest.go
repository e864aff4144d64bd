// Package blobtest tests that a blob store keeps the contract of the port.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/pawl-run/pawl/internal/blob"
)

// Exercise runs the suite; open returns an empty store each time and cleans up by itself.
func Exercise(t *testing.T, open func(*testing.T) blob.Store) {
	for name, test := range map[string]func(*testing.T, blob.Store){
		"PutGet": putGet, "Offset": offset, "Missing": missing, "Replace": replace, "Names": names, "Remove": remove,
		"RemoveMany": removeMany, "FailedPut": failedPut, "Large": large, "Sweep": sweep, "Cancelled": cancelled, "Whole": whole, "OpenSurvivesRemoval": openSurvivesRemoval,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// Read returns the content of a blob.
func Read(t *testing.T, s blob.Store, name string, offset int64) string {
	t.Helper()
	r, err := s.Get(context.Background(), name, offset)
	if err != nil {
		t.Fatalf("get %s: %v", name, err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return string(b)
}

func put(t *testing.T, s blob.Store, name, content string) {
	t.Helper()
	n, err := s.Put(context.Background(), name, strings.NewReader(content))
	if err != nil {
		t.Fatalf("put %s: %v", name, err)
	}
	if n != int64(len(content)) {
		t.Fatalf("put %s returned %d, want %d", name, n, len(content))
	}
}

func isMissing(t *testing.T, s blob.Store, name string) {
	t.Helper()
	if r, err := s.Get(context.Background(), name, 0); !errors.Is(err, blob.ErrNotFound) {
		if err == nil {
			_ = r.Close() // only the unexpected success counts
		}
		t.Errorf("get %s: %v, want ErrNotFound", name, err)
	}
}

func putGet(t *testing.T, s blob.Store) {
	for _, content := range []string{"", "x", "a\x00b\xff\r\n", strings.Repeat("0123456789abcdef", 1<<16)} {
		put(t, s, "ex_1/out", content)
		if got := Read(t, s, "ex_1/out", 0); got != content {
			t.Errorf("got %d bytes, want the %d that were put", len(got), len(content))
		}
	}
}

func offset(t *testing.T, s blob.Store) {
	put(t, s, "a", "0123456789")
	for at, want := range map[int64]string{0: "0123456789", 3: "3456789", 9: "9", 10: "", 1000: ""} {
		if got := Read(t, s, "a", at); got != want {
			t.Errorf("from %d: %q, want %q", at, got, want)
		}
	}
	if _, err := s.Get(context.Background(), "a", -1); err == nil {
		t.Error("a negative offset was accepted")
	}
}

func missing(t *testing.T, s blob.Store) {
	isMissing(t, s, "nothing")
	isMissing(t, s, "no/such/thing")
	put(t, s, "dir/file", "x")
	isMissing(t, s, "dir")
	isMissing(t, s, "dir/file/below")
}

func replace(t *testing.T, s blob.Store) {
	put(t, s, "a/b", "first and longer")
	put(t, s, "a/b", "second")
	if got := Read(t, s, "a/b", 0); got != "second" {
		t.Errorf("got %q, want what was put last", got)
	}
}

func names(t *testing.T, s blob.Store) {
	ctx := context.Background()
	for _, bad := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a b", "a\x00b", "a\\b", "ä", "a~", "a\n",
		strings.Repeat("a", 2000), strings.Repeat("a/", 2000) + "a"} {
		if _, err := s.Put(ctx, bad, strings.NewReader("x")); err == nil {
			t.Errorf("the name %.20q was accepted", bad)
		}
		if _, err := s.Get(ctx, bad, 0); err == nil || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("get %.20q: %v, want an error about the name", bad, err)
		}
		if err := s.Remove(ctx, bad); err == nil {
			t.Errorf("remove %.20q was accepted", bad)
		}
	}
	good := []string{"a", "A.b_c-9", "...", ".hidden", "a/b/c/d/e", "a/b", strings.Repeat("n", 200)}
	for _, name := range good {
		put(t, s, name, name)
	}
	for _, name := range good {
		if got := Read(t, s, name, 0); got != name {
			t.Errorf("blob %q holds %q", name, got)
		}
	}
}

func remove(t *testing.T, s blob.Store) {
	for _, name := range []string{"p", "p/1", "p/q/2", "pq", "pq/3", "o/p"} {
		put(t, s, name, "x")
	}
	for range 2 { // the second time there is nothing to remove
		if err := s.Remove(context.Background(), "p"); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"p", "p/1", "p/q/2"} {
		isMissing(t, s, name)
	}
	for _, name := range []string{"pq", "pq/3", "o/p"} {
		Read(t, s, name, 0)
	}
	put(t, s, "p/1", "again")
	if got := Read(t, s, "p/1", 0); got != "again" {
		t.Errorf("got %q after putting a removed name again", got)
	}
}

func removeMany(t *testing.T, s blob.Store) {
	ctx := context.Background()
	for _, name := range []string{"a/1", "b/1", "b/2/3", "c/1", "b0", "b-", "b."} {
		put(t, s, name, "x")
	}
	if err := s.Remove(ctx); err != nil {
		t.Errorf("remove nothing: %v", err)
	}
	if err := s.Remove(ctx, "a", ".."); err == nil {
		t.Error("a bad name among others was accepted")
	}
	Read(t, s, "a/1", 0)
	if err := s.Remove(ctx, "a", "none", "b", "b/1"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/1", "b/1", "b/2/3"} {
		isMissing(t, s, name)
	}
	for _, name := range []string{"c/1", "b0", "b-", "b."} {
		Read(t, s, name, 0)
	}
}

// large checks blobs around the sizes at which stores may split them, from many offsets, and with readers that return little at a time.
func large(t *testing.T, s blob.Store) {
	content := make([]byte, 3<<20+77)
	for i := range content {
		content[i] = byte(i>>8) ^ byte(i*7)
	}
	for _, size := range []int{1<<18 - 1, 1 << 18, 1<<18 + 1, 1 << 20, len(content)} {
		n, err := s.Put(context.Background(), "l", iotest.HalfReader(bytes.NewReader(content[:size])))
		if err != nil || n != int64(size) {
			t.Fatalf("put %d bytes: %d, %v", size, n, err)
		}
		for _, at := range []int{0, 1, 1<<18 - 1, 1 << 18, size / 2, size - 1, size} {
			if got := Read(t, s, "l", int64(at)); at < size && got != string(content[at:size]) || at >= size && got != "" {
				t.Errorf("of %d bytes from %d: %d bytes, or others", size, at, len(got))
			}
		}
	}
}

// sweep checks that sweeping removes nothing that is still needed: stored blobs, blobs that are being read, and blobs that are being put.
func sweep(t *testing.T, s blob.Store) {
	sweeper, ok := s.(blob.Sweeper)
	if !ok {
		t.Skip("there is nothing to sweep")
	}
	content := strings.Repeat("line\n", 200_000)
	put(t, s, "kept", content)
	put(t, s, "read", content)
	r, err := s.Get(context.Background(), "read", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(context.Background(), "read"); err != nil {
		t.Fatal(err)
	}
	swept := &sweeps{t: t, s: sweeper, from: strings.NewReader(content)}
	if _, err := s.Put(context.Background(), "put", swept); err != nil || swept.n == 0 {
		t.Errorf("put among %d sweeps: %v", swept.n, err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || string(b) != content {
		t.Errorf("read %d of %d bytes after a sweep: %v", len(b), len(content), err)
	}
	for _, name := range []string{"kept", "put"} {
		if Read(t, s, name, 0) != content {
			t.Errorf("%s is not what was put", name)
		}
	}
}

// sweeps is a reader that calls Sweep while it is read.
type sweeps struct {
	t    *testing.T
	s    blob.Sweeper
	from io.Reader
	n    int
}

func (w *sweeps) Read(p []byte) (int, error) {
	if w.n++; w.n%10 == 0 {
		if err := w.s.Sweep(context.Background()); err != nil {
			w.t.Errorf("sweep: %v", err)
		}
	}
	return w.from.Read(p[:min(len(p), 10_000)])
}

func failedPut(t *testing.T, s blob.Store) {
	broken := errors.New("the pipe broke")
	failing := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))
	if _, err := s.Put(context.Background(), "new", failing); !errors.Is(err, broken) {
		t.Errorf("put returned %v, want the reader's error", err)
	}
	isMissing(t, s, "new")
	// A content that was truncated on its way: the part that arrived must not become the blob, whatever the size of a store's pieces.
	for _, size := range []int{0, 10, 1<<18 - 1, 1 << 18, 1<<18 + 1, 9 << 20} {
		for what, short := range map[string]io.Reader{
			"after the bytes": io.MultiReader(strings.NewReader(strings.Repeat("x", size)), iotest.ErrReader(io.ErrUnexpectedEOF)),
			"with the bytes":  &cutShort{size},
		} {
			if n, err := s.Put(context.Background(), "short", short); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("put what broke off after %d bytes, %s: %d, %v, want the reader's error", size, what, n, err)
			}
		}
	}
	isMissing(t, s, "short")
	put(t, s, "old", "whole")
	if _, err := s.Put(context.Background(), "old", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("put returned %v, want the reader's error", err)
	}
	if got := Read(t, s, "old", 0); got != "whole" {
		t.Errorf("a failed put left %q", got)
	}
}

// cutShort is a reader that returns its error with the last bytes.
type cutShort struct{ left int }

func (c *cutShort) Read(p []byte) (int, error) {
	n := min(len(p), c.left)
	clear(p[:n])
	if c.left -= n; c.left > 0 {
		return n, nil
	}
	return n, io.ErrUnexpectedEOF
}

func cancelled(t *testing.T, s blob.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Put(ctx, "a", strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("put returned %v, want context.Canceled", err)
	}
	isMissing(t, s, "a")
}

// whole checks that readers see one put or another, never a mixture or a part.
func whole(t *testing.T, s blob.Store) {
	const size, writers, rounds = 200_000, 3, 15
	put(t, s, "d/shared", strings.Repeat("0", size))
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				content := bytes.Repeat([]byte{byte('a' + (w*rounds+i)%26)}, size)
				if _, err := s.Put(context.Background(), "d/shared", bytes.NewReader(content)); err != nil {
					t.Errorf("put: %v", err)
				}
				if _, err := s.Put(context.Background(), fmt.Sprintf("d/own/%d", w), bytes.NewReader(content)); err != nil {
					t.Errorf("put: %v", err)
				}
				if err := s.Remove(context.Background(), fmt.Sprintf("d/own/%d", w)); err != nil {
					t.Errorf("remove: %v", err)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 2 * rounds {
				r, err := s.Get(context.Background(), "d/shared", 0)
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				b, err := io.ReadAll(r)
				if err := errors.Join(err, r.Close()); err != nil {
					t.Errorf("read: %v", err)
					return
				}
				if len(b) != size || bytes.Count(b, b[:1]) != size {
					t.Errorf("read %d bytes of %d kinds", len(b), len(bytes.Fields(b)))
				}
			}
		})
	}
	wg.Wait()
}

func openSurvivesRemoval(t *testing.T, s blob.Store) {
	content := strings.Repeat("line\n", 100_000)
	put(t, s, "a/b", content)
	r, err := s.Get(context.Background(), "a/b", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.Remove(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != content {
		t.Errorf("read %d of %d bytes after the removal: %v", len(b), len(content), err)
	}
}
