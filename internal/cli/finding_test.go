package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/finding.md work as documented, with the documented output.
func TestFindingDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "sed")
	out := followed(t, documented(t, "finding.md", "", 1)[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		`1:1: ?where: no definition declares input.custmer searchable (did you mean "input.customer"?)`,
		`"column":10`, `did you mean \"failed\"?`, "would be done to 1 of 1; nothing was changed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	_, list, _ := strings.Cut(out, "VERDICT")
	if n := strings.Count(out, "\nex_"); n < 3 || list == out {
		t.Errorf("%d rows begin with an id\n%s", n, out)
	}
}
