package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// errSwitchedOff is why there are no cgroups when Options say so.
var errSwitchedOff = errors.New("switched off by the options")

// startWithin bounds a start whose context has no earlier deadline: a healthy one takes milliseconds.
const startWithin = 30 * time.Second

// start does everything up to the moment when the program is executing. What it has made when it fails, it takes back.
func (r *Runtime) start(ctx context.Context, spec runtime.Spec) (_ *run, err error) {
	n := newRun(r, spec)
	if err := r.register(n); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			n.abandon()
		}
	}()
	steps, mounts, err := r.mountSteps(spec.Mounts)
	defer closeAll(mounts)
	if err != nil {
		return nil, err
	}
	files, sources, err := inputs(spec)
	defer closeAll(sources)
	if err != nil {
		return nil, err
	}
	if r.cgroups != nil {
		if n.cgroup, err = r.cgroups.create(spec.Limits); err != nil {
			return nil, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
		}
	}
	inside, err := n.openChannels()
	defer closeAll(inside)
	if err != nil {
		return nil, err
	}
	inherited := make([]uintptr, 0, 8)
	for _, f := range inside {
		inherited = append(inherited, f.Fd())
	}
	config := &pid1.Config{
		Cover: r.layout.cover, Layout: r.layout.steps, Steps: steps,
		ScratchSize: spec.Limits.Disk, ScratchInodes: inodes(spec.Limits.Disk),
		Rlimits: rlimits(spec.Limits, r.cgroups), SpareThreads: r.spareThreads(), Filter: r.filter,
		Argv: spec.Argv, Env: spec.Env, Files: files,
	}
	for i := range steps {
		if steps[i].Kind == pid1.Attach {
			inherited = append(inherited, mounts[steps[i].Number].Fd())
			steps[i].Number = int64(len(inherited) - 1)
		}
	}
	if n.cgroup != nil {
		for _, f := range n.cgroup.tasks {
			inherited = append(inherited, f.Fd())
			config.TaskFDs = append(config.TaskFDs, int64(len(inherited)-1))
		}
	}
	n.uid, n.gid = r.ids.pick()
	encoded, early := config.Encode(), false
	if len(encoded)+contentSize(files) <= fitsInSocket {
		// The init then finds all of it when it is born and need not wait for us to be scheduled again.
		early = true
		if err := n.send(encoded, files, sources); err != nil {
			return nil, fmt.Errorf("%w: configure the sandbox: %w", runtime.ErrUnavailable, err)
		}
	}
	pidfd := -1
	pid, err := r.fork(birth(inherited, n.uid, n.gid, r.privileged, n.cgroup, &pidfd))
	if err != nil {
		return nil, explainClone(err)
	}
	n.born(pid, pidfd)
	closeAll(inside) // or the end of the sandbox would not end the streams
	if n.cgroup != nil {
		n.cgroup.closeTasks()
	}
	n.pumpOutput()
	var send func() error
	if !early {
		send = func() error { return n.send(encoded, files, sources) }
	}
	if err := n.handOver(ctx, send); err != nil {
		return nil, err
	}
	close(n.ready)
	go n.supervise()
	return n, nil
}

// spareThreads is how many idle threads an init needs; under cgroup v1 the program's limits do not bind it.
func (r *Runtime) spareThreads() int64 {
	if r.cgroups != nil && !r.cgroups.limits {
		return 0
	}
	return initSpare
}

// fitsInSocket is what a socket takes for sure without a reader.
const fitsInSocket = 48 << 10

func contentSize(files []pid1.File) (total int) {
	for _, f := range files {
		total += int(f.Size)
	}
	return total
}

// handOver sends what has not been sent and waits for the init's word.
func (n *run) handOver(ctx context.Context, send func() error) error {
	deadline := time.Now().Add(startWithin)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(deadline) {
		deadline = earlier
	}
	n.control.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { n.control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var sendErr error
	if send != nil {
		sendErr = send()
	}
	// A failed send is explained by what the init said before it died, if it said anything.
	message, err := n.receive()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case n.ended.Load() != nil:
		return fmt.Errorf("ended before it had started: %s", n.ended.Load().reason)
	case err == nil && message.Kind == pid1.Started:
		n.started = time.Now()
		n.control.SetDeadline(time.Time{})
		return nil
	case err == nil && message.Kind == pid1.Failed:
		return explain(message)
	case sendErr != nil:
		return fmt.Errorf("%w: configure the sandbox: %w", runtime.ErrUnavailable, sendErr)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the sandbox's init died before it could start the program", runtime.ErrUnavailable)
	}
	return fmt.Errorf("%w: wait for the sandbox: %w", runtime.ErrUnavailable, err)
}

// send writes the configuration and the inputs to the control socket.
func (n *run) send(config []byte, files []pid1.File, sources []*os.File) error {
	if _, err := n.control.Write(config); err != nil {
		return err
	}
	for i, f := range n.spec.Files {
		if f.Content != nil || f.Source == "" {
			if _, err := n.control.Write(f.Content); err != nil {
				return err
			}
			continue
		}
		if _, err := io.CopyN(n.control, sources[i], files[i].Size); err != nil {
			return fmt.Errorf("read input file %q from %q: %w", f.Path, f.Source, err)
		}
	}
	return nil
}

// inputs describes the input files and opens those that come from the host; sources[i] is nil for the others.
func inputs(spec runtime.Spec) (files []pid1.File, sources []*os.File, err error) {
	sources = make([]*os.File, len(spec.Files))
	var total int64
	for i, f := range spec.Files {
		size := int64(len(f.Content))
		mode := f.Mode.Perm()
		if f.Content == nil && f.Source != "" {
			if sources[i], err = os.Open(f.Source); err != nil {
				return nil, sources, fmt.Errorf("%w: input file %q: %w", runtime.ErrSpec, f.Path, err)
			}
			info, err := sources[i].Stat()
			if err != nil || !info.Mode().IsRegular() {
				return nil, sources, fmt.Errorf("%w: input file %q: %s is not a regular file", runtime.ErrSpec, f.Path, f.Source)
			}
			size = info.Size()
			if mode == 0 {
				mode = info.Mode().Perm()
			}
		}
		if mode == 0 {
			mode = 0o644
		}
		if total += size; total > spec.Limits.Disk {
			return nil, sources, fmt.Errorf("%w: input files are larger than the disk limit of %d bytes; raise the limit",
				runtime.ErrSpec, spec.Limits.Disk)
		}
		files = append(files, pid1.File{Path: f.Path, Mode: int64(mode), Size: size})
	}
	return files, sources, nil
}

// inodes bounds the number of files; each costs the kernel about a kilobyte beside its content.
func inodes(disk int64) int64 { return min(max(disk>>12, 1<<10), 1<<16) + 16 }

// mountSteps plans the toolchains that a run asks for. Under root they are opened here, because root may reach what the
// sandbox's user may not (a toolchain below /root); an Attach step then has an index into mounts as its number.
func (r *Runtime) mountSteps(wanted []runtime.Mount) (steps []pid1.Step, mounts []*os.File, err error) {
	for _, m := range wanted {
		if r.layout.shows(m.Path) {
			continue
		}
		if err := attachable(m.Path); err != nil {
			return nil, mounts, fmt.Errorf("%w: %w", runtime.ErrSpec, err)
		}
		if _, err := os.Stat(m.Path); err != nil {
			return nil, mounts, fmt.Errorf("%w: mount: %w", runtime.ErrSpec, err)
		}
		target := strings.TrimPrefix(m.Path, "/")
		tree, err := detachedTree(m.Path)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			steps = append(steps, pid1.Step{Kind: pid1.BindReadOnly, Source: m.Path, Target: target})
			continue
		}
		if err != nil {
			return nil, mounts, fmt.Errorf("%w: mount %q: %w; the sandbox needs Linux 5.12 or newer, %s",
				runtime.ErrUnavailable, m.Path, err, trusted)
		}
		steps = append(steps, pid1.Step{Kind: pid1.Attach, Target: target, Number: int64(len(mounts))})
		mounts = append(mounts, tree)
	}
	return steps, mounts, nil
}

// detachedTree copies the mounts at path and makes the copy read-only.
func detachedTree(path string) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, err
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		Propagation: unix.MS_PRIVATE,
	})
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openChannels makes the run's pipes and control socket. The host's ends go into n, the sandbox's are returned in the
// order of their descriptors inside.
func (n *run) openChannels() (inside []*os.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the run's channels: %w", err)
		}
	}()
	var stdin *os.File
	if n.spec.Stdin == nil {
		stdin, err = os.Open(os.DevNull)
	} else {
		stdin, n.stdin, err = os.Pipe()
	}
	if err != nil {
		return inside, err
	}
	inside = append(inside, stdin)
	for _, end := range []**os.File{&n.stdout, &n.stderr} {
		read, write, err := os.Pipe()
		if err != nil {
			return inside, err
		}
		*end = read
		inside = append(inside, write)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return inside, err
	}
	inside = append(inside, os.NewFile(uintptr(pair[1]), "control"))
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return inside, err
	}
	n.control = os.NewFile(uintptr(pair[0]), "control")
	return inside, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// explain turns the init's failure into an error with a cure.
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
