// Package score estimates the quality of models or other authors of programs from how many of their programs passed. It is pure.
package score

import (
	"maps"
	"slices"

	"github.com/pawl-run/pawl/api"
)

// verdicts are the verdicts that are about the program. With any other verdict the sandbox or the grader failed, or a user ended the run.
var verdicts = []string{api.VerdictOK, api.WrongAnswer, "nonzero_exit", "signal", "timeout", "cpu_timeout", "oom", "output_limit",
	api.CompileError, api.SyntaxError, "invalid_output"}

// Judged reports whether a verdict is about the program.
func Judged(verdict string) bool { return slices.Contains(verdicts, verdict) }

// Tally counts the judged programs of one task.
type Tally struct{ Total, Passed int }

// PassAt is the unbiased estimate of pass@k: the mean over the tasks of 1 - C(n-c, k) / C(n, k). ok is false if a task has fewer than k
// programs, or if there are no tasks.
func PassAt(k int, tasks map[string]Tally) (value float64, ok bool) {
	for _, id := range slices.Sorted(maps.Keys(tasks)) { // sums of floating-point numbers depend on the order
		t := tasks[id]
		if t.Total < k {
			return 0, false
		}
		value += passAtK(t.Total, t.Passed, k)
	}
	return value / float64(max(len(tasks), 1)), len(tasks) > 0
}

func passAtK(n, c, k int) float64 {
	if n-c < k {
		return 1
	}
	fails := 1.0
	for i := n - c + 1; i <= n; i++ {
		fails *= 1 - float64(k)/float64(i)
	}
	return 1 - fails
}
