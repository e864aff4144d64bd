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
	Held() []string // the names of the cgroups that wait; one that is being built is not among them yet
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
		held := h.Held() // asked later: until the next run, the pool only grows
		left := slices.DeleteFunc(all, func(dir string) bool { return slices.Contains(held, filepath.Base(dir)) })
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		<-tick.C
	}
}
