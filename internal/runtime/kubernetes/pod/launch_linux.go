package pod

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// The process that becomes the program reads its order from descriptor 3. It reports a failure on descriptor 4,
// which is closed when the program is executed.
const (
	orderFD  = 3
	answerFD = 4
)

// launch starts the program. It executes the helper once more, so that limits and the system call filter are set in the
// program's own process and not here.
func (p *first) launch() (pid int, failure *wire.Failure) {
	host := func(doing string, err error) (int, *wire.Failure) {
		return 0, &wire.Failure{Text: doing + ": " + err.Error()}
	}
	orderOut, orderIn, err := os.Pipe()
	if err != nil {
		return host("make a pipe", err)
	}
	answerOut, answerIn, err := os.Pipe()
	if err != nil {
		return host("make a pipe", err)
	}
	defer answerOut.Close()
	pid, err = syscall.ForkExec(p.self, []string{"pawl-pod", "become"}, &syscall.ProcAttr{
		Dir: "/", Env: environment(p.command.Env),
		Files: []uintptr{p.pipes[0].Fd(), p.pipes[1].Fd(), p.pipes[2].Fd(), orderOut.Fd(), answerIn.Fd()},
	})
	_, _ = orderOut.Close(), answerIn.Close()
	if err != nil {
		_ = orderIn.Close()
		return host("start a process", err)
	}
	err = wire.WriteMessage(orderIn, wire.Order, &wire.Launch{Command: p.command, Dir: p.dir, Own: threads()})
	_ = orderIn.Close()
	said, readErr := wire.Read(answerOut)
	if err == nil && errors.Is(readErr, io.EOF) {
		return pid, nil
	}
	_, _ = unix.Wait4(pid, nil, 0, nil)
	why := new(wire.Failure)
	if readErr == nil {
		readErr = said.Decode(why)
	}
	if readErr != nil {
		return host("start the program", fmt.Errorf("the process ended early: %w", errors.Join(err, readErr)))
	}
	return 0, why
}

// environment is the image's, without the variables that the kubelet adds, overridden by the run's own.
func environment(own []string) []string {
	set := make(map[string]bool, len(own))
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		set[name] = true
	}
	all := own
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !set[name] && !strings.HasPrefix(name, "KUBERNETES_") && name != "HOSTNAME" {
			all = append(all, kv)
		}
	}
	return all
}

// Become replaces this process with the program. It returns only when that fails.
func Become() {
	answer := os.NewFile(answerFD, "answer")
	unix.CloseOnExec(answerFD)
	why := become()
	_ = wire.WriteMessage(answer, wire.Failed, why)
	os.Exit(126)
}

func become() *wire.Failure {
	host := func(err error) *wire.Failure { return &wire.Failure{Text: err.Error()} }
	var l wire.Launch
	orders := os.NewFile(orderFD, "order")
	order, err := wire.Read(orders)
	if err == nil {
		err = order.Decode(&l)
	}
	if err != nil {
		return host(err)
	}
	_ = orders.Close()
	if err := os.Chdir(l.Dir); err != nil {
		return &wire.Failure{Spec: true, Text: fmt.Sprintf("working directory %q: %v; name one that the image has", l.Dir, err)}
	}
	path, err := lookUp(l.Command.Argv[0], os.Getenv("PATH"))
	if err != nil {
		return &wire.Failure{Spec: true, Text: fmt.Sprintf("program %q: %v; name one that the image has, and the image's entrypoint if you rely on it", l.Command.Argv[0], err)}
	}
	// When memory runs out the kernel kills the program and not process 1, which reports it.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	environ := os.Environ()
	runtime.LockOSThread() // the filter belongs to this thread, which executes the program
	if err := limits(&l.Command, l.Own); err != nil {
		return host(err)
	}
	if err := confine(l.Command.Network); err != nil {
		return host(err)
	}
	err = syscall.Exec(path, l.Command.Argv, environ)
	return &wire.Failure{Spec: true, Text: fmt.Sprintf("execute %q: %v; name a program that the image has", l.Command.Argv[0], err)}
}

// lookUp finds a program as a shell does.
func lookUp(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	err := error(fs.ErrNotExist)
	for _, dir := range filepath.SplitList(path) {
		dir = cmp.Or(dir, ".")
		full := filepath.Join(dir, name)
		switch found := executable(full); {
		case found == nil:
			return full, nil
		case !errors.Is(found, fs.ErrNotExist):
			err = found
		}
	}
	return "", fmt.Errorf("not in PATH=%s: %w", path, err)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return errors.Unwrap(err)
	case !info.Mode().IsRegular():
		return unix.EACCES
	}
	return unix.Access(path, unix.X_OK)
}
