package process

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// A program does not inherit the score by which the kernel keeps a server that is short of memory.
func TestProgramIsKilledBeforePawl(t *testing.T) {
	r, err := New(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	run, err := r.Start(t.Context(), runtime.Spec{
		Argv: []string{"sh", "-c", `until read score </proc/self/oom_score_adj && [ "$score" = 1000 ]; do :; done`}, Env: []string{"PATH=/usr/bin:/bin"},
		Limits: runtime.Limits{Wall: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result := run.Wait(); result.Verdict != runtime.OK {
		t.Errorf("%+v", result)
	}
}
