package spawn

import "golang.org/x/sys/unix"

// Allowed is value, or the most of a resource that a child of this process may have. Root raises its own hard limit first, for
// children without privileges on the host.
func Allowed(resource int, value uint64) uint64 {
	var own unix.Rlimit
	if err := unix.Getrlimit(resource, &own); err != nil || own.Max >= value {
		return value // if the limit cannot be read, setting it fails with an error
	}
	if unix.Setrlimit(resource, &unix.Rlimit{Cur: own.Cur, Max: value}) == nil {
		return value
	}
	return own.Max
}

// ownPriority gives the processes that this thread creates a nice value of 0, whatever Pawl's own value. An unprivileged Pawl cannot
// lower its own value, and its programs then inherit it.
func ownPriority() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 0) }
