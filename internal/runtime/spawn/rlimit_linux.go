package spawn

import "golang.org/x/sys/unix"

// Allowed is value, or the most that a process of ours may have of a resource. Root lifts its own hard limit first, for children that
// have no privilege on the host.
func Allowed(resource int, value uint64) uint64 {
	var own unix.Rlimit
	if err := unix.Getrlimit(resource, &own); err != nil || own.Max >= value {
		return value // where it cannot be read, setting it fails and says so
	}
	if unix.Setrlimit(resource, &unix.Rlimit{Cur: own.Cur, Max: value}) == nil {
		return value
	}
	return own.Max
}

// ownPriority gives what this thread creates a nice value of 0, whatever Pawl itself was started with. An unprivileged Pawl cannot lower
// its own, and its programs then have that.
func ownPriority() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 0) }
