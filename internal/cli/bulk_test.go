package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// Flags select what is rerun and cancelled; nothing happens without --yes.
func TestBulkCommands(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	env := append(environment(t), "PAWL_LISTEN=127.0.0.1:"+port)
	start(t, env, "server")
	env = append(env, "PAWL_SERVER=http://127.0.0.1:"+port)
	within(t, patience, "an execution is accepted", func() bool {
		_, _, code := pawl(t, env, "run", "sleep", "--input", `{"for": "1h"}`, "--label", "team=docs", "--detach")
		return code == 0
	})
	count := func(status string) int {
		t.Helper()
		out, stderr, code := pawl(t, env, "get", "executions", "--label", "team=docs", "--status", status, "-o", "name")
		if code != 0 {
			t.Fatalf("get: %d %s", code, stderr)
		}
		return strings.Count(out, "ex_")
	}
	for _, c := range []struct {
		args []string
		code int
		out  string
		say  string
	}{
		{[]string{"cancel", "--label", "team=docs"}, 2, " running\n", "cancel these 1? Nothing was changed: say --yes to do it"},
		{[]string{"cancel", "--label", "team=docs", "--dry-run", "--yes"}, 0, " running\n", "cancel would be done to 1 of 1; nothing was changed"},
		{[]string{"kill", "--label", "team=other", "--yes"}, 0, "", "nothing is selected"},
		{[]string{"cancel", "--label", "team=docs", "--yes", "--reason", "enough"}, 0, " cancelled\n", ""},
		{[]string{"cancel", "--label", "team=docs", "--status", "cancelled", "--yes"}, 1, "", "the execution is cancelled"},
		{[]string{"retry", "--action", "sleep", "--since", "1h"}, 2, " cancelled\n", "retry these 1?"},
		{[]string{"retry", "--action", "sleep", "--since", "1h", "--yes"}, 0, " again as ex_", ""},
		{[]string{"cancel"}, 2, "", "give the ids of executions, or select some"},
		{[]string{"cancel", "ex_1", "--label", "a=b"}, 2, "", "not both"},
		{[]string{"retry", "ex_1", "--yes"}, 2, "", "go with flags that select"},
		{[]string{"retry", "--label", "a=b", "--wait"}, 2, "", "--wait goes with one id"},
		{[]string{"cancel", "--status", "waiting"}, 2, "", "one of requested"},
	} {
		out, stderr, code := pawl(t, env, c.args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s %s, want %d, %q and %q", c.args, code, out, stderr, c.code, c.out, c.say)
		}
	}
	if running, cancelled := count("running"), count("cancelled"); running != 1 || cancelled != 1 {
		t.Errorf("%d are running and %d cancelled, want one of each", running, cancelled)
	}
}
