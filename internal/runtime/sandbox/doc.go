// Package sandbox runs untrusted programs on Linux: each in its own namespaces, with the host's toolchains read-only, without a network,
// capabilities or set-user-id programs, behind a seccomp filter and within cgroup limits. It is pure Go and needs neither root nor a
// daemon; where the host cannot isolate, it refuses to run and says what is missing.
//
// A run is a child of the zygote, a small process that has executed this binary once. The child becomes process 1 of the sandbox (package
// pid1), builds the file system and starts the program, which drops every privilege before it is executed and is never process 1 itself.
// The host keeps four handles: a control socket, the pipes, a pidfd and the run's cgroups. How a run ended is decided only from what the
// host records and counts on its side of these handles.
package sandbox

import (
	"time"
)

// Name is the backend's name for users.
const Name = "sandbox"

// Options configure New. The zero value is ready to use.
type Options struct {
	// WithoutCgroups limits runs with rlimits and the watchdog even where cgroups are available.
	WithoutCgroups bool
	// Warm is the number of sandboxes that are built in advance, so that a run need not wait for one; 0 is none. The number of runs that
	// start at the same time is enough. Each holds about 0.5 MB of memory and five descriptors, and is used for one run only.
	Warm int
	// KeepWarm is how long they are kept while no run starts; the next start fills the pool again. 0 is ten minutes.
	KeepWarm time.Duration
	// PinCPUs gives each run its own processors, as many as its limit on processors or else one, and no program can change that.
	// Runs share processors only when there are not enough; their results then say so.
	PinCPUs bool
	// TemplateFailed is called with the reason why a template could not be made, so that programs are executed; nil: no calls.
	TemplateFailed func(error)
}

const defaultKeepWarm = 10 * time.Minute
