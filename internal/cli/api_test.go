package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/api.md work as documented.
func TestAPICommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl")
	out := followed(t, documented(t, "api.md", "", 1)[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{`"verdict":"ok"`, `42\n`, "event: end", `"status":"completed","output":{`, `"fish":2`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
