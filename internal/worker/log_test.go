package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/worker"
)

// writes is a handler that passes its log to f.
func writes(f func(ctx context.Context, t *task.Task)) task.Handlers {
	return task.Handlers{"x": task.Func(func(ctx context.Context, t *task.Task) (json.RawMessage, error) {
		f(ctx, t)
		return nil, nil
	})}
}

// text assembles a stream and checks numbers and offsets.
func text(t *testing.T, chunks []flow.LogChunk, stream string, blobs *shelf) string {
	t.Helper()
	var b strings.Builder
	for i, c := range chunks {
		if c.Seq != int64(i+1) {
			t.Errorf("chunk %d has number %d", i+1, c.Seq)
		}
		data := c.Data
		if c.Blob != "" {
			data = blobs.get(c.Blob)
		}
		if int64(len(data)) != c.Size || len(data) > 64<<10 {
			t.Errorf("chunk %d has %d bytes and says %d", i+1, len(data), c.Size)
		}
		if c.Stream != stream {
			continue
		}
		if c.Offset != int64(b.Len()) {
			t.Errorf("chunk %d begins at %d, want %d", i+1, c.Offset, b.Len())
		}
		b.Write(data)
	}
	return b.String()
}

type shelf struct {
	mu    sync.Mutex
	blobs map[string][]byte
	fail  bool
}

func (s *shelf) Put(_ context.Context, name string, r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail {
		return 0, io.ErrShortWrite
	}
	s.blobs[name] = b
	return int64(len(b)), err
}

func (s *shelf) get(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs[name]
}

func (s *shelf) Get(context.Context, string, int64) (io.ReadCloser, error) {
	return nil, blob.ErrNotFound
}

func (s *shelf) Remove(context.Context, string) error { return nil }

func TestSmallOutputIsOneChunkPerStream(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		defer serve(t, g, worker.Options{Handlers: writes(func(_ context.Context, t *task.Task) {
			for i := range 10 {
				fmt.Fprintln(t.Log("stdout"), i)
				fmt.Fprint(t.Log("stderr"), i)
			}
		})})()
		began := time.Now()
		g.ended(t, g.submit(flow.Request{Kind: "x"}))
		if len(g.logs) != 2 || text(t, g.logs, "stdout", nil) != "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n" || text(t, g.logs, "stderr", nil) != "0123456789" {
			t.Errorf("%d chunks: %+v", len(g.logs), g.logs)
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("the end waited %s for its logs", d)
		}
	})
}

// Output is sent within a tenth of a second, and all of it before the end is reported.
func TestLogsAreLive(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		var mu sync.Mutex
		var wrote []time.Time
		defer serve(t, g, worker.Options{Handlers: writes(func(_ context.Context, t *task.Task) {
			for i := range 100 {
				mu.Lock()
				wrote = append(wrote, time.Now())
				mu.Unlock()
				fmt.Fprintln(t.Log("stdout"), i)
				time.Sleep(37 * time.Millisecond) // the program's time, in a synctest bubble
			}
		})})()
		g.ended(t, g.submit(flow.Request{Kind: "x"}))
		line := 0
		for i, c := range g.logs {
			for range bytes.Count(c.Data, []byte("\n")) {
				if late := g.logAt[i].Sub(wrote[line]); late > 100*time.Millisecond {
					t.Errorf("line %d was %s late", line, late)
				}
				line++
			}
		}
		if line != 100 || len(g.logs) > 60 {
			t.Errorf("%d lines in %d chunks", line, len(g.logs))
		}
		if last := g.reportAt[len(g.reportAt)-1]; g.logAt[len(g.logAt)-1].After(last) {
			t.Error("the end was reported before the last of the log")
		}
	})
}

// A slow engine makes the writer wait; no output is lost, and memory is bounded.
func TestSlowEngineHoldsTheWriterBack(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		g.slow = 50 * time.Millisecond
		written := 0
		var mu sync.Mutex
		defer serve(t, g, worker.Options{Handlers: writes(func(_ context.Context, t *task.Task) {
			for range 1000 {
				n, _ := t.Log("stdout").Write(bytes.Repeat([]byte("0123456789"), 100))
				mu.Lock()
				written += n
				mu.Unlock()
			}
		})})()
		id := g.submit(flow.Request{Kind: "x"})
		g.until(t, "the first chunk", func() bool { return len(g.logs) > 0 })
		g.update(func() { g.noLogs = true })
		synctest.Wait()
		mu.Lock()
		ahead := written
		mu.Unlock()
		g.mu.Lock()
		for _, c := range g.logs {
			ahead -= int(c.Size)
		}
		g.mu.Unlock()
		if ahead > 200_000 {
			t.Errorf("%d bytes are on their way", ahead)
		}
		g.update(func() { g.noLogs = false })
		g.ended(t, id)
		if s := text(t, g.logs, "stdout", nil); len(s) != 1_000_000 || strings.Count(s, "0123456789") != 100_000 {
			t.Errorf("%d bytes arrived", len(s))
		}
	})
}

func TestLargeLogsGoToBlobs(t *testing.T) {
	for _, broken := range []bool{false, true} {
		bubbleName := map[bool]string{false: "kept", true: "store broken"}[broken]
		t.Run(bubbleName, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *ledger) {
				blobs := &shelf{blobs: map[string][]byte{}, fail: broken}
				defer serve(t, g, worker.Options{Blobs: blobs, Handlers: writes(func(_ context.Context, t *task.Task) {
					for i := range 5000 {
						fmt.Fprintf(t.Log("stdout"), "%099d\n", i)
					}
				})})()
				id := g.submit(flow.Request{Kind: "x"})
				g.ended(t, id)
				s := text(t, g.logs, "stdout", blobs)
				if len(s) != 500_000 || !strings.HasSuffix(s, "4999\n") {
					t.Errorf("%d bytes arrived", len(s))
				}
				inline, prefix := 0, fmt.Sprintf("logs/%s/1/", id)
				for _, c := range g.logs {
					if len(c.Data) >= 4<<10 { // smaller chunks are cheaper as rows, however much there is
						inline += len(c.Data)
					}
					if c.Blob != "" && !strings.HasPrefix(c.Blob, prefix) {
						t.Errorf("blob %q", c.Blob)
					}
				}
				if !broken && inline > blob.InlineLimit {
					t.Errorf("%d bytes are in rows", inline)
				}
			})
		})
	}
}

func TestHandlerLogIsCapped(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		blobs := &shelf{blobs: map[string][]byte{}}
		defer serve(t, g, worker.Options{Blobs: blobs, Handlers: writes(func(_ context.Context, t *task.Task) {
			line := bytes.Repeat([]byte("x"), 1<<20)
			for range 70 {
				t.Log("log").Write(line)
			}
		})})()
		g.ended(t, g.submit(flow.Request{Kind: "x"}))
		s := text(t, g.logs, "log", blobs)
		if len(s) > 64<<20+100 || !strings.HasSuffix(s, "[the log is full: 67108864 bytes are kept]\n") {
			t.Errorf("%d bytes, ending in %q", len(s), s[len(s)-60:])
		}
	})
}

// A waiting writer does not hang when its session is lost.
func TestWriterIsFreedWhenTheSessionIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		failed := make(chan error, 2)
		g.noLogs = true
		defer serve(t, g, worker.Options{Handlers: writes(func(_ context.Context, t *task.Task) {
			for t.Attempt == 1 {
				if _, err := t.Log("stdout").Write(make([]byte, 10_000)); err != nil {
					failed <- err
					return
				}
			}
		})})()
		id := g.submit(flow.Request{Kind: "x"})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		synctest.Wait()
		g.update(func() { g.loseSession(g.drafts[id].Owner) })
		<-failed
		g.update(func() { g.noLogs = false })
		if d := g.ended(t, id); d.Attempt != 2 || d.Stage != flow.Completed {
			t.Errorf("%s in attempt %d", d.Stage, d.Attempt)
		}
	})
}

// A program's output goes to the disk while the engine takes none, so that the program does not wait. All of it is sent, in order, before
// the end is reported.
func TestSpooledOutputWaitsForNoEngine(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		dir, wrote := t.TempDir(), make(chan time.Duration, 1)
		g.noLogs = true
		defer serve(t, g, worker.Options{Handlers: writes(func(_ context.Context, t *task.Task) {
			stdout, stderr := t.Log("stdout"), t.Log("stderr")
			stdout.(task.Spooler).Spool(dir, 1_200_000)
			stderr.(task.Spooler).Spool(dir, 1_200_000)
			began := time.Now()
			for i := range 100_000 {
				fmt.Fprintf(stdout, "line %6d\n", i)
				if i%1000 == 0 {
					fmt.Fprintf(stderr, "%d\n", i)
				}
			}
			wrote <- time.Since(began)
		})})()
		id := g.submit(flow.Request{Kind: "x"})
		if d := <-wrote; d > 0 {
			t.Errorf("the program waited for %s", d)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("a killed worker would leave %v, %v", left, err)
		}
		time.Sleep(time.Minute) // of the bubble
		g.update(func() { g.noLogs = false })
		g.ended(t, id)
		var want, wantErr strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&want, "line %6d\n", i)
			if i%1000 == 0 {
				fmt.Fprintf(&wantErr, "%d\n", i)
			}
		}
		if text(t, g.logs, "stdout", nil) != want.String() || text(t, g.logs, "stderr", nil) != wantErr.String() {
			t.Error("what arrived is not what was written")
		}
		for _, c := range g.logs {
			if c.At.After(time.Now().Add(-time.Minute)) {
				t.Errorf("the chunk at %d says that it was written at %s, when it was sent", c.Offset, c.At)
			}
		}
		if last := g.reportAt[len(g.reportAt)-1]; g.logAt[len(g.logAt)-1].After(last) {
			t.Error("the end was reported before the last of the log")
		}
	})
}

// A spool holds as much as it may; then the writer waits.
func TestSpoolIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		var mu sync.Mutex
		written := 0
		dir := t.TempDir()
		g.noLogs = true
		defer serve(t, g, worker.Options{Handlers: writes(func(_ context.Context, t *task.Task) {
			w := t.Log("stdout")
			w.(task.Spooler).Spool(dir, 300_000)
			for range 1000 {
				n, _ := w.Write(make([]byte, 1000))
				mu.Lock()
				written += n
				mu.Unlock()
			}
		})})()
		id := g.submit(flow.Request{Kind: "x"})
		g.until(t, "running", func() bool { return g.drafts[id].Stage == flow.Running })
		synctest.Wait()
		mu.Lock()
		// Beside the spool, the 512 KiB that one call has taken from it may wait, and the chunk that began in memory.
		if written < 300_000 || written > 300_000+(512<<10)+(64<<10) {
			t.Errorf("%d bytes were written", written)
		}
		mu.Unlock()
		g.update(func() { g.noLogs = false })
		g.ended(t, id)
		if n := len(text(t, g.logs, "stdout", nil)); n != 1_000_000 {
			t.Errorf("%d bytes arrived", n)
		}
	})
}

// A failing disk fails the write, and the output kept before is sent.
func TestSpoolWithoutDisk(t *testing.T) {
	bubble(t, func(t *testing.T, g *ledger) {
		dir, failed := filepath.Join(t.TempDir(), "gone"), make(chan error, 1)
		g.noLogs = true
		defer serve(t, g, worker.Options{Handlers: writes(func(_ context.Context, t *task.Task) {
			w := t.Log("stdout")
			w.(task.Spooler).Spool(dir, 1<<20)
			var err error
			for err == nil {
				_, err = w.Write(make([]byte, 1000))
			}
			failed <- err
		})})()
		id := g.submit(flow.Request{Kind: "x"})
		if err := <-failed; !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
		g.update(func() { g.noLogs = false })
		g.ended(t, id)
		if n := len(text(t, g.logs, "stdout", nil)); n < 100_000 {
			t.Errorf("%d bytes arrived", n)
		}
	})
}
