package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Versions are listed, and what changed between two of them is shown.
func TestVersionsAndTheirChanges(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), environment(t)
	file := filepath.Join(dir, "w.yaml")
	for _, doc := range []string{
		"name: w\ntasks:\n  a: {action: noop}\n",
		"# the same\nname: w\ntasks:\n  a: {action: noop}\n  b: {action: sleep, with: {for: 1s}, needs: [a]}\n",
		"name: w\ntasks:\n  a: {action: noop}\n  b: {action: sleep, with: {for: 2s}, needs: [a]}\n",
	} {
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := pawl(t, env, "apply", file); code != 0 {
			t.Fatal(stderr)
		}
	}
	out, stderr, code := pawl(t, env, "get", "actions", "--versions-of", "w", "-o", "json", "--limit", "2")
	if code != 0 || !strings.Contains(out, `"version": 3`) || !strings.Contains(out, `"version": 2`) || strings.Contains(out, `"version": 1`) {
		t.Errorf("versions: %d %q %s", code, out, stderr)
	}
	for _, c := range []struct {
		args []string
		want []string
		code int
	}{
		{[]string{"w"}, []string{"--- w@2", "+++ w@3", "-      for: 1s", "+      for: 2s"}, 0},
		{[]string{"w@1"}, []string{"--- w@1", "+++ w@3", "+  b:", "+      for: 2s"}, 0},
		{[]string{"w@2", "w@1"}, []string{"--- w@2", "+++ w@1", "-  b:"}, 0},
		{[]string{"w@3", "w"}, []string{"w@3 and w@3 are the same"}, 0},
		{[]string{"w@X"}, []string{"after @ comes a version"}, 2},
		{[]string{"w@x"}, []string{`there is no alias "w@x"`}, 1},
		{[]string{"w@latest", "w@2"}, []string{"--- w@3", "+++ w@2"}, 0},
		{[]string{"w@9"}, []string{"w@9"}, 1},
		{[]string{"v"}, []string{"v"}, 1},
	} {
		out, stderr, code := pawl(t, env, append([]string{"diff"}, c.args...)...)
		if code != c.code {
			t.Errorf("pawl diff %v: %d %s", c.args, code, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(out+stderr, want) {
				t.Errorf("pawl diff %v: no %q in\n%s%s", c.args, want, out, stderr)
			}
		}
	}
}
