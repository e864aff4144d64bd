package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/versions.md work as documented.
func TestAliasCommands(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl")
	out := followed(t, documented(t, "versions.md", "", 1)[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"workflow rollout@1 registered", "rollout@stable stands for 1\n", "rollout@1 (stable)  completed", "workflow rollout@2 registered", "rollout@1  completed",
		"rollout@2 (next)  completed", "--- rollout@1", "+++ rollout@2", "FAILURE RATE", "0.0% (0.0–65.8)", "show no difference", "rollout@stable stands for 1 2=10%", "rollout@stable stands for 2\n", "too many failures", "rollout@latest",
		"workflow rollout is retired by ", ": use deploy", "bring it back: pawl retire rollout --undo", "workflow rollout is not retired",
		"/wave.yaml:3:", "tasks.first.action: rollout is retired since ", "the task runs it all the same: name another one", "workflow wave@1 registered",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// What is wrong with an order is said, with what to do.
func TestAliasMistakes(t *testing.T) {
	t.Parallel()
	env := environment(t)
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"alias"}, 2, "needs NAME"},
		{[]string{"alias", "deploy@3", "2"}, 2, "names a version"},
		{[]string{"alias", "deploy", "2"}, 2, "deploy@stable"},
		{[]string{"alias", "deploy", "stable=3"}, 2, "pawl alias deploy@stable 3"},
		{[]string{"alias", "deploy@stable", "two"}, 2, "give a version such as 3"},
		{[]string{"alias", "deploy@stable", "1", "2=0%"}, 2, "a percentage from 0.01 to 100"},
		{[]string{"alias", "deploy@stable", "1", "--back"}, 2, "one of them"},
		{[]string{"alias", "deploy@stable", "1", "2=NaN"}, 2, "a percentage from 0.01 to 100"},
		{[]string{"alias", "deploy@stable", "1"}, 1, "there is no action or workflow"},
		{[]string{"alias", "deploy"}, 1, "deploy"},
		{[]string{"retire", "deploy@stable"}, 2, "pawl retire deploy"},
		{[]string{"apply", "../../examples/wordcount.yaml", "--alias", "latest"}, 1, "leave it out"},
	} {
		if out, stderr, code := pawl(t, env, c.args...); code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s %s, want %d and %q", c.args, code, out, stderr, c.code, c.say)
		}
	}
}
