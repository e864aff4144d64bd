package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The view of a run shows for whom a question waits and until when, and for which signal a wait waits.
func TestRunSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), environment(t)
	file := filepath.Join(dir, "a.yaml")
	const doc = `kind: trigger
name: paid
waits: true
---
name: asking
tasks:
  approve: {action: ask, with: {title: "Release 7?", form: {type: boolean}, assignees: [group:release], expires: 300ms, on_expiry: default, default: true}}
  paid: {action: wait, with: {signal: paid, subject: "4711", since: now, timeout: 300ms, on_timeout: "null"}}
  each: {foreach: "${{ [1] }}", action: wait, with: {signal: paid, subject: "4712", since: now, timeout: 300ms, on_timeout: "null"}}
`
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(doc, `"null"`, "null")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := pawl(t, env, "run", file)
	if code != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
	for _, want := range []string{
		`approve  waiting: for an answer of group:release to iq_[0-9a-z]+ \("Release 7\?"\), due \d`,
		`paid  waiting: for a signal paid about 4711, until \d`,
		`each\[0\]  waiting: for a signal paid about 4712`,
	} {
		if !regexp.MustCompile(want).MatchString(stderr) {
			t.Errorf("no %s in\n%s", want, stderr)
		}
	}
}
