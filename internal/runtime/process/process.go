//go:build unix

// Package process runs programs as plain children of Pawl, each in its own directory. It isolates nothing: a program
// can do whatever the user who runs Pawl can do, and a process that leaves its session survives the run. It is for
// trusted work and for hosts without a sandbox, and never a default.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/runs"
	"github.com/pawl-run/pawl/internal/runtime/spawn"
)

const Name = "process"

// Options configure New. The zero value is ready to use.
type Options struct {
	// Dir is the parent of the working directories; empty means the system's temporary directory.
	Dir string
}

// Runtime starts plain processes. It is safe for concurrent use.
type Runtime struct {
	thread *spawn.Thread
	// base is created by the first run: most servers never need one.
	base func() (*base, error)

	runs runs.Set[*run]
	used atomic.Bool // a run has been asked for
}

// New returns a runtime that isolates nothing.
func New(o Options) (runtime.Runtime, error) {
	return &Runtime{
		base:   sync.OnceValues(func() (*base, error) { return makeBase(o.Dir) }),
		thread: spawn.NewThread(),
	}, nil
}

func (r *Runtime) Name() string { return Name }

func (r *Runtime) Isolation() runtime.Isolation { return runtime.None }

// Diagnose describes the backend; a process can always be started.
func (r *Runtime) Diagnose(context.Context) []runtime.Finding {
	return []runtime.Finding{
		{What: "isolation", OK: true, Say: "none: programs can do what the user who runs Pawl can do; for trusted code only"},
		{What: "limits", OK: true, Say: "wall time and output by Pawl, the rest: " + enforcement +
			"; memory and the number of processes are not limited"},
	}
}

func (r *Runtime) Close() error {
	if !r.runs.Close() {
		return nil
	}
	r.runs.Wait()
	r.thread.Close()
	if !r.used.Load() {
		return nil
	}
	b, err := r.base()
	if err != nil {
		return nil // no run ever began, and each returned this error
	}
	return b.close()
}

// Start begins a run and returns when the program is executing.
func (r *Runtime) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.Or(runtime.DefaultLimits())
	n := &run{runtime: r, spec: spec, done: make(chan struct{})}
	if err := r.runs.Add(n); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	r.used.Store(true)
	if err := n.start(); err != nil {
		r.runs.Remove(n)
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	return n, nil
}

func placeFiles(dir string, spec runtime.Spec) error {
	var total int64
	for _, f := range spec.Files {
		source := io.Reader(strings.NewReader(string(f.Content)))
		mode := f.Mode.Perm()
		if f.Content == nil && f.Source != "" {
			file, err := os.Open(f.Source)
			if err != nil {
				return fmt.Errorf("%w: input file %q: %w", runtime.ErrSpec, f.Path, err)
			}
			defer file.Close()
			info, err := file.Stat()
			if err != nil || !info.Mode().IsRegular() {
				return fmt.Errorf("%w: input file %q: %s is not a regular file", runtime.ErrSpec, f.Path, f.Source)
			}
			mode = cmp.Or(mode, info.Mode().Perm())
			source = file
		}
		mode = cmp.Or(mode, 0o644)
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		size, err := placeFile(path, mode, io.LimitReader(source, spec.Limits.Disk-total+1))
		if err != nil {
			return fmt.Errorf("%w: input file %q: %w", runtime.ErrSpec, f.Path, err)
		}
		if total += size; total > spec.Limits.Disk {
			return fmt.Errorf("%w: input files are larger than the disk limit of %d bytes; raise the limit",
				runtime.ErrSpec, spec.Limits.Disk)
		}
	}
	return nil
}

// placeFile writes one input. No process may be forked while the file is open: the child would hold it open for writing
// until it executes, and no process can execute a file that is open for writing.
func placeFile(path string, mode os.FileMode, content io.Reader) (int64, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, err
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(out, content)
	return size, errors.Join(err, out.Close())
}

// lookUp finds a program as a shell does, in the PATH of the program's own environment.
func lookUp(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("%w: %q: %w", runtime.ErrSpec, name, err)
		}
		return path, nil
	}
	path := ""
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if candidate := filepath.Join(dir, name); dir != "" && executable(candidate) == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%w: %q is not in the PATH that the run was given (%q)", runtime.ErrSpec, name, path)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return unix.Access(path, unix.X_OK)
}

// removeAll removes a working directory even if the program has removed its owner's permissions.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// groupGone is how long the rest of a killed process group may take to disappear.
const groupGone = 5 * time.Second
