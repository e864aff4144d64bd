package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/blob/blobtest"
	"github.com/pawl-run/pawl/internal/blob/s3/s3test"
)

// content returns bytes that differ at every offset and for every seed.
func content(seed uint64, size int) []byte {
	b := make([]byte, size)
	g := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = g.Read(b) // never fails
	return b
}

// The suite passes with a proxy that spoils a tenth of the requests: failed operations are retried.
func TestConformanceThroughFaults(t *testing.T) {
	t.Parallel()
	s3test.URL(t)
	blobtest.Exercise(t, func(t *testing.T) blob.Store {
		var n atomic.Uint64
		return open(t, through(t, s3test.URL(t), &proxy{choose: func(r *http.Request) fault {
			i := n.Add(1)
			f := fault(1 + i/10%uint64(faults-1))
			if i%10 > 0 || f == cut && strings.HasSuffix(r.URL.Path, "/shared~") { // reading cannot continue in an object that was replaced
				return none
			}
			return f
		}}))
	})
}

// 1,000 operations through a proxy that spoils a fifth of the requests: every read returns the whole content of one of the puts.
func TestFaults(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	g := rand.New(rand.NewPCG(1, 2))
	open(t, s3test.URL(t)) // without faults, because the first open creates the bucket
	s := open(t, through(t, s3test.URL(t), &proxy{choose: func(r *http.Request) fault {
		mu.Lock()
		defer mu.Unlock()
		if g.IntN(5) > 0 || r.URL.Query().Has("list-type") && r.URL.Query().Get("max-keys") == "1" {
			return none
		}
		return fault(1 + g.IntN(int(faults)-1))
	}}))
	var failed, read atomic.Int64
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			g := rand.New(rand.NewPCG(uint64(w), 3))
			name := fmt.Sprintf("w/%d", w)
			may := [][]byte{nil} // possible contents; nil: no blob
			for i := range 50 {
				switch g.IntN(10) {
				case 0, 1, 2, 3:
					size := []int{0, 1, 4 << 10, 200 << 10, 9 << 20}[g.IntN(5)]
					if size == 9<<20 && i%5 > 0 {
						size = 300 << 10
					}
					b := content(uint64(w*1000+i), size)
					_, err := s.Put(context.Background(), name, iotest.HalfReader(bytes.NewReader(b)))
					if err != nil {
						failed.Add(1)
						may = append(may, b)
					} else {
						may = [][]byte{b}
					}
					unavailable(t, err)
				case 4:
					err := s.Remove(context.Background(), name)
					if unavailable(t, err); err != nil {
						failed.Add(1)
						may = append(may, nil)
					} else {
						may = [][]byte{nil}
					}
				default:
					at := int64(g.IntN(2) * g.IntN(1<<20))
					got, err := get(s, name, at)
					switch {
					case errors.Is(err, blob.ErrNotFound):
						if !slices.ContainsFunc(may, func(b []byte) bool { return b == nil }) {
							t.Errorf("%s is gone", name)
						}
					case err != nil:
						failed.Add(1)
						unavailable(t, err)
					case !slices.ContainsFunc(may, func(b []byte) bool { return b != nil && bytes.Equal(got, b[min(at, int64(len(b))):]) }):
						t.Errorf("%s from %d: %d wrong bytes", name, at, len(got))
					default:
						read.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if read.Load() < 100 || failed.Load() > 100 {
		t.Errorf("%d reads came through and %d operations failed", read.Load(), failed.Load())
	}
}

func get(s blob.Store, name string, at int64) ([]byte, error) {
	r, err := s.Get(context.Background(), name, at)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

func unavailable(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("an operation failed by another error than that the blobs are unavailable: %v", err)
	}
}

// The answer to the request that assembles an object is lost: once, and every time.
func TestLostCompletion(t *testing.T) {
	t.Parallel()
	for _, times := range []int64{1, 5} {
		var left atomic.Int64
		left.Store(times)
		s := open(t, through(t, s3test.URL(t), &proxy{choose: func(r *http.Request) fault {
			if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") && left.Add(-1) >= 0 {
				return lost
			}
			return none
		}}))
		want := content(1, 20<<20)
		if n, err := s.Put(t.Context(), "x", bytes.NewReader(want)); err != nil || n != int64(len(want)) {
			t.Errorf("after %d lost answers: %d, %v", times, n, err)
		}
		if got, err := get(s, "x", 0); err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		if left.Load() > 0 {
			t.Errorf("%d answers were not lost", left.Load())
		}
	}
}

// An upload that cannot be completed, or is interrupted, replaces nothing and is aborted.
func TestFailedUpload(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	var part, complete atomic.Bool
	s := open(t, through(t, place, &proxy{choose: func(r *http.Request) fault {
		q := r.URL.Query()
		if r.Method == http.MethodPost && q.Has("uploadId") && complete.Load() || q.Get("partNumber") == "2" && part.Load() {
			return refused
		}
		return none
	}}))
	old := content(1, 10<<20)
	if _, err := s.Put(t.Context(), "x", bytes.NewReader(old)); err != nil {
		t.Fatal(err)
	}
	c, bucket, prefix := s3test.Client(t, place)
	left := func() int {
		t.Helper()
		all, err := c.ListMultipartUploads(t.Context(), bucket, prefix, "", "", "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(all.Uploads)
	}
	intact := func(what string) {
		t.Helper()
		if got, err := get(s, "x", 0); err != nil || !bytes.Equal(got, old) {
			t.Errorf("%s: the blob that was there has %d bytes, %v", what, len(got), err)
		}
	}
	// The service may still write a part of a cancelled request after the upload was aborted, and then it has the upload again: a sweep
	// removes it.
	tomorrow := open(t, through(t, place, &proxy{rewrite: begunLongAgo}))
	swept := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); left() > 0; {
			if err := tomorrow.Sweep(t.Context()); err != nil || time.Now().After(deadline) {
				t.Fatalf("%s: a sweep left %d uploads, %v", what, left(), err)
			}
		}
		intact(what)
	}
	next := content(2, 30<<20)
	complete.Store(true)
	if _, err := s.Put(t.Context(), "x", bytes.NewReader(next)); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("not completed: %v", err)
	}
	if n := left(); n > 0 {
		t.Errorf("not completed: %d uploads are left", n)
	}
	intact("not completed")
	complete.Store(false)
	part.Store(true)
	if _, err := s.Put(t.Context(), "x", bytes.NewReader(next)); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("a part was refused: %v", err)
	}
	swept("a part was refused")
	part.Store(false)
	pipe := errors.New("the pipe broke")
	if _, err := s.Put(t.Context(), "x", io.MultiReader(bytes.NewReader(next), iotest.ErrReader(pipe))); !errors.Is(err, pipe) {
		t.Errorf("a broken reader: %v", err)
	}
	swept("a broken reader")
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Put(ctx, "x", io.MultiReader(bytes.NewReader(next), &hook{cancel}, bytes.NewReader(next))); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	swept("cancelled")
}

// begunLongAgo makes every listed upload old, because the service's clock cannot be changed.
func begunLongAgo(r *http.Request, body []byte) []byte {
	if !r.URL.Query().Has("uploads") {
		return body
	}
	return initiated.ReplaceAll(body, []byte("<Initiated>2020-01-01T00:00:00Z</Initiated>"))
}

var initiated = regexp.MustCompile(`<Initiated>[^<]*</Initiated>`)

// hook is an empty reader that calls a function.
type hook struct{ call func() }

func (h *hook) Read([]byte) (int, error) {
	h.call()
	return 0, io.EOF
}

// Reading continues after a broken connection, but only in the same object.
func TestResume(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	var cuts, ranges atomic.Int64
	s := open(t, through(t, place, &proxy{choose: func(r *http.Request) fault {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "~") {
			return none
		}
		if r.Header.Get("Range") != "" {
			ranges.Add(1)
		}
		if cuts.Add(-1) >= 0 {
			return cut
		}
		return none
	}}))
	want := content(1, 3<<20)
	if _, err := s.Put(t.Context(), "x", bytes.NewReader(want)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 1000} {
		cuts.Store(6)
		if got, err := get(s, "x", at); err != nil || !bytes.Equal(got, want[at:]) {
			t.Errorf("from %d: %d bytes, %v", at, len(got), err)
		}
	}
	if ranges.Load() < 12 {
		t.Errorf("only %d requests went on at an offset", ranges.Load())
	}

	direct := open(t, place)
	for what, change := range map[string]func() error{
		"replaced": func() error {
			_, err := direct.Put(t.Context(), "x", bytes.NewReader(content(2, 3<<20)))
			return err
		},
		"removed": func() error { return direct.Remove(t.Context(), "x") },
	} {
		if _, err := s.Put(t.Context(), "x", bytes.NewReader(want)); err != nil {
			t.Fatal(err)
		}
		cuts.Store(1)
		r, err := s.Get(t.Context(), "x", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err == nil || !strings.Contains(err.Error(), what+" meanwhile") || !bytes.HasPrefix(want, got) {
			t.Fatalf("%s: read %d bytes, %v", what, len(got), err)
		}
		if n, again := r.Read(make([]byte, 1)); n != 0 || again == nil || again.Error() != err.Error() {
			t.Errorf("%s: the next read gave %d bytes and %v, want the same error", what, n, again)
		}
		_ = r.Close()
	}
}

// If a service or a proxy does not support If-Match, bytes of another object do not follow those of the first.
func TestResumeWithoutIfMatch(t *testing.T) {
	t.Parallel()
	place := s3test.URL(t)
	for second, want := range map[string]string{"one": "", "another": "replaced meanwhile", "": "replaced meanwhile"} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("list-type") {
				answer(w, http.StatusOK, `<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`)
				return
			}
			w.Header().Set("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")
			if r.Header.Get("Range") == "" {
				w.Header().Set("ETag", `"one"`)
				w.Header().Set("Content-Length", "10")
				_, _ = io.WriteString(w, "01234")         // half of it
				_ = http.NewResponseController(w).Flush() // the client may have disconnected
				panic(http.ErrAbortHandler)
			}
			if second != "" {
				w.Header().Set("ETag", strconv.Quote(second))
			}
			w.Header().Set("Content-Range", "bytes 5-9/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "56789") // the client may have disconnected
		}))
		got, err := get(open(t, s3test.With(place, "endpoint", service.URL)), "x", 0)
		if want == "" && (err != nil || string(got) != "0123456789") || want != "" && (err == nil || !strings.Contains(err.Error(), want) || string(got) != "01234") {
			t.Errorf("the second answer has the ETag %q: %q, %v, want %q", second, got, err, want)
		}
		service.Close()
	}
}

// A reader that panics during a put in parts ends the put.
func TestReaderPanics(t *testing.T) {
	t.Parallel()
	s := open(t, s3test.URL(t))
	over := make(chan any)
	go func() {
		defer func() { over <- recover() }()
		_, err := s.Put(t.Context(), "x", io.MultiReader(bytes.NewReader(content(1, 20<<20)), &hook{func() { panic("the reader's") }}))
		t.Errorf("a put of a reader that panics returned %v", err)
	}()
	select {
	case got := <-over:
		if got != "the reader's" {
			t.Errorf("it panicked with %v", got)
		}
	case <-time.After(time.Minute):
		t.Error("the put hangs")
	}
}

// If a service does not support the request for many keys, they are removed one by one.
func TestRemoveEach(t *testing.T) {
	t.Parallel()
	s := open(t, through(t, s3test.URL(t), &proxy{choose: func(r *http.Request) fault {
		if r.URL.Query().Has("delete") {
			return unknown
		}
		return none
	}}))
	for _, name := range []string{"a", "a/1", "a/2", "b"} {
		if _, err := s.Put(t.Context(), name, strings.NewReader(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "a/1", "a/2"} {
		if _, err := get(s, name, 0); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := blobtest.Read(t, s, "b", 0); got != "b" {
		t.Errorf("b holds %q", got)
	}
}
