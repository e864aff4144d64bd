package pod

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The return values of a seccomp program, and the layout of struct seccomp_data, its input.
const (
	retErrno = 0x00050000
	retAllow = 0x7fff0000

	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16 // little-endian, of 8 bytes each

	x32Bit = 0x40000000
)

// withheld are system calls that the container runtime's filter allows and that the programs of a run do not need: they
// inspect other processes, or have a history of vulnerabilities.
var withheld = []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_FANOTIFY_MARK, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_USERFAULTFD}

// confine loads a filter on this thread, on top of the container runtime's: without a network the program can open only local sockets. A
// NetworkPolicy takes effect some time after a pod has started; the filter is active before the program starts.
func confine(network bool) error {
	raw, err := bpf.Assemble(filter(network))
	if err != nil {
		return fmt.Errorf("assemble the seccomp filter: %w", err)
	}
	program := make([]unix.SockFilter, len(raw))
	for i, ins := range raw {
		program[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	loaded := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&loaded)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return fmt.Errorf("load the seccomp filter: %w", errno)
	}
	return nil
}

func filter(network bool) []bpf.Instruction {
	eperm, enosys := bpf.RetConstant{Val: retErrno | uint32(unix.EPERM)}, bpf.RetConstant{Val: retErrno | uint32(unix.ENOSYS)}
	families := []uint32{unix.AF_UNIX}
	if network {
		families = append(families, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	}
	ins := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		enosys, // another architecture has other numbers
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1},
		enosys,
	}
	for _, n := range slices.Concat(withheld, withheldHere) {
		ins = append(ins, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: n, SkipTrue: 1}, eperm)
	}
	// A program may change only its own limits: process 1 runs as the same user.
	ins = append(ins, only(unix.SYS_PRLIMIT64, 0, eperm)...)
	ins = append(ins, only(unix.SYS_SOCKETPAIR, unix.AF_UNIX, eperm)...)
	socket := []bpf.Instruction{bpf.LoadAbsolute{Off: offsetArgs, Size: 4}}
	for _, f := range families {
		socket = append(socket, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: f, SkipTrue: 1}, bpf.RetConstant{Val: retAllow})
	}
	socket = append(socket, bpf.RetConstant{Val: retErrno | uint32(unix.EAFNOSUPPORT)})
	ins = append(ins, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: uint8(len(socket))})
	return append(append(ins, socket...), bpf.RetConstant{Val: retAllow})
}

// only allows call n when its first argument is value. The number is in the accumulator before and after it.
func only(n, value uint32, otherwise bpf.RetConstant) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: n, SkipTrue: 4},
		bpf.LoadAbsolute{Off: offsetArgs, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: 1},
		otherwise,
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}
}
