package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/evaluations.md about interactive evaluations work as documented.
func TestInteractiveCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl")
	blocks := documented(t, "evaluations.md", "Interactive", 2)
	scratch, port := t.TempDir(), programtest.FreePort(t)
	for i, want := range []string{"guess 1? guess 2? right\n", "got hello"} {
		if out := followed(t, blocks[i], scratch, port); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
