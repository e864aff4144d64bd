package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
	"github.com/pawl-run/pawl/internal/runtime/spawn"
)

// zygote is the process that forks the inits. Cloning this process instead would copy the page tables of all its memory, and the clone
// would have to execute the binary anew. The first birth starts it, and a later one starts it again if it has died. It is safe for
// concurrent use.
type zygote struct {
	path   string // of the binary
	plan   []byte
	thread *spawn.Thread // while it lives, so do the zygote and the inits, which are its children

	mu      sync.Mutex
	control *os.File // nil: the next birth starts the zygote
	pid     int
}

// errStill is the error of a zygote that has not reported in time that it is ready.
var errStill = errors.New("it does not answer")

const (
	// zygoteWithin is far more than a zygote takes to start on a busy machine, some 100 ms.
	zygoteWithin = 5 * time.Second
	// zygoteTries is how many zygotes are started until one is ready. A zygote may inherit a lock that none of its threads will release:
	// seen once in about ten thousand starts, on two processors that 40 programs shared.
	zygoteTries = 3
)

// birth forks an init with the given descriptors, followed by those that the request mentions. The init is a child of this process.
// Errors wrap runtime.ErrUnavailable and give a remedy.
func (z *zygote) birth(request pid1.Birth, files []*os.File) (pid int, err error) {
	fds := make([]int, 0, 16)
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	for try := range zygoteTries {
		if z.control == nil {
			if err = z.start(); err != nil {
				continue
			}
		}
		var born pid1.Born
		if born, err = z.ask(request.Encode(), fds); err == nil {
			return z.delivered(born)
		}
		z.stop()
		if try > 0 {
			break
		}
	}
	return 0, fmt.Errorf("%w: the zygote, which makes sandboxes: %w; see pawl doctor, %s", runtime.ErrUnavailable, err, trusted)
}

func (z *zygote) ask(request []byte, fds []int) (pid1.Born, error) {
	z.control.SetDeadline(time.Now().Add(startWithin))
	defer z.control.SetDeadline(time.Time{})
	if err := sendWith(z.control, request, fds); err != nil {
		return pid1.Born{}, err
	}
	return z.hear()
}

func (z *zygote) hear() (pid1.Born, error) {
	var answer [pid1.BornSize]byte
	if _, err := io.ReadFull(z.control, answer[:]); err != nil {
		return pid1.Born{}, err
	}
	born, _ := pid1.DecodeBorn(answer[:])
	return born, nil
}

// delivered is the result of an answered birth.
func (z *zygote) delivered(born pid1.Born) (int, error) {
	if born.Errno == 0 {
		return int(born.PID), nil
	}
	if born.PID != 0 {
		reap(int(born.PID)) // it was not released, and has exited
	}
	return 0, explainClone(syscall.Errno(born.Errno))
}

// start starts a zygote and waits until it is ready.
func (z *zygote) start() (err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	z.control = os.NewFile(uintptr(pair[0]), "zygote")
	defer func() {
		if err != nil {
			z.stop()
		}
	}()
	first, err := z.execute(pair[1])
	unix.Close(pair[1])
	if err != nil {
		return err
	}
	z.control.SetDeadline(time.Now().Add(zygoteWithin))
	defer z.control.SetDeadline(time.Time{})
	_, err = z.control.Write(z.plan)
	var named, ready pid1.Born
	if err == nil {
		named, err = z.hear()
	}
	if err != nil {
		_ = unix.Kill(first, unix.SIGKILL)
	}
	reap(first)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errStill
	case err != nil:
		return err
	case named.Errno != 0:
		return syscall.Errno(named.Errno)
	}
	z.pid = int(named.PID)
	if ready, err = z.hear(); errors.Is(err, os.ErrDeadlineExceeded) || err == nil && ready.PID != named.PID {
		return errStill
	}
	return err
}

// zygoteEnv is the whole environment of the zygote, which must not collect garbage: see pid1.
var zygoteEnv = []string{pid1.Marker + "=1", "GOGC=off", "GOMAXPROCS=1"}

// execute starts the process that forks the zygote and exits.
func (z *zygote) execute(control int) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	if err := unix.SetNonblock(control, false); err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{
		Dir: "/", Env: zygoteEnv, Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), uintptr(control)},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true},
	}
	z.thread.Do(func() { pid, err = syscall.ForkExec(z.path, []string{"pawl-init"}, attr) })
	return pid, err
}

// close ends the zygote. No birth may follow.
func (z *zygote) close() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.stop()
}

func (z *zygote) stop() {
	if z.pid != 0 {
		_ = unix.Kill(z.pid, unix.SIGKILL)
		reap(z.pid)
		z.pid = 0
	}
	if z.control != nil {
		z.control.Close()
		z.control = nil
	}
}

// reap waits for a child that has ended or is about to.
func reap(pid int) (usage syscall.Rusage) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, &usage); !errors.Is(err, unix.EINTR) {
			return usage
		}
	}
}
