package docker

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// withheld are system calls that the default profile allows and that the programs of a run do not need: they inspect
// other processes, or have a history of vulnerabilities.
var withheld = []string{"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "modify_ldt", "fanotify_mark",
	"io_uring_setup", "io_uring_enter", "io_uring_register", "name_to_handle_at"}

// sockets are the sockets that a program may open: local ones, TCP and UDP, and netlink for its own network.
func sockets() []*seccomp.Syscall {
	is := func(index uint, value int) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: index, Value: uint64(value), Op: specs.OpEqualTo}
	}
	var all []*seccomp.Syscall
	allow := func(args ...specs.LinuxSeccompArg) {
		all = append(all, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow, Args: args}})
	}
	allow(is(0, unix.AF_UNIX))
	allow(is(0, unix.AF_NETLINK))
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range []int{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			allow(is(0, family), is(2, protocol))
		}
	}
	return all
}

// profile is the seccomp profile in the engine's format: the default of this Docker release, whichever default the
// engine was built with, without the withheld calls and the calls of other architectures.
var profile = sync.OnceValues(func() (string, error) {
	p := seccomp.DefaultProfile()
	for i := range p.ArchMap {
		p.ArchMap[i].SubArches = []specs.Arch{}
	}
	var kept []*seccomp.Syscall
	for _, s := range p.Syscalls {
		s.Names = slices.DeleteFunc(s.Names, func(name string) bool { return name == "socket" || slices.Contains(withheld, name) })
		if len(s.Names) > 0 {
			kept = append(kept, s)
		}
	}
	p.Syscalls = append(kept, sockets()...)
	text, err := json.Marshal(p)
	return string(text), err
})
