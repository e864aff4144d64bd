//go:build unix && !linux

package process

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
)

const (
	enforcement = "none"
	maxrssUnit  = 1 // bytes
)

// attributes put a program into its own session.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// limitProcess does nothing: another process's limits cannot be set here.
func limitProcess(int, runtime.Limits) {}

// mostStack is the largest stack, which is not set here.
const mostStack = 1 << 30

func withStack(_ runtime.Limits, start func()) { start() }

// groupLives reports whether a process group has members; macOS returns EPERM for a group of zombies.
func groupLives(id int) bool { return unix.Kill(-id, 0) == nil }
