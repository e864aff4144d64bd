#include "textflag.h"

// func vfork() (pid int64)
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-8
	POPQ	R12       // the return address: the child's calls will write over it
	MOVL	$0x4111, DI // CLONE_VM, CLONE_VFORK, SIGCHLD
	XORL	SI, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	MOVL	$56, AX   // clone
	SYSCALL
	PUSHQ	R12
	MOVQ	AX, pid+0(FP)
	RET
