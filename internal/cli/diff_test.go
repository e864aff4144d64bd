package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Versions are listed, and the changes between two of them are shown.
func TestVersionsAndTheirChanges(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), environment(t)
	file := filepath.Join(dir, "w.yaml")
	for _, doc := range []string{
		"name: w\ntasks:\n  a: {action: noop}\n",
		"# the same\nname: w\ntasks:\n  a: {action: noop}\n  b: {action: sleep, with: {for: 1s}, needs: [a]}\n",
		"name: w\ntasks:\n  a: {action: noop}\n  b: {action: sleep, with: {for: 2s}, needs: [a]}\n",
	} {
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := pawl(t, env, "apply", file); code != 0 {
			t.Fatal(stderr)
		}
	}
	out, stderr, code := pawl(t, env, "get", "versions", "w", "-o", "json", "--limit", "2")
	if code != 0 || !strings.Contains(out, `"version": 3`) || !strings.Contains(out, `"version": 2`) || strings.Contains(out, `"version": 1`) {
		t.Errorf("versions: %d %q %s", code, out, stderr)
	}
	for _, order := range [][]string{{"w@stable", "2"}, {"w@next", "2", "3=10%"}} {
		if _, stderr, code := pawl(t, env, append([]string{"alias"}, order...)...); code != 0 {
			t.Fatal(stderr)
		}
	}
	out, stderr, code = pawl(t, env, "get", "versions", "w")
	for _, want := range []string{`(?m)^w@3 .* next=10%$`, `(?m)^w@2 .* next=90%, stable$`, `(?m)^w@1 .*[^,a-z]$`} {
		if !regexp.MustCompile(want).MatchString(out) || code != 0 {
			t.Errorf("versions with their aliases: %d, no line like %s in\n%s%s", code, want, out, stderr)
		}
	}
	if out, stderr, code = pawl(t, env, "get", "versions", "w", "-o", "name"); code != 0 || out != "w@3\nw@2\nw@1\n" {
		t.Errorf("names of versions: %d %q %s", code, out, stderr)
	}
	for _, c := range []struct{ args, want string }{
		{"versions", "pawl get versions NAME"},
		{"versions v", `did you mean "w"?`},
		{"versions w@2", "without a version: pawl get versions w"},
		{"actions w", `leave "w" out`},
	} {
		if out, stderr, code := pawl(t, env, append([]string{"get"}, strings.Fields(c.args)...)...); code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("pawl get %s: %d %s%s, want %s", c.args, code, out, stderr, c.want)
		}
	}
	for _, c := range []struct {
		args []string
		want []string
		code int
	}{
		{[]string{"w"}, []string{"--- w@2", "+++ w@3", "-      for: 1s", "+      for: 2s"}, 0},
		{[]string{"w@1"}, []string{"--- w@1", "+++ w@3", "+  b:", "+      for: 2s"}, 0},
		{[]string{"w@2", "w@1"}, []string{"--- w@2", "+++ w@1", "-  b:"}, 0},
		{[]string{"w@3", "w"}, []string{"w@3 and w@3 are the same"}, 0},
		{[]string{"w@X"}, []string{"after @ comes a version"}, 2},
		{[]string{"w@x"}, []string{`there is no alias "w@x"`}, 1},
		{[]string{"w@latest", "w@2"}, []string{"--- w@3", "+++ w@2"}, 0},
		{[]string{"w@9"}, []string{`there is no action or workflow "w@9": its latest version is 3: w@3, or w for the latest`}, 1},
		{[]string{"w@1", "w@9"}, []string{"its latest version is 3: w@3"}, 1},
		{[]string{"v"}, []string{`there is no action or workflow "v": did you mean "w"?`}, 1},
	} {
		out, stderr, code := pawl(t, env, append([]string{"diff"}, c.args...)...)
		if code != c.code {
			t.Errorf("pawl diff %v: %d %s", c.args, code, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(out+stderr, want) {
				t.Errorf("pawl diff %v: no %q in\n%s%s", c.args, want, out, stderr)
			}
		}
	}
}

// Two executions are compared: their inputs, ends and outputs; times do not count as differences.
func TestDifferencesOfExecutions(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), environment(t)
	file := filepath.Join(dir, "w.yaml")
	doc := "name: w\ninput: {type: object, properties: {n: {type: integer}}}\ntasks:\n  a: {action: noop}\n  b: {action: code, needs: [a], with: {language: bash, source: 'echo said $1; exit $1', args: [\"${{ string(input.n) }}\"]}}\n"
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := pawl(t, env, "apply", file); code != 0 {
		t.Fatal(stderr)
	}
	workflow := func(n string) (id, task string) {
		out, stderr, code := pawl(t, env, "run", "w", "--input", `{"n":`+n+`}`, "-o", "json")
		var x struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(out), &x); err != nil || x.ID == "" {
			t.Fatalf("%d %q %s", code, out, stderr)
		}
		out, _, _ = pawl(t, env, "get", "executions", "--workflow", x.ID, "--action", "code", "-o", "json")
		var tasks []struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(out), &tasks); err != nil || len(tasks) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		return x.ID, tasks[0].ID
	}
	good, goodTask := workflow("0")
	bad, badTask := workflow("3")
	again, againTask := workflow("0")
	for _, c := range []struct {
		args []string
		want []string
		code int
	}{
		{[]string{good, bad}, []string{"--- " + good, "+++ " + bad, "-  n: 0", "+  n: 3", "-  b: completed", "+  b: failed", "-status: completed", "they part at the task b: completed and failed", "the first ran for "}, 0},
		{[]string{good, again}, []string{good + " and " + again + " are the same"}, 0},
		{[]string{goodTask, badTask, "--logs"}, []string{"-    said 0", "+    said 3", "+  verdict: nonzero_exit"}, 0},
		{[]string{goodTask, againTask, "--logs"}, []string{"are the same"}, 0},
		{[]string{good, bad, "--logs"}, []string{"compare two of its tasks"}, 2},
		{[]string{good}, []string{"give two ids"}, 2},
		{[]string{good, "w@1"}, []string{"give two ids"}, 2},
		{[]string{"w@1", "--logs"}, []string{"definitions have none"}, 2},
		{[]string{good, "ex_00000000000000000000000000"}, []string{"ex_00000000000000000000000000"}, 1},
	} {
		out, stderr, code := pawl(t, env, append([]string{"diff"}, c.args...)...)
		if code != c.code {
			t.Errorf("pawl diff %v: %d %s", c.args, code, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(out+stderr, want) {
				t.Errorf("pawl diff %v: no %q in\n%s%s", c.args, want, out, stderr)
			}
		}
	}
}
