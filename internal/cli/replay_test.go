package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/replay.md work as documented, with the documented output.
func TestReplayDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "sed", "xargs")
	blocks := documented(t, "replay.md", "", 1)
	out := followed(t, blocks[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"follows from the rules\n", "\nAt event 6 (", "\nwhy: ", "ok   61: A recorded history follows from the rules", "\ngift     skipped\n", "2 tasks of 4 would have gone another way; how it would have ended is not known\n",
		"pack     input    3 items   3 items   pack[1]: its input is {\"item\":\"sofa\"}, and was {\"item\":\"lamp\"}\n", "gift     differs  skipped   started   gift was not started, so no outcome is recorded\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "follows from the rules\n"); n < 3 {
		t.Errorf("%d histories follow:\n%s", n, out)
	}
}

func TestReplayCommand(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	env := append(environment(t), "PAWL_LISTEN=127.0.0.1:"+port)
	start(t, env, "server")
	env = append(env, "PAWL_SERVER=http://127.0.0.1:"+port)
	var id string
	within(t, patience, "an execution is accepted", func() bool {
		out, _, code := pawl(t, env, "run", "noop", "--detach")
		id = strings.TrimSpace(out)
		return code == 0
	})
	within(t, patience, "it ends", func() bool {
		out, _, _ := pawl(t, env, "get", "executions", "--status", "completed", "-o", "name")
		return strings.Contains(out, id)
	})
	file := filepath.Join(t.TempDir(), "w.yaml")
	if err := os.WriteFile(file, []byte("name: w\ntasks: {a: {action: noop}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		out  string
		say  string
	}{
		{[]string{"replay", id}, 0, id + ": 5 events; follows from the rules", ""},
		{[]string{"replay", id, id}, 0, "follows", ""},
		{[]string{"replay", id, "-o", "json"}, 0, `"follows": true`, ""},
		{[]string{"replay", id, "--at", "3"}, 0, "At event 3", ""},
		{[]string{"replay", id, "--at", "2"}, 0, "\nwhy: waited in queue \"default\" for a worker with a free slot\n", ""},
		{[]string{"replay", id, "--at", "2"}, 0, "\n  not known: its place in the line, ", ""},
		{[]string{"replay", id, "--at", "2", "-o", "json"}, 0, `"waiting": "queue"`, ""},
		{[]string{"replay", id, "--at", "99"}, 1, "", "the history has 5 events"},
		{[]string{"replay", id, "--at", "0"}, 2, "", "from 1 on"},
		{[]string{"replay", id, id, "--at", "1"}, 2, "", "one execution"},
		{[]string{"replay", id, id, "-o", "json"}, 2, "", "one execution"},
		{[]string{"replay", id, "--definition", file}, 1, "", "not a workflow"},
		{[]string{"replay", id, "--definition", file, "--at", "1"}, 2, "", "leave out one"},
		{[]string{"replay", id, "--definition", file + "s"}, 2, "", "no such file"},
		{[]string{"replay", "ex_00000000000000000000000000"}, 1, "", "there is no execution"},
		{[]string{"replay"}, 2, "", "needs ID"},
	} {
		out, stderr, code := pawl(t, env, c.args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s %s, want %d, %q and %q", c.args, code, out, stderr, c.code, c.out, c.say)
		}
	}
}
