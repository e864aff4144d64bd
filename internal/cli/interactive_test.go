package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// typing is a pawl in the background with a user at its keyboard.
func typing(t *testing.T, env []string, args ...string) (*running, io.WriteCloser) {
	t.Helper()
	need(t, "python3")
	r := &running{Cmd: exec.CommandContext(t.Context(), filepath.Join(bin, "pawl"), args...)}
	r.Env, r.Stdout, r.Stderr = env, &r.out, &r.err
	keyboard, err := r.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = keyboard.Close()
		if r.ProcessState == nil {
			_ = r.Process.Kill()
			_ = r.Wait()
		}
	})
	return r, keyboard
}

func write(t *testing.T, to io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
}

// sees waits until a pawl has forwarded exactly want.
func (r *running) sees(t *testing.T, want string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("it has passed on %q and said %q, want %q", r.out.String(), r.err.String(), want)
		}
	}()
	within(t, patience, "it passes on "+want, func() bool { return r.out.String() == want })
}

const counting = "import sys\nprint('ready? ', end='', flush=True)\nfor n, line in enumerate(sys.stdin, 1): print(n, line.strip())\nprint('over')\n"

// A user who attaches sees everything and can continue to type; when the user leaves, the execution continues.
func TestAttach(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server := start(t, env, "server", "--listen", "127.0.0.1:0")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	id, errs, code := pawl(t, env, "eval", "-i", writeFile(t, "count.py", counting), "--detach")
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	id = strings.TrimSpace(id)

	first, keyboard := typing(t, env, "attach", id)
	first.sees(t, "ready? ")
	write(t, keyboard, "one\n")
	first.sees(t, "ready? 1 one\n")
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := first.code(); code != exit.Interrupted {
		t.Errorf("who left: exit code %d: %s", code, first.err.String())
	}
	second, keyboard := typing(t, env, "attach", id)
	second.sees(t, "ready? 1 one\n")
	write(t, keyboard, "two\n")
	second.sees(t, "ready? 1 one\n2 two\n")
	third, other := typing(t, env, "attach", id, "--quiet")
	write(t, other, "three\n")
	third.sees(t, "3 three\n")
	second.sees(t, "ready? 1 one\n2 two\n3 three\n")
	write(t, keyboard, "four\n") // after what the third has typed meanwhile
	third.sees(t, "3 three\n4 four\n")
	if !strings.Contains(second.err.String(), "another terminal types, too") {
		t.Errorf("the second has not been told of the third: %s", second.err.String())
	}
	if err := keyboard.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*running{second, third} {
		if code := r.code(); code != exit.OK || !strings.HasSuffix(r.out.String(), "4 four\nover\n") {
			t.Errorf("exit code %d, %q: %s", code, r.out.String(), r.err.String())
		}
	}
	if out, errs, code := pawl(t, env, "attach", id); code != exit.OK || !strings.HasSuffix(out, "over\n") {
		t.Errorf("attached after the end: exit code %d, %q %s", code, out, errs)
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	server.code()
}

// Ctrl-C kills a program that waits for input.
func TestInterruptWhileTyping(t *testing.T) {
	t.Parallel()
	env := environment(t)
	r, keyboard := typing(t, env, "eval", "-i", writeFile(t, "count.py", counting))
	r.sees(t, "ready? ")
	write(t, keyboard, "one\n")
	r.sees(t, "ready? 1 one\n")
	if err := r.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.code(); code != exit.Interrupted {
		t.Errorf("exit code %d: %s", code, r.err.String())
	}
	if all := executions(t, env); len(all) != 1 || all[0].Status != api.Cancelled {
		t.Errorf("%+v", all)
	}
}

// When the process that had the engine is gone, the typing command takes over, and the program reads all its input again.
func TestTypingTakesOver(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server := start(t, env, "server", "--listen", "127.0.0.1:0")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	r, keyboard := typing(t, env, "eval", "-i", writeFile(t, "count.py", counting))
	r.sees(t, "ready? ")
	write(t, keyboard, "one\n")
	r.sees(t, "ready? 1 one\n")
	if err := server.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	server.code()
	write(t, keyboard, "two\n")
	r.sees(t, "ready? 1 one\nready? 1 one\n2 two\n")
	if err := keyboard.Close(); err != nil {
		t.Fatal(err)
	}
	if code := r.code(); code != exit.OK || !strings.HasSuffix(r.out.String(), "2 two\nover\n") || !strings.Contains(r.err.String(), "attempt 2 begins") {
		t.Errorf("exit code %d, %q: %s", code, r.out.String(), r.err.String())
	}
}
