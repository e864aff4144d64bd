package cli

import (
	"regexp"
	"strings"
	"testing"
)

// describe --timeline shows the worker of each attempt, with its waiting and running times; as JSON it is the API's timeline.
func TestDescribeTimeline(t *testing.T) {
	t.Parallel()
	env := environment(t)
	file := writeFile(t, "spread.yaml", "name: spread\ntasks:\n  each: {foreach: [1, 2, 3], action: noop}\n  nap: {action: sleep, with: {for: 1ms}}\n")
	if _, errs, code := pawl(t, env, "run", file); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	id := executions(t, env)[0].ID
	out, errs, code := pawl(t, env, "describe", id, "--timeline")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 5 || !strings.HasPrefix(lines[0], "WORKER") {
		t.Fatalf("%d %s\n%s", code, errs, out)
	}
	for _, want := range []string{`(?m)^\S+ +each +1 +completed +\d\d:\d\d:\d\d\.\d+ +\S+s +\S+s +ex_`, `(?m)^\S+ +each\[2\] +1 +completed`, `(?m)^engine +nap +1 +completed`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if out, _, code := pawl(t, env, "describe", id, "--timeline", "-o", "json"); code != 0 || !strings.Contains(out, `"attempts"`) || strings.Count(out, `"claimed_at"`) != 4 {
		t.Errorf("as JSON: %d %s", code, out)
	}
	if _, errs, code := pawl(t, env, "describe", "--timeline", "ex_06h0nbrknhwhq6mc4wc6rc9rpg"); code != 1 || !strings.Contains(errs, "there is no execution") {
		t.Errorf("of none: %d %s", code, errs)
	}
}

// get line, get workers --lost and why with several ids, on a server without workers.
func TestLineCommands(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server := start(t, env, "server", "--listen", "127.0.0.1:0", "--no-worker")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	env = append(env, "PAWL_SERVER="+regexp.MustCompile(`http://127\.\S+`).FindString(server.err.String()))
	submit := func(args ...string) string {
		out, errs, code := pawl(t, env, append([]string{"run", "noop", "--detach"}, args...)...)
		if code != 0 {
			t.Fatalf("%v: %d %s", args, code, errs)
		}
		return regexp.MustCompile(`ex_\w+`).FindString(out)
	}
	holder := submit("--concurrency", "deploy=1")
	behind := submit("--concurrency", "deploy=1", "--label", "user=ann")
	for _, c := range []struct {
		args []string
		code int
		has  []string
		not  string
	}{
		{[]string{"get", "line", "--key", "deploy"}, 0, []string{holder + "  holds", behind + "  1 ", "user=ann"}, ""},
		{[]string{"get", "line", "--key", "deploy", "-o", "json"}, 0, []string{`"held": 1`, `"waiting": 1`}, ""},
		{[]string{"get", "line", "--queue", "default"}, 0, []string{holder + "  1 "}, behind},
		{[]string{"get", "line", "--queue", "default", "--label", "user=ann"}, 0, []string{"PLACE"}, holder},
		{[]string{"get", "line"}, 2, []string{"--queue NAME or --key KEY"}, ""},
		{[]string{"get", "line", "--queue", "a", "--key", "b"}, 2, []string{"--queue NAME or --key KEY"}, ""},
		{[]string{"get", "line", "--queue", "default", "--limit", "0"}, 2, []string{"--limit 0"}, ""},
		{[]string{"get", "workers", "--lost"}, 0, []string{"SESSION", "LOST", "ATTEMPTS"}, "ws_"},
		{[]string{"get", "workers", "--lost", "-o", "json"}, 0, []string{"[]"}, ""},
		{[]string{"why", holder, behind}, 0, []string{"WAITS FOR", holder + "  scheduled  worker", behind + "  requested  key", "deploy"}, ""},
		{[]string{"why", behind, "ex_06h0nbrknhwhq6mc4wc6rc9rpg"}, 0, []string{"there is no execution"}, ""},
		{[]string{"why", behind, "rule:x"}, 2, []string{"one at a time"}, ""},
	} {
		out, errs, code := pawl(t, env, c.args...)
		for _, want := range c.has {
			if !strings.Contains(out+errs, want) {
				t.Errorf("%v: no %q in\n%s%s", c.args, want, out, errs)
			}
		}
		if code != c.code || c.not != "" && strings.Contains(out, c.not) {
			t.Errorf("%v: exit code %d, want %d, and no %q in\n%s%s", c.args, code, c.code, c.not, out, errs)
		}
	}
}
