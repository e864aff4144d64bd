// Package docker runs programs in containers of a Docker engine, through its API: the engine may be on this host or
// elsewhere. A container has no network, no capabilities, a read-only root and a working directory of its own; it is
// created for one run and removed with it.
package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/runs"
)

// Name is what users call this backend.
const Name = "docker"

// Options configure New. The zero value is ready to use.
type Options struct {
	// Host is the engine's address, "unix:///var/run/docker.sock"; empty: DOCKER_HOST, or the engine's usual socket.
	Host string
	// Image is what a Spec without a Container runs in; empty: such a Spec is refused.
	Image string
	// OCIRuntime is what the engine runs containers with, by the name that its operator gave it ("runsc"); empty: the
	// engine's default.
	OCIRuntime string
	// Networks are what a Container may ask for by name; without any, no run has a network.
	Networks []string
	// Pull is the policy of a Container that names none; empty: runtime.PullMissing.
	Pull runtime.Pull
	// Worker names what this process is one life of, by a name that its next life has as well, and no other process on any
	// host that uses the engine: lasting runs are left to that. Empty: no run lasts.
	Worker string
	// Returns says whether a worker of another name, which is dead, may come back for its runs; nil: none does.
	Returns func(worker string) bool
}

// Runtime starts containers. It is safe for concurrent use.
type Runtime struct {
	options Options
	engine  *client.Client
	owner   string // of this process's containers; see owner.go

	mu    sync.Mutex
	facts *facts // of the engine, once it has answered
	heirs heirs
	runs  runs.Set[*run]
	life  context.Context // ends with Close
	stop  context.CancelFunc
	tidy  sync.WaitGroup
}

// facts are what an engine says of itself.
type facts struct {
	version     string
	cgroups     string // "cgroup-v1", "cgroup-v2"
	defaultOCI  string
	ociRuntimes []string
	seccomp     bool
	keepsLogs   bool // with the log driver that lasting runs need
}

// New returns a runtime on an engine, which need not answer yet.
func New(o Options) (runtime.Runtime, error) {
	how := []client.Opt{client.FromEnv, client.WithUserAgent("pawl")}
	if o.Host != "" {
		how = append(how, client.WithHost(o.Host))
	}
	engine, err := client.New(how...)
	if err != nil {
		return nil, fmt.Errorf("%w: docker: %w; write the engine's address as unix:///path or tcp://host:port", runtime.ErrUnavailable, err)
	}
	if o.Pull == "" {
		o.Pull = runtime.PullMissing
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Runtime{options: o, engine: engine, owner: self(), life: ctx, stop: stop}
	r.tidy.Go(func() { r.sweepAgain(ctx) })
	return r, nil
}

// Name returns "docker".
func (r *Runtime) Name() string { return Name }

// Isolation returns runtime.Contained.
func (r *Runtime) Isolation() runtime.Isolation { return runtime.Contained }

// Imaged says that programs come from images.
func (r *Runtime) Imaged() {}

// Close kills every run and waits for it.
func (r *Runtime) Close() error {
	if !r.runs.Close() {
		return nil
	}
	r.runs.Wait()
	r.stop()
	r.tidy.Wait()
	return r.engine.Close()
}

// Start creates a container and begins it.
func (r *Runtime) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	if err := spec.CheckContainer(r.options.Image); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.Or(runtime.DefaultLimits())
	return r.begin(ctx, spec, (*run).start)
}

func (r *Runtime) begin(ctx context.Context, spec runtime.Spec, begin func(*run, context.Context) error) (runtime.Run, error) {
	n := newRun(r, spec)
	if err := r.runs.Add(n); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	if err := begin(n, ctx); err != nil {
		r.runs.Remove(n)
		return nil, err
	}
	return n, nil
}

// known returns the engine's facts. The first caller that gets an answer also sweeps up after the dead.
func (r *Runtime) known(ctx context.Context) (*facts, error) {
	r.mu.Lock()
	f := r.facts
	r.mu.Unlock()
	if f != nil {
		return f, nil
	}
	answer, err := r.engine.Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, r.refused("ask the engine what it is", err)
	}
	info := answer.Info
	f = &facts{version: info.ServerVersion, cgroups: "cgroup-v" + info.CgroupVersion, defaultOCI: info.DefaultRuntime}
	if info.OSType != "linux" {
		return nil, fmt.Errorf("%w: docker: the engine runs %s containers; Pawl needs one that runs Linux containers",
			runtime.ErrUnavailable, info.OSType)
	}
	for name := range info.Runtimes {
		f.ociRuntimes = append(f.ociRuntimes, name)
	}
	f.keepsLogs = slices.Contains(info.Plugins.Log, logDriver)
	for _, s := range info.SecurityOptions {
		f.seccomp = f.seccomp || strings.HasPrefix(s, "name=seccomp") && !strings.Contains(s, "unconfined")
	}
	if _, err := r.sweep(ctx); err != nil {
		return nil, r.refused("look for what dead workers have left", err)
	}
	r.mu.Lock()
	r.facts = f
	r.mu.Unlock()
	return f, nil
}

// refused puts the engine's words into the port's terms: a Spec at fault where the engine calls the request bad, else a
// host that cannot.
func (r *Runtime) refused(doing string, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("docker: %s: %w", doing, err)
	case client.IsErrConnectionFailed(err):
		return fmt.Errorf("%w: docker: %s: %w; start the engine, or name another with DOCKER_HOST", runtime.ErrUnavailable, doing, err)
	case errdefs.IsInvalidArgument(err):
		return fmt.Errorf("%w: docker: %s: %w", runtime.ErrSpec, doing, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: docker: %s: %w; run Pawl as root or as a member of the group docker", runtime.ErrUnavailable, doing, err)
	}
	return fmt.Errorf("%w: docker: %s: %w; see pawl doctor", runtime.ErrUnavailable, doing, err)
}

// sweepEvery is how often orphans are looked for.
const sweepEvery = 30 * time.Second

// sweepAgain looks for orphans until ctx ends. It says nothing: what matters of an engine that does not answer, the next
// run says.
func (r *Runtime) sweepAgain(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		known := r.facts != nil
		r.mu.Unlock()
		if known {
			_, _ = r.sweep(ctx)
		}
	}
}
