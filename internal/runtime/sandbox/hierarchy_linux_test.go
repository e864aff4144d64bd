package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// fakeV2 is a directory that looks like a cgroup v2 hierarchy: nested groups with controllers, some of which are enabled for their
// children. It does not refuse what the kernel would refuse.
func fakeV2(t *testing.T, groups map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, files := range groups {
		dir := filepath.Join(root, path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file := range strings.SplitSeq(files, "\n") {
			name, content, _ := strings.Cut(file, "=")
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestDelegated(t *testing.T) {
	root := fakeV2(t, map[string]string{
		"":                 "cgroup.controllers=cpu memory pids\ncgroup.subtree_control=cpu memory pids",
		"slice":            "cgroup.controllers=memory pids\ncgroup.subtree_control=memory",
		"slice/scope":      "cgroup.controllers=memory\ncgroup.subtree_control=",
		"slice/scope/deep": "cgroup.controllers=\ncgroup.subtree_control=",
	})
	got, err := delegated(filepath.Join(root, "slice/scope/deep"), root, "pawl-test-")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(root, "slice"); got != want {
		t.Errorf("runs go beneath %s, want the closest group that has both controllers: %s", got, want)
	}
	if enabled := string(read(got, "cgroup.subtree_control")); !strings.Contains(enabled, "+pids") {
		t.Errorf("pids was not handed on: %q", enabled)
	}
	poor := fakeV2(t, map[string]string{
		"":    "cgroup.controllers=cpu\ncgroup.subtree_control=",
		"own": "cgroup.controllers=cpu\ncgroup.subtree_control=",
	})
	if dir, err := delegated(filepath.Join(poor, "own"), poor, "pawl-test-"); err == nil {
		t.Errorf("found %s in a hierarchy without controllers", dir)
	}
}

func TestLimitV2(t *testing.T) {
	root := fakeV2(t, map[string]string{
		"run": "memory.max=max\nmemory.swap.max=max\npids.max=max\nmemory.events=low 0\noom 3\n" +
			"memory.peak=50000000\ncpu.stat=\ncpu.max=max 100000\npids.events=max 0",
	})
	dir, err := os.Open(filepath.Join(root, "run"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	g := &group{owner: &cgroups{unified: root, limits: true}, name: "run", dir: dir}
	if err := g.limitV2(runtime.Limits{Memory: 64 << 20, Pids: 32, CPUs: 1.5}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"memory.max": fmt.Sprint(64<<20 + initMemory), "memory.swap.max": "0", "pids.max": fmt.Sprint(32 + initTasks), "cpu.max": "30000 20000",
	} {
		// A regular file keeps the rest of its content after a shorter write.
		if got := string(read(dir.Name(), file)); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "run/memory.events"), []byte("low 0\noom 2\noom_kill 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "run/memory.stat"), []byte("anon 7000\nfile 30000\nshmem 10000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := g.pageCache(); n != 20000 {
		t.Errorf("a page cache of %d bytes, want that of files without memory file systems, 20000", n)
	}
	if g.pidsHit() {
		t.Error("the limit on processes was met")
	}
	if err := os.WriteFile(filepath.Join(root, "run/pids.events"), []byte("max 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !g.pidsHit() {
		t.Error("the limit on processes was not met")
	}
	if n := g.oomKills(); n != 5 {
		t.Errorf("%d OOM kills, want 5", n)
	}
	if peak := g.peakMemory(); peak <= 0 || peak > 50_000_000 {
		t.Errorf("peak memory %d", peak)
	}
	if name := g.owner.enforcement(); name != "cgroup-v2" {
		t.Errorf("enforcement %s", name)
	}
}

// The cpu controller is enabled where it exists, and its absence is not an error.
func TestEnableCPU(t *testing.T) {
	root := fakeV2(t, map[string]string{
		"with":    "cgroup.controllers=cpu memory pids\ncgroup.subtree_control=memory pids",
		"already": "cgroup.controllers=cpuset cpu\ncgroup.subtree_control=cpu",
		"without": "cgroup.controllers=cpuset memory pids\ncgroup.subtree_control=memory pids",
	})
	for group, want := range map[string]bool{"with": true, "already": true, "without": false} {
		if got := enableCPU(filepath.Join(root, group)); got != want {
			t.Errorf("%s: %t", group, got)
		}
	}
	if enabled := string(read(filepath.Join(root, "with"), "cgroup.subtree_control")); !strings.Contains(enabled, "+cpu") {
		t.Errorf("cpu was not handed on: %q", enabled)
	}
}

func TestCgroupMounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mountinfo")
	text := "30 25 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n" +
		"31 25 0:27 /docker/abc /sys/fs/cgroup/memory rw shared:10 master:1 - cgroup cgroup rw,memory\n" +
		"32 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:11 - cgroup cgroup rw,cpu,cpuacct\n" +
		"33 25 0:29 / /mnt/a\\040b rw - ext4 /dev/sda rw\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mounts, err := cgroupMounts(file)
	if err != nil {
		t.Fatal(err)
	}
	for controller, want := range map[string]mountPoint{
		"": {"/", "/sys/fs/cgroup/unified"}, "memory": {"/docker/abc", "/sys/fs/cgroup/memory"},
		"cpuacct": {"/", "/sys/fs/cgroup/cpu,cpuacct"},
	} {
		if mounts[controller] != want {
			t.Errorf("%q is mounted at %+v, want %+v", controller, mounts[controller], want)
		}
	}
	if _, ok := mounts["pids"]; ok {
		t.Error("found a controller that is not mounted")
	}
}

// TestSweep checks that a sweep removes a dead owner's cgroups, and not a living one's.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	live, err := ownerPrefix()
	if err != nil {
		t.Fatal(err)
	}
	ns, err := pidNamespace()
	if err != nil {
		t.Fatal(err)
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	keep := []string{live + "1", "pawl-1.1.1-1", "unrelated", fmt.Sprintf("pawl-%d.garbage", ns)}
	gone := []string{
		fmt.Sprintf("pawl-%d.%d.%d-1", ns, os.Getpid(), start+1), // our pid, used by an earlier process
		fmt.Sprintf("pawl-%d.%d.%d-7", ns, 1<<30, start),
	}
	for _, name := range append(append([]string{}, keep...), gone...) {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	(&cgroups{memory: root}).sweep()
	for _, name := range keep {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("%s was swept away", name)
		}
	}
	for _, name := range gone {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s was not swept up", name)
		}
	}
}
