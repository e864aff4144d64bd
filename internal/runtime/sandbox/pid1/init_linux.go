package pid1

import (
	"syscall"
	"unsafe"
)

// failure is a step that failed, its object and the reason.
type failure struct {
	stage, detail string
	errno         syscall.Errno
	atFault       bool // the run's specification is the cause
}

func (f *failure) message() *Message {
	return &Message{Kind: Failed, Stage: f.stage, Detail: f.detail, Errno: int64(f.errno), AtFault: f.atFault}
}

func failed(stage, detail string, err error) *failure {
	errno, _ := err.(syscall.Errno)
	return &failure{stage: stage, detail: detail, errno: errno}
}

// serve does everything from birth to the program's end.
func serve(plan *Plan, birth Birth) *failure {
	// The program runs as the same user; without this it could open this process's memory and descriptors in /proc/1.
	prctl(syscall.PR_SET_DUMPABLE, 0)
	if err := closeFrom(ControlFD, closeRangeCloexec); err != nil {
		return failed("mark descriptors close-on-exec", "", err)
	}
	cfg := &Config{plan: plan, birth: birth}
	if f := receive(cfg.decode, syscall.Read); f != nil {
		return f
	}
	if !birth.Network {
		if err := raiseLoopback(); err != nil {
			return failed("set up the loopback device", "lo", err)
		}
	}
	syscall.Umask(0)
	if f := buildRoot(cfg); f != nil {
		return f
	}
	if cfg.Base {
		return offerBase()
	}
	if cfg.Announce {
		send(&Message{Kind: Ready})
	}
	// Up to here nothing depends on the program.
	order, f := receiveOrder()
	if f != nil {
		return f
	}
	if f := finishRoot(cfg, order); f != nil {
		return f
	}
	if f := writeFiles(order.Files); f != nil {
		return f
	}
	syscall.Umask(0o022)
	work, err := syscall.Open(WorkDir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return failed("open the working directory", WorkDir, err)
	}
	if f := limit(order.Rlimits); f != nil {
		return f
	}
	if len(order.Argv) == 0 { // a dry run
		send(&Message{Kind: Started, Time: clock(clockMonotonic)})
		send(&Message{Kind: Exited})
		return nil
	}
	program := launch(cfg, order)
	if program.failure != nil {
		return program.failure
	}
	started := Message{Kind: Started, Time: program.at, Starved: program.starved, Warm: program.warm, Detail: program.cold}
	if err := syscall.Sendmsg(ControlFD, started.encode(), syscall.UnixRights(work), nil, 0); err != nil {
		return failed("report the start", "", err)
	}
	syscall.Close(work)
	// The streams end when the program closes them, which the host would not see while this process has them open.
	for fd := range 3 {
		syscall.Close(fd)
	}
	status, ended, starved := reap(program.pid, cfg.PressureFD)
	var used syscall.Rusage
	syscall.Getrusage(rusageChildren, &used)
	send(&Message{
		Kind:    Exited,
		Status:  int64(status),
		CPU:     max(0, used.Utime.Nano()+used.Stime.Nano()-program.spent),
		MaxRSS:  used.Maxrss * 1024,
		Time:    ended,
		Starved: starved,
	})
	return nil
}

// reap waits for everything in the sandbox. When the program has ended, the processes that it left are killed; the kill is one call that
// the kernel carries out under one lock, so a fork cannot escape it. The time and the pressure are read at the program's end.
func reap(program int, pressure int64) (result syscall.WaitStatus, ended, starved int64) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD: nobody is left
			return result, ended, starved
		case pid == program:
			result, ended, starved = status, clock(clockMonotonic), starvedUntilNow(pressure)
			syscall.Kill(-1, syscall.SIGKILL)
		}
	}
}

// receive reads one frame from the control socket and decodes it; first reads its first bytes.
func receive(decode func([]byte) bool, first func(fd int, b []byte) (int, error)) *failure {
	head := make([]byte, 8)
	if err := readFull(head, first); err != nil {
		return failed("read the configuration", "", err)
	}
	body := make([]byte, (&decoder{b: head}).int())
	if err := readFull(body, syscall.Read); err != nil {
		return failed("read the configuration", "", err)
	}
	if !decode(body) {
		return failed("decode the configuration", "", syscall.EBADMSG)
	}
	return nil
}

// receiveOrder waits for the order. The descriptors that come with it are put in their places: the standard input at 0,
// the others in the order's fields.
func receiveOrder() (*Order, *failure) {
	var fds []int
	order := new(Order)
	f := receive(order.decode, func(fd int, b []byte) (int, error) {
		rights := make([]byte, syscall.CmsgSpace(4*MostDescriptors))
		n, size, _, _, err := syscall.Recvmsg(fd, b, rights, syscall.MSG_CMSG_CLOEXEC)
		if err != nil || size == 0 {
			return n, err
		}
		messages, err := syscall.ParseSocketControlMessage(rights[:size])
		for i := range messages {
			if got, err := syscall.ParseUnixRights(&messages[i]); err == nil {
				fds = append(fds, got...)
			}
		}
		return n, err
	})
	if f != nil {
		return nil, f
	}
	if order.Input && len(fds) > 0 {
		if err := syscall.Dup3(fds[0], 0, 0); err != nil {
			return nil, failed("take the standard input", "", err)
		}
		syscall.Close(fds[0])
		fds = fds[1:]
	}
	more := 0
	if order.Template {
		more++
	}
	if order.IntoCgroup {
		more++
	}
	if len(fds) != len(order.Mounts)+more {
		return nil, failed("receive the mounts", "", syscall.EBADF)
	}
	order.trees, order.template = fds[:len(order.Mounts)], fds[len(order.Mounts):]
	return order, nil
}

// readFull fills b from the control socket; first does the first read.
func readFull(b []byte, first func(fd int, b []byte) (int, error)) error {
	for read := first; len(b) > 0; {
		n, err := read(ControlFD, b)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case n == 0:
			return syscall.EPIPE
		default:
			b, read = b[n:], syscall.Read
		}
	}
	return nil
}

func send(m *Message) { syscall.Sendmsg(ControlFD, m.encode(), nil, nil, syscall.MSG_NOSIGNAL) }

// defaultSignals restores every signal's default action. The kernel never delivers a signal with the default action to
// process 1 of a namespace when it comes from inside, so the program cannot end this process by a signal; with the
// handlers that Go's runtime installs, SIGTERM could.
func defaultSignals() {
	var action [4]uint64 // struct kernel_sigaction, all zero: SIG_DFL
	for sig := uintptr(1); sig <= 64; sig++ {
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}
