package pid1

import (
	"runtime"
	"syscall"
	"unsafe"
)

// writeFiles places the inputs, whose contents follow the configuration on the control socket. Nothing else has run in
// the sandbox yet, so no path can lead anywhere but beneath the working directory.
func writeFiles(files []File) *failure {
	buffer := make([]byte, 64<<10)
	for _, file := range files {
		if err := makeParents(file.Path); err != nil {
			return &failure{"create the directory of input file", file.Path, asErrno(err), true}
		}
		flags := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_EXCL | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
		fd, err := syscall.Open(file.Path, flags, uint32(file.Mode))
		if err != nil {
			return &failure{"create input file", file.Path, asErrno(err), true}
		}
		for left := file.Size; left > 0; {
			part := buffer[:min(int64(len(buffer)), left)]
			if err := readFull(part, syscall.Read); err != nil {
				return failed("receive input file", file.Path, err)
			}
			left -= int64(len(part))
			for len(part) > 0 {
				n, err := syscall.Write(fd, part)
				if err != nil {
					return &failure{"write input file", file.Path, asErrno(err), true}
				}
				part = part[n:]
			}
		}
		syscall.Close(fd)
	}
	return nil
}

func asErrno(err error) syscall.Errno {
	errno, _ := err.(syscall.Errno)
	return errno
}

// launcher is the thread that starts the program. It has entered the run's cgroups and lost every privilege, and so the
// program is born like that. The thread stays when the program has started: the host has added it to the run's limit on
// processes, which would be looser by one after the thread's end. The other threads, this process's memory among them, stay
// outside of the run's cgroup v1 limits.
type launcher struct {
	thread int
	orders chan *Order
	result chan launched
}

type launched struct {
	pid     int
	at      int64 // CLOCK_MONOTONIC before the program's process was made
	starved int64 // nanoseconds until then
	failure *failure
}

// newLauncher returns when the launcher is ready to start a program.
func newLauncher(cfg *Config) (*launcher, *failure) {
	spareThreads(int(cfg.SpareThreads))
	l := &launcher{orders: make(chan *Order), result: make(chan launched)}
	go func() {
		runtime.LockOSThread() // and never unlocked
		l.thread = syscall.Gettid()
		f := confine(cfg)
		l.result <- launched{failure: f}
		if f == nil {
			order := <-l.orders
			starved, at := starvedUntilNow(cfg.PressureFD), monotonic()
			pid, f := execute(order)
			l.result <- launched{pid, at, starved, f}
			select {} // the thread belongs to the run's limit on processes
		}
	}()
	return l, (<-l.result).failure
}

// launch starts the program.
func (l *launcher) launch(order *Order) launched {
	l.orders <- order
	return <-l.result
}

// pin restricts the launcher, and with it the program, to some processors. Another thread does it: the filter that the launcher is behind
// denies the call.
func (l *launcher) pin(cpus []int64) *failure {
	if len(cpus) == 0 {
		return nil
	}
	var mask [128]byte // 1,024 processors, as in package unix
	for _, cpu := range cpus {
		if cpu >= 0 && cpu < int64(8*len(mask)) {
			mask[cpu/8] |= 1 << (cpu % 8)
		}
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(l.thread), unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if err := fault(0, 0, errno); err != nil {
		return failed("pin the program to its processors", "", err)
	}
	return nil
}

// limit sets the program's resource limits, which are this process's too.
func limit(rlimits []Rlimit) *failure {
	for _, r := range rlimits {
		value := syscall.Rlimit{Cur: r.Value, Max: r.Value}
		if err := syscall.Setrlimit(int(r.Resource), &value); err != nil {
			return failed("set resource limit", decimal(r.Resource), err)
		}
	}
	return nil
}

// preferForOOM makes the kernel choose this process, and those that it makes, when the host has no memory left. Raising the value needs no
// privilege. A host without its /proc there leaves it to the cgroup's limit.
func preferForOOM() {
	fd, err := syscall.Open("/proc/self/oom_score_adj", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	syscall.Write(fd, []byte("1000"))
	syscall.Close(fd)
}

// spareThreads makes the Go runtime create n threads and leave them idle: a goroutine that has locked its thread keeps
// it even while it waits.
func spareThreads(n int) {
	up, hold, down := make(chan struct{}, n), make(chan struct{}), make(chan struct{}, n)
	for range n {
		go func() {
			runtime.LockOSThread()
			up <- struct{}{}
			<-hold
			runtime.UnlockOSThread()
			down <- struct{}{}
		}()
	}
	for range n {
		<-up
	}
	close(hold)
	for range n {
		<-down
	}
}

// confine takes the calling thread through the last steps before the program, in the only order that works: each step
// needs a privilege that a later one takes away. The resource limits need none.
func confine(cfg *Config) *failure {
	for _, fd := range cfg.TaskFDs {
		// "0" is the calling thread. Attaching one's own single thread is the one attach that does not wait for the
		// kernel's global thread-group lock, which costs some 12 ms when it has been idle.
		if _, err := syscall.Write(int(fd), []byte("0")); err != nil {
			return failed("enter the cgroup", "", err)
		}
	}
	if err := fault(syscall.RawSyscall(syscall.SYS_UNSHARE, cloneNewCgroup, 0, 0)); err != nil {
		return failed("unshare the cgroup namespace", "", err)
	}
	for id := uintptr(0); id <= highestCapabilityID; id++ {
		if err := prctl(syscall.PR_CAPBSET_DROP, id); err == syscall.EINVAL {
			break // beyond the last capability that this kernel knows
		} else if err != nil {
			return failed("drop from the capability bounding set", decimal(int64(id)), err)
		}
	}
	if err := prctl(prCapAmbient, prCapAmbientClear); err != nil {
		return failed("clear ambient capabilities", "", err)
	}
	header := [2]uint32{linuxCapabilityV3, 0}
	var none [6]uint32
	if err := fault(syscall.RawSyscall(syscall.SYS_CAPSET,
		uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)); err != nil {
		return failed("drop capabilities", "", err)
	}
	if err := prctl(prSetNoNewPrivs, 1); err != nil {
		return failed("set no_new_privs", "", err)
	}
	program := struct {
		length uint16
		filter *byte
	}{uint16(len(cfg.Filter) / 8), unsafe.SliceData(cfg.Filter)}
	err := fault(syscall.RawSyscall6(syscall.SYS_PRCTL, syscall.PR_SET_SECCOMP, seccompModeFilter,
		uintptr(unsafe.Pointer(&program)), 0, 0, 0))
	runtime.KeepAlive(cfg)
	if err != nil {
		return failed("install the seccomp filter", "", err)
	}
	return nil
}

// execute starts the program.
func execute(order *Order) (int, *failure) {
	path, errno := lookUp(order.Argv[0], order.Env)
	if errno != 0 {
		return 0, &failure{"find the program", order.Argv[0], errno, true}
	}
	pid, err := syscall.ForkExec(path, order.Argv, &syscall.ProcAttr{
		Dir:   WorkDir,
		Env:   order.Env,
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 0, &failure{"execute", path, asErrno(err), true}
	}
	return pid, nil
}

// lookUp finds the program as a shell would, in the PATH of the program's own environment.
func lookUp(name string, env []string) (string, syscall.Errno) {
	for i := 0; i < len(name); i++ {
		if name[i] == '/' {
			return name, executable(name)
		}
	}
	path := ""
	for _, kv := range env {
		if len(kv) > 5 && kv[:5] == "PATH=" {
			path = kv[5:]
		}
	}
	result := syscall.ENOENT
	for start, i := 0, 0; i <= len(path); i++ {
		if i < len(path) && path[i] != ':' {
			continue
		}
		dir := path[start:i]
		start = i + 1
		if dir == "" {
			continue
		}
		candidate := dir + "/" + name
		switch errno := executable(candidate); errno {
		case 0:
			return candidate, 0
		case syscall.EACCES:
			result = errno
		}
	}
	return "", result
}

func executable(path string) syscall.Errno {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return asErrno(err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return syscall.EACCES
	}
	return asErrno(syscall.Access(path, accessExecutable))
}
