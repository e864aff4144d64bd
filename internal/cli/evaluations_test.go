package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The commands of docs/evaluations.md about interactive evaluations work as they stand there.
func TestInteractiveCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl")
	text, err := os.ReadFile("../../docs/evaluations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Interactive")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := readmeBlock.FindAllStringSubmatch(section, -1)
	if !found || len(blocks) != 2 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	scratch, port := t.TempDir(), freePort(t)
	for i, want := range []string{"guess 1? guess 2? right\n", "got hello"} {
		script := strings.NewReplacer("/tmp/", scratch+"/", "7411", port).Replace(blocks[i][2])
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -meuo pipefail\n"+script)
		cmd.Env, cmd.WaitDelay = environment(t), 5*time.Second
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v\n%s\n%s\nwant %q", err, script, out, want)
		}
	}
}
