package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/pawl-run/pawl/api"
)

type problem struct {
	TaskID     string `json:"task_id"`
	Prompt     string `json:"prompt"`
	EntryPoint string `json:"entry_point"`
	Solution   string `json:"canonical_solution"`
	Test       string `json:"test"`
}

func problems(t *testing.T) []problem {
	t.Helper()
	const path = "../../shared/data/humaneval.jsonl"
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skipf("the HumanEval problems are not here (%s)", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []problem
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p problem
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func (p *problem) program(body string) string {
	return p.Prompt + body + "\n" + p.Test + "\ncheck(" + p.EntryPoint + ")\n"
}

// Every solution passes its tests in the sandbox, and none passes without its body.
func TestHumanEval(t *testing.T) {
	all := problems(t)
	s := serve(t, t.TempDir(), "--slots", "4")
	ids := make([][2]string, len(all))
	for i, p := range all {
		for j, body := range []string{p.Solution, "    return None\n"} {
			x, err := s.client.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "python", Source: p.program(body)}})
			if err != nil {
				t.Fatalf("%s: %v", p.TaskID, err)
			}
			ids[i][j] = x.ID
		}
	}
	passed, failed := 0, 0
	for i, p := range all {
		if x := s.wait(t, ids[i][0]); x.Status == api.Completed && codeResult(t, x).Verdict == "ok" {
			passed++
		} else {
			t.Errorf("%s: the solution is %s: %v\n%s", p.TaskID, x.Status, x.Error, codeResult(t, x).Stderr)
		}
		if x := s.wait(t, ids[i][1]); x.Status == api.Failed && codeResult(t, x).Verdict == "nonzero_exit" {
			failed++
		} else {
			t.Errorf("%s: the empty body is %s: %v", p.TaskID, x.Status, x.Error)
		}
	}
	t.Logf("HumanEval: %d of %d solutions passed, %d of %d empty bodies failed", passed, len(all), failed, len(all))
}
