// Package docker runs programs in containers of a Docker engine, through its API: the engine may be on this host or
// on another. A container has no network, no capabilities, a read-only root and its own working directory; it is
// created for one run and removed with it.
package docker

import (
	"cmp"
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

const Name = "docker"

// Options configure New. The zero value is ready to use.
type Options struct {
	// Host is the engine's address, "unix:///var/run/docker.sock"; empty: DOCKER_HOST, or the engine's usual socket.
	Host string
	// Image is the image of a Spec without a Container; empty: such a Spec is refused.
	Image string
	// OCIRuntime is the engine's name for the OCI runtime that runs the containers ("runsc"); empty: the engine's default.
	OCIRuntime string
	// Networks are the names that a Container may ask for; without any, no run has a network.
	Networks []string
	// Pull is the policy of a Container without one; empty: runtime.PullMissing.
	Pull runtime.Pull
	// Worker is a name that this worker keeps across restarts and shares with no other process that uses the engine, on
	// any host: after a restart the worker takes up its lasting runs by it. Empty: no run lasts.
	Worker string
	// Returns reports whether a dead worker of another name may come back for its runs; nil: none does.
	Returns func(worker string) bool
}

// Runtime starts containers. It is safe for concurrent use.
type Runtime struct {
	options Options
	engine  *client.Client
	owner   string // label of this process's containers; see owner.go

	mu    sync.Mutex
	facts *facts // set once the engine has answered
	heirs heirs
	runs  runs.Set[*run]
	life  context.Context // ends with Close
	stop  context.CancelFunc
	tidy  sync.WaitGroup
}

type facts struct {
	version     string
	cgroups     string // "cgroup-v1", "cgroup-v2"
	defaultOCI  string
	ociRuntimes []string
	seccomp     bool
	keepsLogs   bool // it has the log driver that lasting runs need
}

// New returns a runtime for an engine, which need not be reachable yet.
func New(o Options) (runtime.Runtime, error) {
	how := []client.Opt{client.FromEnv, client.WithUserAgent("pawl")}
	if o.Host != "" {
		how = append(how, client.WithHost(o.Host))
	}
	engine, err := client.New(how...)
	if err != nil {
		return nil, fmt.Errorf("%w: docker: %w; write the engine's address as unix:///path or tcp://host:port", runtime.ErrUnavailable, err)
	}
	o.Pull = cmp.Or(o.Pull, runtime.PullMissing)
	ctx, stop := context.WithCancel(context.Background())
	r := &Runtime{options: o, engine: engine, owner: self(), life: ctx, stop: stop}
	r.tidy.Go(func() { r.sweepAgain(ctx) })
	return r, nil
}

func (r *Runtime) Name() string { return Name }

func (r *Runtime) Isolation() runtime.Isolation { return runtime.Contained }

// Imaged marks a backend whose programs come from images.
func (r *Runtime) Imaged() {}

func (r *Runtime) Close() error {
	if !r.runs.Close() {
		return nil
	}
	r.runs.Wait()
	r.stop()
	r.tidy.Wait()
	return r.engine.Close()
}

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

// known returns the engine's facts. The first caller that gets an answer also removes what dead workers left.
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

// refused maps the engine's error to the port's: ErrSpec where the engine calls the request bad, else ErrUnavailable.
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

// sweepEvery is the interval between searches for orphans.
const sweepEvery = 30 * time.Second

// sweepAgain searches for orphans until ctx ends. It reports no error: the next run reports an engine that does not answer.
func (r *Runtime) sweepAgain(ctx context.Context) {
	tick := time.Tick(sweepEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		r.mu.Lock()
		known := r.facts != nil
		r.mu.Unlock()
		if known {
			_, _ = r.sweep(ctx)
		}
	}
}
