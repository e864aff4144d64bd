package programtest

import (
	"bufio"
	"fmt"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// Process is a program that a test has started. It is killed at the end of the test.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // its exit error; written before ended is closed
}

// Announced starts pawl with arguments, copies its standard error to the output of the test, and waits for a line that matches. It
// returns the last group of the match.
func Announced(t testing.TB, cmd *exec.Cmd, announcement *regexp.Regexp) (*Process, string) {
	t.Helper()
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if m := announcement.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case found <- m[len(m)-1]:
				default:
				}
			}
			fmt.Fprintln(t.Output(), cmd.Args[1]+":", lines.Text())
		}
		p.err = cmd.Wait()
	}()
	t.Cleanup(p.Kill)
	select {
	case text := <-found:
		return p, text
	case <-p.ended:
		t.Fatalf("pawl %s ended: %v", cmd.Args[1], p.err)
	case <-time.After(3 * time.Minute):
		t.Fatalf("pawl %s does not say that it works", cmd.Args[1])
	}
	return nil, ""
}

// Kill ends the process as a power cut would.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second): // one of its child processes holds its standard error
	}
}

// Signal sends the process a signal.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Wait waits for the end of the process, and returns its exit error.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}
