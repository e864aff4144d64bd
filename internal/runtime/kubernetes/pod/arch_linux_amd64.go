package pod

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_X86_64

var withheldHere = []uint32{unix.SYS_MODIFY_LDT}
