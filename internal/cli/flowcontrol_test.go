package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlowControlFlags(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), environment(t)
	file := filepath.Join(dir, "a.yaml")
	if err := os.WriteFile(file, []byte("name: a\naction: noop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, stderr, code := pawl(t, env, "run", file, "-o", "json", "--concurrency", "a=b=2", "--fair-by", "ada", "--rate", "mails=6/1m", "--burst", "3", "--over", "drop")
	for _, want := range []string{`"key": "a=b"`, `"key_limit": 2`, `"fair_by": "ada"`, `"weight": 1`, `"limit": 6`, `"per": "1m0s"`, `"burst": 3`, `"over": "drop"`} {
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("%d, no %s in %s %s", code, want, out, stderr)
		}
	}
	if out, stderr, code := pawl(t, env, "run", file, "--at", "2026-01-02T03:04:05Z"); code != 0 || !strings.Contains(stderr, "pawl: --at 2026-01-02T03:04:05Z is past: it starts at once\n") {
		t.Errorf("a time that is past: %d %s %s", code, out, stderr)
	}
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"--concurrency", "db1"}, "write it as KEY=NUMBER"},
		{[]string{"--concurrency", "=1"}, "write it as KEY=NUMBER"},
		{[]string{"--fair-by", "ada"}, "add it, as in --concurrency"},
		{[]string{"--rate", "mails=6"}, "write it as KEY=NUMBER/SPAN"},
		{[]string{"--rate", "mails=6/soon"}, "write it as KEY=NUMBER/SPAN"},
		{[]string{"--burst", "3"}, "add it, as in --rate"},
		{[]string{"--at", "tomorrow"}, "write a time as"},
		{[]string{"--at", "2027-01-01T00:00:00Z", "--in", "1h"}, "leave one of them out"},
		{[]string{"--in", "-1h"}, "without the minus sign"},
		{[]string{"--in", "400d"}, "start_in"},
		{[]string{"--concurrency", "db1=0"}, "concurrency.limit"},
		{[]string{"--concurrency", "db1=1", "--weight", "2"}, "there is no fair_by"},
		{[]string{"--concurrency", "db1=1", "--fair-by", "ada", "--weight", "101"}, "concurrency.weight"},
		{[]string{"--rate", "mails=6/1m", "--over", "never"}, "rate.over"},
		{[]string{"--rate", "mails=0/1m"}, "rate.limit"},
		{[]string{"--rate", "mails=100000/1ms"}, "more often than once a microsecond"},
	} {
		if _, stderr, code := pawl(t, env, append([]string{"run", file}, c.args...)...); code != 2 || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s, want %q", c.args, code, stderr, c.say)
		}
	}
	if out, stderr, code := pawl(t, env, "eval", "-", "--language", "bash", "--rate", "mails=6"); code != 2 || !strings.Contains(stderr, "KEY=NUMBER/SPAN") {
		t.Errorf("eval: %d %s %s", code, out, stderr)
	}
}
