//go:build unix

package runtimetest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// holder is a runtime that builds sandboxes before the runs that use them. Their cgroups exist between runs.
type holder interface {
	// Held returns the cgroups of the waiting sandboxes, without one that is being built; full means that as many wait as the runtime keeps.
	Held() (cgroups []string, full bool)
}

// idle waits until a runtime has built all that it keeps ready, for at most a minute, then until a count stays the same, and returns
// it: on a busy machine two sandboxes may be built a second apart, and a count in between is too low.
func idle(r runtime.Runtime, count func() int) int {
	if h, holds := r.(holder); holds {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
			if _, full := h.Held(); full {
				break
			}
		}
	}
	return steady(count)
}

// leftCgroups lists the cgroups of this process that belong to no run and to no waiting sandbox.
func leftCgroups(t testing.TB, r runtime.Runtime) []string {
	t.Helper()
	h, holds := r.(holder)
	if !holds {
		return Cgroups(os.Getpid())
	}
	deadline := time.Now().Add(5 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		all := Cgroups(os.Getpid())
		held, _ := h.Held() // read after the listing: until the next run, the pool only grows
		left := slices.DeleteFunc(all, func(dir string) bool { return slices.Contains(held, filepath.Base(dir)) })
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		<-tick.C
	}
}
