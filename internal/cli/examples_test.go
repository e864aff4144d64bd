package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/programtest"
)

// pawl runs the command line and returns its output and exit code.
func pawl(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return pawlWith(t, env, "", args...)
}

// pawlWith is pawl with a standard input.
func pawlWith(t *testing.T, env []string, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "pawl"), args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errs
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// outputs runs an example and decodes its output.
func outputs(t *testing.T, name string, into any, args ...string) {
	t.Helper()
	need(t, "python3", "bash")
	args = append([]string{"run", "../../examples/" + name, "-o", "json"}, args...)
	stdout, stderr, code := pawl(t, environment(t), args...)
	if code != exit.OK {
		t.Fatalf("pawl %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	var x api.Execution
	if err := json.Unmarshal([]byte(stdout), &x); err != nil {
		t.Fatalf("read what it printed: %v\n%s", err, stdout)
	}
	if err := json.Unmarshal(x.Output, into); err != nil {
		t.Fatalf("read the outputs: %v\n%s", err, x.Output)
	}
}

func TestExampleGrade(t *testing.T) {
	t.Parallel()
	var out struct {
		Table  string
		Report struct {
			Accepted []string
			Winners  []string
			Notes    map[string]string
			Ranking  []struct {
				Submission, Verdict string
				Passed, Rank        int
			}
		}
	}
	outputs(t, "grade.yaml", &out)
	want := map[string]string{
		"kadane": "accepted", "prefix-sums": "accepted", "brute-force": "accepted",
		"forgets-negatives": "wrong answer", "gives-up": "wrong answer",
		"endless": "cpu_timeout", "sleepy": "timeout", "crashing": "nonzero_exit", "memory-hungry": "oom",
		"chatty": "output_limit", "syntax-error": "syntax_error", "segfault": "signal",
		"fork-bomb": "nonzero_exit", "phones-home": "nonzero_exit",
	}
	passed := map[string]int{"kadane": 8, "forgets-negatives": 7, "gives-up": 3, "endless": 1}
	if len(out.Report.Ranking) != len(want) {
		t.Errorf("%d submissions ranked, want %d", len(out.Report.Ranking), len(want))
	}
	for i, r := range out.Report.Ranking {
		if r.Submission == "endless" && r.Verdict == "timeout" {
			want["endless"] = "timeout" // it got less than a third of a processor
		}
		if r.Verdict != want[r.Submission] && !(runtimeHere() == "process" && r.Submission == "memory-hungry") {
			t.Errorf("%s: %s (%s), want %s", r.Submission, r.Verdict, out.Report.Notes[r.Submission], want[r.Submission])
		}
		if n, ok := passed[r.Submission]; ok && r.Passed != n {
			t.Errorf("%s passed %d, want %d", r.Submission, r.Passed, n)
		}
		if r.Rank > i+1 || i > 0 && r.Rank < out.Report.Ranking[i-1].Rank || !strings.Contains(out.Table, "| "+r.Submission) {
			t.Errorf("%s has rank %d at place %d, or is not in the table", r.Submission, r.Rank, i)
		}
	}
	if note := out.Report.Notes["phones-home"]; runtimeHere() == "sandbox" && !strings.Contains(note, "unreachable") {
		t.Errorf("phones-home: %q, want an unreachable network", note)
	}
	if len(out.Report.Winners) == 0 || !strings.Contains(out.Table, "that starting Python takes") {
		t.Errorf("winners %v\n%s", out.Report.Winners, out.Table)
	}
	if len(out.Report.Accepted) != 3 {
		t.Errorf("accepted: %v, want 3", out.Report.Accepted)
	}
}

func TestExampleRepeat(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			_, _ = io.WriteString(w, `{"state": "busy"}`)
		default:
			_, _ = io.WriteString(w, `{"state": "ready"}`)
		}
	}))
	defer service.Close()
	var out struct{ State string }
	outputs(t, "repeat.yaml", &out, "--set", "service="+service.URL, "--allow-hosts", "127.0.0.1")
	if out.State != "completed" || asked.Load() != 3 {
		t.Errorf("%+v after %d questions", out, asked.Load())
	}
}

func TestExampleCache(t *testing.T) {
	t.Parallel()
	var out struct{ Thoughts []string }
	outputs(t, "cache.yaml", &out)
	if len(out.Thoughts) != 3 || out.Thoughts[0] != out.Thoughts[2] || !strings.HasPrefix(out.Thoughts[1], "two was thought about") {
		t.Errorf("%q", out.Thoughts)
	}
}

func TestExampleFanout(t *testing.T) {
	t.Parallel()
	var out struct {
		Words int
		Top   map[string]int
	}
	outputs(t, "fanout.yaml", &out)
	if out.Words != 29 || out.Top["the"] != 7 {
		t.Errorf("%+v", out)
	}
	outputs(t, "fanout.yaml", &out, "--set", `texts=["one fish two fish"]`)
	if out.Words != 4 || out.Top["fish"] != 2 {
		t.Errorf("%+v", out)
	}
}

func TestExampleRetries(t *testing.T) {
	t.Parallel()
	var out struct {
		Delivered []string
		Returned  string
	}
	outputs(t, "retries.yaml", &out)
	if strings.Join(out.Delivered, ",") != "delivered to ada,delivered to edsger" || out.Returned != "returning 1 of 3 parcels" {
		t.Errorf("%+v", out)
	}
}

func TestExampleSubworkflow(t *testing.T) {
	t.Parallel()
	var out struct {
		Invoices   []struct{ Order, Gross int }
		TotalCents int `json:"total_cents"`
	}
	outputs(t, "subworkflow.yaml", &out)
	if len(out.Invoices) != 2 || out.Invoices[0].Gross != 720 || out.TotalCents != 1918 {
		t.Errorf("%+v", out)
	}
}

func TestExampleJudge(t *testing.T) {
	t.Parallel()
	need(t, "cc")
	var out struct {
		Right    int
		Verdicts []string
		Passed   []int
		Cases    [][]string
	}
	outputs(t, "judge.yaml", &out)
	if out.Right != 2 || strings.Join(out.Verdicts, " ") != "ok ok wrong_answer timeout" || out.Passed[2] != 3 || out.Cases[3][3] != "timeout" {
		t.Errorf("%+v", out)
	}
	outputs(t, "judge.yaml", &out, "--set", "stop=true")
	if out.Right != 2 || out.Passed[2] != 2 || out.Cases[2][3] != "skipped" {
		t.Errorf("%+v", out)
	}
}

func TestExampleSleep(t *testing.T) {
	t.Parallel()
	var out struct{ Message string }
	outputs(t, "sleep.yaml", &out, "--set", "seconds=0.3")
	if out.Message != "awake after 0.3 seconds" {
		t.Errorf("%+v", out)
	}
}

func TestExamplePipeline(t *testing.T) {
	t.Parallel()
	server := filepath.Join(t.TempDir(), "localserver")
	build := exec.Command("go", "build", "-o", server, "../../examples/localserver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the local server: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), server, "-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := programtest.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("read the local server's address: %v", err)
	}
	address = strings.TrimSpace(address)
	var got struct {
		Summaries []string
		Tokens    int
		Stored    int
	}
	outputs(t, "pipeline.yaml", &got, "--set", "server="+address, "--allow-hosts", "127.0.0.1")
	if len(got.Summaries) != 3 || got.Summaries[0] != "Catches firmly every time, and" || got.Tokens != 39 || got.Stored != 1 {
		t.Errorf("%+v", got)
	}
	// Without permission, a workflow cannot connect to this machine.
	_, stderr, code := pawl(t, environment(t), "run", "../../examples/pipeline.yaml", "--set", "server="+address, "--timeout", "20s")
	if code != exit.Failed || !strings.Contains(stderr, "not a public address") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

// Without the interpreter a run reports its name before it starts.
func TestMissingInterpreterIsNamed(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	env := append(environment(t), "PATH="+t.TempDir())
	cmd := exec.CommandContext(t.Context(), sh, filepath.Join(bin, "pawl"), "run", "../../examples/grade.yaml")
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != exit.General || !strings.Contains(string(out), "needs python3 to run its python code") {
		t.Errorf("%v:\n%s", err, out)
	}
}
