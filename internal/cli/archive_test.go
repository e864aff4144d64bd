package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of docs/archives.md work as they stand there, and say what is shown there.
func TestArchivesDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "tar", "sha256sum")
	blocks := documented(t, "archives.md", "", 1)
	out := followed(t, blocks[0], t.TempDir(), freePort(t))
	for _, want := range []string{
		"Exported 1 execution with 4 tasks in all to ", "manifest.json: OK\n", "executions/000001.jsonl: OK\n", `{"tree":"ex_`,
		"Imported 1 execution with 4 tasks in all from ", "Imported 0 executions with 0 tasks in all from ", "; 1 was here already\n",
		"Imported:", "nothing happens to it here\n", "follows from the rules\n", "its definition is not here yet\n", "pawl apply", "Nothing would run: the rerun of report@1 ends at once as completed\n",
		"ok   61: A recorded history follows from the rules",
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
		{env, []string{"import", file}, 0, "1 was here already", ""},
		{other, []string{"import", file + ".gz"}, 0, "Imported 1 execution with 0 tasks in all from ", ""},
		{other, []string{"import", file, "-o", "json"}, 0, `"already": 1`, ""},
		{other, []string{"import", filepath.Join(dir, "no.pawl")}, 1, "", "the archive is broken"},
		{other, []string{"import", filepath.Join(dir, "nothing")}, 2, "", "no such file"},
		{other, []string{"describe", id}, 0, "Imported:", ""},
		{other, []string{"replay", id}, 0, "follows from the rules", ""},
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
