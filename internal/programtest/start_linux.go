package programtest

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter is the thread that starts all processes. The kernel sends the signal of Pdeathsig when the *thread* that started
// the process ends, and Go may end threads at any time, so this one is locked to a goroutine that never ends.
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

// Start starts the command like cmd.Start, and makes the kernel kill it when this process ends for any reason.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	err := make(chan error, 1)
	starter() <- func() { err <- cmd.Start() }
	return <-err
}
