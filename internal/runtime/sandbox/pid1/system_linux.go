package pid1

import (
	"runtime"
	"syscall"
	"unsafe"
)

// System calls and constants that package syscall does not have. The numbers are the same on every architecture, as
// for all calls added since Linux 5.1.
const (
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysClone3       = 435
	sysCloseRange   = 436
	sysMountSetattr = 442

	closeRangeCloexec = 4

	openTreeClone       = 1
	atEmptyPath         = 0x1000
	atRecursive         = 0x8000
	moveMountEmptyPath  = 4
	mountAttrReadOnly   = 1
	mountAttrNoSuid     = 2
	mountAttrNoDev      = 4
	msPrivate           = 1 << 18
	cloneNewCgroup      = 0x02000000
	cloneIntoCgroup     = 0x200000000
	prCapAmbient        = 47
	prCapAmbientClear   = 4
	prSetNoNewPrivs     = 38
	seccompModeFilter   = 2
	linuxCapabilityV3   = 0x20080522
	rusageChildren      = -1
	accessExecutable    = 1
	highestCapabilityID = 63
	clockMonotonic      = 1
	clockThreadCPU      = 3
	pollHangUp          = 0x10
)

// atCwd is AT_FDCWD in the width of a register.
const atCwd = ^uintptr(99)

// clock reads a clock in nanoseconds. The host's CLOCK_MONOTONIC is the same: the sandbox has no time namespace.
func clock(id uintptr) int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

// starvedUntilNow reads a cpu.pressure file of cgroup v2: the nanoseconds in which all runnable threads of the cgroup waited
// for a processor; 0 when fd is 0 or the file cannot be read.
func starvedUntilNow(fd int64) int64 {
	if fd == 0 {
		return 0
	}
	var buffer [512]byte
	n, err := syscall.Pread(int(fd), buffer[:], 0)
	if err != nil {
		return 0
	}
	return Starved(buffer[:n])
}

func prctl(option, argument uintptr) error {
	return fault(syscall.RawSyscall6(syscall.SYS_PRCTL, option, argument, 0, 0, 0, 0))
}

// fault turns the results of a raw call into an error, nil on success.
func fault(_, _ uintptr, errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// closeFrom closes the descriptors from fd on, or marks them close-on-exec if flags says so.
func closeFrom(fd, flags uintptr) error {
	return fault(syscall.RawSyscall(sysCloseRange, fd, uintptr(^uint32(0)), flags))
}

// openTree makes a detached, private copy of the mounts at path.
func openTree(path string) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	fd, _, errno := syscall.Syscall(sysOpenTree, atCwd, uintptr(unsafe.Pointer(p)),
		openTreeClone|atRecursive|syscall.O_CLOEXEC)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// setAttributes adds mount attributes to every mount of a detached tree and cuts it off from its peers.
func setAttributes(tree int, set uint64) error {
	empty := [1]byte{}
	attr := [4]uint64{set, 0, msPrivate, 0} // struct mount_attr
	return fault(syscall.Syscall6(sysMountSetattr, uintptr(tree), uintptr(unsafe.Pointer(&empty)),
		atEmptyPath|atRecursive, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0))
}

// moveMount attaches a detached tree at target.
func moveMount(tree int, target string) error {
	p, err := syscall.BytePtrFromString(target)
	if err != nil {
		return err
	}
	empty := [1]byte{}
	return fault(syscall.Syscall6(sysMoveMount, uintptr(tree), uintptr(unsafe.Pointer(&empty)),
		atCwd, uintptr(unsafe.Pointer(p)), moveMountEmptyPath, 0))
}

// raiseLoopback brings up the loopback device of the sandbox's network namespace, which is down in a new namespace: a
// program can then talk to itself by 127.0.0.1 and ::1. The namespace has no other device.
func raiseLoopback() error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0) // an internet socket would be recorded
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	request := struct { // struct ifreq
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP}
	copy(request.name[:], "lo")
	return fault(syscall.RawSyscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))))
}

// setns moves the calling process, which has one thread, into a namespace.
func setns(fd int, kind uintptr) syscall.Errno {
	number := uintptr(268) // on all architectures but amd64; package syscall does not have it there
	if runtime.GOARCH == "amd64" {
		number = 308
	}
	_, _, errno := syscall.RawSyscall(number, uintptr(fd), kind, 0)
	return errno
}
