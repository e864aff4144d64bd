package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
)

// The engine keeps a lasting run's output, with the log driver that preserves every byte.
const (
	logDriver = "local"
	// logFactor is by how much the engine's log may exceed the output limit: the log's entry for a line of one byte is
	// smaller than that. So the beginning of the output is dropped only if the limit was exceeded.
	logFactor = 40
)

// lasting reports whether the run may continue without this process.
func (n *run) lasting() bool {
	return n.spec.Lasting && n.spec.Stdin == nil && n.runtime.options.Worker != "" && n.facts.keepsLogs
}

func (n *run) logs() container.LogConfig {
	if !n.lasting() {
		return container.LogConfig{Type: "none"}
	}
	return container.LogConfig{Type: logDriver, Config: map[string]string{
		"max-size": strconv.FormatInt(max(logFactor*n.spec.Limits.Output, 1<<20), 10), "max-file": "2", "compress": "false",
	}}
}

// heirs is the state of the runs that earlier processes of this worker left. It is guarded by the runtime.
type heirs struct {
	settled bool
	kept    []runtime.Labels
	until   time.Time // runs that have not been taken up by then never will be
	taken   []string  // containers that have been
}

// takeUpWithin is how long the worker waits for a kept run to be taken up.
const takeUpWithin = 2 * time.Minute

// Outlived implements runtime.Keeper. A program that ended with an exit code of 128 or more may have been ended by the
// engine or by the shutdown of its host, so its end does not count as the program's own.
func (r *Runtime) Outlived(ctx context.Context) ([]runtime.Labels, error) {
	if r.options.Worker == "" {
		return nil, nil
	}
	if _, err := r.known(ctx); err != nil {
		return nil, err
	}
	left, err := r.left(ctx)
	if err != nil {
		return nil, err
	}
	here, _, _ := strings.Cut(r.owner, "/")
	var all []runtime.Labels
	for _, c := range left {
		if host, _, _ := strings.Cut(c.Labels[labelOwner], "/"); host != here || c.State != container.StateRunning && c.State != container.StateExited {
			continue
		}
		if c.State == container.StateExited {
			found, err := r.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
			if err != nil {
				return nil, r.refused("ask how a container ended", err)
			}
			if s := found.Container.State; s == nil || s.ExitCode >= 128 && !s.OOMKilled {
				continue
			}
		}
		labels := make(runtime.Labels)
		for k, v := range c.Labels {
			if name, ok := strings.CutPrefix(k, labelPrefix); ok && k != labelOwner && k != labelExpires && k != labelWorker {
				labels[name] = v
			}
		}
		all = append(all, labels)
	}
	return all, nil
}

// left lists the containers that earlier processes of this worker left.
func (r *Runtime) left(ctx context.Context) ([]container.Summary, error) {
	found, err := r.engine.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", labelWorker+"="+r.options.Worker),
	})
	if err != nil {
		return nil, r.refused("look for what the process before has left", err)
	}
	var all []container.Summary
	for _, c := range found.Items {
		if c.Labels[labelOwner] != r.owner {
			all = append(all, c)
		}
	}
	return all, nil
}

func (r *Runtime) Settle(kept []runtime.Labels) {
	r.mu.Lock()
	r.heirs = heirs{settled: true, kept: kept, until: time.Now().Add(takeUpWithin)}
	known := r.facts != nil && !r.runs.Closed()
	r.mu.Unlock()
	if known { // else the first call of the engine sweeps
		r.tidy.Go(func() {
			ctx, cancel := context.WithTimeout(r.life, callWithin)
			defer cancel()
			_, _ = r.sweep(ctx) // the next one will
		})
	}
}

func (r *Runtime) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heirs.settled
}

// claimed reports whether this process has taken a container up, or will.
func (r *Runtime) claimed(id string, labels map[string]string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.heirs.taken, id) {
		return true
	}
	if labels[labelWorker] != r.options.Worker || r.options.Worker == "" || time.Now().After(r.heirs.until) {
		return false
	}
	return slices.ContainsFunc(r.heirs.kept, func(l runtime.Labels) bool { return l.In(labels, labelPrefix) })
}

func (r *Runtime) Resume(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	spec.Limits = spec.Limits.Or(runtime.DefaultLimits())
	return r.begin(ctx, spec, (*run).resume)
}

// resume attaches to the existing container.
func (n *run) resume(ctx context.Context) (err error) {
	r := n.runtime
	defer func() {
		if err == nil || n.id == "" {
			return
		}
		if gone := n.discard(); gone != nil {
			r.release(n.id)
			err = errors.Join(err, gone)
		}
	}()
	if n.facts, err = r.known(ctx); err != nil {
		return err
	}
	if err := n.find(ctx); err != nil {
		return err
	}
	found, err := r.engine.ContainerInspect(ctx, n.id, client.ContainerInspectOptions{})
	if err != nil {
		return r.refused("look up the container of the process before", err)
	}
	state := found.Container.State
	if state == nil || state.Status != container.StateRunning && state.Status != container.StateExited {
		return fmt.Errorf("%w: docker: container %.12s of the process before neither runs nor has it ended", runtime.ErrUnavailable, n.id)
	}
	if n.started, err = time.Parse(time.RFC3339Nano, state.StartedAt); err != nil {
		return fmt.Errorf("%w: docker: read when container %.12s began: %w", runtime.ErrUnavailable, n.id, err)
	}
	n.usage = newUsage(r, n.id, n.spec.Limits.Memory)
	unwatch := func() {}
	if state.Running {
		unwatch = n.watch()
	} else {
		ended, err := time.Parse(time.RFC3339Nano, state.FinishedAt)
		if err != nil {
			return fmt.Errorf("%w: docker: read when container %.12s ended: %w", runtime.ErrUnavailable, n.id, err)
		}
		n.wall = max(ended.Sub(n.started), 1)
	}
	waiting, stopWaiting := context.WithCancel(context.Background())
	n.exit = r.engine.ContainerWait(waiting, n.id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	reading, hangUp := context.WithCancel(context.Background())
	n.hangUp, n.linger = hangUp, giveUp // reading later loses nothing that the engine keeps
	n.pump(func(out, errs io.Writer) error { return n.replay(reading, out, errs) })
	go n.supervise(func() { unwatch(); stopWaiting() })
	return nil
}

// find looks for the container with the labels of the Spec, and claims it.
func (n *run) find(ctx context.Context) error {
	r := n.runtime
	left, err := r.left(ctx)
	if err != nil {
		return err
	}
	for _, c := range left {
		if n.spec.Labels.In(c.Labels, labelPrefix) {
			n.id = c.ID
			r.mu.Lock()
			r.heirs.taken = append(r.heirs.taken, c.ID)
			r.mu.Unlock()
			return nil
		}
	}
	return fmt.Errorf("%w: docker: the container that the process before left for %s is gone", runtime.ErrUnavailable, n.spec.Name)
}

// release leaves a container to a sweep after it could be neither taken up nor removed.
func (r *Runtime) release(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heirs.taken = slices.DeleteFunc(r.heirs.taken, func(t string) bool { return t == id })
}

// replay writes the output that the engine has kept, and the output that follows, until the container has ended.
func (n *run) replay(ctx context.Context, out, errs io.Writer) error {
	passed := [2]*remainder{{to: out}, {to: errs}}
	for {
		all := false // whether the log is complete
		select {
		case <-n.answered:
			all = true
		default:
		}
		for _, p := range passed {
			p.skip, p.broken = p.passed, false
		}
		log, err := n.runtime.engine.ContainerLogs(ctx, n.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: !all})
		if err == nil {
			_, err = stdcopy.StdCopy(passed[0], passed[1], log)
			_ = log.Close()
		}
		if all || ctx.Err() != nil {
			return err
		}
		select { // if the engine stops following the log, it is asked again
		case <-n.answered:
		case <-time.After(followAgain):
		case <-ctx.Done():
		}
	}
}

const followAgain = 100 * time.Millisecond

// remainder forwards the part of the log that it has not forwarded before. Each Write is one entry of the engine's log,
// after its time, without which the engine omits empty entries: a line, a piece of pieceSize of a longer line, or the
// program's last output without a line end. Older engines lose the end of a line that was cut into pieces; it is restored
// when more output follows. With them it stays unknown whether a program whose last line was cut ended that line.
type remainder struct {
	to           io.Writer
	passed, skip int64
	broken       bool // the previous entry ended no line and was not a full piece
}

// pieceSize is the size of the pieces into which the engine's log cuts a line.
const pieceSize = 16 << 10

func (w *remainder) Write(entry []byte) (int, error) {
	_, p, timed := bytes.Cut(entry, []byte(" "))
	if !timed {
		return 0, fmt.Errorf("docker: an entry of the log has no time: %.40q", entry)
	}
	if w.broken {
		if err := w.pass([]byte("\n")); err != nil {
			return 0, err
		}
	}
	w.broken = len(p) < pieceSize && !bytes.HasSuffix(p, []byte("\n"))
	return len(entry), w.pass(p)
}

func (w *remainder) pass(p []byte) error {
	again := min(w.skip, int64(len(p)))
	w.skip -= again
	n, err := w.to.Write(p[again:])
	w.passed += int64(n)
	return err
}
