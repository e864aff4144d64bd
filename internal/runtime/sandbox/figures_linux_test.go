package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
)

// ended runs a program to its end.
func ended(t *testing.T, r runtime.Runtime, spec runtime.Spec) runtime.Result {
	t.Helper()
	run, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return run.Wait()
}

// TestPidsAreExact counts the processes that a limit allows, from the first fork on, and checks that the result reports that it was
// reached. If the init shares the run's cgroup, or rlimits enforce the limit, a few more are allowed.
func TestPidsAreExact(t *testing.T) {
	for _, o := range []Options{{}, {Warm: 2}} {
		r := factory(o)(t)
		t.Cleanup(func() { _ = r.Close() })
		if c := r.(*Runtime).cgroups; c == nil || c.limits {
			t.Skip("only with cgroup v1")
		}
		for _, c := range []struct {
			pids, jobs int
			fits       bool
		}{{1, 0, true}, {1, 1, false}, {2, 1, true}, {2, 2, false}, {8, 7, true}, {8, 8, false}} {
			for range 3 {
				script := "i=0; while [ $i -lt $0 ]; do sleep 10 & i=$((i + 1)); done; exit 0"
				result := ended(t, r, runtime.Spec{Argv: []string{"/bin/sh", "-c", script, strconv.Itoa(c.jobs)}, Env: []string{"PATH=/usr/bin:/bin"},
					Limits: runtime.Limits{Pids: c.pids}})
				if met := slices.Equal(result.LimitsHit, []string{runtime.HitPids}); met == c.fits || (result.Verdict == runtime.OK) != c.fits {
					t.Errorf("%d jobs under a limit of %d: %s, limits hit %v", c.jobs, c.pids, result.Verdict, result.LimitsHit)
				}
			}
		}
	}
}

// TestWallHoldsCPU checks that the wall time of a program with one thread is never less than its processor time: it is measured where the
// program runs, not when the host reads its end.
func TestWallHoldsCPU(t *testing.T) {
	r := factory(Options{Warm: 2})(t)
	t.Cleanup(func() { _ = r.Close() })
	var over atomic.Bool // this process is busy, so that it reads the init's messages late
	defer over.Store(true)
	for range 8 {
		go func() {
			for !over.Load() {
			}
		}()
	}
	for range 60 {
		result := ended(t, r, runtime.Spec{Argv: []string{"/bin/true"}, Env: []string{"PATH=/usr/bin:/bin"}})
		if result.Verdict != runtime.OK || result.Wall < result.CPU {
			t.Fatalf("%s: wall %v, cpu %v", result.Verdict, result.Wall, result.CPU)
		}
	}
}

// TestStarved runs twice as many busy programs as there are processors, so that each waits about half of its time, and one that sleeps. A
// quarter of a busy program's wait is the least that must be counted: the time that a hypervisor gives to other machines is in the wall
// time and not in the kernel's count, and the kernel weights its count by how busy each processor was (0.497 of the wait was seen on a
// loaded virtual machine).
func TestStarved(t *testing.T) {
	r := factory(Options{})(t)
	t.Cleanup(func() { _ = r.Close() })
	if c := r.(*Runtime).cgroups; c == nil || c.unified == "" || len(read(c.unified, "cpu.pressure")) == 0 {
		t.Skip("the kernel does not count by cgroup how long there was no processor")
	}
	spec := func(script string) runtime.Spec {
		return runtime.Spec{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
			Limits: runtime.Limits{CPU: 500 * time.Millisecond, Wall: 60 * time.Second}}
	}
	var all sync.WaitGroup
	for range 2 * goruntime.NumCPU() {
		all.Go(func() {
			result := ended(t, r, spec("while :; do :; done"))
			waited := result.Wall - result.CPU
			if result.Verdict != runtime.CPUTimeout || result.Starved < waited/4 || result.Starved > waited*11/10+50*time.Millisecond {
				t.Errorf("%s: starved for %v of %v, with %v of processor time", result.Verdict, result.Starved, result.Wall, result.CPU)
			}
		})
	}
	all.Wait()
	if result := ended(t, r, spec("sleep 1")); result.Verdict != runtime.OK || result.Starved > result.Wall/2 {
		t.Errorf("%s: starved for %v of %v, asleep", result.Verdict, result.Starved, result.Wall)
	}
}

// TestStarvedBeforeTheStart starves a sandbox of the pool before it gets its program, as can happen on a busy machine while the init
// builds the sandbox: none of that counts for the program. A program that only sleeps is not starved, whether it ends by itself or is
// ended.
func TestStarvedBeforeTheStart(t *testing.T) {
	r := openPool(t, Options{Warm: 1})
	if c := r.cgroups; c == nil || c.unified == "" || len(read(c.unified, "cpu.pressure")) == 0 {
		t.Skip("the kernel does not count by cgroup how long there was no processor")
	}
	for _, c := range []struct {
		sleep   string
		verdict runtime.Verdict
	}{{"0.3", runtime.OK}, {"10", runtime.Timeout}} {
		settle(t, r, 1)
		held, _ := r.Held()
		starve(t, filepath.Join(r.cgroups.unified, held[0]), 400*time.Millisecond)
		result := ended(t, r, runtime.Spec{Argv: []string{"/bin/sleep", c.sleep}, Env: []string{"PATH=/usr/bin:/bin"},
			Limits: runtime.Limits{Wall: 1500 * time.Millisecond}})
		// It slept at least 0.3 s, and the kernel counts in steps of some milliseconds.
		if result.Verdict != c.verdict || result.Starved > result.Wall-150*time.Millisecond {
			t.Errorf("sleep %s: %s, starved for %v of %v", c.sleep, result.Verdict, result.Starved, result.Wall)
		}
	}
}

// starve makes a process in the cgroup wait for a processor that another uses, for long enough. It reads the pressure of the cgroup only
// once: the kernel counts the time since the last reading in whole ticks, so that readings 1 ms apart lose nearly all of it.
func starve(t *testing.T, cgroup string, enough time.Duration) {
	t.Helper()
	dir, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	begun := make(chan error)
	var busy [2]*exec.Cmd
	go func() {
		goruntime.LockOSThread() // the processes inherit its affinity; the thread ends with this goroutine
		var all, one unix.CPUSet
		err := unix.SchedGetaffinity(0, &all)
		for cpu := 0; one.Count() == 0; cpu++ {
			if all.IsSet(cpu) {
				one.Set(cpu)
			}
		}
		err = errors.Join(err, unix.SchedSetaffinity(0, &one))
		for i := range busy {
			busy[i] = exec.Command("/bin/sh", "-c", "while :; do :; done")
			busy[i].SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: i == 0, CgroupFD: int(dir.Fd())}
			err = errors.Join(err, busy[i].Start())
		}
		begun <- err
	}()
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, b := range busy {
			_ = b.Process.Kill()
			_ = b.Wait()
		}
	}()
	before := (&group{dir: dir}).starved()
	until(t, "a process waits for a processor", func() bool {
		var ran, waited time.Duration
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", busy[0].Process.Pid))
		if err == nil {
			_, err = fmt.Sscan(string(text), &ran, &waited)
		}
		return err == nil && waited > enough
	})
	if counted := (&group{dir: dir}).starved() - before; counted < enough/2 {
		t.Fatalf("the kernel counted %v of a wait of %v", counted, enough)
	}
}

// TestShareOfProcessors uses half a second of processor time with half a processor: on any machine that takes at least about a second. It
// does so in a sandbox of the pool and in a new one.
func TestShareOfProcessors(t *testing.T) {
	for _, o := range []Options{{}, {Warm: 1}} {
		r := factory(o)(t)
		t.Cleanup(func() { _ = r.Close() })
		spec := runtime.Spec{Argv: []string{"/bin/sh", "-c", "while :; do :; done"}, Env: []string{"PATH=/usr/bin:/bin"},
			Limits: runtime.Limits{CPU: 500 * time.Millisecond, Wall: 5 * time.Minute, CPUs: 0.5}} // a busy machine gave it 0.3 s in 20 s
		if !r.(*Runtime).cgroups.limitsCPUs() {
			if _, err := r.Start(t.Context(), spec); !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(err.Error(), "limits.cpus is 0.5") {
				t.Errorf("without a controller: %v", err)
			}
			continue
		}
		if result := ended(t, r, spec); result.Verdict != runtime.CPUTimeout || result.Wall < 950*time.Millisecond {
			t.Errorf("%s after %v with %v of processor time", result.Verdict, result.Wall, result.CPU)
		}
	}
}

// TestPageCacheIsApart runs a program on a file that the kernel has not read yet: the cached pages do not count as the program's memory,
// and the next run has none.
func TestPageCacheIsApart(t *testing.T) {
	r := factory(Options{})(t)
	t.Cleanup(func() { _ = r.Close() })
	if r.(*Runtime).cgroups == nil {
		t.Skip("without cgroups only the memory of processes is measured")
	}
	dir := publicDir(t)
	file := filepath.Join(dir, "large")
	const size = 32 << 20
	evicted(t, file, size)
	spec := func() runtime.Spec {
		return runtime.Spec{Argv: []string{"/bin/sh", "-c", "cat " + file + " >/dev/null; head -c 8000000 /dev/zero >own"}, Env: []string{"PATH=/usr/bin:/bin"},
			Mounts: []runtime.Mount{{Path: dir}}}
	}
	cold := ended(t, r, spec())
	if cold.Verdict != runtime.OK || cold.PageCache < size*3/4 || cold.PageCache > cold.PeakMemory {
		t.Errorf("%s: peak %d, page cache %d of a file of %d bytes", cold.Verdict, cold.PeakMemory, cold.PageCache, size)
	}
	warm := ended(t, r, spec())
	if warm.PageCache > size/8 {
		t.Errorf("the second run: peak %d, page cache %d", warm.PeakMemory, warm.PageCache)
	}
	for _, result := range []runtime.Result{cold, warm} {
		if held := result.PeakMemory - result.PageCache; held < 8000000 || held > 16<<20 {
			t.Errorf("held %d bytes; the file in its working directory alone has 8000000", held)
		}
	}
}

// evicted makes a file that is on disk and not in the page cache.
func evicted(t *testing.T, path string, size int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skipf("%s is not on a disk (%v)", path, err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}

// A program that the kernel kills because the cgroup above its own is full has not exceeded its own limit.
func TestMemoryOfTheGroupAbove(t *testing.T) {
	r := factory(Options{})(t).(*Runtime)
	t.Cleanup(func() { _ = r.Close() })
	if r.cgroups == nil {
		t.Skip("NOT TESTED: there are no cgroups here, and so no group above a run")
	}
	const small = 96 << 20
	above, limit := &r.cgroups.memory, "memory.limit_in_bytes"
	if r.cgroups.limits {
		above, limit = &r.cgroups.unified, "memory.max"
	}
	parent := *above
	*above = filepath.Join(parent, r.cgroups.prefix+"small")
	if err := os.Mkdir(*above, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(*above); err != nil {
			t.Error(err)
		}
		*above = parent
	})
	if err := write(*above, limit, strconv.Itoa(small)); err != nil {
		t.Fatal(err)
	}
	if r.cgroups.limits {
		if err := write(*above, "cgroup.subtree_control", "+memory +pids"); err != nil {
			t.Fatal(err)
		}
	}
	run := func(source string, memory int64) runtime.Result {
		return ended(t, r, runtime.Spec{Argv: []string{"/bin/sh", "-c", source}, Env: []string{"PATH=/usr/bin:/bin"}, Limits: runtime.Limits{Memory: memory}})
	}
	for source, want := range map[string]runtime.Verdict{"exec tail -n 1 /dev/zero": runtime.OOM, "tail -n 1 /dev/zero; exit 0": runtime.OK} {
		if res := run(source, small/2); res.Verdict != want || res.Reason == "" || strings.Contains(res.Reason, "machine") {
			t.Errorf("%s, at its own limit: %s: %s", source, res.Verdict, res.Reason)
		}
		res := run(source, 4*small)
		if res.Verdict != runtime.InfraError || !strings.Contains(res.Reason, "the memory of the machine") || len(res.LimitsHit) > 0 {
			t.Errorf("%s, at the limit above: %s %v: %s", source, res.Verdict, res.LimitsHit, res.Reason)
		}
	}
}
