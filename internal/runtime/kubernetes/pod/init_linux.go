package pod

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime/collect"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// first is process 1 of the program's container.
type first struct {
	places Places
	keeper *os.File
	self   string // this program, as the program's container sees it
	pipes  [3]*os.File
	frames chan wire.Frame // from the keeper; closed when it is gone

	command wire.Command
	dir     string // the working directory
	files   *os.Root
	writing *os.File // the input file that data belongs to
	left    int64    // bytes that it lacks
	fault   *wire.Failure

	usage *usage
}

// Init is process 1: it waits for an order, starts the program, and stays until the keeper releases it. self is the path
// under which it executes the helper again. It returns the exit code, which is for people who look at the pod.
func Init(places Places, self string) int {
	// The program runs as the same user: without this it could read process 1 through /proc.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	defaultSignals()
	p := &first{places: places, self: self, frames: make(chan wire.Frame)}
	if err := p.connect(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl-pod:", err)
		return 120
	}
	go func() {
		defer close(p.frames)
		for {
			f, err := wire.Read(p.keeper)
			if err != nil {
				return
			}
			p.frames <- f
		}
	}()
	code, err := p.live()
	p.killAll()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pawl-pod:", err)
		return 120
	}
	return code
}

// defaultSignals removes the signal handlers of Go's runtime. The kernel does not deliver a signal without a handler to process
// 1 from its own namespace, so the program cannot end it by a signal. The kubelet's SIGTERM cannot either: the worker sees that
// the pod is to end.
func defaultSignals() {
	var action [4]uint64 // struct kernel_sigaction, all zero: SIG_DFL
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}

// connect connects to the keeper and passes it its ends of the program's streams.
func (p *first) connect() error {
	conn, err := dial(p.places.in(wire.Socket))
	if err != nil {
		return err
	}
	p.keeper = conn
	var fds []int
	var theirs []*os.File
	for i := range p.pipes {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		mine, their := w, r
		if i == 0 {
			mine, their = r, w
		}
		p.pipes[i] = mine
		theirs = append(theirs, their)
		fds = append(fds, int(their.Fd()))
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		controlErr := raw.Control(func(fd uintptr) { err = unix.Sendmsg(int(fd), []byte{1}, unix.UnixRights(fds...), nil, 0) })
		err = errors.Join(err, controlErr)
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	return err
}

// live carries out the keeper's orders until the keeper is gone or releases it.
func (p *first) live() (code int, err error) {
	for f := range p.frames {
		switch f.Kind {
		case wire.Order:
			if err := f.Decode(&p.command); err != nil {
				return 0, err
			}
			p.prepare()
		case wire.File:
			p.begin(f)
		case wire.Data:
			p.add(f.Data)
		case wire.Go:
			report, failure := p.run()
			for _, pipe := range p.pipes {
				_ = pipe.Close()
			}
			if failure != nil {
				err = wire.WriteMessage(p.keeper, wire.Failed, failure)
			} else {
				code = exitCode(report)
				err = wire.WriteMessage(p.keeper, wire.Ended, report)
			}
			if err != nil {
				return code, err
			}
		case wire.Fetch:
			if err := p.collect(f); err != nil {
				return code, err
			}
		}
	}
	return code, nil
}

func exitCode(r *wire.Report) int {
	switch {
	case r.Signal != "":
		return 128 + int(unix.SignalNum(r.Signal))
	case r.Ending != "":
		return 137
	}
	return r.Code
}

// fail records why the program cannot be started; the first reason counts.
func (p *first) fail(spec bool, doing string, err error) {
	if p.fault == nil {
		p.fault = &wire.Failure{Spec: spec, Text: doing + ": " + err.Error()}
	}
}

// filesDir is the working directory of a program with files.
func (p *first) filesDir() string { return path.Join(p.places.in(wire.WorkRoot), "task") }

func (p *first) prepare() {
	if err := os.MkdirAll(p.filesDir(), 0o755); err != nil {
		p.fail(false, "make the working directory", err)
		return
	}
	root, err := os.OpenRoot(p.filesDir())
	if err != nil {
		p.fail(false, "open the working directory", err)
		return
	}
	p.files = root
	p.dir = p.command.Dir
	if p.dir == "" {
		if p.dir, err = os.Getwd(); err != nil || p.dir == "/" || p.command.Files {
			p.dir = p.filesDir()
		}
	}
}

// begin creates an input file.
func (p *first) begin(f wire.Frame) {
	var h wire.FileHeader
	if err := f.Decode(&h); err != nil {
		p.fail(false, "read the order", err)
	}
	if p.fault != nil {
		return
	}
	if dir := path.Dir(h.Path); dir != "." {
		if err := p.files.MkdirAll(dir, 0o755); err != nil {
			p.fail(true, fmt.Sprintf("input file %q lies beneath another file", h.Path), err)
			return
		}
	}
	file, err := p.files.OpenFile(h.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(h.Mode))
	if err != nil {
		p.fail(true, fmt.Sprintf("create input file %q", h.Path), err)
		return
	}
	p.writing, p.left = file, h.Size
	p.add(nil)
}

func (p *first) add(data []byte) {
	if p.fault != nil || p.writing == nil {
		return
	}
	if _, err := p.writing.Write(data); err != nil {
		p.fail(false, "write an input file", err)
	}
	if p.left -= int64(len(data)); p.left <= 0 {
		if err := p.writing.Close(); err != nil {
			p.fail(false, "write an input file", err)
		}
		p.writing = nil
	}
}

// run starts the program and waits for its end.
func (p *first) run() (*wire.Report, *wire.Failure) {
	if p.fault == nil && p.writing != nil {
		p.fail(false, "read the order", io.ErrUnexpectedEOF)
	}
	if p.fault != nil {
		return nil, p.fault
	}
	var err error
	if p.usage, err = openUsage(); err != nil {
		return nil, &wire.Failure{Text: err.Error()}
	}
	before := p.usage.read()
	began := time.Now()
	pid, failure := p.launch()
	if failure != nil {
		return nil, failure
	}
	if err := wire.Write(p.keeper, wire.Frame{Kind: wire.Began}); err != nil {
		return nil, &wire.Failure{Text: err.Error()}
	}
	for _, pipe := range p.pipes { // the streams end when the program's own descriptors are closed
		_ = pipe.Close()
	}
	w := &watch{first: p, began: began, before: before, over: make(chan struct{})}
	var guards sync.WaitGroup
	guards.Go(w.clock)
	guards.Go(w.disk)
	stop := p.hearKill(w)
	report := p.reap(pid, w)
	close(w.over)
	guards.Wait()
	stop()
	after := p.usage.read()
	report.CPU = max(after.cpu-before.cpu, 0)
	report.OOMKills = after.oomKills - before.oomKills
	report.HostFull = p.usage.hostFull(before, after)
	report.Peak = after.peak
	report.Enforcement = p.usage.name()
	return report, nil
}

// hearKill ends the program when the keeper orders it or is gone: at once, or with a grace period. The returned function stops it.
func (p *first) hearKill(w *watch) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		var over <-chan time.Time
		for {
			select {
			case <-done:
				return
			case <-over:
				w.end(wire.ByKill)
			case f, ok := <-p.frames:
				switch {
				case ok && f.Kind == wire.Kill && f.Offset > 0:
					p.signalAll(unix.SIGTERM)
					over = time.After(time.Duration(f.Offset))
				case !ok || f.Kind == wire.Kill:
					w.end(wire.ByKill)
				}
				if !ok {
					return
				}
			}
		}
	}()
	return func() { close(done); <-stopped }
}

// reap waits for all processes, and returns when only this one is left. When the program has ended, the processes that it
// left are killed.
func (p *first) reap(pid int, w *watch) *wire.Report {
	report := &wire.Report{}
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil: // there is none
			return report
		case ended == pid:
			report.Wall = time.Since(w.began)
			report.Ending = w.close()
			if status.Signaled() {
				report.Signal = unix.SignalName(status.Signal())
			} else {
				report.Code = status.ExitStatus()
			}
		}
		if w.closed() {
			p.killAll()
		}
	}
}

// killAll kills every other process of the container: -1, from process 1 of a pid namespace, means all of them.
func (p *first) killAll() { p.signalAll(unix.SIGKILL) }

func (p *first) signalAll(signal unix.Signal) {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, signal)
	}
}

// collect sends the files that the program left. No process is left that could change them meanwhile.
func (p *first) collect(f wire.Frame) error {
	var wanted wire.Wanted
	if err := f.Decode(&wanted); err != nil {
		return err
	}
	answer := wire.Refusals{}
	dir, err := os.Open(p.dir)
	if err != nil {
		answer.Refused = []string{"everything: the working directory is gone or cannot be read: " + err.Error()}
		return p.reply(f.Offset, wire.Fetched, &answer)
	}
	defer dir.Close()
	into, err := os.MkdirTemp(p.places.in(wire.Temp), ".collected-")
	if err != nil {
		answer.Failure = err.Error()
		return p.reply(f.Offset, wire.Fetched, &answer)
	}
	defer os.RemoveAll(into)
	files, refused, err := collect.From(dir, wanted.Patterns, into, wanted.Most)
	answer.Refused = refused
	if err != nil {
		answer.Failure = err.Error()
	}
	for _, file := range files {
		if err := p.send(f.Offset, file.Host, &wire.FileHeader{Path: file.Path, Mode: uint32(file.Mode), Size: file.Size}); err != nil {
			return err
		}
	}
	return p.reply(f.Offset, wire.Fetched, &answer)
}

func (p *first) reply(request int64, kind wire.Kind, message wire.Message) error {
	return wire.Write(p.keeper, wire.Pack(kind, request, message))
}

func (p *first) send(request int64, host string, h *wire.FileHeader) error {
	file, err := os.Open(host)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := p.reply(request, wire.File, h); err != nil {
		return err
	}
	buffer := make([]byte, wire.Chunk)
	for left := h.Size; left > 0; {
		n, err := io.ReadFull(file, buffer[:min(left, wire.Chunk)])
		if err != nil {
			return fmt.Errorf("collected file %s: %w", strings.TrimPrefix(host, "/"), err)
		}
		if err := wire.Write(p.keeper, wire.Frame{Kind: wire.Data, Offset: request, Data: buffer[:n]}); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}
