package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files with rules are applied after those with the actions that they name, and the result of a rule for a signal is listed.
func TestRuleCommands(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), environment(t)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "kind: rule\nname: greet-all\non: [user.*]\nif: signal.data.n > 1\nrun: {action: greet}\n")
	write("b.yaml", "name: greet\naction: noop\n---\nkind: trigger\nname: user.new\nsubject: ${{ default(signal.data.n, 0) }}\n")
	if out, stderr, code := pawl(t, env, "apply", dir); code != 0 || !strings.HasSuffix(out, "trigger user.new@1 registered\nrule greet-all@1 registered\n") {
		t.Fatalf("apply: %d %s %s", code, out, stderr)
	}
	out, stderr, code := pawl(t, env, "emit", "user.new", "-d", `{"n":2}`)
	if code != 0 || !strings.Contains(stderr, "rule greet-all: ran ex_") {
		t.Fatalf("emit: %d %s %s", code, out, stderr)
	}
	id := strings.TrimSpace(out)
	if out, stderr, code := pawl(t, env, "emit", "user.new", "-d", `{}`); code != 0 || !strings.Contains(stderr, "rule greet-all: failed if:") {
		t.Errorf("emit: %d %s %s", code, out, stderr)
	}
	if out, _, code := pawl(t, env, "get", "rules"); code != 0 || !strings.Contains(out, "signal.data.n > 1") || !strings.Contains(out, "user.*") {
		t.Errorf("get rules: %d %s", code, out)
	}
	if out, _, code := pawl(t, env, "get", "enforcements", "--rule", "greet-all", "--state", "ran"); code != 0 || !strings.Contains(out, id) || strings.Count(out, "\n") != 2 {
		t.Errorf("get enforcements: %d %s", code, out)
	}
	if out, _, code := pawl(t, env, "why", id); code != 0 || !strings.Contains(out, "+ greet-all: it has started ex_") || !strings.Contains(out, "signal.data.n > 1: holds (signal.data.n is 2)") {
		t.Errorf("why: %d %s", code, out)
	}
	if out, _, code := pawl(t, env, "why", "rule:greet-all"); code != 0 || !strings.Contains(out, "1 ran") || !strings.Contains(out, "1 failed") {
		t.Errorf("why: %d %s", code, out)
	}
	write("c.yaml", "kind: rule\nname: greet-all\non: [user.*]\nif: default(signal.data.n, 2) > 1\nrun: {action: greet}\n")
	if out, _, code := pawl(t, env, "rules", "test", filepath.Join(dir, "c.yaml")); code != 0 || !strings.Contains(out, "of 2 signals it would run for 2, fail for 0 and be refused for 0; 1 unlike") || !strings.Contains(out, "was: failed") {
		t.Errorf("test: %d %s", code, out)
	}
	if _, stderr, code := pawl(t, env, "rules", "retry", "greet-all"); code != 1 || !strings.Contains(stderr, "has started nothing for 1 of 1 signal") {
		t.Errorf("retry of what is as it was: %d %s", code, stderr)
	}
	if out, stderr, code := pawl(t, env, "apply", filepath.Join(dir, "c.yaml")); code != 0 {
		t.Fatalf("apply: %d %s %s", code, out, stderr)
	}
	if out, stderr, code := pawl(t, env, "rules", "retry", "greet-all"); code != 0 || !strings.Contains(out, "ran") || !strings.Contains(out, "ex_") {
		t.Errorf("retry: %d %s %s", code, out, stderr)
	}
	if out, stderr, code := pawl(t, env, "rules", "retry", "greet-all"); code != 0 || out != "" || !strings.Contains(stderr, "nothing is to be tried again") {
		t.Errorf("retry: %d %s %s", code, out, stderr)
	}
	if out, _, code := pawl(t, env, "rules", "retry", "greet-all", id); code != 0 || !strings.Contains(out, "ran") {
		t.Errorf("retry of what has run: %d %s", code, out)
	}
	write("d.yaml", "kind: rule\nname: late\non: user.new\nrun: {action: greet}\n")
	if out, stderr, code := pawl(t, env, "apply", filepath.Join(dir, "d.yaml")); code != 0 {
		t.Fatalf("apply: %d %s %s", code, out, stderr)
	}
	if out, _, code := pawl(t, env, "why", id, "--rule", "late"); code != 0 || !strings.Contains(out, "was not in force when the signal came") {
		t.Errorf("why: %d %s", code, out)
	}
	for _, want := range []struct{ flag, say string }{{"--dry-run", "it would run for 2"}, {"--since=1h", "it has run for 2"}, {"--since=1h", "of 2 it had made something before"}} {
		if out, _, code := pawl(t, env, "rules", "replay", "late", want.flag); code != 0 || !strings.Contains(out, want.say) {
			t.Errorf("replay %s: %d %s", want.flag, code, out)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"rules", "pause", "nobody", "greet-all", "--reason", "x"}, 1, `there is no rule "nobody"`},
		{[]string{"get", "enforcements", "--state", "done"}, 1, "one of ran"},
		{[]string{"get", "enforcements", "--limit", "0"}, 2, "--limit 0"},
		{[]string{"why", "ex_x", "--rule", "a"}, 2, "--rule is for a signal"},
		{[]string{"why", "rule:nobody"}, 1, `there is no rule "nobody"`},
		{[]string{"why", id, "--rule", "nobody"}, 1, `there is no rule "nobody"`},
		{[]string{"rules", "test", filepath.Join(dir, "b.yaml")}, 1, "it has no rule"},
		{[]string{"rules", "retry", "nobody"}, 1, `there is no rule "nobody"`},
		{[]string{"rules", "retry", "greet-all", "--state", "ran"}, 2, "what can be tried again is failed or refused"},
		{[]string{"rules", "retry", "greet-all", "sg_x"}, 1, `there is no signal "sg_x"`},
		{[]string{"rules", "replay", "nobody"}, 1, `there is no rule "nobody"`},
		{[]string{"run", filepath.Join(dir, "a.yaml")}, 2, "neither a workflow nor an action"},
	} {
		if _, stderr, code := pawl(t, env, c.args...); code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s, want %d and %q", c.args, code, stderr, c.code, c.say)
		}
	}
	if out, _, code := pawl(t, env, "get", "rules"); code != 0 || !strings.Contains(out, "paused: x") {
		t.Errorf("get rules: %d %s", code, out)
	}
	if out, stderr, code := pawl(t, env, "describe", "rule:greet-all"); code != 0 || !strings.Contains(out, "is paused and starts nothing: x") || !strings.Contains(out, "default(signal.data.n, 2) > 1") || !strings.Contains(out, " ran ") {
		t.Errorf("describe: %d %s %s", code, out, stderr)
	}
	if out, _, code := pawl(t, env, "describe", "rule:greet-all", "-o", "json"); code != 0 || !strings.Contains(out, `"enforcements": [`) {
		t.Errorf("describe: %d %s", code, out)
	}
	if _, stderr, code := pawl(t, env, "describe", "rule:nobody"); code != 1 || !strings.Contains(stderr, `there is no rule "nobody"`) {
		t.Errorf("describe: %d %s", code, stderr)
	}
	if _, stderr, code := pawl(t, env, "rules", "replay", "greet-all"); code != 1 || !strings.Contains(stderr, "resume it first") {
		t.Errorf("replay of a paused rule: %d %s", code, stderr)
	}
	if out, _, code := pawl(t, env, "rules", "resume", "greet-all"); code != 0 || out != "greet-all is resumed\n" {
		t.Errorf("resume: %d %s", code, out)
	}
}
