// Code generated from golang.org/x/sys/unix by go generate. DO NOT EDIT.

package sandbox

import "golang.org/x/sys/unix"

// nativeArch is the audit architecture of system calls that this binary makes.
const nativeArch = unix.AUDIT_ARCH_AARCH64

// archSyscalls are the system calls that the other architecture does not have.
var archSyscalls = map[string]uint32{
	"arch_specific_syscall": unix.SYS_ARCH_SPECIFIC_SYSCALL,
}
