package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEmitCommand(t *testing.T) {
	t.Parallel()
	env := environment(t)
	file := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(file, []byte(`{"host": "db1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, stderr, code := pawl(t, env, "emit", "alert.fired", "-d", "@"+file, "--key", "k", "--subject", "db1")
	id := strings.TrimSpace(out)
	if code != 0 || !strings.HasPrefix(id, "sg_") {
		t.Fatalf("emit: %d %s %s", code, out, stderr)
	}
	if out, stderr, code := pawl(t, env, "emit", "alert.fired", "-d", `{"host":"db1"}`, "--key", "k", "--subject", "db1"); code != 0 || strings.TrimSpace(out) != id || !strings.Contains(stderr, "before") {
		t.Errorf("again: %d %s %s", code, out, stderr)
	}
	if out, stderr, code := pawl(t, env, "get", "signals", "--trigger", "alert.fired", "--since", "1h", "-o", "wide"); code != 0 || !strings.Contains(out, id) || !strings.Contains(out, `{"host":"db1"}`) {
		t.Errorf("get: %d %s %s", code, out, stderr)
	}
	if out, _, code := pawl(t, env, "get", "signals", "--subject", "db2", "-o", "json"); code != 0 || strings.TrimSpace(out) != "[]" {
		t.Errorf("get nothing: %d %s", code, out)
	}
	if out, stderr, code := pawl(t, env, "describe", id); code != 0 || !strings.Contains(out, "alert.fired") || !strings.Contains(out, "db1") {
		t.Errorf("describe: %d %s %s", code, out, stderr)
	}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"emit", "Alert"}, 1, "trigger"},
		{[]string{"emit", "a", "-d", "{"}, 2, "--data is not JSON"},
		{[]string{"emit", "a", "-d", file}, 2, "write --data @"},
		{[]string{"emit", "alert.fired", "--key", "k"}, 1, "another"},
		{[]string{"describe", "sg_00000000000000000000000001"}, 1, "there is no signal"},
		{[]string{"get", "signals", "--limit", "0"}, 2, "--limit 0"},
	} {
		if _, stderr, code := pawl(t, env, c.args...); code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s, want %d and %q", c.args, code, stderr, c.code, c.say)
		}
	}
}
