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

// mostStack is the largest stack: threads reserve that much address space.
const mostStack = 1 << 30

// attributes put a program into its own session and end it when Pawl dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// limitProcess sets the limits of each single process, so that they do not depend on the shell that started Pawl, and makes the kernel
// choose the program rather than Pawl, whose low score it inherits, when memory runs out. Trusted programs may raise the limits that only
// guard against accidents, as far as Pawl itself could. The limits are best effort: they do not apply in a program's first microseconds,
// and trusted programs do not exploit that.
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

// withStack starts a process with the limit on its stack: the kernel lays out the rest of its memory by that limit. Pawl itself has
// that limit meanwhile; Go's threads ignore it.
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

// groupLives reports whether a process group has members that are not zombies. The system's init reaps orphans, which can take some time.
func groupLives(id int) bool {
	if unix.Kill(-id, 0) != nil {
		return false
	}
	group := []byte(strconv.Itoa(id))
	entries, _ := os.ReadDir("/proc") // filepath.Glob would list the 50 files of each process as well
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
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
