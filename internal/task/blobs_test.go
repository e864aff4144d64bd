package task_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/task"
)

// shaky is a shelf that is unreachable every other time, and breaks off reads.
type shaky struct {
	shelf
	mu    sync.Mutex
	calls int
	why   error // what it says then
	most  int   // bytes per read
}

func (s *shaky) fails() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.calls%2 == 1 {
		return fmt.Errorf("shaky: %w", s.why)
	}
	return nil
}

func (s *shaky) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := s.fails(); err != nil {
		_, _ = io.CopyN(io.Discard, r, 1000) // a part has gone
		return 0, err
	}
	return s.shelf.Put(ctx, name, r)
}

func (s *shaky) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	if err := s.fails(); err != nil {
		return nil, err
	}
	r, err := s.shelf.Get(ctx, name, offset)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(r)
	if err != nil || len(all) <= s.most {
		return io.NopCloser(bytes.NewReader(all)), err
	}
	return io.NopCloser(io.MultiReader(bytes.NewReader(all[:s.most]), iotest.ErrReader(s.why))), nil
}

// If blobs are unreachable, the worker retries: files are stored completely, and a download continues where it broke off.
func TestShakyBlobs(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	rt := runtimes(t)[0]
	large := strings.Repeat("0123456789", 100_000)
	s := &shaky{shelf: shelf{blobs: map[string][]byte{"files/x/1/0": []byte(large)}}, why: blob.ErrUnavailable, most: 300_000}
	r := evaluate(t, t.Context(), rt, s, code(t, api.Code{Language: "bash", Source: "cp in out", Collect: []string{"out"},
		Files: map[string]api.Content{"in": {Blob: "files/x/1/0"}}}))
	if r.err != nil || len(r.result.Files) != 1 || len(r.result.Refused) != 0 {
		t.Fatalf("%+v, %+v", r.err, r.result)
	}
	if got := string(s.blobs[r.result.Files[0].Blob]); got != large {
		t.Errorf("the file has %d bytes, or others", len(got))
	}
}

// A refusal is not retried, and has its reason; a refused file is named.
func TestRefusedBlobs(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	rt := runtimes(t)[0]
	s := &shaky{shelf: shelf{blobs: map[string][]byte{}}, why: fmt.Errorf("%w: not yours", blob.ErrRefused)}
	r := evaluate(t, t.Context(), rt, s, code(t, api.Code{Language: "bash", Source: "true", Files: map[string]api.Content{"in": {Blob: "files/x/1/0"}}}))
	if r.err == nil || r.err.Code != flow.CodeInvalidInput || !strings.Contains(r.err.Message, "not yours") || s.calls != 1 {
		t.Errorf("after %d calls: %+v", s.calls, r.err)
	}
	gone := &shaky{shelf: shelf{blobs: map[string][]byte{}}, why: fmt.Errorf("%w: gone", blob.ErrNotFound)}
	r = evaluate(t, t.Context(), rt, gone, code(t, api.Code{Language: "bash", Source: "true", Files: map[string]api.Content{"in": {Blob: "files/x/1/0"}}}))
	if r.err == nil || r.err.Code != flow.CodeInvalidInput || !strings.Contains(r.err.Message, "pawl files ID lists the files of an execution") {
		t.Errorf("a blob that is gone: %+v", r.err)
	}
	s.calls = 0
	r = evaluate(t, t.Context(), rt, s, code(t, api.Code{Language: "bash", Source: "head -c 200000 /dev/zero > out", Collect: []string{"out"}}))
	if r.err != nil || len(r.result.Files) != 0 || len(r.result.Refused) != 1 || !strings.Contains(r.result.Refused[0], "not yours") || s.calls != 1 {
		t.Errorf("after %d calls: %+v, %+v", s.calls, r.err, r.result)
	}
}

// The worker stops retrying when the attempt is stopped, and the attempt does not complete without its file. An attempt that has failed
// stays failed.
func TestStoppedWhileBlobsAreAway(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	rt := runtimes(t)[0]
	for ends, completes := range map[string]bool{"true": true, "false": false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		away := &stopping{then: func() { cancel(&task.Stop{Reason: "enough"}) }}
		r := evaluate(t, ctx, rt, away, code(t, api.Code{Language: "bash", Source: "head -c 200000 /dev/zero > out; " + ends, Collect: []string{"out"}}))
		if completes && (r.stop == nil || r.stop.Reason != "enough") {
			t.Errorf("it was told to stop, has lost a file, and completes: %+v, %+v", r.err, r.result)
		}
		if !completes && (r.err == nil || len(r.result.Files) != 0 || len(r.result.Refused) != 1 || !strings.Contains(r.result.Refused[0], "enough")) {
			t.Errorf("%+v, %+v", r.err, r.result)
		}
	}
}

// stopping is never reachable, and stops the attempt at the first call.
type stopping struct {
	blob.Access
	then func()
}

func (s *stopping) Put(context.Context, string, io.Reader) (int64, error) {
	s.then()
	return 0, blob.ErrUnavailable
}
