package programtest

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter is the one thread that starts processes. The kernel sends the signal of Pdeathsig when the *thread* ends that has
// started the process, and Go ends threads whenever it likes, so this one is locked to a goroutine that never ends.
var starter = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range work {
			start()
		}
	}()
	return work
})

// Start starts the command like cmd.Start, and has the kernel kill it when this process ends, however that happens.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	err := make(chan error, 1)
	starter() <- func() { err <- cmd.Start() }
	return <-err
}
