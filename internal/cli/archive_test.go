package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/archives.md work as documented, with the documented output.
func TestArchivesDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "tar", "sha256sum")
	blocks := documented(t, "archives.md", "", 1)
	out := followed(t, blocks[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"Exported 1 execution with 4 tasks in all to ", "manifest.json: OK\n", "executions/000001.jsonl: OK\n", `{"tree":"ex_`,
		"Status:    completed\n", "follows from the rules\n", "with 1 execution and 4 tasks: the page is at http://127.0.0.1:", "this is an opened archive, which is read-only", "it is read-only\n",
		"action number@1 registered\n", "workflow report@1 registered\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestArchiveCommands(t *testing.T) {
	t.Parallel()
	env, dir := environment(t), t.TempDir()
	file := filepath.Join(dir, "a.pawl")
	pawl(t, env, "run", "noop", "--input", `{"n": 1}`, "--label", "a=b")
	out, _, _ := pawl(t, env, "get", "executions", "-o", "name")
	id := strings.TrimSpace(out)
	if !strings.HasPrefix(id, "ex_") {
		t.Fatalf("%q was run", out)
	}
	if err := os.WriteFile(filepath.Join(dir, "no.pawl"), []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := environment(t)
	for _, c := range []struct {
		env  []string
		args []string
		code int
		out  string
		say  string
	}{
		{env, []string{"export", id, "--file", file}, 0, "", "Exported 1 execution with 0 tasks in all to " + file},
		{env, []string{"export", "--label", "a=b", "--since", "1h", "--file", file + ".gz"}, 0, "", "Exported 1 execution"},
		{env, []string{"export", "--label", "a=c", "--file", filepath.Join(dir, "none.pawl")}, 0, "", "Exported 0 executions"},
		{env, []string{"export"}, 2, "", "--label"},
		{env, []string{"export", id, "--label", "a=b"}, 2, "", "not both"},
		{env, []string{"export", "--where", "attempt > 1"}, 2, "", "xargs pawl export"},
		{env, []string{"export", "--workflow", id, "--file", filepath.Join(dir, "x.pawl")}, 2, "", "--label"},
		{env, []string{"export", id, "x.pawl"}, 2, "", "--file x.pawl"},
		{env, []string{"export", id, "-o", "x.pawl"}, 2, "", "--file x.pawl"},
		{env, []string{"export", "ex_1", "--file", filepath.Join(dir, "x.pawl")}, 1, "", "is not an id"},
		{env, []string{"export", id, "--file", filepath.Join(dir, "no", "x.pawl")}, 1, "", "no such file"},
		{other, []string{"open", file, "--", "describe", id}, 0, "Status:    completed", ""},
		{other, []string{"open", file + ".gz", "--", "replay", id}, 0, "follows from the rules", ""},
		{other, []string{"open", file, "--", "get", "executions", "-o", "name"}, 0, id, ""},
		{other, []string{"open", file, "--", "describe", "ex_00000000000000000000000000"}, 1, "", "there is no execution"},
		{other, []string{"open", file, "--", "logs", "--nonsense"}, 2, "", "unknown flag"},
		{other, []string{"open", file, "--", "run", "noop"}, 2, "", "read-only"},
		{other, []string{"open", file, "--", "open", file}, 2, "", "read-only"},
		{other, []string{"open", file, "describe", id}, 2, "", "-- describe " + id},
		{other, []string{"open", "--", "describe", id}, 2, "", "name the archive"},
		{other, []string{"open", file, "--definitions", "--", "describe", id}, 2, "", "leave out"},
		{other, []string{"open", filepath.Join(dir, "no.pawl")}, 1, "", "the archive is broken"},
		{other, []string{"open", filepath.Join(dir, "nothing")}, 2, "", "no such file"},
	} {
		out, say, code := pawl(t, c.env, c.args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(say, c.say) {
			t.Errorf("pawl %q: %d\n%s\n%s\nwant %d, %q and %q", c.args, code, out, say, c.code, c.out, c.say)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.part")); err != nil || len(left) > 0 {
		t.Errorf("parts of archives are left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x.pawl")); err == nil {
		t.Error("a refused export left a file")
	}
}

// ofProduction is an archive of a workflow of workflows, with code that writes a log, and the output of commands about it where it ran.
func ofProduction(t *testing.T) (file, id string, said map[string]string) {
	t.Helper()
	env := environment(t)
	document := writeFile(t, "report.yaml", `
name: report
tasks:
  a: {action: sub}
  b: {needs: [a], foreach: "${{ [1, 2] }}", action: code, with: {language: python, source: "print('hello')"}}
---
kind: workflow
name: sub
tasks: {leaf: {action: region}}
---
kind: action
name: region
action: noop
with: {a: 1}
`)
	if _, say, code := pawl(t, env, "apply", document); code != 0 {
		t.Fatal(say)
	}
	if _, say, code := pawl(t, env, "run", "report"); code != 0 {
		t.Fatal(say)
	}
	out, _, _ := pawl(t, env, "get", "executions", "-o", "name")
	id, file = strings.TrimSpace(out), filepath.Join(t.TempDir(), "report.pawl")
	if _, say, code := pawl(t, env, "export", id, "--file", file); code != 0 {
		t.Fatal(say)
	}
	said = map[string]string{}
	for _, command := range []string{"describe", "logs", "events", "replay", "why"} {
		said[command], _, _ = pawl(t, env, command, id)
	}
	return file, id, said
}

// temporary is an environment with its own directory for temporary files, which contains opened archives.
func temporary(t *testing.T, env []string) ([]string, func() []string) {
	t.Helper()
	dir := t.TempDir()
	return append(env, "TMPDIR="+dir), func() []string {
		all, err := filepath.Glob(filepath.Join(dir, "pawl-open-*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// Commands print the same about an opened archive as where it ran. The settings of the machine do not lead them to another database, and
// nothing of the archive is left.
func TestOpenShowsWhatWasExported(t *testing.T) {
	t.Parallel()
	file, id, said := ofProduction(t)
	env, left := temporary(t, append(environment(t), "PAWL_STORE=postgres://nobody@127.0.0.1:1/nothing", "PAWL_BLOBS=s3://nothing/there?endpoint=http://127.0.0.1:1",
		"PAWL_TOKEN=a-token-of-another-server", "PAWL_SERVER=http://127.0.0.1:1", "PAWL_RETENTION=1ms"))
	for command, was := range said {
		is, say, code := pawl(t, env, "open", file, "--", command, id)
		if code != 0 || is != was || was == "" {
			t.Errorf("%s: %d\n%s%s\nwas\n%s", command, code, is, say, was)
		}
	}
	if all := left(); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}

// The definitions of an archive are registered together, whatever the order in which they refer to each other.
func TestDefinitionsOfAnArchive(t *testing.T) {
	t.Parallel()
	file, _, _ := ofProduction(t)
	env := environment(t)
	documents, say, code := pawl(t, env, "open", file, "--definitions")
	if code != 0 {
		t.Fatal(say)
	}
	if out, say, code := pawlWith(t, env, documents, "apply", "-"); code != 0 || strings.Count(out, "@1 registered") != 3 {
		t.Fatalf("%s%s\n%s", out, say, documents)
	}
	if _, say, code := pawl(t, env, "run", "report"); code != 0 {
		t.Error(say)
	}
}

// An opened archive is served until Ctrl-C. A killed one leaves its directory, which the next one removes; that of one that is still
// served stays.
func TestOpenRemovesWhatKilledOnesLeft(t *testing.T) {
	t.Parallel()
	file, id, _ := ofProduction(t)
	env, left := temporary(t, environment(t))
	served := func() (*running, string) {
		r := start(t, env, "open", file)
		within(t, patience, "it serves", func() bool { return strings.Contains(r.err.String(), "PAWL_SERVER=") })
		_, url, _ := strings.Cut(r.err.String(), "PAWL_SERVER=")
		url, _, _ = strings.Cut(url, " ")
		return r, url
	}
	killed, _ := served()
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if all := left(); len(all) != 1 {
		t.Fatalf("left by the one that was killed: %v", all)
	}
	shown, url := served()
	if all := left(); len(all) != 1 {
		t.Errorf("beside the next one: %v", all)
	}
	if _, say, code := pawl(t, env, "open", file, "--", "get", "executions"); code != 0 || len(left()) != 1 {
		t.Errorf("%d %s, left %v", code, say, left())
	}
	env = append(env, "PAWL_SERVER="+url)
	if out, say, code := pawl(t, env, "describe", id); code != 0 {
		t.Errorf("%d %s%s", code, out, say)
	}
	for _, args := range [][]string{{"run", "noop"}, {"retry", id}, {"rerun", id}} {
		if _, say, code := pawl(t, env, args...); code == 0 || !strings.Contains(say, "this is an opened archive") {
			t.Errorf("pawl %s: %d %s", args, code, say)
		}
	}
	if err := shown.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := shown.Wait(); err != nil {
		t.Errorf("closed: %v\n%s", err, shown.err.String())
	}
	if all := left(); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}
