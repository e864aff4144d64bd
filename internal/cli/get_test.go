package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// A flag with an empty text, as a script gives of a variable that is not set, is not as if it was left out.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	env := environment(t)
	for _, args := range [][]string{
		{"cancel", "--action", "", "--label", "team=ops", "--yes"}, {"kill", "--status", "", "--label", "team=ops", "--yes"},
		{"run", "noop", "--idempotency-key", ""}, {"run", "noop", "--at", ""}, {"run", "noop", "--queue="}, {"get", "executions", "--since", ""},
		{"eval", "--checker", "", "x.py"}, {"eval", "--cases", "", "x.py"},
		{"export", "--file", "", "--label", "a=b"}, {"emit", "a.b", "--to", ""},
	} {
		if _, errs, code := pawl(t, env, args...); code != 2 || !strings.Contains(errs, "it is empty: give a value, or leave the flag out") {
			t.Errorf("%q: exit code %d, %s", args, code, errs)
		}
	}
	_, errs, code := pawl(t, env, "server", "--compat", "", "--listen", "nowhere") // of a setting the empty text is a value
	if code != 2 || !strings.Contains(errs, "nowhere") || strings.Contains(errs, "it is empty") {
		t.Errorf("an empty setting: exit code %d, %s", code, errs)
	}
	_, errs, code = pawl(t, env, "export", "--file", t.TempDir(), "--label", "a=b")
	if code != 2 || !strings.Contains(errs, "is a directory") {
		t.Errorf("an archive into a directory: exit code %d, %s", code, errs)
	}
}

// A flag for lists of another kind is refused: without it the list would have everything.
func TestFlagsOfOtherLists(t *testing.T) {
	t.Parallel()
	env := environment(t)
	for args, want := range map[string]string{
		"executions --queue gpu": "--queue is not for executions, but for line", "executions --assignee ada": "but for inquiries",
		"evaluations --trigger a.b": "but for signals", "queues --label a=b": "but for executions, evaluations, line",
		"workers --status failed": "--status is not for workers", "signals --until 1h": "--until is not for signals",
	} {
		if _, errs, code := pawl(t, env, append([]string{"get"}, strings.Fields(args)...)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}

// --tail prints the end of one execution's output.
func TestLogsTail(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	env := environment(t)
	file := filepath.Join(t.TempDir(), "count.py")
	if err := os.WriteFile(file, []byte("for i in range(100_000): print(i)"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := pawl(t, env, "eval", file); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	id := executions(t, env)[0].ID
	whole, _, _ := pawl(t, env, "logs", id)
	for _, tail := range []string{"1", "20kB", "1GB"} {
		out, errs, code := pawl(t, env, "logs", id, "--tail", tail)
		size, err := api.ParseSize(tail)
		if err != nil {
			t.Fatal(err)
		}
		if code != 0 || !strings.HasSuffix(whole, out) || len(out) < min(int(size), len(whole)) || tail == "1" && len(out) == len(whole) {
			t.Errorf("--tail %s: exit code %d, %d of %d bytes %s", tail, code, len(out), len(whole), errs)
		}
	}
	if out, errs, code := pawl(t, env, "logs", id, "--summary"); code != 0 || !strings.Contains(out, "1        stdout  588890  20") || strings.Count(out, "\n") != 2 {
		t.Errorf("--summary: %d %s%s", code, out, errs)
	}
	if _, errs, code := pawl(t, env, "logs", id, "--summary", "-f"); code != 2 || !strings.Contains(errs, "--summary") {
		t.Errorf("--summary -f: %d %s", code, errs)
	}
	for want, args := range map[string][]string{"99998\n": {"--grep", "99998"}, "777\n77777\n": {"--grep", "^(77)?777$", "--regexp"}, "": {"--grep", "x"}} {
		if out, errs, code := pawl(t, env, append([]string{"logs", id}, args...)...); code != 0 || out != want || (want == "") != strings.Contains(errs, "no line") {
			t.Errorf("%v: exit code %d, %q, want %q; %s", args, code, out, want, errs)
		}
	}
	if out, _, _ := pawl(t, env, "logs", id, "--grep", "99998", "-o", "json"); !strings.Contains(out, `"offset":588878,"line":"99998"`) {
		t.Errorf("as JSON: %s", out)
	}
	for _, args := range [][]string{{"--grep", ""}, {"--regexp"}, {"--grep", "a", "-f"}, {"--grep", "a", "--tail", "1kB"}} {
		if _, errs, code := pawl(t, env, append([]string{"logs", id}, args...)...); code != 2 || !strings.Contains(errs, "--grep") {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	if _, errs, code := pawl(t, env, "logs", id, "--tail", "some"); code != 2 || !strings.Contains(errs, "64kB") {
		t.Errorf("a tail that is not a size: %d %s", code, errs)
	}
}

// Output that cannot be written is an error, in whatever way a command writes it.
func TestFullOutput(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	for _, args := range [][]string{{"version"}, {"languages", "-o", "json"}, {"help", "get"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var errs strings.Builder
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "pawl"), args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = environment(t), full, &errs
		err = errors.Join(cmd.Run(), full.Close())
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "write /dev/stdout: no space left on device") {
			t.Errorf("%q: %v, %s", args, err, errs.String())
		}
	}
}
