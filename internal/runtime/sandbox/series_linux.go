package sandbox

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// series is the runs of one evaluation that share what no program can change; see base. It is safe for concurrent use.
type series struct {
	runtime *Runtime

	mu    sync.Mutex
	begun bool // the first run has been started
	alone bool // no base can be built, or the series is closed
	base  *base
}

// base is the shared part of the sandboxes of a series. A run gets a copy of the mount namespace, in which the root is read-only and has
// no scratch; scratch, /proc, processes, IPC objects, user and cgroups are the run's own. Both namespaces exist as long as their
// descriptors are open; no process is in them.
type base struct {
	mounts []runtime.Mount
	root   *os.File // the mount namespace
	// network is the namespace that the base was built in. A template uses it; a base of runs gives it back at once.
	network *network
}

// Series returns a starter of runs that share what no program can change. The caller closes it after waiting for the ends of the runs.
func (r *Runtime) Series() runtime.Series { return &series{runtime: r} }

func (s *series) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	return s.runtime.startIn(ctx, spec, s)
}

// Close releases what the runs share.
func (s *series) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alone = true
	s.base.close()
	s.base = nil
}

// prepare returns the base for a run; nil: the run builds its whole root. Only the second and later runs of a series have a base.
// Entering a mount namespace requires a privilege on the host.
func (s *series) prepare(ctx context.Context, mounts []runtime.Mount) *base {
	if s == nil || !s.runtime.privileged {
		return nil
	}
	mounts = slices.DeleteFunc(slices.Clone(mounts), ofRun)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || s.alone {
		s.begun = true
		return nil
	}
	if s.base != nil && !slices.Equal(s.base.mounts, mounts) {
		s.base.close()
		s.base = nil
	}
	if s.base == nil {
		var err error
		s.base, err = s.runtime.buildBase(ctx, mounts)
		s.alone = err != nil // each run builds its whole root, and if that fails too it gives the user the reason
	}
	return s.base
}

// errNoBase means that no base works on this host.
var errNoBase = errors.New("runs cannot be built on a base here")

// buildBase builds a base. The first base of a runtime is tried out, because a host may forbid entering a namespace.
func (r *Runtime) buildBase(ctx context.Context, mounts []runtime.Mount) (_ *base, err error) {
	if r.baseless.Load() {
		return nil, errNoBase
	}
	release, err := r.runs.Hold()
	if err != nil {
		return nil, err
	}
	defer release()
	made := &base{mounts: mounts}
	if err := r.raiseBase(ctx, made); err != nil {
		return nil, err
	}
	r.networks.put(made.network)
	made.network = nil
	if r.based.Load() {
		return made, nil
	}
	d, err := r.pack(runtime.Spec{Name: "trial", Limits: runtime.DefaultLimits()}, made)
	defer d.close()
	if err == nil {
		err = r.tryOut(ctx, made, d)
	}
	if err != nil {
		made.close()
		r.baseless.Store(ctx.Err() == nil)
		return nil, err
	}
	r.based.Store(true)
	return made, nil
}

// tryOut builds a sandbox on a base without a program.
func (r *Runtime) tryOut(ctx context.Context, on *base, d *delivery) error {
	run, err := r.assign(ctx, r.boxOn(on), d)
	if err != nil {
		return err
	}
	if result := run.Wait(); result.Verdict != runtime.OK {
		return errors.New(result.Reason)
	}
	return nil
}

// raiseBase has an init build the base, with additional steps. The init ends before this function returns; the namespaces do not.
func (r *Runtime) raiseBase(ctx context.Context, made *base, steps ...pid1.Step) error {
	d, err := r.pack(runtime.Spec{Mounts: made.mounts, Limits: runtime.DefaultLimits()}, nil)
	defer d.close()
	if err != nil {
		return err
	}
	if len(d.steps) > 0 {
		return errNoBase
	}
	b := r.newBox()
	defer func() { _ = b.destroy() }()
	if _, err := b.build(&pid1.Config{Base: true, Steps: steps}, nil); err != nil {
		return err
	}
	release := b.bound(ctx)
	defer release()
	if err := d.send(b); err != nil {
		return err
	}
	if _, err := b.await(ctx, pid1.Ready); err != nil {
		return err
	}
	if len(b.sent) != 1 || b.network == nil {
		return errNoBase
	}
	made.root, made.network = b.sent[0], b.network
	b.sent, b.network = nil, nil
	return nil
}

func (b *base) close() {
	if b == nil {
		return
	}
	closeAll([]*os.File{b.root})
	b.network.close()
}

// boxOn returns a sandbox to be built on a base.
func (r *Runtime) boxOn(on *base) *box {
	b := r.newBox()
	b.base = on
	return b
}
