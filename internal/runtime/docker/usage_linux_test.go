package docker

import (
	"os"
	"path/filepath"
	"testing"
)

// When the machine's memory is full, the kernel kills processes of a container that has not reached its own limit, and counts that like
// any other memory kill.
func TestWhoseMemoryWasFull(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	for name, c := range map[string]struct {
		files   map[string]string
		unified bool
		host    bool
	}{
		"v2, its own limit":         {map[string]string{"memory.events": "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n"}, true, false},
		"v2, the machine":           {map[string]string{"memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n"}, true, true},
		"v2, nothing":               {map[string]string{"memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"}, true, false},
		"v1, its own limit":         {map[string]string{"memory.oom_control": "oom_kill 1\n", "memory.max_usage_in_bytes": "67108000\n"}, false, false},
		"v1, the machine":           {map[string]string{"memory.oom_control": "oom_kill 1\n", "memory.max_usage_in_bytes": "9000000\n"}, false, true},
		"v1, gone while it is read": {map[string]string{"memory.oom_control": "oom_kill 1\n"}, false, false},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		u := newUsage(nil, "", limit)
		u.cgroup = &cgroup{memory: dir, cpu: dir, unified: c.unified}
		u.look()
		if got := u.close().hostFull; got != c.host {
			t.Errorf("%s: %v", name, got)
		}
	}
}
