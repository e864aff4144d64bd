package docker

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// withheld are calls that the default profile allows and that programs of one run have no use for: they look into other
// processes, or have a history of holes.
var withheld = []string{"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "modify_ldt", "fanotify_mark",
	"io_uring_setup", "io_uring_enter", "io_uring_register", "name_to_handle_at"}

// profile is the seccomp profile as the engine wants it: today's default, whichever default the engine was built with,
// less what is withheld, and without the calls of other architectures.
var profile = sync.OnceValues(func() (string, error) {
	p := seccomp.DefaultProfile()
	for i := range p.ArchMap {
		p.ArchMap[i].SubArches = []specs.Arch{}
	}
	var kept []*seccomp.Syscall
	for _, s := range p.Syscalls {
		s.Names = slices.DeleteFunc(s.Names, func(name string) bool { return slices.Contains(withheld, name) })
		if len(s.Names) > 0 {
			kept = append(kept, s)
		}
	}
	p.Syscalls = kept
	text, err := json.Marshal(p)
	return string(text), err
})
