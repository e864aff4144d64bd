package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/payload"
)

// The commands, the configuration and the request of docs/evaluations.md, up to where interactive ones begin, work as
// they stand there.
func TestEvaluationCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "cc")
	text, err := os.ReadFile("../../docs/evaluations.md")
	if err != nil {
		t.Fatal(err)
	}
	section, _, found := strings.Cut(string(text), "\n## Interactive")
	blocks := regexp.MustCompile("(?s)```(sh|yaml|json)\n(.*?)```").FindAllStringSubmatch(section, -1)
	if !found || len(blocks) != 9 {
		t.Fatalf("%d blocks", len(blocks))
	}
	scratch, env, told := t.TempDir(), environment(t), false
	for _, b := range blocks {
		switch b[1] {
		case "sh":
			cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+strings.ReplaceAll(b[2], "/tmp/", scratch+"/"))
			cmd.Dir, cmd.Env, cmd.WaitDelay = "../..", env, 5*time.Second
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s\n%s", err, b[2], out)
			}
			if strings.Contains(b[2], "os._exit(0)") { // an honest program, then one that ends before it could be judged
				passed := regexp.MustCompile(`\d of \d cases? passed\n`).FindAllString(string(out), -1)
				if told = len(passed) == 2 && passed[0][0] == '1' && passed[1][0] == '0'; !told {
					t.Errorf("%s", out)
				}
			}
		case "yaml":
			file := filepath.Join(t.TempDir(), "pawl.yaml")
			if err := os.WriteFile(file, []byte(b[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			out, stderr, code := pawl(t, env, "languages", "--config", file)
			if code != exit.OK || !strings.Contains(out, "\nawk ") || !strings.Contains(out, "\nzig ") {
				t.Errorf("exit code %d\n%s%s", code, out, stderr)
			}
		case "json":
			if c, err := payload.Code([]byte(b[2])); err != nil || len(c.Cases) != 2 && c.RerunNearLimit != 2 {
				t.Errorf("%v\n%s", err, b[2])
			}
		}
	}
	if !told {
		t.Error("the example does not tell the program that cheats from the honest one")
	}
}
