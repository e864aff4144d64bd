package sandbox

import (
	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
	"github.com/pawl-run/pawl/internal/runtime/spawn"
)

// The largest stacks. A thread reserves as much address space as the stack limit: with 1 GiB a program's threads fit into what the kernel
// lets it reserve, and where only RLIMIT_DATA bounds memory, which counts them, 16 MiB leave room for 64 threads and more.
const (
	mostStack        = 1 << 30
	mostStackWatched = 16 << 20
)

// untouched is by how much a process's address space may exceed twice its memory limit where no cgroup counts the memory that it
// touches. RLIMIT_DATA also counts memory that is only reserved: 512 MiB for code by Node.js from version 24 on, and the stacks of 11
// threads; 620 MiB by a JVM with stacks of 64 MiB.
const untouched = 1 << 30

func stackOf(l runtime.Limits, cgroups *cgroups) int64 {
	if cgroups == nil {
		return l.StackOf(mostStackWatched)
	}
	return l.StackOf(mostStack)
}

// rlimits returns the limits of each single process of a run. All of them are set, so that a verdict does not depend on
// the shell that started Pawl; none exceeds what Pawl may set.
func rlimits(l runtime.Limits, cgroups *cgroups) []pid1.Rlimit {
	limits := []pid1.Rlimit{
		// With a limit of 0 the kernel would still hand a crash to a core_pattern that is a pipe; with 1 it does not (the kernel's
		// fs/coredump.c).
		{Resource: unix.RLIMIT_CORE, Value: 1},
		{Resource: unix.RLIMIT_NOFILE, Value: 4096},
		{Resource: unix.RLIMIT_STACK, Value: uint64(stackOf(l, cgroups))},
		{Resource: unix.RLIMIT_MEMLOCK, Value: 1 << 20},
		{Resource: unix.RLIMIT_MSGQUEUE, Value: 0},
		{Resource: unix.RLIMIT_SIGPENDING, Value: 4096},
		{Resource: unix.RLIMIT_RTPRIO, Value: 0},
		{Resource: unix.RLIMIT_NICE, Value: 0},
		{Resource: unix.RLIMIT_FSIZE, Value: unix.RLIM_INFINITY}, // the tmpfs is the limit
		{Resource: unix.RLIMIT_AS, Value: unix.RLIM_INFINITY},
		{Resource: unix.RLIMIT_LOCKS, Value: unix.RLIM_INFINITY},
		// This is a backstop; the host's CPU limit is exact and counts all processes together.
		{Resource: unix.RLIMIT_CPU, Value: uint64(l.EndCPU().Seconds()) + 2},
	}
	if cgroups == nil {
		limits = append(limits,
			// The init is a task of the same user in the same namespace.
			pid1.Rlimit{Resource: unix.RLIMIT_NPROC, Value: uint64(l.Pids) + initTasks},
			// The watchdog is exact; this bounds what one process can allocate between two of its readings.
			pid1.Rlimit{Resource: unix.RLIMIT_DATA, Value: 2*uint64(l.Memory) + untouched},
		)
	} else {
		limits = append(limits,
			pid1.Rlimit{Resource: unix.RLIMIT_NPROC, Value: unix.RLIM_INFINITY},
			pid1.Rlimit{Resource: unix.RLIMIT_DATA, Value: unix.RLIM_INFINITY},
		)
	}
	for i, limit := range limits {
		limits[i].Value = spawn.Allowed(int(limit.Resource), limit.Value)
	}
	return limits
}
