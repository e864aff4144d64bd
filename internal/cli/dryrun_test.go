package cli

import (
	"strings"
	"testing"
)

// --dry-run prints what would run, or everything that is wrong, and starts nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	env := environment(t)
	deploy := writeFile(t, "deploy.yaml", "name: deploy\nkind: action\naction: noop\nconcurrency: {key: 'deploy/${{ input.to }}', limit: 1}\ninput: {type: object, required: [to], properties: {to: {type: string}}}\n")
	if _, errs, code := pawl(t, env, "apply", deploy); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	program := writeFile(t, "p.sh", "echo hello\n")
	for _, c := range []struct {
		args []string
		code int
		has  string
	}{
		{[]string{"run", "deploy", "--set", "to=prod", "--dry-run"}, 0, "would run deploy@1 in queue default, under key deploy/prod\n"},
		{[]string{"run", "deploy", "--set", "to=prod", "--dry-run", "-o", "json"}, 0, `"valid": true`},
		{[]string{"run", "deploy", "--dry-run"}, 2, "to"},
		{[]string{"run", "deplyo", "--dry-run"}, 2, `did you mean "deploy"?`},
		{[]string{"run", deploy, "--dry-run"}, 2, "pawl validate"},
		{[]string{"eval", program, "-l", "bash", "--dry-run"}, 0, "would run code in queue default\n"},
		{[]string{"eval", program, "-l", "bash", "--dry-run", "--concurrency", "db=2", "-o", "yaml"}, 0, "key: db"},
		{[]string{"eval", program, "-l", "bash", "--dry-run", "--collect", "../x"}, 2, "collect"},
	} {
		out, errs, code := pawl(t, env, c.args...)
		if code != c.code || !strings.Contains(out+errs, c.has) {
			t.Errorf("%v: exit code %d, want %d and %q:\n%s%s", c.args, code, c.code, c.has, out, errs)
		}
	}
	if all := executions(t, env); len(all) != 0 {
		t.Errorf("%d executions", len(all))
	}
}
