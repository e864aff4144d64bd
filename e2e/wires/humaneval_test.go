package wires

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/e2e/pythontest"
)

// graded is a program of HumanEval, and whether it is right.
type graded struct {
	id, program, test string
	right             bool
}

// nearly makes the solution of a problem slightly wrong: the function returns something else of the same type.
const nearly = `
def _pawl_wrong(f):
    def g(*args):
        r = f(*args)
        if isinstance(r, bool) or r is None:
            return not r
        if isinstance(r, (int, float)):
            return r + 1
        if isinstance(r, str):
            return r + "x"
        if isinstance(r, dict):
            return {**r, "_": 0}
        return type(r)([*r, 0])
    return g
%[1]s = _pawl_wrong(%[1]s)
`

// humanEval returns each solution, and a wrong variant of it.
func humanEval(t *testing.T) []graded {
	t.Helper()
	text, err := os.ReadFile("../../../shared/data/humaneval.jsonl")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("NOT TESTED: the problems of HumanEval are not here (../shared/data/humaneval.jsonl)")
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []graded
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			TaskID     string `json:"task_id"`
			Prompt     string `json:"prompt"`
			EntryPoint string `json:"entry_point"`
			Solution   string `json:"canonical_solution"`
			Test       string `json:"test"`
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		test := p.Test + "\ncheck(" + p.EntryPoint + ")\n"
		all = append(all, graded{p.TaskID, p.Prompt + p.Solution, test, true},
			graded{p.TaskID, p.Prompt + p.Solution + fmt.Sprintf(nearly, p.EntryPoint), test, false})
	}
}

// A program gets the same verdict through each interface of Pawl: its API, the wires of four other evaluators, and pawl.code_eval.
func TestHumanEvalOnEveryWay(t *testing.T) {
	t.Parallel()
	all := humanEval(t)
	s := serve(t, t.TempDir())
	posted := func(path string, body map[string]any, answer any) error {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		got := s.post(path, string(b))
		if got.err != nil || got.status > 299 {
			return fmt.Errorf("%v, %w", got, got.err)
		}
		return json.Unmarshal([]byte(got.body), answer)
	}
	ways := map[string]func(g graded) (bool, error){
		"the API": func(g graded) (bool, error) {
			x, err := s.client.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "python", Source: g.program + "\n" + g.test}})
			if err == nil {
				x, err = s.client.Wait(t.Context(), x.ID)
			}
			if err != nil || x.Verdict != "ok" && x.Verdict != "nonzero_exit" {
				return false, fmt.Errorf("%+v, %w", x, err)
			}
			return x.Verdict == "ok", nil
		},
		"run_code": func(g graded) (bool, error) {
			var answer struct {
				Status string
				Run    *struct{ Status string } `json:"run_result"`
			}
			err := posted("/compat/run_code/run_code", map[string]any{"code": g.program + "\n" + g.test, "language": "python", "run_timeout": 30}, &answer)
			if err == nil && (answer.Run == nil || answer.Run.Status != "Finished") {
				err = fmt.Errorf("%+v", answer)
			}
			return answer.Status == "Success", err
		},
		"test_program": func(g graded) (bool, error) {
			var answer struct{ Results []int }
			err := posted("/compat/test_program/test_program", map[string]any{"program": g.program, "tests": []string{g.test}, "max_execution_time": 30}, &answer)
			if err == nil && len(answer.Results) != 1 {
				err = fmt.Errorf("%+v", answer)
			}
			return err == nil && answer.Results[0] == 1, err
		},
		"piston": func(g graded) (bool, error) {
			var answer struct {
				Run struct {
					Code   *int
					Status *string
				}
			}
			err := posted("/compat/piston/api/v2/execute", map[string]any{"language": "python", "version": "*", "files": []any{map[string]any{"content": g.program + "\n" + g.test}},
				"run_timeout": 30_000, "run_cpu_time": 30_000}, &answer)
			if err == nil && answer.Run.Code == nil {
				err = fmt.Errorf("%+v", answer)
			}
			return err == nil && *answer.Run.Code == 0, err
		},
		"judge0": func(g graded) (bool, error) {
			var answer struct{ Status struct{ ID int } }
			err := posted("/compat/judge0/submissions?wait=true", map[string]any{"source_code": g.program + "\n" + g.test, "language_id": 71,
				"cpu_time_limit": 30, "wall_time_limit": 60}, &answer)
			if err == nil && answer.Status.ID != 3 && answer.Status.ID != 11 {
				err = fmt.Errorf("%+v", answer)
			}
			return answer.Status.ID == 3, err
		},
	}
	for way, verdict := range ways {
		t.Run(way, func(t *testing.T) {
			next := make(chan graded)
			var clients sync.WaitGroup
			for range 6 {
				clients.Go(func() {
					for g := range next {
						switch passed, err := verdict(g); {
						case err != nil:
							t.Errorf("%s, right=%t: %v", g.id, g.right, err)
						case passed != g.right:
							t.Errorf("%s, right=%t: passed=%t", g.id, g.right, passed)
						}
					}
				})
			}
			for _, g := range all {
				next <- g
			}
			close(next)
			clients.Wait()
		})
	}
	t.Run("pawl.code_eval", func(t *testing.T) { codeEval(t, s, all) })
	t.Logf("%d programs on %d ways", len(all), len(ways)+1)
}

// codeEval lets the Python package grade all programs.
func codeEval(t *testing.T, s *process, all []graded) {
	references, predictions := []string{}, [][]string{}
	for _, g := range all {
		references, predictions = append(references, g.test), append(predictions, []string{g.program})
	}
	given, err := json.Marshal(map[string]any{"references": references, "predictions": predictions})
	if err != nil {
		t.Fatal(err)
	}
	const script = `
import json, sys
import pawl.code_eval
results = pawl.code_eval.compute(**json.load(sys.stdin), k=[1], timeout=30)[1]
json.dump([results[task][0][1]["passed"] for task in range(len(results))], sys.stdout)
`
	source, err := filepath.Abs("../../sdk/python/src")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), pythontest.Interpreters(t)[0], "-c", script)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+source, "PYTHONDONTWRITEBYTECODE=1", "PAWL_SERVER="+s.url)
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = bytes.NewReader(given), &stderr
	out, err := cmd.Output()
	var passed []bool
	if err != nil || json.Unmarshal(out, &passed) != nil || len(passed) != len(all) {
		t.Fatalf("%v: %s\n%s", err, out, stderr.String())
	}
	for i, g := range all {
		if passed[i] != g.right {
			t.Errorf("%s, right=%t: passed=%t", g.id, g.right, passed[i])
		}
	}
}
