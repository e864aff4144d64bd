package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The commands of docs/api.md work as they stand there.
func TestAPICommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl")
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := readmeBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	script := strings.NewReplacer("/tmp/", t.TempDir()+"/", "7411", freePort(t)).Replace(blocks[0][2])
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -meuo pipefail\n"+script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = "../..", environment(t), 5*time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	for _, want := range []string{`"verdict":"ok"`, `42\n`, "event: end", `"status":"completed","output":{`, `"fish":2`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
