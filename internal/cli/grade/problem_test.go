package grade

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// A problem of LiveCodeBench may have functional cases besides others: only those call a method of the class Solution.
func TestMixedCases(t *testing.T) {
	t.Parallel()
	const problem = `{"question_id": "1", "metadata": "{\"func_name\": \"f\"}", "public_test_cases": "[{\"input\": \"1\", \"output\": \"1\", \"testtype\": \"functional\"}]", ` +
		`"private_test_cases": "[{\"input\": \"1\", \"output\": \"1\", \"testtype\": \"stdin\"}]"}`
	path := filepath.Join(t.TempDir(), "problems.jsonl")
	if err := os.WriteFile(path, []byte(problem), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := readProblems(path)
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{"class Solution: pass": "Solution.f", "def f(x): return x": "f"} {
		c := all["1"].code(program, api.CodeLimits{})
		if len(c.Cases) != 2 || c.Cases[0].Call.Function != want || c.Cases[1].Call != nil || c.Cases[1].Expect == nil {
			t.Errorf("%s: %+v", program, c.Cases)
		}
	}
}
