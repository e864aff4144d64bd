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

// holder is a runtime that builds sandboxes ahead of the runs that they are for. Their cgroups are there between runs.
type holder interface {
	// Held names the cgroups that wait; one that is being built is not among them yet. full: as many wait as the runtime keeps.
	Held() (cgroups []string, full bool)
}

// idle waits until a runtime has built what it keeps ready, for at most a minute, and then until what is counted stays as it is, and
// returns that: on a busy machine a second may pass between two sandboxes, and a count in between is too low.
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

// leftCgroups lists the cgroups of this process that belong to no run and do not wait for one.
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
		held, _ := h.Held() // asked later: until the next run, the pool only grows
		left := slices.DeleteFunc(all, func(dir string) bool { return slices.Contains(held, filepath.Base(dir)) })
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		<-tick.C
	}
}
