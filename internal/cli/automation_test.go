package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/automation.md work as documented.
func TestAutomationCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl", "sed")
	out := followed(t, documented(t, "automation.md", "", 3)[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"rule clean-disk@1 registered", "it was emitted before under this key", "+ clean-disk: it has started ex_",
		`- clean-disk: its condition does not hold: signal.data.severity == "page" is false; signal.data.severity is "warn"`,
		"unlike the version in force", "is paused and starts nothing: the disks are being replaced", "it would run for 1", "it has run for 1", `"signal":"sg_`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// An alert, a person and a remedy, with a server that is killed while the question is open.
func TestRemediationAsDocumented(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl", "grep")
	followed(t, documented(t, "automation.md", "", 3)[1], t.TempDir(), programtest.FreePort(t))
}

// Signals that a window gathers, and a rule that is fixed and retried.
func TestReadingsAsDocumented(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "grep", "sed")
	followed(t, documented(t, "automation.md", "", 3)[2], t.TempDir(), programtest.FreePort(t))
}
