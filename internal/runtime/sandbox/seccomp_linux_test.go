package sandbox

import (
	"encoding/binary"
	"slices"
	"testing"

	profiles "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filterMachine runs the filter as the kernel would.
func filterMachine(t *testing.T, watched bool) func(arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	encoded, err := compileFilter(watched, false)
	if err != nil {
		t.Fatal(err)
	}
	var raw []bpf.RawInstruction
	for ins := range slices.Chunk(encoded, 8) {
		raw = append(raw, bpf.RawInstruction{
			Op: binary.NativeEndian.Uint16(ins), Jt: ins[2], Jf: ins[3], K: binary.NativeEndian.Uint32(ins[4:]),
		})
	}
	if len(raw) > 4096 {
		t.Fatalf("%d instructions, the kernel takes 4096", len(raw))
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter holds an instruction that is none")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return func(arch, number uint32, args ...uint64) uint32 {
		// The machine loads big-endian words, the kernel native ones: so each word is stored big-endian in its place.
		data := binary.BigEndian.AppendUint32(nil, number)
		data = binary.BigEndian.AppendUint32(data, arch)
		data = append(data, make([]byte, 8)...) // instruction pointer
		for i := range 6 {
			var arg uint64
			if i < len(args) {
				arg = args[i]
			}
			data = binary.BigEndian.AppendUint32(data, uint32(arg))
			data = binary.BigEndian.AppendUint32(data, uint32(arg>>32))
		}
		verdict, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(verdict)
	}
}

const (
	eperm  = retErrno | uint32(unix.EPERM)
	enosys = retErrno | uint32(unix.ENOSYS)
	feign  = retErrno // success, without the call
)

func TestFilter(t *testing.T) {
	run := filterMachine(t, false)
	for _, c := range []struct {
		name string
		got  uint32
		want uint32
	}{
		{"read", run(nativeArch, unix.SYS_READ), retAllow},
		{"execve", run(nativeArch, unix.SYS_EXECVE), retAllow},
		{"exit_group", run(nativeArch, unix.SYS_EXIT_GROUP), retAllow},
		{"memfd_create", run(nativeArch, unix.SYS_MEMFD_CREATE), retAllow},
		{"a foreign architecture", run(nativeArch^1, unix.SYS_READ), retKill},
		{"x32", run(nativeArch, unix.SYS_READ|x32Bit), enosys},
		{"a call of the future", run(nativeArch, 5000), enosys},
		{"clone3", run(nativeArch, unix.SYS_CLONE3), enosys},
		{"a thread", run(nativeArch, unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_THREAD|unix.CLONE_SIGHAND), retAllow},
		{"clone into a user namespace", run(nativeArch, unix.SYS_CLONE, unix.CLONE_NEWUSER), eperm},
		{"clone into a net namespace", run(nativeArch, unix.SYS_CLONE, unix.CLONE_NEWNET|uint64(unix.SIGCHLD)), eperm},
		{"unix socket", run(nativeArch, unix.SYS_SOCKET, unix.AF_UNIX), retAllow},
		{"unix socket of packets", run(nativeArch, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC), retAllow},
		{"inet6 socket", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM), retAllow},
		{"inet socket with flags", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC), retAllow},
		{"TCP by name", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP), retAllow},
		{"UDP by name", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP), retAllow},
		{"SCTP", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP), eperm},
		{"SCTP by its type", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_SEQPACKET), eperm},
		{"MPTCP", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), eperm},
		{"DCCP", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP), eperm},
		{"UDP-Lite", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE), eperm},
		{"raw socket", run(nativeArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), eperm},
		{"a pair of sockets", run(nativeArch, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM), retAllow},
		{"a pair of internet sockets", run(nativeArch, unix.SYS_SOCKETPAIR, unix.AF_INET, unix.SOCK_STREAM), eperm},
		{"lower a limit", run(nativeArch, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_STACK, 0x7fff0000), retAllow},
		{"ask for the limit of cores", run(nativeArch, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0, 0x7fff0000), retAllow},
		{"change the limit of cores", run(nativeArch, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0x7fff0000), feign},
		{"change it from high memory", run(nativeArch, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0x7fff00000000), feign},
		{"change another's", run(nativeArch, unix.SYS_PRLIMIT64, 1, unix.RLIMIT_CORE, 0x7fff0000), eperm},
		{"change it the old way", run(nativeArch, unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, 0x7fff0000), feign},
		{"lower a limit the old way", run(nativeArch, unix.SYS_SETRLIMIT, unix.RLIMIT_STACK, 0x7fff0000), retAllow},
		{"netlink socket", run(nativeArch, unix.SYS_SOCKET, unix.AF_NETLINK), eperm},
		{"packet socket", run(nativeArch, unix.SYS_SOCKET, unix.AF_PACKET), eperm},
		{"vsock socket", run(nativeArch, unix.SYS_SOCKET, unix.AF_VSOCK), eperm},
		{"crypto socket", run(nativeArch, unix.SYS_SOCKET, unix.AF_ALG), eperm},
		{"a domain with high bits", run(nativeArch, unix.SYS_SOCKET, 1<<32|unix.AF_UNIX), eperm},
		{"own limits", run(nativeArch, unix.SYS_PRLIMIT64, 0), retAllow},
		{"the init's limits", run(nativeArch, unix.SYS_PRLIMIT64, 1), eperm},
		{"personality of this kernel", run(nativeArch, unix.SYS_PERSONALITY, 0), retAllow},
		{"ask for the personality", run(nativeArch, unix.SYS_PERSONALITY, 0xffffffff), retAllow},
		{"no address randomization", run(nativeArch, unix.SYS_PERSONALITY, 0x0040000), eperm},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, c.got, c.want)
		}
	}
	numbers := syscallNumbers()
	for _, name := range denied {
		if number, known := numbers[name]; known && run(nativeArch, number) != eperm {
			t.Errorf("%s is not denied", name)
		}
	}
}

// TestFilterAgreesWithProfile tries every number.
func TestFilterAgreesWithProfile(t *testing.T) {
	profile, err := profiles.GetDefaultProfile(&specs.Spec{
		Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	numbers := syscallNumbers()
	allowed := make(map[uint32]bool)
	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			if number, known := numbers[name]; known && rule.Action == specs.ActAllow && len(rule.Args) == 0 {
				allowed[number] = true
			}
		}
	}
	for _, name := range denied {
		if number, known := numbers[name]; known {
			delete(allowed, number)
		}
	}
	run := filterMachine(t, false)
	for name, number := range numbers {
		if _, ours := conditional[name]; ours || name == "clone" || name == "clone3" || name == "personality" {
			continue
		}
		want := eperm
		if allowed[number] {
			want = retAllow
		}
		if got := run(nativeArch, number); got != want {
			t.Errorf("%s (%d): %#x, want %#x", name, number, got, want)
		}
	}
	if len(allowed) < 250 {
		t.Errorf("only %d calls are allowed; is the table of names right?", len(allowed))
	}
}

func TestFilterWithoutCgroups(t *testing.T) {
	run := filterMachine(t, true)
	for _, name := range uncounted {
		if number, known := syscallNumbers()[name]; known && run(nativeArch, number) != eperm {
			t.Errorf("%s makes memory that the watchdog cannot count and is allowed", name)
		}
	}
	mmap := func(flags uint64) uint32 { return run(nativeArch, unix.SYS_MMAP, 0, 4096, unix.PROT_READ, flags) }
	for flags, want := range map[uint64]uint32{
		unix.MAP_SHARED | unix.MAP_ANONYMOUS: eperm, unix.MAP_SHARED_VALIDATE | unix.MAP_ANONYMOUS: eperm,
		unix.MAP_SHARED | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE: eperm, unix.MAP_SHARED: retAllow,
		unix.MAP_PRIVATE | unix.MAP_ANONYMOUS: retAllow, unix.MAP_PRIVATE: retAllow,
		unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_STACK | unix.MAP_FIXED: retAllow,
	} {
		if got := mmap(flags); got != want {
			t.Errorf("mmap with flags %#x: %#x, want %#x", flags, got, want)
		}
	}
	if got := filterMachine(t, false)(nativeArch, unix.SYS_MMAP, 0, 4096, 1, unix.MAP_SHARED|unix.MAP_ANONYMOUS); got != retAllow {
		t.Errorf("a shared mapping with cgroups: %#x", got)
	}
}
