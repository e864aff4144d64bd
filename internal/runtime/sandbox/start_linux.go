package sandbox

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// errSwitchedOff is the reason for missing cgroups when Options switch them off.
var errSwitchedOff = errors.New("switched off by the options")

// start does everything up to the moment when the program executes, in a sandbox from the pool if one fits. On failure
// it undoes what it did.
func (r *Runtime) start(ctx context.Context, spec runtime.Spec, pinned *pin, s *series) (*run, error) {
	onto := s.prepare(ctx, spec.Mounts)
	d, err := r.pack(spec, onto)
	defer d.close()
	if err != nil {
		return nil, err
	}
	d.order.CPUs, d.pinned = pinned.order(), pinned
	r.templates.lend(d)
	if onto != nil && len(d.steps) == 0 {
		return r.assign(ctx, r.boxOn(onto), d)
	}
	apart := spec.Limits.CPUs > 0 && r.cgroups.cpuApart() // waiting sandboxes have no such cgroup
	if len(d.steps) == 0 && !apart {
		if b := r.pool.take(); b != nil {
			return r.assign(ctx, b, d)
		}
	}
	return r.assign(ctx, r.newBox(), d)
}

// refillAfter is how long a run may last before the pool is refilled even though it still runs. Creating and destroying
// namespaces take the same locks of the kernel: a short run during which another sandbox is built takes twice as long.
const refillAfter = 20 * time.Millisecond

// assign gives a sandbox its run, and builds the sandbox first if necessary. The box belongs to the run from here on.
func (r *Runtime) assign(ctx context.Context, b *box, d *delivery) (_ *run, err error) {
	n := newRun(b, d)
	if err := r.runs.Add(n); err != nil {
		n.discard()
		return nil, err
	}
	defer func() {
		if err != nil {
			n.abandon()
		}
	}()
	if d.stdin != nil {
		if err := b.give(d.stdin); err != nil {
			return nil, fmt.Errorf("open the run's channels: %w", err)
		}
	}
	delivered := false
	if b.pid == 0 {
		config := &pid1.Config{Steps: d.steps, ScratchSize: d.order.ScratchSize, ScratchInodes: d.order.ScratchInodes}
		if delivered, err = b.build(config, d); err != nil {
			return nil, err
		}
		if _, ended := n.ended.Get(); ended { // ended before there was anything to kill
			b.kill()
		}
	} else if b.cgroup != nil {
		if err := b.cgroup.limit(d.spec.Limits); err != nil {
			return nil, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
		}
	}
	release := b.bound(ctx)
	defer d.template.guard()()
	n.pumpOutput()
	var sendErr error
	if !delivered {
		if sendErr = d.send(b); sendErr != nil {
			b.kill() // its earlier messages are still read
		}
	}
	message, err := b.await(ctx, pid1.Started)
	if released := release(); err == nil && !released {
		err = ctx.Err()
	}
	ending, ended := n.ended.Get()
	switch {
	case err == nil:
	case ended && ctx.Err() == nil:
		return nil, fmt.Errorf("ended before it had started: %s", ending.Reason)
	case sendErr != nil && ctx.Err() == nil && errors.Is(err, errSilent):
		return nil, fmt.Errorf("%w: configure the sandbox: %w", runtime.ErrUnavailable, sendErr)
	default:
		return nil, err
	}
	n.warm, n.cold = message.Warm, message.Detail
	n.startedAt, n.started = message.Time, hostTime(message.Time)
	n.starvedAt = time.Duration(message.Starved)
	n.refill = time.AfterFunc(refillAfter, r.pool.refill)
	close(n.ready)
	go n.supervise()
	return n, nil
}

// hostTime is the time at which CLOCK_MONOTONIC showed the given nanoseconds.
func hostTime(nanoseconds int64) time.Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return time.Now()
	}
	return time.Now().Add(time.Duration(nanoseconds - now.Nano()))
}

// explain turns the init's failure into an error with a remedy.
func explain(m pid1.Message) error {
	errno := syscall.Errno(m.Errno)
	what := m.Stage
	if m.Detail != "" {
		what += " " + m.Detail
	}
	if m.AtFault {
		if errno == unix.ENOENT && m.Stage == "find the program" {
			return fmt.Errorf("%w: %q is not in the sandbox's PATH; install it below /usr or mount its directory",
				runtime.ErrSpec, m.Detail)
		}
		return fmt.Errorf("%w: %s: %w", runtime.ErrSpec, what, errno)
	}
	return fmt.Errorf("%w: %s: %w; %s", runtime.ErrUnavailable, what, errno, cure(m.Stage, errno))
}
