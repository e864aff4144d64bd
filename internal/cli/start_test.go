package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The three paths of docs/start.md work as documented, each in its own state directory.
func TestStartDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "python3")
	for _, path := range []struct {
		title  string
		blocks int
		want   []string
	}{
		{"Path 1", 3, []string{"42\n", "3 of 3 cases passed", "pass@1   0.5000\npass@2   1.0000\n"}},
		{"Path 2", 4, []string{`"rule":"remedy"`, "Clean the disk of db1?", "is unanswered", "is answered by ada", "kept 7 days, as ada agreed"}},
		{"Path 3", 2, []string{`"existing":true`, "resuming 1 unfinished execution", "1 of 1 have ended: 1 ok", "completed\n"}},
	} {
		t.Run(path.title, func(t *testing.T) {
			t.Parallel()
			commands := "export PAWL_LISTEN=127.0.0.1:7411\n" + strings.Join(documented(t, "start.md", path.title, path.blocks), "")
			out := followed(t, commands, t.TempDir(), programtest.FreePort(t))
			for _, want := range path.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}
