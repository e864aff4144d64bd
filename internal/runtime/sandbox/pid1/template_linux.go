package pid1

import (
	"syscall"
	"unsafe"
)

const sysPidfdOpen = 434

// The capabilities that a template keeps on the host: all three are needed to enter the namespaces of a sandbox through a pidfd
// of its init.
const (
	capSysChroot = 18
	capSysPtrace = 19
	capSysAdmin  = 21
)

// becomeTemplate executes an interpreter from which programs will be forked, as the host's root on its own base. The control socket stays
// open in it.
func becomeTemplate() *failure {
	if err := closeFrom(ControlFD+1, closeRangeCloexec); err != nil {
		return failed("mark descriptors close-on-exec", "", err)
	}
	order, f := receiveOrder()
	if f != nil {
		return f
	}
	if err := fault(syscall.RawSyscall(syscall.SYS_SETPGID, 0, 0, 0)); err != nil {
		return failed("make a process group", "", err)
	}
	syscall.Umask(0o022)
	if err := syscall.Chdir(WorkDir); err != nil {
		return failed("enter the working directory", WorkDir, err)
	}
	if f := limit(order.Rlimits); f != nil {
		return f
	}
	for id := uintptr(0); id <= highestCapabilityID; id++ {
		if id == capSysChroot || id == capSysPtrace || id == capSysAdmin {
			continue
		}
		if err := prctl(syscall.PR_CAPBSET_DROP, id); err == syscall.EINVAL {
			break
		} else if err != nil {
			return failed("drop from the capability bounding set", decimal(int64(id)), err)
		}
	}
	path, errno := lookUp(order.Argv[0], order.Env)
	if errno != 0 {
		return failed("find the program", order.Argv[0], errno)
	}
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return failed("execute", path, err)
	}
	argv, err := syscall.SlicePtrFromStrings(order.Argv)
	if err != nil {
		return failed("execute", path, err)
	}
	env, err := syscall.SlicePtrFromStrings(order.Env)
	if err != nil {
		return failed("execute", path, err)
	}
	_, _, errno = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(unsafe.SliceData(argv))), uintptr(unsafe.Pointer(unsafe.SliceData(env))))
	return failed("execute", path, errno)
}

// launchWarm has the template fork the program's process, which takes the same steps as [execute] and reports them. If that fails before
// the end of its report, its process is gone and nothing of the run was executed: the program can still be started cold.
func launchWarm(cfg *Config, order *Order) (l launched) {
	var report, start [2]int
	if syscall.Pipe2(report[:], syscall.O_CLOEXEC) != nil || syscall.Pipe2(start[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK) != nil {
		return launched{cold: "make a pipe"}
	}
	defer syscall.Close(report[0])
	self, _, errno := syscall.RawSyscall(sysPidfdOpen, uintptr(syscall.Getpid()), 0, 0)
	fds := append([]int{int(self), report[1], start[0], 0, 1, 2}, order.template[1:]...)
	for _, fd := range cfg.TaskFDs {
		fds = append(fds, int(fd))
	}
	text := []byte{}
	for _, list := range [][]string{order.Argv[order.Shared:], order.Env} {
		for _, s := range list {
			text = append(append(text, s...), 0)
		}
	}
	if n, err := syscall.Write(start[1], text); errno != 0 || err != nil || n != len(text) {
		l.cold = "hand over the environment"
	} else if err := syscall.Sendmsg(order.template[0], forkRequest(order), syscall.UnixRights(fds...), nil, syscall.MSG_NOSIGNAL); err != nil {
		l.cold = "ask the template: errno " + decimal(int64(asErrno(err)))
	}
	for _, fd := range append([]int{int(self), report[1], start[0], start[1]}, order.template...) {
		syscall.Close(fd)
	}
	if l.cold != "" {
		return l
	}
	l.hear(report[0])
	l.starved = starvedUntilNow(cfg.PressureFD)
	if l.failure != nil {
		l.cold = l.failure.stage + " " + l.failure.detail
	} else if !l.warm {
		l.cold = "the template's fork ended before it could report"
	}
	return l
}

// forkRequest is the message that the template reads; it consists only of integers.
func forkRequest(order *Order) []byte {
	b := putInt(nil, int64(len(order.Argv))-order.Shared)
	for _, v := range [...]bool{order.Trial, order.IntoCgroup} {
		n := int64(0)
		if v {
			n = 1
		}
		b = putInt(b, n)
	}
	c := &coder{decoder: decoder{b: b}}
	list(c, &order.CPUs, integer)
	list(c, &order.Rlimits, rlimit)
	return c.b
}
