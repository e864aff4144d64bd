package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"

	profiles "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// What a seccomp program may answer, and the layout of struct seccomp_data that it looks at.
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

// denied are calls that Moby's default profile allows, or allows on some hosts, and that no program needs here. They are
// taken out by name so that an update of the profile cannot bring them in.
var denied = []string{
	"acct", "add_key", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module", "fanotify_init",
	"fanotify_mark", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "io_uring_enter",
	"io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl",
	"lookup_dcookie", "modify_ldt", "mount", "mount_setattr", "move_mount", "name_to_handle_at", "open_by_handle_at",
	"open_tree", "perf_event_open", "pidfd_getfd", "pivot_root", "process_madvise", "process_vm_readv",
	"process_vm_writev", "ptrace", "quotactl", "quotactl_fd", "reboot", "request_key", "setdomainname", "sethostname",
	"setns", "settimeofday", "swapoff", "swapon", "syslog", "umount", "umount2", "unshare", "userfaultfd", "vhangup",
}

// uncounted make memory that belongs to no process. A cgroup counts it; the watchdog cannot see it. A namespace's
// semaphores alone may take more than any host has.
var uncounted = []string{"memfd_create", "memfd_secret", "msgget", "semget", "shmget"}

// check compares one argument; both halves of the 64 bits must match under the mask.
type check struct {
	arg         uint
	mask, value uint64
}

const wholeArg = ^uint64(0)

// conditional are calls whose permission depends on their arguments: any one of the alternatives is enough. They replace
// whatever the profile says about the same call.
var conditional = map[string][]check{
	// Only what a program without a network has a use for: netlink, packet, vsock and crypto sockets are kernel surface.
	"socket":     {{0, wholeArg, unix.AF_UNIX}, {0, wholeArg, unix.AF_INET}, {0, wholeArg, unix.AF_INET6}},
	"socketpair": {{0, wholeArg, unix.AF_UNIX}},
	// Only one's own limits: the init runs as the same user.
	"prlimit64": {{0, wholeArg, 0}},
}

// compileFilter turns Moby's default profile for a process without capabilities into a seccomp program for this
// machine's native architecture. What is not allowed gets EPERM, what nobody has heard of ENOSYS, so that programs fall
// back as they do on older kernels; other architectures are killed. watched takes away what only cgroups can limit.
func compileFilter(watched bool) ([]byte, error) {
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
		refused = slices.Concat(denied, uncounted)
	}
	allowed, guarded, err := permissions(profile, numbers, refused)
	if err != nil {
		return nil, fmt.Errorf("compile the seccomp filter: %w", err)
	}
	raw, err := bpf.Assemble(program(allowed, guarded, numbers))
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

// permissions reads the profile: which calls are always allowed, and which under a check of their arguments.
func permissions(profile *specs.LinuxSeccomp, numbers map[string]uint32, refused []string) (
	allowed []uint32, guarded map[uint32][]check, err error,
) {
	guarded = make(map[uint32][]check)
	for _, rule := range profile.Syscalls {
		if rule.Action != specs.ActAllow {
			continue // everything that is not allowed gets an error anyway
		}
		var alternative check
		switch len(rule.Args) {
		case 0:
		case 1:
			arg := rule.Args[0]
			switch arg.Op {
			case specs.OpEqualTo:
				alternative = check{arg.Index, wholeArg, arg.Value}
			case specs.OpMaskedEqual:
				alternative = check{arg.Index, arg.Value, arg.ValueTwo}
			}
		}
		for _, name := range rule.Names {
			number, known := numbers[name]
			_, ours := conditional[name]
			switch {
			case !known || ours || slices.Contains(refused, name):
			case len(rule.Args) == 0:
				allowed = append(allowed, number)
			case alternative.mask == 0:
				return nil, nil, fmt.Errorf("profile has a rule for %s that cannot be translated: %+v", name, rule.Args)
			default:
				guarded[number] = append(guarded[number], alternative)
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

// program writes the filter: architecture, guarded calls, then the allowed numbers as ascending ranges.
func program(allowed []uint32, guarded map[uint32][]check, numbers map[string]uint32) []bpf.Instruction {
	var highest uint32
	for _, n := range numbers {
		highest = max(highest, n)
	}
	ins := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		// Also the x32 calls, whose numbers are far beyond.
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: highest, SkipTrue: 1},
		bpf.RetConstant{Val: retErrno | uint32(unix.ENOSYS)},
		// glibc falls back to clone, whose flags can be looked at; those of clone3 lie in memory.
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1},
		bpf.RetConstant{Val: retErrno | uint32(unix.ENOSYS)},
	}
	order := make([]uint32, 0, len(guarded))
	for n := range guarded {
		order = append(order, n)
	}
	slices.Sort(order)
	for _, n := range order {
		ins = append(ins, guard(n, guarded[n])...)
	}
	for i := 0; i < len(allowed); {
		low, high := allowed[i], allowed[i]
		for i++; i < len(allowed) && allowed[i] == high+1; i++ {
			high++
		}
		ins = append(ins,
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: low, SkipTrue: 1},
			bpf.RetConstant{Val: retErrno | uint32(unix.EPERM)},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: high, SkipTrue: 1},
			bpf.RetConstant{Val: retAllow},
		)
	}
	return append(ins, bpf.RetConstant{Val: retErrno | uint32(unix.EPERM)})
}

// guard allows call n under any of the alternatives and answers EPERM otherwise; another call's number passes through
// in the accumulator.
func guard(n uint32, alternatives []check) []bpf.Instruction {
	var body []bpf.Instruction
	for _, c := range alternatives {
		// Loads are little-endian on both supported architectures.
		low, high := uint32(offsetArgs+8*c.arg), uint32(offsetArgs+8*c.arg+4)
		body = append(body,
			bpf.LoadAbsolute{Off: high, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: uint32(c.mask >> 32)},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(c.value >> 32), SkipTrue: 4},
			bpf.LoadAbsolute{Off: low, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: uint32(c.mask)},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(c.value), SkipTrue: 1},
			bpf.RetConstant{Val: retAllow},
		)
	}
	body = append(body, bpf.RetConstant{Val: retErrno | uint32(unix.EPERM)})
	return append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: n, SkipTrue: uint8(len(body))},
	}, body...)
}
