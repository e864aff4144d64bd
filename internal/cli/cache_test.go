package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/cache.md work as documented, with the documented output.
func TestCacheDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl")
	blocks := documented(t, "cache.md", "", 1)
	out := followed(t, blocks[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{"  cached\n", "outcome of ex_", ": it did not run\n", "cached: outcome of ex_"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	numbers := regexp.MustCompile(`(?m)^a number: (\d+)$`).FindAllStringSubmatch(out, -1)
	if len(numbers) != 3 || numbers[0][1] != numbers[1][1] || strings.Count(out, "pawl: cached: outcome of ex_") != 1 {
		t.Errorf("the second of three evaluations has %v of:\n%s", numbers, out)
	}
	if n := strings.Count(out, "nothing of it was cached\n"); n != 3 {
		t.Errorf("%d times nothing was cached, want 3:\n%s", n, out)
	}
}
