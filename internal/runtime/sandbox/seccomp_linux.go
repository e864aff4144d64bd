package sandbox

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	profiles "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The return values of a seccomp program, and the layout of struct seccomp_data, its input.
const (
	retKill  = 0x80000000
	retErrno = 0x00050000
	retAllow = 0x7fff0000

	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16

	// x32Bit marks calls of the x32 ABI, which arrive under the native architecture on amd64.
	x32Bit = 0x40000000
)

// denied are system calls that Moby's default profile allows, at least on some hosts, and that no program needs here.
// They are removed by name so that an update of the profile cannot add them.
var denied = []string{
	"acct", "add_key", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module", "fanotify_init",
	"fanotify_mark", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "io_uring_enter",
	"io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl",
	"lookup_dcookie", "modify_ldt", "mount", "mount_setattr", "move_mount", "name_to_handle_at", "open_by_handle_at",
	"open_tree", "perf_event_open", "pidfd_getfd", "pivot_root", "process_madvise", "process_vm_readv",
	"process_vm_writev", "ptrace", "quotactl", "quotactl_fd", "reboot", "request_key", "setdomainname", "sethostname",
	"setns", "settimeofday", "swapoff", "swapon", "syslog", "umount", "umount2", "unshare", "userfaultfd", "vhangup",
}

// uncounted are system calls that allocate memory which belongs to no process. A cgroup counts it; the watchdog
// cannot see it. The semaphores of one namespace alone may take more than any host has.
var uncounted = []string{"memfd_create", "memfd_secret", "msgget", "semget", "shmget"}

// check compares one argument; both halves of its 64 bits must match under the mask.
type check struct {
	arg         uint
	mask, value uint64
}

const wholeArg = ^uint64(0)

func equals(arg uint, value uint64) check { return check{arg, wholeArg, value} }

// rule holds when all its checks do.
type rule []check

const (
	// bothInternets masks the bit in which AF_INET and AF_INET6 differ.
	bothInternets = ^uint64(unix.AF_INET ^ unix.AF_INET6)
	// socketKind is the part of a socket's type without its flags.
	socketKind = 0xf
)

// conditional are calls whose permission depends on their arguments: any one of the rules is enough. They replace
// the profile's rules for the same call.
var conditional = map[string][]rule{
	// Only the sockets that a program without a network needs: netlink, packet, vsock and crypto sockets expose kernel
	// code, and so do the protocols of an internet socket, each of which makes the kernel load a module.
	"socket": {
		{equals(0, unix.AF_UNIX)},
		{{0, bothInternets, unix.AF_INET}, {1, socketKind, unix.SOCK_STREAM}, equals(2, 0)},
		{{0, bothInternets, unix.AF_INET}, {1, socketKind, unix.SOCK_STREAM}, equals(2, unix.IPPROTO_TCP)},
		{{0, bothInternets, unix.AF_INET}, {1, socketKind, unix.SOCK_DGRAM}, equals(2, 0)},
		{{0, bothInternets, unix.AF_INET}, {1, socketKind, unix.SOCK_DGRAM}, equals(2, unix.IPPROTO_UDP)},
	},
	"socketpair": {{equals(0, unix.AF_UNIX)}},
	// A program may change only its own limits: the init runs as the same user.
	"prlimit64": {{equals(0, 0)}},
}

// feigned are calls that report success and are not made. A core limit of one byte keeps the kernel from handing a dying program to the
// host's crash handler, which runs as root and outside of any sandbox; a limit of zero, which a program might set for itself, would not.
var feigned = map[string]rule{
	"setrlimit": {equals(0, unix.RLIMIT_CORE)},
	"prlimit64": {equals(0, 0), equals(1, unix.RLIMIT_CORE), notZero(2)},
}

// anonymousShared masks the bits that distinguish MAP_SHARED and MAP_SHARED_VALIDATE from MAP_PRIVATE, and MAP_ANONYMOUS.
const anonymousShared = unix.MAP_ANONYMOUS | unix.MAP_TYPE&^2

// unseen are calls that allocate memory which the watchdog cannot see, but that also have a harmless use: a shared
// anonymous mapping keeps its pages while any part of it is mapped, and they count only for processes that touched them.
var unseen = map[string]rule{
	"mmap": {{3, anonymousShared, unix.MAP_ANONYMOUS | unix.MAP_SHARED}},
}

// notZero is the only check that does not compare bits for equality: it requires a non-nil pointer.
func notZero(arg uint) check { return check{arg: arg} }

// compileFilter turns Moby's default profile for a process without capabilities into a seccomp program for this machine's native
// architecture. Denied calls get EPERM and unknown calls ENOSYS, so that programs fall back as they do on older kernels; calls of other
// architectures kill the process. watched removes the calls that only cgroups can limit, pinned the choice of processors.
func compileFilter(watched, pinned bool) ([]byte, error) {
	numbers := syscallNumbers()
	if numbers == nil {
		return nil, fmt.Errorf("compile the seccomp filter: no system call table for this architecture (amd64 and arm64 have one)")
	}
	profile, err := profiles.GetDefaultProfile(&specs.Spec{
		Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}},
	})
	if err != nil {
		return nil, fmt.Errorf("compile the seccomp filter: %w", err)
	}
	refused := denied
	if watched {
		refused = slices.Concat(refused, uncounted)
	}
	if pinned {
		refused = append(slices.Clip(refused), "sched_setaffinity")
	}
	allowed, guarded, err := permissions(profile, numbers, refused)
	if err != nil {
		return nil, fmt.Errorf("compile the seccomp filter: %w", err)
	}
	raw, err := bpf.Assemble(program(allowed, guarded, numbers, watched))
	if err != nil {
		return nil, fmt.Errorf("assemble the seccomp filter: %w", err)
	}
	encoded := make([]byte, 0, 8*len(raw))
	for _, ins := range raw {
		encoded = binary.NativeEndian.AppendUint16(encoded, ins.Op)
		encoded = append(encoded, ins.Jt, ins.Jf)
		encoded = binary.NativeEndian.AppendUint32(encoded, ins.K)
	}
	return encoded, nil
}

// permissions reads the profile: the calls that are always allowed, and those that need a check of their arguments.
func permissions(profile *specs.LinuxSeccomp, numbers map[string]uint32, refused []string) (
	allowed []uint32, guarded map[uint32][]rule, err error,
) {
	guarded = make(map[uint32][]rule)
	for _, entry := range profile.Syscalls {
		if entry.Action != specs.ActAllow {
			continue // a call that is not allowed gets an error anyway
		}
		var alternative check
		switch len(entry.Args) {
		case 0:
		case 1:
			arg := entry.Args[0]
			switch arg.Op {
			case specs.OpEqualTo:
				alternative = check{arg.Index, wholeArg, arg.Value}
			case specs.OpMaskedEqual:
				alternative = check{arg.Index, arg.Value, arg.ValueTwo}
			}
		}
		for _, name := range entry.Names {
			number, known := numbers[name]
			_, ours := conditional[name]
			switch {
			case !known || ours || slices.Contains(refused, name):
			case len(entry.Args) == 0:
				allowed = append(allowed, number)
			case alternative.mask == 0:
				return nil, nil, fmt.Errorf("profile has a rule for %s that cannot be translated: %+v", name, entry.Args)
			default:
				guarded[number] = append(guarded[number], rule{alternative})
			}
		}
	}
	for name, alternatives := range conditional {
		if number, known := numbers[name]; known {
			guarded[number] = alternatives
		}
	}
	slices.Sort(allowed)
	return slices.Compact(allowed), guarded, nil
}

// program writes the filter: architecture, fixed results for some arguments, guarded calls, then the allowed numbers as ascending ranges.
func program(allowed []uint32, guarded map[uint32][]rule, numbers map[string]uint32, watched bool) []bpf.Instruction {
	var highest uint32
	for _, n := range numbers {
		highest = max(highest, n)
	}
	ins := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		// This includes the x32 calls, whose numbers are far higher.
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: highest, SkipTrue: 1},
		bpf.RetConstant{Val: retErrno | uint32(unix.ENOSYS)},
		// glibc falls back to clone, whose flags the filter can see; those of clone3 are in memory.
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1},
		bpf.RetConstant{Val: retErrno | uint32(unix.ENOSYS)},
	}
	answer := func(rules map[string]rule, with uint32) {
		for _, name := range slices.Sorted(maps.Keys(rules)) {
			if n, known := numbers[name]; known {
				ins = append(ins, only(n, match(rules[name], with))...)
			}
		}
	}
	answer(feigned, retErrno)
	if watched {
		answer(unseen, retErrno|uint32(unix.EPERM))
	}
	for _, n := range slices.Sorted(maps.Keys(guarded)) {
		ins = append(ins, guard(n, guarded[n])...)
	}
	var ranges [][2]uint32
	for i := 0; i < len(allowed); {
		low, high := allowed[i], allowed[i]
		for i++; i < len(allowed) && allowed[i] == high+1; i++ {
			high++
		}
		ranges = append(ranges, [2]uint32{low, high})
	}
	return append(append(ins, search(ranges, 0)...), bpf.RetConstant{Val: retErrno | uint32(unix.EPERM)}, bpf.RetConstant{Val: retAllow})
}

// search tests the call's number against ascending ranges, by halves: for each run, the kernel compiles the filter and evaluates it for
// every number. The two answers, first the one for a call outside of the ranges, come after further more instructions.
func search(ranges [][2]uint32, further int) []bpf.Instruction {
	if len(ranges) == 1 {
		return []bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: ranges[0][0], SkipTrue: uint8(further + 1)},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: ranges[0][1], SkipTrue: uint8(further), SkipFalse: uint8(further + 1)},
		}
	}
	half := len(ranges) / 2
	above := search(ranges[half:], further)
	below := search(ranges[:half], further+len(above))
	return append(append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: ranges[half][0], SkipTrue: uint8(len(below))},
	}, below...), above...)
}

// guard allows call n under any of the rules and returns EPERM otherwise.
func guard(n uint32, rules []rule) []bpf.Instruction {
	var body []bpf.Instruction
	for _, r := range rules {
		body = append(body, match(r, retAllow)...)
	}
	return only(n, append(body, bpf.RetConstant{Val: retErrno | uint32(unix.EPERM)}))
}

// only runs body for call n and skips it for other calls. The call's number is in the accumulator before and after it.
func only(n uint32, body []bpf.Instruction) []bpf.Instruction {
	body = append(body, bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
	return append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: n, SkipTrue: uint8(len(body))},
	}, body...)
}

// match returns answer when all checks of a rule hold, and continues after itself otherwise.
func match(r rule, answer uint32) []bpf.Instruction {
	var parts [][]bpf.Instruction
	length := 1 // the answer
	for _, c := range r {
		// Loads are little-endian on both supported architectures.
		low, high := uint32(offsetArgs+8*c.arg), uint32(offsetArgs+8*c.arg+4)
		part := append(half(high, uint32(c.mask>>32), uint32(c.value>>32)), half(low, uint32(c.mask), uint32(c.value))...)
		if c == notZero(c.arg) {
			part = []bpf.Instruction{
				bpf.LoadAbsolute{Off: high, Size: 4},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2}, // over this part's rest
				bpf.LoadAbsolute{Off: low, Size: 4},
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0}, // on to the end
			}
		}
		parts = append(parts, part)
		length += len(part)
	}
	all := append(slices.Concat(parts...), bpf.RetConstant{Val: answer})
	for i, ins := range all {
		if jump, ok := ins.(bpf.JumpIf); ok && jump.SkipTrue == 0 {
			jump.SkipTrue = uint8(length - i - 1)
			all[i] = jump
		}
	}
	return all
}

// half compares 32 bits of an argument. Its jump leads to the end of the rule.
func half(offset, mask, value uint32) []bpf.Instruction {
	compare := []bpf.Instruction{bpf.LoadAbsolute{Off: offset, Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask}}
	if mask == ^uint32(0) {
		compare = compare[:1]
	}
	return append(compare, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value})
}
