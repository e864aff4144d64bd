package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// manyTasks writes tasks in the format of HumanEval: those of HumanEval if present, and two that fail. It returns the file and the number
// of right ones.
func manyTasks(t *testing.T) (path string, right int) {
	t.Helper()
	const given = "../../../shared/data/humaneval.jsonl"
	text, err := os.ReadFile(given)
	if err != nil {
		for i := range 30 {
			text = fmt.Appendf(text, `{"task_id": "made/%d", "prompt": "def double(n):\n", "canonical_solution": "    return 2 * n\n",`+
				`"test": "def check(f): assert f(%d) == %d", "entry_point": "double"}`+"\n", i, i, 2*i)
		}
	}
	right = strings.Count(string(text), "\n")
	text = fmt.Append(text, `{"task_id": "wrong", "prompt": "def f():\n", "canonical_solution": "    return 1\n", "test": "def check(f): assert f() == 2", "entry_point": "f"}
{"task_id": "large", "prompt": "", "canonical_solution": "f = bytearray(10 ** 10)", "test": "def check(f): pass", "entry_point": "f"}
`)
	path = filepath.Join(t.TempDir(), "tasks.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, right
}

// For a run of many evaluations, a client needs one submission and one stream, and the command line can wait for it.
func TestExampleGradeMany(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	tasks, right := manyTasks(t)
	port := programtest.FreePort(t)
	env := append(environment(t), "PAWL_LISTEN=127.0.0.1:"+port)
	server := start(t, env, "server")
	target := &url.URL{Scheme: "http", Host: "127.0.0.1:" + port}
	within(t, patience, "the server is ready", func() bool {
		res, err := http.Get(target.String() + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	var requests atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()

	for round := range 2 { // the second submits nothing again
		cmd := exec.CommandContext(t.Context(), "python3", "../../examples/grade_many.py", tasks, "17")
		cmd.Env = append(env, "PAWL_SERVER="+front.URL)
		var out, errs watched
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s%s%s", err, out.String(), errs.String(), server.err.String())
		}
		if n := requests.Swap(0); n != 2 {
			t.Errorf("round %d took %d requests", round, n)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(out.String()) {
			task, _, _ := strings.Cut(line, "\t")
			seen[task] = true
		}
		if want := fmt.Sprintf("%d ok", right); len(seen) != right+2 || strings.Count(out.String(), "\n") != right+2 || !strings.HasPrefix(errs.String(), want) {
			t.Errorf("round %d: %d outcomes of %d, and %q, want %q", round, len(seen), right+2, errs.String(), want)
		}
	}

	env = append(env, "PAWL_SERVER="+target.String())
	out, errs, code := pawl(t, env, "wait", "--label", "run=17")
	if code != exit.Failed || strings.Count(out, "\n") != right+2 || !strings.Contains(out, "  nonzero_exit  ") || !strings.Contains(errs, fmt.Sprintf("pawl: %d of %[1]d have ended: %d ok", right+2, right)) {
		t.Errorf("pawl wait: exit code %d\n%.2000s\n%s", code, out, errs)
	}
	out, errs, code = pawl(t, env, "scores", "--label", "run=17", "--by", "model", "-k", "1,2")
	share := fmt.Sprintf("%.4f", float64(right)/float64(right+2))
	want := fmt.Sprintf("MODEL PASSED JUDGED ACCURACY PASS@1 TASKS NO VERDICT - %d %d %s %s %[2]d 0", right, right+2, share, share)
	if got := strings.Join(strings.Fields(out), " "); code != 0 || got != want {
		t.Errorf("pawl scores: exit code %d\n%s\nnot %s\n%s", code, got, want, errs)
	}
	if out, errs, code = pawl(t, env, "scores", "--label", "run"); code != exit.Misuse || !strings.Contains(errs, "as in --label run=17") {
		t.Errorf("pawl scores without a label: exit code %d, %s%s", code, out, errs)
	}
	out, errs, code = pawl(t, env, "wait", "--label", "task=wrong", "-o", "json", "--outputs")
	var o api.Outcome
	if err := json.Unmarshal([]byte(out), &o); err != nil || code != exit.Failed || o.Verdict != "nonzero_exit" || o.ExitCode == nil || *o.ExitCode != 1 || !strings.Contains(string(o.Output), "AssertionError") {
		t.Errorf("pawl wait: exit code %d, %v\n%s%s", code, err, out, errs)
	}
	out, errs, code = pawl(t, env, "get", "evaluations", "--label", "run=17", "--verdict", "nonzero_exit,oom")
	if lines := strings.Split(out, "\n"); code != exit.OK || len(lines) != 4 || !strings.Contains(lines[0], "VERDICT") || !strings.Contains(lines[2], "nonzero_exit") || !strings.Contains(lines[2], " ms") {
		t.Errorf("pawl get evaluations: exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code = pawl(t, env, "get", "evaluations", "--label", "run=17", "--verdict", "nonzero"); code != exit.General || !strings.Contains(errs, "?verdict: no evaluation ends with it (one of ok, ") || !strings.Contains(errs, ", nonzero_exit, ") {
		t.Errorf("pawl get evaluations of a mistyped verdict: exit code %d\n%s", code, errs)
	}
	if out, errs, code = pawl(t, env, "get", "executions", "--verdict", "nonzero_exit", "--label", "task=wrong"); code != exit.OK || strings.Count(out, "nonzero_exit") != 1 {
		t.Errorf("pawl get executions: exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code = pawl(t, env, "wait", "--label", "run=18"); code != exit.General || !strings.Contains(errs, "nothing was submitted with the label run=18") {
		t.Errorf("pawl wait for nothing: exit code %d\n%s", code, errs)
	}
	again, errs, code := pawl(t, env, "wait", o.ID, o.ID, "-o", "json")
	if code != exit.Failed || strings.Count(again, `"verdict":"nonzero_exit"`) != 2 || strings.Contains(again, `"output":`) || !strings.Contains(errs, "2 of 2 have ended: 2 nonzero_exit") {
		t.Errorf("pawl wait for ids: exit code %d\n%s%s", code, again, errs)
	}
	for _, args := range [][]string{{"ex_06e9v1t4m8kz0x2c5q7rbjwyna"}, {o.ID, "ex_06e9v1t4m8kz0x2c5q7rbjwyna"}} {
		if out, errs, code = pawl(t, env, append([]string{"wait"}, args...)...); code == exit.OK || code == exit.Failed || out != "" || !strings.Contains(errs, "ex_06e9v1t4m8kz0x2c5q7rbjwyna") {
			t.Errorf("pawl wait for what is not there: exit code %d\n%s%s", code, out, errs)
		}
	}
	for _, args := range [][]string{{}, {o.ID, "--label", "run=17"}, {o.ID, "--after", "1"}} {
		if _, errs, code = pawl(t, env, append([]string{"wait"}, args...)...); code != exit.Misuse {
			t.Errorf("pawl wait %v: exit code %d\n%s", args, code, errs)
		}
	}
	if _, errs, code = pawl(t, env, "wait", "--label", "run"); code != exit.Misuse {
		t.Errorf("pawl wait for no label: exit code %d\n%s", code, errs)
	}
}

// The commands of docs/evaluations.md about many programs work as documented.
func TestManyCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl")
	scratch := t.TempDir()
	out := followed(t, documented(t, "evaluations.md", "Many programs", 1)[0], scratch, programtest.FreePort(t))
	for _, want := range []string{`"accepted":4,"refused":0`, `"verdicts":{"nonzero_exit":1,"ok":3}`, "exit 1", "4 of 4 have ended: 3 ok, 1 nonzero_exit", "exit code 3: not all were ok"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	outcomes, err := os.ReadFile(filepath.Join(scratch, "outcomes.ndjson"))
	if err != nil || strings.Count(string(outcomes), `"stdout_bytes"`) != 4 || !strings.Contains(string(outcomes), `{"end":true,`) {
		t.Errorf("%v\n%s", err, outcomes)
	}
	t.Logf("%s", out)
}
