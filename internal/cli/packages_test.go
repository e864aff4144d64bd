package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cli/exit"
)

// The configuration and the commands of docs/evaluations.md about packages work as documented.
func TestPackageCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	blocks := documented(t, "evaluations.md", "Packages", 3)
	scratch, err := os.MkdirTemp("", "pawl-packages-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(scratch) })
	if err := os.Chmod(scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	sci := filepath.Join(scratch, "sci")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", sci).CombinedOutput(); err != nil {
		lacks(t, "Python's module venv (%v %s)", err, out)
	}
	file := filepath.Join(scratch, "pawl.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(blocks[0], "/opt/sci", sci)), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(environment(t), "PAWL_CONFIG="+file)
	out, stderr, code := pawl(t, env, "languages")
	if code != exit.OK || !strings.Contains(out, "\npython-system ") || !strings.Contains(out, sci+"/bin/python3") {
		t.Errorf("exit code %d\n%s%s", code, out, stderr)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+strings.ReplaceAll(blocks[1], "/tmp/", scratch+"/"))
	cmd.Env, cmd.WaitDelay = env, 30*time.Second
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != sci {
		t.Errorf("%v %s, want %s", err, out, sci)
	}
	warm := strings.ReplaceAll(strings.ReplaceAll(blocks[2], "/opt/sci", sci), "numpy", "json") // sci has no numpy
	if err := os.WriteFile(file, []byte(warm), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, stderr, code := pawl(t, env, "languages"); code != exit.OK || !strings.Contains(out, "\npython ") || !strings.Contains(out, sci+"/bin/python3") {
		t.Errorf("warm: exit code %d\n%s%s", code, out, stderr)
	}
}
