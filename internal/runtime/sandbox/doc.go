// Package sandbox runs untrusted programs on Linux: each in namespaces of its own, with the host's toolchains read-only,
// without a network, capabilities or set-user-id programs, behind a seccomp filter and within cgroup limits. It is pure
// Go and needs neither root nor a daemon; where the host cannot isolate, it refuses and says what is missing.
//
// A run is a child of the zygote, a small process that has executed this binary once. The child becomes process 1 of the sandbox (package
// pid1), builds the file system and starts the program, which gives up every privilege before and is never process 1 itself. The host keeps
// four handles: a control socket, the pipes, a pidfd and the run's cgroups. Everything that decides how a run ended is recorded or counted
// on the host's side of them.
package sandbox

import (
	"time"
)

// Name is what users call this backend.
const Name = "sandbox"

// Options configure New. The zero value is ready to use.
type Options struct {
	// WithoutCgroups limits with rlimits and the watchdog even where cgroups could be had.
	WithoutCgroups bool
	// Warm is how many sandboxes are kept built ahead, so that a run need not wait for one; 0 is none. As many as runs
	// start at once are enough. Each holds about 0.5 MB of memory and five descriptors, and is used for one run only.
	Warm int
	// KeepWarm is how long they are kept when no run starts; the next start fills the pool again. 0 is ten minutes.
	KeepWarm time.Duration
	// PinCPUs gives each run processors of its own, as many as its limit on them says or else one, and no program can change that.
	// Runs share processors only when there are not enough of them, which their results say.
	PinCPUs bool
	// TemplateFailed is told why a template cannot be had, so that programs are executed; nil: nobody is.
	TemplateFailed func(error)
}

const defaultKeepWarm = 10 * time.Minute
