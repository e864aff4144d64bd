package engine

import (
	"testing"

	"github.com/pawl-run/pawl/internal/handoff"
)

// A worker has as many calls at once as transactions can run in parallel, at most two.
func TestCallsByCommitters(t *testing.T) {
	t.Parallel()
	for committers, want := range map[int]int{0: 1, 1: 1, 2: 2, 4: 2} {
		e, err := New(Options{Store: unusedStore{}, Committers: committers})
		if err != nil {
			t.Fatal(err)
		}
		if n := handoff.Calls(e); n != want {
			t.Errorf("%d committers: %d calls, not %d", committers, n, want)
		}
	}
}
