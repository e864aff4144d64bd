package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// id is the zygote's process id; 0 if there is none.
func (z *zygote) id() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.pid
}

// TestZygoteDies kills the process that forks the inits. A sandbox that was built before waits on and can run; later ones come from
// another zygote.
func TestZygoteDies(t *testing.T) {
	r := openPool(t, Options{Warm: 1})
	waiting, first := r.pool.ids()[0], r.zygote.id()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		n := begin(t, r, runtime.Spec{Argv: []string{"true"}})
		if i == 0 && n.pid != waiting {
			t.Errorf("the run got %d and %d was waiting", n.pid, waiting)
		}
		if result := n.Wait(); result.Verdict != runtime.OK {
			t.Errorf("%+v", result)
		}
	}
	until(t, "the pool is full again", func() bool { return r.pool.len() == 1 })
	if now := r.zygote.id(); now == first {
		t.Error("it is the same")
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", first)); err == nil {
		t.Errorf("%d is still there", first)
	}
}

// TestZygoteStaysSmall forks many inits. The zygote's garbage is never collected, so it must make none.
func TestZygoteStaysSmall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector keeps notes of what the zygote does")
	}
	r := factory(Options{})(t).(*Runtime)
	t.Cleanup(func() { _ = r.Close() })
	memory := func(births int) int64 {
		for range births {
			if result := begin(t, r, runtime.Spec{Argv: []string{"true"}}).Wait(); result.Verdict != runtime.OK {
				t.Fatalf("%+v", result)
			}
		}
		return residentOf(r.zygote.id())
	}
	first := memory(10)
	if first == 0 {
		t.Fatal("the memory of the zygote cannot be read")
	}
	// If each of 100 births left 1 KB, that would be 100 KB.
	if later := memory(100); later > first+32<<10 {
		t.Errorf("%d bytes after 10 births, %d after 110", first, later)
	}
}

// TestZygoteCloses checks that the zygote ends with its runtime, and that the next runtime has its own.
func TestZygoteCloses(t *testing.T) {
	r := factory(Options{})(t).(*Runtime)
	if result := begin(t, r, runtime.Spec{Argv: []string{"true"}}).Wait(); result.Verdict != runtime.OK {
		t.Errorf("%+v", result)
	}
	zygote := r.zygote.id()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", zygote)); err == nil {
		t.Errorf("%d is still there", zygote)
	}
}
