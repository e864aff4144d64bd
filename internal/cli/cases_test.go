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

// The commands, the configuration and the request of docs/evaluations.md, up to the section on interactive ones, work as documented.
func TestEvaluationCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "cc")
	text, err := os.ReadFile("../../docs/evaluations.md")
	if err != nil {
		t.Fatal(err)
	}
	section, _, found := strings.Cut(string(text), "\n## Interactive")
	blocks := regexp.MustCompile("(?s)```(sh|yaml|json)\n(.*?)```").FindAllStringSubmatch(section, -1)
	if !found || len(blocks) != 15 {
		t.Fatalf("%d blocks", len(blocks))
	}
	scratch, env, told := t.TempDir(), environment(t), false
	for _, b := range blocks {
		switch b[1] {
		case "sh":
			cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+strings.ReplaceAll(b[2], "/tmp/", scratch+"/"))
			cmd.Dir, cmd.Env, cmd.WaitDelay = "../..", env, 30*time.Second
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s\n%s", err, b[2], out)
			}
			if strings.Contains(b[2], "/tmp/set.json") && !strings.Contains(string(out), "2 of 2 cases passed") {
				t.Errorf("%s\n%s", b[2], out)
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
			if c, err := payload.Code([]byte(b[2])); err != nil || len(c.Cases) != 2 && c.RerunNearLimit != 2 && len(c.Flags) == 0 {
				t.Errorf("%v\n%s", err, b[2])
			}
		}
	}
	if !told {
		t.Error("the example does not tell the program that cheats from the honest one")
	}
}

// pawl get evaluations --cases shows how many cases passed and which did not.
func TestGetCases(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	env, dir := environment(t), t.TempDir()
	for name, text := range map[string]string{"a.in": "1\n", "a.out": "2\n", "b.in": "2\n", "b.out": "5\n", "double.sh": "read n; echo $((n * 2))\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, errs, code := pawl(t, env, "eval", "--cases", dir, filepath.Join(dir, "double.sh")); code == exit.OK {
		t.Fatalf("it passed\n%s", errs)
	}
	out, errs, code := pawl(t, env, "get", "evaluations", "--cases")
	if code != exit.OK || !regexp.MustCompile(`CASES +NOT PASSED\n.* 1 of 2 +b: wrong_answer\n`).MatchString(out) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if out, _, _ := pawl(t, env, "get", "evaluations"); strings.Contains(out, "CASES") {
		t.Errorf("cases that were not asked for\n%s", out)
	}
	if out, _, _ := pawl(t, env, "get", "evaluations", "--cases", "-o", "json"); !strings.Contains(strings.Join(strings.Fields(out), ""), `{"name":"b","verdict":"wrong_answer"}`) {
		t.Errorf("%s", out)
	}
}
