package cli

import (
	"strings"
	"testing"
)

// The commands of docs/cache.md work as they stand there, and say what is shown there.
func TestCacheDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl")
	blocks := documented(t, "cache.md", "", 1)
	out := followed(t, blocks[0], t.TempDir(), freePort(t))
	for _, want := range []string{"  cached\n", "outcome of ex_", ": it did not run\n", "cached: outcome of ex_"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "nothing of it was cached\n"); n != 3 {
		t.Errorf("%d times nothing was cached, want 3:\n%s", n, out)
	}
}
