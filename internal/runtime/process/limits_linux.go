package process

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/spawn"
)

const (
	enforcement = "rlimit"
	maxrssUnit  = 1 << 10 // kilobytes
)

// mostStack is the largest stack: threads reserve as much address space.
const mostStack = 1 << 30

// attributes put a program into a session of its own and let it die with Pawl.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// limitProcess sets limits of each process by itself, so that they do not depend on the shell that has started Pawl, and makes the kernel
// choose it rather than Pawl, whose low score it inherits, when the machine has no memory left. Trusted programs may raise those that
// are for accidents, as far as Pawl itself could. It is best effort: what a program does in the first microseconds is not bounded, and
// trusted programs do not race for that.
func limitProcess(pid int, l runtime.Limits) {
	seconds := uint64(math.Ceil(l.EndCPU().Seconds()))
	set := map[int]unix.Rlimit{
		unix.RLIMIT_CPU:   {Cur: seconds, Max: seconds + 1},
		unix.RLIMIT_FSIZE: {Cur: uint64(l.Disk), Max: uint64(l.Disk)},
		unix.RLIMIT_CORE:  {},
	}
	for resource, most := range map[int]uint64{
		unix.RLIMIT_STACK: uint64(l.StackOf(mostStack)), unix.RLIMIT_NOFILE: 4096, unix.RLIMIT_SIGPENDING: 4096,
		unix.RLIMIT_AS: unix.RLIM_INFINITY, unix.RLIMIT_DATA: unix.RLIM_INFINITY,
	} {
		soft, own := spawn.Allowed(resource, most), unix.Rlimit{}
		if unix.Getrlimit(resource, &own) == nil {
			set[resource] = unix.Rlimit{Cur: soft, Max: max(soft, own.Max)}
		}
	}
	for resource, limit := range set {
		_ = unix.Prlimit(pid, resource, &limit, nil) // the program may have ended already
	}
	_ = os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"), []byte("1000"), 0)
}

// withStack starts a process by start with the limit on its stack: where the kernel puts the rest of its memory depends on that. Go's
// threads do not look at the limit, which is Pawl's own meanwhile.
func withStack(l runtime.Limits, start func()) {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_STACK, &own) != nil {
		start()
		return
	}
	soft := spawn.Allowed(unix.RLIMIT_STACK, uint64(l.StackOf(mostStack)))
	_ = unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: soft, Max: max(soft, own.Max)})
	start()
	_ = unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: own.Cur, Max: max(soft, own.Max)})
}

// groupLives says whether a process group has members that are not zombies. Orphans are reaped by the system's init,
// some of which take their time; what is dead is dead.
func groupLives(id int) bool {
	if unix.Kill(-id, 0) != nil {
		return false
	}
	group := []byte(strconv.Itoa(id))
	entries, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, entry := range entries {
		text, err := os.ReadFile(entry)
		if err != nil {
			continue
		}
		// After the command in parentheses: state, parent, group.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) > 2 && bytes.Equal(fields[2], group) && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return true
		}
	}
	return false
}
