package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/rerun.md work as documented, with the documented output.
func TestRerunDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "sed")
	blocks := documented(t, "rerun.md", "", 1)
	out := followed(t, blocks[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"build    reuse     1             it completed, and neither it nor what comes before it has changed\n",
		"publish  run               1     it failed\n", "note     run                     publish, which it needs, runs again\n",
		"The rerun of release@2 would reuse the outcomes of 4 executions\n", "Rerun of:", "3 reused", "Reruns:",
		"test     partly    2       1: [1]  it was named\n", "Nothing would run: the rerun of release@2 ends at once as completed\n",
		"publish  leave                     the rerun is of test only\n", "Only:", "race of built",
		"publish  give                    its output is given\n", "Given by:", "ada\n", "given\n", "deploy/verify  partly    2       1: [1]  it was named\n", "deploy/copy    reuse     1", "deploy         run               1       a path leads into it\n", "deploy/tidy    leave",
		"deploy/tidy    give", `deploy has no task "very" (its tasks are copy, verify, tidy)`, "2 executions are selected, 2 would run again, 0 would be refused; 8 outcomes would be reused", "2 of 2: ex_",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestRerunCommand(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	env := append(environment(t), "PAWL_LISTEN=127.0.0.1:"+port)
	start(t, env, "server")
	env = append(env, "PAWL_SERVER=http://127.0.0.1:"+port)
	var id string
	within(t, patience, "an execution is accepted", func() bool {
		out, _, code := pawl(t, env, "run", "noop", "--input", `{"n": 1, "who": {"name": "ada"}}`, "--detach")
		id = strings.TrimSpace(out)
		return code == 0
	})
	within(t, patience, "it ends", func() bool {
		out, _, _ := pawl(t, env, "get", "executions", "--status", "completed", "-o", "name")
		return strings.Contains(out, id)
	})
	for _, c := range []struct {
		args []string
		code int
		out  string
		say  string
	}{
		{[]string{"rerun", id, "--plan"}, 0, "noop would run again: it has no tasks", ""},
		{[]string{"rerun", id, "--plan", "-o", "json"}, 0, `"of": "` + id + `"`, ""},
		{[]string{"rerun", id}, 0, "ex_", ""},
		{[]string{"rerun", id, "--set", "who.name=bob", "--wait"}, 0, "bob", ""},
		{[]string{"rerun", id, "--input", `{"n": 2}`, "--set", "m=3", "--wait"}, 0, `"m": 3`, ""},
		{[]string{"get", "executions", "--rerun-of", id, "-o", "name"}, 0, "ex_", ""},
		{[]string{"describe", id}, 0, "Reruns:", ""},
		{[]string{"rerun", id, "--from", "a"}, 1, "", "not a workflow"},
		{[]string{"rerun", id, "--from", "a["}, 1, "", "task[index]"},
		{[]string{"rerun", id, "--definition", "latest"}, 1, "", "ran on no definition"},
		{[]string{"rerun", id, "--failed", "--from", "a"}, 2, "", "leave out one"},
		{[]string{"rerun", id, "--only", "a"}, 1, "", "not a workflow"},
		{[]string{"rerun", id, "--only", "a", "--from", "b"}, 2, "", "leave out one"},
		{[]string{"rerun", id, "--give", "a=1"}, 1, "", "not a workflow"},
		{[]string{"rerun", id, "--give", "a"}, 2, "", "TASK=JSON"},
		{[]string{"rerun", id, "--give", "a=b c"}, 2, "", "is not JSON"},
		{[]string{"rerun", id, "--give", "a=@nowhere.json"}, 1, "", "nowhere.json"},
		{[]string{"rerun", id, "--give", "a=1", "--give", "a=2"}, 2, "", "given twice"},
		{[]string{"rerun", id, "--by", "ada"}, 2, "", "add --give"},
		{[]string{"rerun", id, "--plan", "--wait"}, 2, "", "leave out one"},
		{[]string{"rerun", id, "-o", "json"}, 2, "", "add --plan"},
		{[]string{"rerun", id, "--set", "n"}, 2, "", "name=value"},
		{[]string{"rerun"}, 2, "", "needs ID"},
		{[]string{"rerun", id, "--where", "status = failed"}, 2, "", "not both"},
		{[]string{"rerun", "--where", "status = failed", "--only", "a"}, 2, "", "are for one execution"},
		{[]string{"rerun", "--where", "status = failed", "--from", "a//b"}, 0, "", "nothing is selected"},
		{[]string{"rerun", id, "--from", "a//b"}, 1, "", "between its slashes"},
		{[]string{"rerun", id, "--from", "a/b"}, 1, "", "not a workflow"},
		{[]string{"rerun", id, "--at-once", "3"}, 2, "", "go with flags that select"},
		{[]string{"rerun", "--where", "action = noop", "--at-once", "0"}, 2, "", "--at-once 0: give 1 or more"},
		{[]string{"rerun", "--where", "status = faild"}, 1, "", "did you mean \"failed\"?"},
		{[]string{"rerun", "--where", "status = failed"}, 0, "", "nothing is selected"},
		{[]string{"rerun", "--where", "status = failed", "--plan"}, 0, "0 executions are selected", ""},
		{[]string{"rerun", "--where", "action = noop and status = completed", "--plan", "-o", "json"}, 0, `"planned": [`, ""},
		{[]string{"rerun", "--where", "action = noop and status = completed and not queue = x", "--at-once", "2", "--wait"}, 0, "of 4: " + id + " again as ex_", "4 executions to run again, 2 at a time; after an interruption repeat the command with --resume ex_"},
		{[]string{"rerun", "--where", "action = noop and status = completed", "--resume", id + ".once"}, 0, "1 of 1: " + id + " again as ex_", ""},
		{[]string{"rerun", "--where", "action = noop and status = completed", "--resume", id + ".once"}, 0, "1 of 1: " + id + " again as ex_", ""},
		{[]string{"rerun", "--where", "action = noop and status = completed", "--resume", id + ".once", "--from", "a"}, 1, "refused: 1 execution, as " + id, "1 of 1 rerun did not complete, 1 of these because the rerun was refused"},
		{[]string{"rerun", id, "--resume", id + ".once"}, 2, "", "go with flags that select"},
		{[]string{"rerun", "--where", "status = failed", "--resume", "once"}, 1, "", "is not the ID of reruns"},
	} {
		out, stderr, code := pawl(t, env, c.args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s %s, want %d, %q and %q", c.args, code, out, stderr, c.code, c.out, c.say)
		}
	}
}

// Commands that start executions and exit report that there is no server for them, and what to do; the commands that they name work.
func TestLeftWithoutServer(t *testing.T) {
	t.Parallel()
	env := environment(t)
	pawl(t, env, "run", "noop")
	out, _, _ := pawl(t, env, "get", "executions", "-o", "name")
	first := strings.TrimSpace(out)
	pawl(t, env, "apply", writeFile(t, "s.yaml", "kind: schedule\nname: nightly\ncron: '0 3 * * *'\nrun: {action: noop}"))
	for _, args := range [][]string{{"retry", first}, {"rerun", first}, {"schedules", "fire", "nightly"}} {
		out, said, code := pawl(t, env, args...)
		id := strings.TrimSpace(out)
		if want := "start pawl server, or run it here: pawl wait " + id; code != 0 || id == "" || !strings.Contains(said, want) {
			t.Errorf("pawl %v: code %d, printed %q, said %q, want %q", args, code, out, said, want)
			continue
		}
		if out, said, code := pawl(t, env, "wait", id); code != 0 || !strings.Contains(out, id+"  ok") {
			t.Errorf("pawl wait after pawl %v: code %d, %q, %q", args, code, out, said)
		}
	}
	if _, said, code := pawl(t, env, "rerun", "--action", "noop", "--status", "completed"); code != 0 || !strings.Contains(said, "after an interruption repeat the command") {
		t.Errorf("pawl rerun of many, which runs here: code %d, said %q", code, said)
	}
	if _, said, code := pawl(t, env, "schedules", "backfill", "nightly", "--from", "2026-11-01", "--to", "2026-11-03"); code != 0 || !strings.Contains(said, "it waits, since no pawl run or pawl server") {
		t.Errorf("pawl schedules backfill: code %d, said %q", code, said)
	}
}
