package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of the documents about other evaluators' clients work as documented.
func TestCompatDocuments(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl")
	for document, want := range map[string]string{
		"leave-sandboxfusion.md": `"stdout":"42\n"`,
		"leave-open-instruct.md": `"results":[1,0]`,
		"leave-piston.md":        `"output":"42\n"`,
		"leave-judge0.md":        `"description":"Accepted"`,
	} {
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			if out := followed(t, documented(t, document, "", 1)[0], t.TempDir(), programtest.FreePort(t)); !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		})
	}
}
