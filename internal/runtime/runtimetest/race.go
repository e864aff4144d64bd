//go:build unix

package runtimetest

import (
	"context"
	"crypto/rand"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// race is row 47. It makes the end of the program, the wall limit and two kills coincide, many times.
func race(t testing.TB, r runtime.Runtime, rounds int) {
	finish(t, r, shell("exit 0")) // what is opened on first use is open now
	descriptors := idle(r, openDescriptors)
	token := rand.Text()
	var seen sync.Map
	var abreast sync.WaitGroup
	next := make(chan int)
	for range 4 {
		abreast.Go(func() {
			for i := range next {
				verdict := raceOnce(t, r, token, i)
				count, _ := seen.LoadOrStore(verdict, new(atomic.Int64))
				count.(*atomic.Int64).Add(1)
			}
		})
	}
	for i := range rounds {
		next <- i
	}
	close(next)
	abreast.Wait()
	counts := make(map[runtime.Verdict]int64)
	seen.Range(func(verdict, count any) bool {
		counts[verdict.(runtime.Verdict)] = count.(*atomic.Int64).Load()
		return true
	})
	t.Logf("%d rounds: %v", rounds, counts)
	if now, ok := settles(func() bool { return openDescriptors() <= descriptors+2 }, openDescriptors); !ok {
		t.Errorf("%d descriptors were open before and %d are after", descriptors, now)
	}
	if left := Processes(token); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// raceOnce is one round; both callers of Wait must get the same result.
func raceOnce(t testing.TB, r runtime.Runtime, token string, i int) runtime.Verdict {
	t.Helper()
	spec := shell("exit 0", token)
	spec.Limits.Wall = time.Duration(1+i%16) * 150 * time.Microsecond
	run, err := r.Start(context.Background(), spec)
	if err != nil {
		t.Error(err)
		return runtime.InfraError
	}
	var results [2]runtime.Result
	var waiters sync.WaitGroup
	for w := range results {
		waiters.Go(func() { results[w] = run.Wait() })
	}
	if i%3 == 0 {
		waiters.Go(func() { run.Kill("race") })
		run.Kill("race")
	}
	waiters.Wait()
	if results[0].Verdict != results[1].Verdict || results[0].Reason != results[1].Reason {
		t.Errorf("two waiters got %+v and %+v", results[0], results[1])
	}
	wantVerdict(t, results[0], runtime.OK, runtime.Killed, runtime.Timeout)
	return results[0].Verdict
}

// openDescriptors counts this process's descriptors, where that is possible.
func openDescriptors() int {
	entries, _ := os.ReadDir("/dev/fd")
	return len(entries)
}
