package pod

import (
	"testing"
	"time"
)

// A sleeping program is read seldom, and one near its CPU limit often, depending on how many processors it may use.
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

// Kills without the container's own limit being reached are the node's fault.
func TestHostFull(t *testing.T) {
	t.Parallel()
	v1, v2 := usage{limit: 100 << 20}, usage{v2: true}
	for what, c := range map[string]struct {
		u             *usage
		before, after counts
		want          bool
	}{
		"no kill":             {&v2, counts{oomKills: 2}, counts{oomKills: 2}, false},
		"at the limit":        {&v2, counts{}, counts{oomKills: 1, ooms: 1}, false},
		"on a full node":      {&v2, counts{oomKills: 1, ooms: 1}, counts{oomKills: 2, ooms: 1}, true},
		"v1 at the limit":     {&v1, counts{}, counts{oomKills: 1, peak: 100<<20 - 4096}, false},
		"v1 on a full node":   {&v1, counts{}, counts{oomKills: 1, peak: 50 << 20}, true},
		"v1 without its peak": {&v1, counts{}, counts{oomKills: 1}, false},
	} {
		if got := c.u.hostFull(c.before, c.after); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
