package pid1

import (
	"runtime"
	"syscall"
	"unsafe"
)

// writeFiles creates the input files, whose contents follow the configuration on the control socket. No program has
// run in the sandbox yet, so no path can lead out of the working directory.
func writeFiles(files []File) *failure {
	if len(files) == 0 {
		return nil
	}
	buffer := make([]byte, min(64<<10, largest(files)))
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

func largest(files []File) (size int64) {
	for _, file := range files {
		size = max(size, file.Size)
	}
	return size
}

func asErrno(err error) syscall.Errno {
	errno, _ := err.(syscall.Errno)
	return errno
}

// launched is the state of a program's start.
type launched struct {
	pid     int
	at      int64  // CLOCK_MONOTONIC just before the program was executed
	spent   int64  // processor time in nanoseconds that its process had used until then
	starved int64  // nanoseconds until then
	warm    bool   // it was forked from a template
	cold    string // the reason why it was not, if it should have been
	failure *failure
}

// launch creates the program's process, which enters the run's cgroups, drops every privilege and executes the program. The process
// reports through a pipe just before it does so, or the reason why it cannot; the execution closes the pipe.
func launch(cfg *Config, order *Order) launched {
	cold := ""
	if order.Template {
		l := launchWarm(cfg, order)
		if l.warm && l.failure == nil {
			return l
		}
		cold = l.cold
	}
	l := launchCold(cfg, order)
	l.cold = cold
	return l
}

func launchCold(cfg *Config, order *Order) launched {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return launched{failure: failed("make a pipe", "", err)}
	}
	l := launched{at: clock(clockMonotonic)}
	pid := spawn(cfg, order, ends[1])
	if pid < 0 {
		return launched{failure: failed("make the program's process", "", syscall.Errno(-pid))}
	}
	syscall.Close(ends[1])
	defer syscall.Close(ends[0])
	l.pid = int(pid)
	l.hear(ends[0])
	return l
}

// spawn creates the program's process. It shares this process's memory until its execution: copying the page tables, and then the pages
// that it writes to, would take 0.3 ms. This process is suspended meanwhile. The stack is shared, too, so this function has no variables
// that the child could overwrite, and the stack must not need to grow; see rehearse.
//
//go:noinline
func spawn(cfg *Config, order *Order, report int) (pid int64) {
	if pid = vfork(); pid == 0 {
		becomeProgram(cfg, order, report)
	}
	return pid
}

// becomeProgram executes the program, or reports why it cannot and exits.
//
//go:noinline
func becomeProgram(cfg *Config, order *Order, report int) {
	f := execute(cfg, order, report)
	syscall.Write(report, f.message().encode())
	syscall.Exit(1)
}

// hear reads the report of the program's process until its execution. The report is empty if the process was killed, for example
// by a memory limit too low for any program.
func (l *launched) hear(from int) {
	var said []byte
	buffer := make([]byte, 512)
	for {
		n, err := syscall.Read(from, buffer)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		said = append(said, buffer[:n]...)
	}
	for {
		m, rest, ok := DecodeMessage(said)
		switch {
		case !ok:
			return
		case m.Kind == Started:
			l.at, l.spent, l.starved, l.warm = m.Time, m.CPU, m.Starved, m.Warm
			if m.Warm {
				l.pid = int(m.Status)
			}
		default:
			l.failure = &failure{m.Stage, m.Detail, syscall.Errno(m.Errno), m.AtFault}
		}
		said = rest
	}
}

// execute turns the calling process, which has one thread and shares its memory with the init, into the program. It returns only when that
// fails.
func execute(cfg *Config, order *Order, report int) *failure {
	argv, err := syscall.SlicePtrFromStrings(order.Argv)
	if err != nil {
		return &failure{"execute", order.Argv[0], asErrno(err), true}
	}
	env, err := syscall.SlicePtrFromStrings(order.Env)
	if err != nil {
		return &failure{"execute", order.Argv[0], asErrno(err), true}
	}
	if err := fault(syscall.RawSyscall(syscall.SYS_SETPGID, 0, 0, 0)); err != nil {
		return failed("make a process group", "", err)
	}
	if f := pin(order.CPUs); f != nil {
		return f
	}
	if f := confine(cfg); f != nil {
		return f
	}
	path, errno := lookUp(order.Argv[0], order.Env)
	if errno != 0 {
		return &failure{"find the program", order.Argv[0], errno, true}
	}
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return &failure{"execute", path, asErrno(err), true}
	}
	// The processor-time clock of the whole process would be as coarse as the timer ticks, because RLIMIT_CPU is set.
	m := &Message{Kind: Started, Starved: starvedUntilNow(cfg.PressureFD), Time: clock(clockMonotonic), CPU: clock(clockThreadCPU)}
	syscall.Write(report, m.encode())
	_, _, errno = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(unsafe.SliceData(argv))), uintptr(unsafe.Pointer(unsafe.SliceData(env))))
	return &failure{"execute", path, errno, true}
}

// pin restricts the calling process, and with it the program, to some processors. From confine on, the filter denies that.
func pin(cpus []int64) *failure {
	if len(cpus) == 0 {
		return nil
	}
	var mask [128]byte // 1,024 processors, as in package unix
	for _, cpu := range cpus {
		if cpu >= 0 && cpu < int64(8*len(mask)) {
			mask[cpu/8] |= 1 << (cpu % 8)
		}
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if err := fault(0, 0, errno); err != nil {
		return failed("pin the program to its processors", "", err)
	}
	return nil
}

// limit sets the program's resource limits, which also apply to this process.
func limit(rlimits []Rlimit) *failure {
	for _, r := range rlimits {
		value := syscall.Rlimit{Cur: r.Value, Max: r.Value}
		if err := syscall.Setrlimit(int(r.Resource), &value); err != nil {
			return failed("set resource limit", decimal(r.Resource), err)
		}
	}
	return nil
}

// confine carries out the last steps before the program, in the only possible order: each step needs a privilege that
// a later one drops. The resource limits need none.
func confine(cfg *Config) *failure {
	for _, fd := range cfg.TaskFDs {
		// "0" is the calling thread, the only one of its process. A thread that attaches itself avoids the kernel's global
		// thread-group lock, which costs about 12 ms when it has been idle.
		if _, err := syscall.Write(int(fd), []byte("0")); err != nil {
			return failed("enter the cgroup", "", err)
		}
	}
	if err := fault(syscall.RawSyscall(syscall.SYS_UNSHARE, cloneNewCgroup, 0, 0)); err != nil {
		return failed("unshare the cgroup namespace", "", err)
	}
	for id := uintptr(0); id <= highestCapabilityID; id++ {
		if err := prctl(syscall.PR_CAPBSET_DROP, id); err == syscall.EINVAL {
			break // the last capability that this kernel knows
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
	}{uint16(len(cfg.plan.Filter) / 8), unsafe.SliceData(cfg.plan.Filter)}
	err := fault(syscall.RawSyscall6(syscall.SYS_PRCTL, syscall.PR_SET_SECCOMP, seccompModeFilter,
		uintptr(unsafe.Pointer(&program)), 0, 0, 0))
	runtime.KeepAlive(cfg)
	if err != nil {
		return failed("install the seccomp filter", "", err)
	}
	return nil
}

// lookUp finds the program as a shell does, in the PATH of the program's own environment.
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
