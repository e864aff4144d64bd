package cli

import (
	"strings"
	"testing"
)

func TestCompareMistakes(t *testing.T) {
	t.Parallel()
	env := environment(t)
	for args, say := range map[string]string{
		"w@1 v@1": "w", "w w@2": "say which version", "w@1 w@2 --limit 0": "--limit 0", "w@1 w@2 --since yesterday": "--since",
	} {
		if out, stderr, code := pawl(t, env, append([]string{"compare"}, strings.Fields(args)...)...); code == 0 || !strings.Contains(stderr, say) {
			t.Errorf("pawl compare %s: %d %s %s, want %q", args, code, out, stderr, say)
		}
	}
}
