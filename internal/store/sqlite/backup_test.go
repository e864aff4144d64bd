package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// A copy made while the store is written is a valid store: it has everything from before the backup began, and of the later writes the
// first ones without gaps, but not the last.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "pawl.db"), filepath.Join(t.TempDir(), "copy.db")
	s := mustOpen(t, from)
	var mu sync.Mutex
	var made []flow.ID
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	enough := make(chan struct{})
	writing.Go(func() {
		for i := 1; ctx.Err() == nil; i++ {
			id := flow.ID{1, byte(i >> 16), byte(i >> 8), byte(i)}
			d := flow.Submit(id, flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", CreatedAt: time.UnixMicro(1e15).UTC()})
			err := s.Update(context.Background(), func(ctx context.Context, tx store.Tx) error {
				return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
			})
			chunk := flow.LogChunk{Execution: id, Attempt: 1, Seq: 1, Stream: "stdout", Data: []byte("x"), Size: 1, At: time.UnixMicro(1e15).UTC()}
			if err := errors.Join(err, s.AppendLogs(context.Background(), []flow.LogChunk{chunk})); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			if made = append(made, id); len(made) == 500 {
				close(enough)
			}
			mu.Unlock()
		}
	})
	<-enough
	mu.Lock()
	before := len(made)
	mu.Unlock()
	err := Backup(t.Context(), from, to)
	stop()
	writing.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), from, to); err == nil {
		t.Error("a file that is there was written over")
	}
	c := mustOpen(t, to)
	there := 0
	for i, id := range made {
		_, err := c.Get(t.Context(), id)
		if err == nil {
			if there++; there != i+1 {
				t.Fatalf("execution %d is there and one before it is not", i)
			}
		} else if !errors.Is(err, store.ErrNotFound) || i < before {
			t.Fatalf("execution %d of %d that were there when the backup began: %v", i, before, err)
		}
	}
	for _, id := range made[:before] {
		if chunks, err := c.ReadLogs(t.Context(), store.LogQuery{Execution: id, Limit: 10}); err != nil || len(chunks) != 1 {
			t.Fatalf("logs of %s: %v, %v", id, chunks, err)
		}
	}
	if broken, err := c.Check(t.Context()); err != nil || len(broken) > 0 {
		t.Errorf("%v, %v", broken, err)
	}
}

// A backup of a file that is not a store creates no file.
func TestBackupOfNothing(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "pawl.db"), filepath.Join(t.TempDir(), "copy.db")
	if err := Backup(t.Context(), from, to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(from, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), from, to); err == nil {
		t.Error("an empty file was backed up")
	}
	for _, path := range []string{to, logsOf(to)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A store without logs, as after a restore of the first file alone, can be opened AsIs: no file is created.
func TestAsIsWithoutLogs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl.db")
	if err := mustOpen(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(logsOf(path)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := Open(t.Context(), path, Options{AsIs: true})
		if err != nil {
			t.Fatal(err)
		}
		broken, err := s.Check(t.Context())
		if err := errors.Join(err, s.Close()); err != nil || len(broken) > 0 {
			t.Errorf("%v, %v", broken, err)
		}
		if _, err := os.Stat(logsOf(path)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file was made: %v", err)
		}
	}
}
