package process

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// A program's limits do not depend on the shell that started Pawl.
func TestLimitsAreNotInherited(t *testing.T) {
	if os.Getenv("PAWL_TEST_SHELL") != "" {
		t.Logf("<<<%s>>>", limitsOfARun(t))
		return
	}
	const other = "ulimit -S -s 1024 -n 256 -f 100000 -i 100 -v 100000000 -d 90000000; "
	said := make(map[string]string)
	for _, shell := range []string{"", other, other + "exec nice -n 7 "} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", shell+`"$0" -test.run '^TestLimitsAreNotInherited$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), "PAWL_TEST_SHELL=yes")
		out, err := cmd.CombinedOutput()
		_, limits, ok := strings.Cut(string(out), "<<<")
		limits, _, _ = strings.Cut(limits, ">>>")
		if err != nil || !ok {
			t.Fatalf("%v\n%s", err, out)
		}
		said[limits] = shell
	}
	if len(said) != 1 {
		t.Errorf("the limits depend on the shell: %q", said)
	}
}

// limitsOfARun are the limits that a program sees after it has been limited.
func limitsOfARun(t *testing.T) string {
	r, err := New(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var text strings.Builder
	begin, started := io.Pipe()
	run, err := r.Start(t.Context(), runtime.Spec{
		Argv: []string{"bash", "-c", "read; ulimit -a; echo nice $(nice) $(cat /proc/self/oom_score_adj)"}, Env: []string{"PATH=/usr/bin:/bin"},
		Stdin: begin, Stdout: &text, Limits: runtime.Limits{Memory: 256 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(started, "\n")
	_ = started.Close()
	if result := run.Wait(); result.Verdict != runtime.OK || result.Stack != 256<<20 {
		t.Fatalf("%+v", result)
	}
	limits, nice, _ := strings.Cut(text.String(), "\nnice ")
	if !strings.Contains(limits, "(kbytes, -s) 262144") || !strings.Contains(limits, "(-n) 4096") {
		t.Error(limits)
	}
	if nice != "0 1000\n" && os.Geteuid() == 0 { // an ordinary user cannot lower its own
		t.Errorf("nice value and oom_score_adj: %q", nice)
	}
	return limits
}
