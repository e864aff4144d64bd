package pod

import (
	"errors"
	"os"
	"path/filepath"
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

// Process 1 looks at its cgroup as long as its program runs, which leaves nothing behind: each byte of garbage would be resident until it is collected.
func TestLooksAllocateNothing(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"cgroup-v1": {"cpuacct/cpuacct.usage": "2000000\n", "memory/memory.max_usage_in_bytes": "4096\n", "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "pids/pids.current": "5\n"},
		"cgroup-v2": {"cgroup.controllers": "cpu\n", "cpu.stat": "usage_usec 2000\nuser_usec 1\n", "memory.peak": "4096\n", "memory.events": "oom 1\noom_kill 3\n", "pids.current": "5\n"},
	} {
		root := t.TempDir()
		for file, text := range files {
			path := filepath.Join(root, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		u := new(usage)
		if err := u.open(root); err != nil {
			t.Fatal(err)
		}
		if got, want := u.read(), (counts{2 * time.Millisecond, 4096, 3, 5}); got != want || u.name() != name {
			t.Errorf("%s: %+v, want %+v", u.name(), got, want)
		}
		if each := testing.AllocsPerRun(100, func() { u.read() }); each != 0 {
			t.Errorf("%s: a look allocates %v times", name, each)
		}
	}
	if err := new(usage).open(t.TempDir()); err == nil {
		t.Error("a container whose cgroup cannot be read starts its program")
	}
}
