package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/programtest"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

// TestV2Only sees only a cgroup v2 hierarchy, in its own mount namespace. If that has the memory and pids controllers the whole suite
// runs on it; if v1 uses them, as on a hybrid host, only the parts of v2 run that need no controller: forking into a cgroup, freezing and
// killing.
func TestV2Only(t *testing.T) {
	const marker = "PAWL_TEST_V2_ONLY"
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a cgroup hierarchy")
	}
	if os.Getenv(marker) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestV2Only$", "-test.v")
		cmd.Env = append(os.Environ(), marker+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	const top = "/sys/fs/cgroup"
	mountV2Only(t, top)
	found, err := findCgroups()
	if err == nil {
		if name := found.enforcement(); name != "cgroup-v2" {
			t.Fatalf("enforcement %s with v2 only", name)
		}
		runtimetest.Exercise(t, factory(Options{}), runtimetest.Brief())
		return
	}
	if !strings.Contains(err.Error(), "controller") {
		t.Errorf("%q does not say which controller is missing", err)
	}
	r := factory(Options{})(t)
	if name := r.(*Runtime).cgroups.enforcement(); name != "rlimit+watchdog" {
		t.Errorf("enforcement %s without controllers", name)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	t.Run("born, frozen and killed", func(t *testing.T) { bornFrozenKilled(t, top) })
	t.Skipf("the limits are not tested on v2 here: %v; v2 has %q, v1 holds %s", err,
		strings.TrimSpace(string(read(top, "cgroup.controllers"))), heldByV1(t))
}

// mountV2Only removes every cgroup mount from this process's mount namespace and mounts a single v2 hierarchy instead.
func mountV2Only(t *testing.T, top string) {
	t.Helper()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	for {
		mounts, err := cgroupMounts("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		if len(mounts) == 0 {
			break
		}
		for _, m := range mounts {
			_ = unix.Unmount(m.dir, unix.MNT_DETACH) // several controllers may share it
		}
	}
	_ = unix.Unmount(top, unix.MNT_DETACH) // the tmpfs that contained them, if there was one
	if err := unix.Mount("cgroup2", top, "cgroup2", 0, ""); err != nil {
		t.Skipf("this kernel mounts no cgroup v2: %v", err)
	}
}

func heldByV1(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[1] != "0" && !strings.HasPrefix(line, "#") {
			held = append(held, fields[0])
		}
	}
	return strings.Join(held, ", ")
}

func bornFrozenKilled(t *testing.T, top string) {
	prefix, err := ownerPrefix()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(top, prefix+"v2-test")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	g := &group{owner: &cgroups{unified: top, limits: true, prefix: prefix}, name: filepath.Base(path), dirs: []string{path}, dir: dir}
	cmd := exec.Command("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (sleep 1000 & sleep 1000) & done; echo ready; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := programtest.Start(cmd); err != nil {
		t.Fatalf("born in a cgroup: %v", err)
	}
	if _, err := stdout.Read(make([]byte, 16)); err != nil {
		t.Error(err)
	}
	members := strings.Fields(string(read(path, "cgroup.procs")))
	if len(members) < 9 || !strings.Contains(strings.Join(members, " "), strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("the cgroup's members are %v, want %d and its family", members, cmd.Process.Pid)
	}
	if err := write(path, "cgroup.freeze", "1"); err != nil {
		t.Error(err)
	}
	await(t, "frozen", func() bool { return field(path, "cgroup.events", "frozen") == 1 })
	g.kill() // also what is frozen
	await(t, "empty", func() bool { return field(path, "cgroup.events", "populated") == 0 })
	if err := cmd.Wait(); err == nil {
		t.Error("the family's first process ended by itself")
	}
	if err := g.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Errorf("%s is still there", path)
	}
}

// await waits for a state that the kernel reaches by itself.
func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !reached() {
		if time.Now().After(deadline) {
			t.Fatalf("the cgroup was never %s", what)
		}
		<-tick.C
	}
}
