package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cli/instance"
)

// A local server listens on no address, lets commands of the same user use its engine, and ends by itself after the last has left.
func TestLocalServer(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	env := environment(t)
	dir := filepath.Join(t.TempDir(), "state")
	var errs strings.Builder
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "pawl"), "server", "--local", "--state-dir", dir)
	cmd.Env, cmd.Stderr = env, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for instance.ReadOwner(dir).Address == "" {
		if time.Since(begun) > time.Minute {
			t.Fatalf("no address after a minute: %s", errs.String())
		}
		if err := instance.WaitFor(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	// This is longer than the server lingers: it must stay for the command that has joined.
	program := filepath.Join(t.TempDir(), "program.sh")
	if err := os.WriteFile(program, []byte("sleep 4; echo here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, said, code := pawl(t, env, "eval", "--state-dir", dir, program)
	if out != "here\n" || code != 0 || strings.Contains(said, announced) {
		t.Errorf("pawl eval wrote %q and %q, exit code %d", out, said, code)
	}
	if err := cmd.Wait(); err != nil || strings.Contains(errs.String(), "serving on") {
		t.Errorf("the server ended with %v: %s", err, errs.String())
	}
}

func TestLocalServerHasNoAddress(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--listen=127.0.0.1:0", "--no-worker"} {
		if _, said, code := pawl(t, environment(t), "server", "--local", flag); code != 2 || !strings.Contains(said, "leave --listen and --no-worker out") {
			t.Errorf("%s: %q, exit code %d", flag, said, code)
		}
	}
}
