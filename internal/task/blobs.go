package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
)

// How long the worker waits between tries while the blob store cannot be reached.
const (
	blobPatience   = 2 * time.Minute // for all tries together: after that long without the engine, the worker has lost the attempt, too
	blobPauseFirst = 50 * time.Millisecond
	blobPauseMost  = 2 * time.Second
)

// persist repeats a call of the blob store while the store cannot be reached. The pauses double and have full jitter.
func persist(ctx context.Context, do func() error) error {
	until := time.Now().Add(blobPatience)
	pause := blobPauseFirst
	for {
		err := do()
		if !errors.Is(err, blob.ErrUnavailable) || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(time.Duration(float64(pause) * rand.Float64())):
		case <-ctx.Done():
			return fmt.Errorf("%w (%s)", context.Cause(ctx), err) //nolint:errorlint // ErrUnavailable would be tried again
		}
		pause = min(2*pause, blobPauseMost)
	}
}

// keep stores a file as the attempt's blob and returns its name.
func (e *evaluation) keep(ctx context.Context, f runtime.Collected, n int) (string, error) {
	if e.task.Blobs == nil {
		return "", fmt.Errorf("%d bytes are too many to keep without a blob store", f.Size)
	}
	in, err := os.Open(f.Host)
	if err != nil {
		return "", err
	}
	defer in.Close()
	name := fmt.Sprintf("files/%s/%d/%d", e.task.Execution, e.task.Attempt, n)
	err = persist(ctx, func() error {
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := e.task.Blobs.Put(ctx, name, in)
		return err
	})
	return name, err
}

// fetch writes a blob to a file. It resumes a transfer that breaks off.
func (e *evaluation) fetch(ctx context.Context, name, to string) error {
	if e.task.Blobs == nil {
		return Errorf(flow.CodeInvalidInput, "blob %q: this worker has no blob store (give the bytes themselves)", name)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("make a directory for files: %w", err)
	}
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("fetch blob %q: %w", name, err)
	}
	have := int64(0)
	err = persist(ctx, func() error {
		r, err := e.task.Blobs.Get(ctx, name, have)
		if err != nil {
			return err
		}
		n, err := io.Copy(w, r)
		have += n
		return errors.Join(err, r.Close())
	})
	switch {
	case errors.Is(err, blob.ErrNotFound):
		err = Errorf(flow.CodeInvalidInput, "blob %q: there is none of that name: the execution that left it may be gone, or never left it; pawl files ID lists the files of an execution", name)
	case errors.Is(err, blob.ErrRefused):
		err = Errorf(flow.CodeInvalidInput, "blob %q: %v", name, err)
	case err != nil:
		err = fmt.Errorf("fetch blob %q: %w", name, err)
	}
	return errors.Join(err, w.Close())
}
