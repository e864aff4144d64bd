//go:build unix

package runtimetest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// race is row 47. It lets the end of the program, the wall limit and two kills meet at the same moment, many times over.
func race(t testing.TB, r runtime.Runtime, rounds int) {
	finish(t, r, shell("exit 0")) // what is opened once is open by now
	descriptors := openDescriptors()
	seen := make(map[runtime.Verdict]int)
	for i := range rounds {
		spec := shell("exit 0")
		spec.Limits.Wall = time.Duration(1+i%8) * time.Millisecond / 2
		run, err := r.Start(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		var results [2]runtime.Result
		var waiters sync.WaitGroup
		for w := range results {
			waiters.Go(func() { results[w] = run.Wait() })
		}
		if i%2 == 0 {
			waiters.Go(func() { run.Kill("race") })
			run.Kill("race")
		}
		waiters.Wait()
		if results[0].Verdict != results[1].Verdict || results[0].Reason != results[1].Reason {
			t.Fatalf("two waiters got %+v and %+v", results[0], results[1])
		}
		wantVerdict(t, results[0], runtime.OK, runtime.Killed, runtime.Timeout)
		seen[results[0].Verdict]++
	}
	t.Logf("%d rounds: %v", rounds, seen)
	if now := openDescriptors(); now > descriptors+2 {
		t.Errorf("%d descriptors were open before and %d are after", descriptors, now)
	}
}

// openDescriptors counts this process's descriptors, where that can be done.
func openDescriptors() int {
	entries, _ := os.ReadDir("/dev/fd")
	return len(entries)
}
