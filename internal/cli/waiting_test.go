package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cli/exit"
)

// An execution that no worker can start is reported within seconds, with what would help.
func TestWhatDoesNotStartIsExplained(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server := start(t, env, "server", "--listen", "127.0.0.1:0", "--no-worker")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	url := regexp.MustCompile(`http://127\.\S+`).FindString(server.err.String())
	many := writeFile(t, "many.yaml", "name: many\ntasks:\n"+
		"  a: {foreach: [1, 2, 3], action: code, with: {language: bash, source: \"true\"}}\n  b: {action: sleep, with: {for: 60}}\n")
	for name, args := range map[string][]string{
		"task a":      {"run", many},
		"the program": {"eval", "-l", "bash", writeFile(t, "p.sh", "true\n")},
	} {
		r := start(t, append(env, "PAWL_SERVER="+url), args...)
		within(t, patience, "it says what it waits for", func() bool {
			return strings.Contains(r.err.String(), name+` has not started: no live worker serves queue "default"`)
		})
		if said := strings.Count(r.err.String(), "has not started"); said != 1 || !strings.Contains(r.err.String(), "start a worker") {
			t.Errorf("said %d times:\n%s", said, r.err.String())
		}
		if err := r.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code := r.code(); code != exit.Interrupted {
			t.Errorf("exit code %d\n%s", code, r.err.String())
		}
	}
}
