package pod

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// Process 1 sends SIGTERM to programs, waits for the grace period, and kills them, also after a second order or when the keeper is gone.
func TestGrace(t *testing.T) {
	if os.Getpid() != 1 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGrace$", "-test.v")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skip("pid namespaces are for root: ", err)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	const hears = `trap 'echo cleaned up; exit 3' TERM; echo ready; while :; do sleep 0.01; done`
	const deaf = `trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done`
	for name, c := range map[string]struct {
		script string
		grace  time.Duration
		then   func(frames chan wire.Frame) // after SIGTERM
		said   string
		killed bool
	}{
		"hears":     {hears, time.Hour, nil, "cleaned up", false},
		"deaf":      {deaf, 200 * time.Millisecond, nil, "asked", true},
		"at once":   {hears, 0, nil, "", true},
		"told then": {deaf, time.Hour, func(frames chan wire.Frame) { frames <- wire.Frame{Kind: wire.Kill} }, "asked", true},
		"alone":     {deaf, time.Hour, func(frames chan wire.Frame) { close(frames) }, "asked", true},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", c.script)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan()
			p := &first{frames: make(chan wire.Frame)}
			stop := p.hearKill(&watch{first: p})
			defer stop()
			p.frames <- wire.Frame{Kind: wire.Kill, Offset: int64(c.grace)}
			said := ""
			for lines.Scan() {
				if said = strings.TrimSpace(lines.Text()); c.then != nil {
					c.then(p.frames)
				}
			}
			_ = cmd.Wait()
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); said != c.said || status.Signaled() != c.killed {
				t.Errorf("said %q, ended with %v", said, cmd.ProcessState)
			}
		})
	}
}
