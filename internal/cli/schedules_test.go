package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/schedules.md work as documented.
func TestScheduleCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl")
	out := followed(t, documented(t, "schedules.md", "", 1)[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"Sat 2027-03-27", "schedule nightly@1 registered", "02:30:00 does not come: fired at 03:00:00 +02:00", "orders: 3", "on_time",
		"3 executions would be started", "3 executions started; 0 times passed over", "2025-03-30T01:00:00Z ex_", "Catch-up:", "its next time is", "heartbeat is paused", "heartbeat is resumed; next at ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Files with schedules are applied after those with the actions that they name, and a schedule can be found by its name.
func TestScheduleFiles(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), environment(t)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "kind: schedule\nname: monthly\ncron: '0 8 L * *'\nrun: {action: greet}\n")
	write("b.yaml", "name: greet\naction: noop\n")
	if out, stderr, code := pawl(t, env, "apply", dir); code != 0 || !strings.HasSuffix(out, "schedule monthly@1 registered\n") {
		t.Fatalf("apply: %d %s %s", code, out, stderr)
	}
	out, stderr, code := pawl(t, env, "schedules", "preview", "monthly", "--from", "2027-01-31T09:00:00Z", "--count", "1", "-o", "json")
	if code != 0 || !strings.Contains(out, `"nominal": "2027-02-28T08:00:00.000000Z"`) {
		t.Errorf("preview: %d %s %s", code, out, stderr)
	}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"schedules", "preview", "nobody"}, 1, "there is no schedule"},
		{[]string{"schedules", "preview", filepath.Join(dir, "b.yaml")}, 2, "has no schedule"},
		{[]string{"schedules", "preview", "monthly", "--count", "0"}, 2, "--count 0"},
		{[]string{"schedules", "pause", "nobody", "monthly"}, 1, `there is no schedule "nobody"`},
		{[]string{"run", filepath.Join(dir, "a.yaml")}, 2, "neither a workflow nor an action"},
	} {
		if _, stderr, code := pawl(t, env, c.args...); code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s, want %d and %q", c.args, code, stderr, c.code, c.say)
		}
	}
	if out, stderr, code := pawl(t, env, "get", "schedules"); code != 0 || !strings.Contains(out, "paused") {
		t.Errorf("get: %d %s %s", code, out, stderr)
	}
}
