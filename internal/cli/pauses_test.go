package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/pause.md work as documented.
func TestPauseCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl")
	out := followed(t, documented(t, "pause.md", "", 1)[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"queue reports is paused by ", "Z: the warehouse is being moved", `queue "reports" is paused since`, "1st in line", "pawl resume queue reports", "queue reports is resumed",
		"its machine is being replaced", "and starts no tasks: the road is closed", ": the road is closed", "is resumed", "action deploy is paused by ", `action "deploy" is paused since`, "Z: the region is down", "action deploy is resumed", "Status:    completed", "it is resumed", "resumed", "requested, starts 20", "waits for its time: starts at",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// An attempt to pause something that cannot be paused is refused with the fix.
func TestPauseMistakes(t *testing.T) {
	t.Parallel()
	env := environment(t)
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"pause", "queue", "defualt"}, 1, `did you mean "default"?`},
		{[]string{"pause", "queue", "default", "--for", "0s"}, 2, "--for 0s"},
		{[]string{"pause", "worker", "nobody", "--by", "ann"}, 1, "no live worker"},
		{[]string{"pause", "action", "nop"}, 1, `did you mean "noop"?`},
		{[]string{"resume", "queue"}, 2, "needs NAME…"},
		{[]string{"pause", "execution"}, 2, "needs ID…"},
		{[]string{"pause", "execution", "ex_06h0nbrknhwhq6mc4wc6rc9rpg"}, 1, "there is no execution"},
		{[]string{"get", "pauses", "--limit", "0"}, 2, "--limit 0"},
	} {
		if out, stderr, code := pawl(t, env, c.args...); code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s %s, want %d and %q", c.args, code, out, stderr, c.code, c.say)
		}
	}
	if out, stderr, code := pawl(t, env, "resume", "queue", "default"); code != 0 || out != "queue default was not paused\n" {
		t.Errorf("resume: %d %s %s", code, out, stderr)
	}
}
