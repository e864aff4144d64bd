package pid1

import (
	"runtime"
	"syscall"
	"unsafe"
)

// init takes the process over when it is the init of a sandbox. It runs on the process's first thread.
func init() {
	if syscall.Getpid() != 1 {
		return
	}
	if _, ours := syscall.Getenv(Marker); !ours {
		return
	}
	if f := serve(); f != nil {
		send(&Message{Kind: Failed, Stage: f.stage, Detail: f.detail, Errno: int64(f.errno), AtFault: f.atFault})
		syscall.Exit(1)
	}
	syscall.Exit(0)
}

// failure says what could not be done, to what and why.
type failure struct {
	stage, detail string
	errno         syscall.Errno
	atFault       bool // the run's specification is to blame
}

func failed(stage, detail string, err error) *failure {
	errno, _ := err.(syscall.Errno)
	return &failure{stage: stage, detail: detail, errno: errno}
}

// serve does everything from birth to the program's end.
func serve() *failure {
	// The host's death must be ours even if it happened between the clone and here: the host armed this signal before
	// it let us execute, and a configuration that ends early covers the moment before that.
	prctl(syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL))
	// The program runs as the same user; without this it could open our memory and descriptors in /proc/1.
	prctl(syscall.PR_SET_DUMPABLE, 0)
	if err := closeOnExecFrom(ControlFD); err != nil {
		return failed("mark descriptors close-on-exec", "", err)
	}
	cfg, f := receive()
	if f != nil {
		return f
	}
	defaultSignals()
	syscall.Umask(0)
	if f := buildRoot(cfg); f != nil {
		return f
	}
	if f := writeFiles(cfg.Files); f != nil {
		return f
	}
	syscall.Umask(0o022)
	work, err := syscall.Open(WorkDir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return failed("open the working directory", WorkDir, err)
	}
	if len(cfg.Argv) == 0 {
		return dryRun(cfg)
	}
	pid, f := launch(cfg)
	if f != nil {
		return f
	}
	started := Message{Kind: Started}
	if err := syscall.Sendmsg(ControlFD, started.encode(), syscall.UnixRights(work), nil, 0); err != nil {
		return failed("report the start", "", err)
	}
	syscall.Close(work)
	status := reap(pid)
	var used syscall.Rusage
	syscall.Getrusage(rusageChildren, &used)
	send(&Message{
		Kind:   Exited,
		Status: int64(status),
		CPU:    used.Utime.Nano() + used.Stime.Nano(),
		MaxRSS: used.Maxrss * 1024,
	})
	return nil
}

// dryRun gives up privileges like a real run and starts nothing: it is how the host finds out what works.
func dryRun(cfg *Config) *failure {
	done := make(chan *failure, 1)
	go func() {
		runtime.LockOSThread()
		done <- confine(cfg)
	}()
	if f := <-done; f != nil {
		return f
	}
	send(&Message{Kind: Started})
	send(&Message{Kind: Exited})
	return nil
}

// reap waits for everything in the sandbox. When the program has ended, what it left behind is killed; the kill is one
// call that the kernel makes under one lock, so nothing can fork its way around it.
func reap(program int) syscall.WaitStatus {
	var result syscall.WaitStatus
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD: nobody is left
			return result
		case pid == program:
			result = status
			syscall.Kill(-1, syscall.SIGKILL)
		}
	}
}

// receive reads the configuration.
func receive() (*Config, *failure) {
	head := make([]byte, 8)
	if err := readFull(head); err != nil {
		return nil, failed("read the configuration", "", err)
	}
	body := make([]byte, (&decoder{b: head}).int())
	if err := readFull(body); err != nil {
		return nil, failed("read the configuration", "", err)
	}
	cfg := new(Config)
	if !cfg.decode(body) {
		return nil, failed("decode the configuration", "", syscall.EBADMSG)
	}
	return cfg, nil
}

// readFull fills b from the control socket.
func readFull(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Read(ControlFD, b)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case n == 0:
			return syscall.EPIPE
		default:
			b = b[n:]
		}
	}
	return nil
}

func send(m *Message) { syscall.Sendmsg(ControlFD, m.encode(), nil, nil, syscall.MSG_NOSIGNAL) }

// defaultSignals puts back every signal's default action. The kernel never delivers a signal whose action is the
// default to process 1 of a namespace when it comes from inside, so nothing that the program sends can end us; with the
// handlers that the Go runtime has installed, SIGTERM could.
func defaultSignals() {
	var action [4]uint64 // struct kernel_sigaction, all zero: SIG_DFL
	for sig := uintptr(1); sig <= 64; sig++ {
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}
