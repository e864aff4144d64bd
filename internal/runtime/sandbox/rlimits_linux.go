package sandbox

import (
	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
	"github.com/pawl-run/pawl/internal/runtime/spawn"
)

// The largest stacks. A thread reserves as much address space as the limit on the stack says: with 1 GiB the threads of
// a program fit into what the kernel lets it reserve, and where only RLIMIT_DATA bounds memory, which counts them, 16
// MiB leave room for 64 threads and more.
const (
	mostStack        = 1 << 30
	mostStackWatched = 16 << 20
)

// untouched is how much more address space than twice its memory limit a process may have where no cgroup counts what it touches.
// RLIMIT_DATA counts what is merely reserved: 512 MiB for code by Node.js from version 24 on, and the stacks of 11 threads; 620 MiB by
// a JVM with stacks of 64 MiB.
const untouched = 1 << 30

// rlimits returns the limits that every process of a run has by itself. All of them are set, so that a verdict does not
// depend on the shell that has started Pawl; none is above what we may give.
func rlimits(l runtime.Limits, cgroups *cgroups) []pid1.Rlimit {
	limits := []pid1.Rlimit{
		// A limit of 0 would not keep the kernel from handing a crash to a core_pattern that is a pipe; 1 does (the kernel's fs/coredump.c).
		{Resource: unix.RLIMIT_CORE, Value: 1},
		{Resource: unix.RLIMIT_NOFILE, Value: 4096},
		{Resource: unix.RLIMIT_MEMLOCK, Value: 1 << 20},
		{Resource: unix.RLIMIT_MSGQUEUE, Value: 0},
		{Resource: unix.RLIMIT_SIGPENDING, Value: 4096},
		{Resource: unix.RLIMIT_RTPRIO, Value: 0},
		{Resource: unix.RLIMIT_NICE, Value: 0},
		{Resource: unix.RLIMIT_FSIZE, Value: unix.RLIM_INFINITY}, // the tmpfs is the limit
		{Resource: unix.RLIMIT_AS, Value: unix.RLIM_INFINITY},
		{Resource: unix.RLIMIT_LOCKS, Value: unix.RLIM_INFINITY},
		// A backstop; the host's budget is exact and counts all processes together.
		{Resource: unix.RLIMIT_CPU, Value: uint64(l.EndCPU().Seconds()) + 2},
	}
	if cgroups == nil {
		limits = append(limits,
			// The init is the same user's task in the same namespace.
			pid1.Rlimit{Resource: unix.RLIMIT_NPROC, Value: uint64(l.Pids) + initTasks},
			// The watchdog is exact; this is what one process can take between two of its looks.
			pid1.Rlimit{Resource: unix.RLIMIT_DATA, Value: 2*uint64(l.Memory) + untouched},
			pid1.Rlimit{Resource: unix.RLIMIT_STACK, Value: uint64(min(l.Memory, mostStackWatched))},
		)
	} else {
		limits = append(limits,
			pid1.Rlimit{Resource: unix.RLIMIT_NPROC, Value: unix.RLIM_INFINITY},
			pid1.Rlimit{Resource: unix.RLIMIT_DATA, Value: unix.RLIM_INFINITY},
			pid1.Rlimit{Resource: unix.RLIMIT_STACK, Value: uint64(min(l.Memory, mostStack))},
		)
	}
	for i, limit := range limits {
		limits[i].Value = allowed(int(limit.Resource), limit.Value)
	}
	return limits
}

// allowed is value, or the most that a process of ours may have. Root lifts its own hard limit first: the init has no
// privilege on the host.
func allowed(resource int, value uint64) uint64 {
	var own unix.Rlimit
	if err := unix.Getrlimit(resource, &own); err != nil || own.Max >= value {
		return value // where it cannot be read, the init says what it cannot set
	}
	if unix.Setrlimit(resource, &unix.Rlimit{Cur: own.Cur, Max: value}) == nil {
		return value
	}
	return own.Max
}

// ownPriority gives what the thread creates a nice value of 0, whatever Pawl itself was started with. An unprivileged
// Pawl cannot lower its own, and its programs then have that.
func ownPriority(thread *spawn.Thread) {
	thread.Do(func() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 0) })
}
