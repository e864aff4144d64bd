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

// limitProcess bounds CPU time, file size and stack of each process by itself, so that they do not depend on the shell that has started
// Pawl, and makes the kernel choose it rather than Pawl, whose low score it inherits, when the machine has no memory left. It is best
// effort: what a program does in the first microseconds is not bounded, and trusted programs do not race for that.
func limitProcess(pid int, l runtime.Limits) {
	seconds := uint64(math.Ceil(l.EndCPU().Seconds()))
	for resource, limit := range map[int]unix.Rlimit{
		unix.RLIMIT_CPU:   {Cur: seconds, Max: seconds + 1},
		unix.RLIMIT_FSIZE: {Cur: uint64(l.Disk), Max: uint64(l.Disk)},
		unix.RLIMIT_CORE:  {},
		unix.RLIMIT_STACK: {Cur: min(uint64(l.Memory), mostStack), Max: unix.RLIM_INFINITY},
	} {
		_ = unix.Prlimit(pid, resource, &limit, nil) // the program may have ended already
	}
	_ = os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"), []byte("1000"), 0)
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
