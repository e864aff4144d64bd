package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercent(t *testing.T) {
	for alive, want := range map[uint64]int{0: 400, 1: 400, 1 << 20: 400, 12 << 20: 400, 16 << 20: 300, 24 << 20: 200, 48 << 20: 100, 1 << 30: 100, 1 << 50: 100} {
		if got := percent(alive); got != want {
			t.Errorf("with %d bytes alive: %d%%, want %d%%", alive, got, want)
		}
	}
}

// A heap that grows beyond room is collected like Go's default, and one that has shrunk is not.
func TestGrow(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	Grow()
	becomes := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
			runtime.GC()
			got := debug.SetGCPercent(100)
			debug.SetGCPercent(got)
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("garbage is collected at %d%%, not at %d%%", got, want)
			}
		}
	}
	becomes(400)
	held := make([]byte, 2*room)
	becomes(100)
	runtime.KeepAlive(held)
	becomes(400)
}

func TestGrowLeavesTheOperatorsChoice(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetGCPercent(50)
	defer debug.SetGCPercent(before)
	Grow()
	if got := debug.SetGCPercent(50); got != 50 {
		t.Errorf("GOGC=50 became %d%%", got)
	}
}
