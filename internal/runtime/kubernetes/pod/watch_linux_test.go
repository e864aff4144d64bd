package pod

import (
	"testing"
	"time"
)

// A program that sleeps is seldom looked at, and one that is near its limit of processor time often, by how many processors it may use.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		left       time.Duration
		processors int
		tasks      bool
		want       time.Duration
	}{
		{time.Minute, 2, false, farthestLook},
		{time.Minute, 2, true, tasksLook},
		{400 * time.Millisecond, 2, false, 100 * time.Millisecond},
		{400 * time.Millisecond, 2, true, tasksLook},
		{time.Second, 64, false, time.Second / 128},
		{-time.Second, 2, false, closestLook},
	} {
		if got := pause(c.left, c.processors, c.tasks); got != c.want {
			t.Errorf("%v left on %d processors, counting tasks %v: looked at after %v, want %v", c.left, c.processors, c.tasks, got, c.want)
		}
	}
}
