package definition

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/payload"
)

// Limits above the operator's are refused when the document is applied, with place, value and ceiling, also beside expressions.
func TestCeilings(t *testing.T) {
	t.Parallel()
	most := payload.Ceilings{Memory: 1e9, Disk: 1e9, Output: 1e6, Stack: 1e6, Pids: 10, Interactive: 60e9}
	const program = "name: w\ntasks:\n  a:\n    action: code\n    with:\n      language: bash\n      source: x\n"
	for _, c := range [][2]string{
		{program + "      limits: {memory: 2GB}\n",
			"w.yaml:8:15: tasks.a.with.limits.memory: 2GB is more than one program is given here: 1GB"},
		{program + "      stdin: ${{ input.a }}\n      limits: {memory: 2GB, wall: 5s}\n",
			"tasks.a.with.limits.memory: 2GB is more"},
		{program + "      limits: {memory: \"${{ input.m }}\", pids: 11}\n", "tasks.a.with.limits.pids: 11 is more"},
		{program + "      compile_limits: {disk: 2GB}\n", "tasks.a.with.compile_limits.disk: 2GB is more"},
		{program + "      interactive: true\n      limits: {wall: 2m}\n", "tasks.a.with.limits.wall: 2m0s is more"},
		{program + "      cases: [{stdin: a, expect: b, limits: {stack: 2MB}}]\n",
			"tasks.a.with.cases[0].limits.stack: 2MB is more"},
		{program + "      cases: [{stdin: \"${{ input.a }}\", limits: {output: 2MB}}]\n",
			"tasks.a.with.cases[0].limits.output: 2MB is more"},
		{"name: a\naction: container\nwith: {image: \"${{ input.i }}\", limits: {disk: 2GB}}",
			"with.limits.disk: 2GB is more"},
		{program + "      limits: {memory: 1GB, pids: 10}\n", ""},
		{program + "      limits: \"${{ input.limits }}\"\n", ""},
	} {
		src, want := c[0], c[1]
		_, ps := ExamineWithin(most, "w.yaml", []byte(src))
		got := ""
		for _, p := range ps {
			got += p.String() + "\n"
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\ngives %s\nwant %s", src, got, want)
		}
		if _, err := Parse("w.yaml", []byte(src)); err != nil {
			t.Errorf("without ceilings: %v", err)
		}
	}
}
