//go:build !linux

package docker

import "golang.org/x/sys/unix"

// signalName is "SIGKILL" for 9, by this system's numbers; empty for a number that is not a signal.
func signalName(n int64) string { return unix.SignalName(unix.Signal(n)) }

// cgroup does not exist here: engines run in a virtual machine.
type cgroup struct{}

func findCgroup(string) *cgroup { return nil }

func (*cgroup) read(int64) reading { return reading{} }

func (*cgroup) last() bool { return false }
