package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// box is the host's side of one sandbox. It is built, given to at most one run and destroyed.
type box struct {
	runtime *Runtime
	cgroup  *group // nil without cgroups
	pid     int    // of the init, on the host; 0 before it is forked
	// uid and gid are the program's user and group on the host.
	uid, gid int

	stdout, stderr *os.File // read ends
	control        *os.File
	pending        []byte     // received on control and not yet decoded
	sent           []*os.File // from the init: the working directory, which outlives the sandbox's mounts; of a base its mount namespace
	base           *base      // nil: the sandbox builds its whole root
	network        *network   // its network namespace; nil if no other sandbox can use it
	watched        bool       // the kernel records whether a process of its cgroup makes an internet socket

	handle sync.Mutex // guards pidfd
	pidfd  int        // -1 before it is opened and after it is closed

	buried bool
}

func (r *Runtime) newBox() *box {
	b := &box{runtime: r, pidfd: -1, network: r.networks.take()}
	b.uid, b.gid = r.ids.pick()
	return b
}

// give makes the program's user the owner of a pipe. A program that opens /dev/stdin or /dev/stdout by name opens the pipe anew, and
// the kernel then checks its owner and mode 0600: it would refuse root's pipes.
func (b *box) give(pipe *os.File) error {
	if !b.runtime.privileged {
		return nil
	}
	return pipe.Chown(b.uid, b.gid)
}

// build creates the sandbox. Its init first carries out the configuration and then waits for the order; if a delivery is given here and
// fits into the socket, it is sent before the init is forked, so that the init need not wait until this process is scheduled again.
func (b *box) build(config *pid1.Config, d *delivery) (delivered bool, err error) {
	r := b.runtime
	if r.cgroups != nil && !config.Base {
		if b.cgroup, err = r.cgroups.create(d != nil && d.spec.Limits.CPUs > 0); err != nil {
			return false, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
		}
		if d != nil {
			if err := b.cgroup.limit(d.spec.Limits); err != nil {
				return false, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
			}
		}
	}
	if b.cgroup != nil && b.cgroup.dir != nil {
		b.watched = r.networks.watch(b.cgroup.dir)
	}
	inside, err := b.openChannels()
	channels := inside
	defer func() { closeAll(channels) }() // else the end of the sandbox would not end the streams
	if err != nil {
		return false, err
	}
	request := pid1.Birth{UID: int64(b.uid), GID: int64(b.gid), SetGroups: r.privileged}
	if b.cgroup != nil {
		defer b.cgroup.closeInherited()
		for _, f := range b.cgroup.tasks {
			config.TaskFDs = append(config.TaskFDs, int64(len(inside)))
			inside = append(inside, f)
		}
		if b.cgroup.pressure != nil {
			config.PressureFD = int64(len(inside))
			inside = append(inside, b.cgroup.pressure)
		}
	}
	_, err = b.control.Write(config.Encode())
	if delivered = err == nil && d != nil && d.fits(); delivered {
		err = d.send(b)
	}
	if err != nil {
		return false, fmt.Errorf("%w: configure the sandbox: %w", runtime.ErrUnavailable, err)
	}
	files := slices.Clip(inside)
	if b.base != nil {
		request.OntoBase = true
		files = append(files, b.base.root)
	}
	if b.network != nil {
		request.Network = true
		files = append(files, b.network.namespace)
	}
	if b.cgroup != nil && b.cgroup.dir != nil {
		request.IntoCgroup = true
		files = append(files, b.cgroup.dir)
	}
	if err := b.bear(request, files); err != nil {
		return delivered, err
	}
	if b.network == nil && (b.watched || config.Base) {
		b.network = networkOf(b.pid)
	}
	return delivered, nil
}

// leaveNetwork gives the network namespace to the next sandbox if no process made an internet socket and none of another kind is left.
// ended is true if all processes of the run have ended and the init has reported that.
func (b *box) leaveNetwork(ended bool) {
	used := !b.watched || b.runtime.networks.used(b.cgroup.dir)
	switch {
	case b.network == nil:
	case ended && !used && b.network.empty():
		b.runtime.networks.put(b.network)
	default:
		b.network.close()
	}
	b.network = nil
}

// bear has the zygote fork the sandbox's init.
func (b *box) bear(request pid1.Birth, files []*os.File) error {
	pid, err := b.runtime.zygote.birth(request, files)
	if err != nil {
		return err
	}
	// The pid cannot belong to another process: only this function's caller reaps our children.
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		pidfd = -1
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	b.handle.Lock()
	b.pid, b.pidfd = pid, pidfd
	b.handle.Unlock()
	if err != nil {
		return fmt.Errorf("%w: open a handle of the sandbox's init: %w", runtime.ErrUnavailable, err)
	}
	return nil
}

// openChannels creates the sandbox's pipes and control socket. The host's ends are kept in b, the sandbox's ends are
// returned in the order of their descriptors inside.
func (b *box) openChannels() (inside []*os.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the run's channels: %w", err)
		}
	}()
	stdin, err := os.Open(os.DevNull) // replaced if the order brings another
	if err != nil {
		return inside, err
	}
	inside = append(inside, stdin)
	for _, end := range []**os.File{&b.stdout, &b.stderr} {
		read, write, err := os.Pipe()
		if err != nil {
			return inside, err
		}
		*end = read
		inside = append(inside, write)
		if err := b.give(write); err != nil {
			return inside, err
		}
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
	b.control = os.NewFile(uintptr(pair[0]), "control")
	return inside, nil
}

// kill destroys the sandbox. The death of its process 1 is enough: the kernel kills all processes of a pid namespace
// and reaps them before process 1 can be reaped. Where cgroup.kill exists, it does the same in one step.
func (b *box) kill() {
	b.handle.Lock()
	defer b.handle.Unlock()
	if b.pidfd < 0 {
		return
	}
	if b.cgroup != nil {
		b.cgroup.kill()
	}
	_ = unix.PidfdSendSignal(b.pidfd, unix.SIGKILL, nil, 0) // it may be dead already
}

// terminate sends SIGTERM to all processes but the init. A process that is forked meanwhile may not get it.
func (b *box) terminate() {
	b.handle.Lock()
	defer b.handle.Unlock()
	if b.pidfd < 0 {
		return
	}
	signalInside(b.pid, descendants(b.pid), unix.SIGTERM)
}

// killInit kills only the init: it is enough once the init has reported that no other process is left.
func (b *box) killInit() {
	b.handle.Lock()
	defer b.handle.Unlock()
	if b.pidfd >= 0 {
		_ = unix.PidfdSendSignal(b.pidfd, unix.SIGKILL, nil, 0)
	}
}

// alive reports whether the init still runs.
func (b *box) alive() bool {
	b.handle.Lock()
	defer b.handle.Unlock()
	polled := []unix.PollFd{{Fd: int32(b.pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(polled, 0)
	return n == 0 && err == nil
}

// bury waits until the kernel has ended every process of the sandbox and returns their usage, including the init's.
// Afterwards the pipes contain all that was written.
func (b *box) bury() syscall.Rusage {
	var usage syscall.Rusage
	if b.pid != 0 && !b.buried {
		b.buried = true
		usage = reap(b.pid)
	}
	b.handle.Lock()
	if b.pidfd >= 0 {
		unix.Close(b.pidfd)
		b.pidfd = -1
	}
	b.handle.Unlock()
	return usage
}

// destroy ends a sandbox without a run and removes all of it.
func (b *box) destroy() error {
	b.kill()
	b.bury()
	closeAll([]*os.File{b.stdout, b.stderr, b.control})
	closeAll(b.sent)
	b.leaveNetwork(false)
	if b.cgroup != nil {
		return b.cgroup.remove() // the next New sweeps what remains
	}
	return nil
}

// startWithin bounds a start whose context has no earlier deadline: a healthy one takes milliseconds.
const startWithin = 30 * time.Second

// errSilent is the error of a start whose init died without a report.
var errSilent = errors.New("the sandbox's init died before it could start the program")

// bound makes the control socket fail when the context ends or reaches its deadline; release undoes that, and returns
// false if the socket has failed already.
func (b *box) bound(ctx context.Context) (release func() bool) {
	deadline := time.Now().Add(startWithin)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(deadline) {
		deadline = earlier
	}
	b.control.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { b.control.SetDeadline(time.Unix(1, 0)) })
	return func() bool {
		if !stop() {
			return false
		}
		b.control.SetDeadline(time.Time{})
		return true
	}
}

func (b *box) await(ctx context.Context, kind pid1.MessageKind) (pid1.Message, error) {
	message, err := b.receive()
	switch {
	case ctx.Err() != nil:
		return message, ctx.Err()
	case err == nil && message.Kind == kind:
		return message, nil
	case err == nil && message.Kind == pid1.Failed:
		return message, explain(message)
	case errors.Is(err, io.EOF):
		return message, fmt.Errorf("%w: %w", runtime.ErrUnavailable, errSilent)
	}
	return message, fmt.Errorf("%w: wait for the sandbox: %w", runtime.ErrUnavailable, err)
}

// mostSent is the number of descriptors that an init sends.
const mostSent = 1

// receive reads the init's next message; descriptors that come with the first are added to b.sent.
func (b *box) receive() (pid1.Message, error) {
	for {
		if m, rest, ok := pid1.DecodeMessage(b.pending); ok {
			b.pending = rest
			return m, nil
		}
		if err := b.receiveBytes(); err != nil {
			return pid1.Message{}, err
		}
	}
}

func (b *box) receiveBytes() error {
	conn, err := b.control.SyscallConn()
	if err != nil {
		return err
	}
	var data [1024]byte
	var rights [64]byte
	var size, rightsSize int
	var callErr error
	err = conn.Read(func(fd uintptr) bool {
		size, rightsSize, _, _, callErr = unix.Recvmsg(int(fd), data[:], rights[:], unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(callErr, unix.EAGAIN) && !errors.Is(callErr, unix.EINTR)
	})
	switch {
	case err != nil:
		return err
	case callErr != nil:
		return callErr
	case size == 0:
		return io.EOF
	}
	b.pending = append(b.pending, data[:size]...)
	if rightsSize == 0 {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rightsSize])
	if err != nil {
		return err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return err
		}
		for _, fd := range fds {
			if len(b.sent) == mostSent {
				unix.Close(fd)
				continue
			}
			b.sent = append(b.sent, os.NewFile(uintptr(fd), "sent by the sandbox's init"))
		}
	}
	return nil
}
