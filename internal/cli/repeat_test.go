package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/repeat.md work as documented, with the documented output.
func TestRepeatDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl")
	blocks := documented(t, "repeat.md", "", 1)
	out := followed(t, blocks[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"round 3 of at most 5\n", "    round 1  completed", "    round 3  completed", "ask[2]",
		"not_reached: tasks.ask.repeat.until: ${{ output.stdout.trim() == \"ready\" }} did not hold after round 5 of at most 5",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
