package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

// len is the number of waiting sandboxes.
func (p *pool) len() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stock)
}

// until polls a condition that another goroutine or the kernel makes true.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if <-tick.C; time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func openPool(t *testing.T, o Options) *Runtime {
	t.Helper()
	r := factory(o)(t).(*Runtime)
	t.Cleanup(func() { r.Close() })
	settle(t, r, o.Warm)
	return r
}

// ids are the inits of the sandboxes in the pool.
func (p *pool) ids() (all []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.stock {
		all = append(all, w.pid)
	}
	return all
}

func begin(t *testing.T, r *Runtime, spec runtime.Spec) *run {
	t.Helper()
	spec.Env = []string{"PATH=/usr/bin:/bin"}
	started, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { started.Kill("the test is over"); started.Wait() })
	return started.(*run)
}

// TestPoolIsUsedOnce checks that a run takes the oldest sandbox of the pool, and never one that another run has used.
func TestPoolIsUsedOnce(t *testing.T) {
	r := openPool(t, Options{Warm: 2})
	used := make(map[int]bool)
	for range 20 {
		waiting := r.pool.ids()
		n := begin(t, r, runtime.Spec{Argv: []string{"true"}})
		if n.pid != waiting[0] {
			t.Errorf("the run got %d and %v were waiting", n.pid, waiting)
		}
		if used[n.pid] {
			t.Errorf("%d was used twice", n.pid)
		}
		used[n.pid] = true
		if result := n.Wait(); result.Verdict != runtime.OK {
			t.Errorf("%+v", result)
		}
		until(t, "the pool is full again", func() bool { return r.pool.len() == 2 })
	}
}

// TestPoolIsEmpty starts more runs than the pool holds; sandboxes for the others are built on demand. While runs continue, the pool is
// refilled.
func TestPoolIsEmpty(t *testing.T) {
	r := openPool(t, Options{Warm: 2})
	for range 5 {
		begin(t, r, runtime.Spec{Argv: []string{"sleep", "60"}})
	}
	until(t, "the pool is filled during the runs", func() bool { return r.pool.len() == 2 })
}

// TestPoolDies kills the waiting sandboxes, which must not affect any run.
func TestPoolDies(t *testing.T) {
	r := openPool(t, Options{Warm: 3})
	victims := r.pool.ids()
	for _, pid := range victims {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	r.pool.mu.Lock()
	stock := r.pool.stock
	r.pool.mu.Unlock()
	until(t, "the inits are dead", func() bool {
		for _, w := range stock {
			if w.alive() {
				return false
			}
		}
		return true
	})
	if result := begin(t, r, runtime.Spec{Argv: []string{"true"}}).Wait(); result.Verdict != runtime.OK {
		t.Errorf("%+v", result)
	}
	until(t, "the pool is full of others", func() bool { return r.pool.len() == 3 })
	for _, pid := range victims {
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
			t.Errorf("%d is still there", pid)
		}
	}
}

// TestPoolIsOutdated replaces something on the host that every sandbox shows.
func TestPoolIsOutdated(t *testing.T) {
	r := openPool(t, Options{Warm: 2})
	waiting := r.pool.ids()
	r.pool.mu.Lock()
	for _, w := range r.pool.stock {
		w.view[0] = unix.Stat_t{Ino: 1}
	}
	r.pool.mu.Unlock()
	if n := begin(t, r, runtime.Spec{Argv: []string{"true"}}); n.pid == waiting[0] || n.pid == waiting[1] {
		t.Error("the run got an outdated sandbox")
	}
	until(t, "the pool is full of others", func() bool { return r.pool.len() == 2 })
	if now := r.pool.ids(); now[0] == waiting[0] || now[0] == waiting[1] {
		t.Error("the pool has kept an outdated sandbox")
	}
}

// TestPoolExpires waits until an idle pool is emptied, before and after a start, and then lets a start fill it again. The idle time is
// set for each step: with a time that the test could wait for, two sandboxes might take longer to build, and would never exist together.
func TestPoolExpires(t *testing.T) {
	r := openPool(t, Options{Warm: 2, KeepWarm: time.Hour})
	keep := func(d time.Duration) {
		r.pool.mu.Lock()
		defer r.pool.mu.Unlock()
		r.pool.keep = d
	}
	emptied := func() {
		t.Helper()
		until(t, "the pool is emptied", func() bool {
			r.pool.mu.Lock()
			defer r.pool.mu.Unlock()
			return r.pool.off && len(r.pool.stock) == 0
		})
		until(t, "its cgroups are gone", func() bool { return len(runtimetest.Cgroups(os.Getpid())) == 0 })
	}
	if r.pool.keep != time.Hour || !r.pool.expiry.Reset(time.Millisecond) {
		t.Errorf("a new pool is kept for %s, if it ever expires", r.pool.keep)
	}
	emptied()
	keep(time.Millisecond)
	begin(t, r, runtime.Spec{Argv: []string{"true"}}).Wait()
	emptied()
	keep(time.Hour)
	begin(t, r, runtime.Spec{Argv: []string{"sleep", "60"}})
	until(t, "the pool is full again", func() bool { return r.pool.len() == 2 })
}

// TestPoolSuits starts runs that need more than a sandbox in the pool was built for.
func TestPoolSuits(t *testing.T) {
	r := openPool(t, Options{Warm: 1})
	toolchain := publicDir(t)
	if err := os.WriteFile(filepath.Join(toolchain, "tool"), []byte("a tool"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec runtime.Spec
		want string
	}{
		"small disk": {runtime.Spec{Limits: runtime.Limits{Disk: 1 << 20},
			Argv: []string{"sh", "-c", "head -c 2000000 /dev/zero > x; stat -c %s x"}}, "1048576\n"},
		"large disk": {runtime.Spec{Limits: runtime.Limits{Disk: 300 << 20, Memory: 1 << 30},
			Argv: []string{"sh", "-c", "head -c 280000000 /dev/zero > x; stat -c %s x"}}, "280000000\n"},
		"input":      {runtime.Spec{Stdin: strings.NewReader("input"), Argv: []string{"cat"}}, "input"},
		"no input":   {runtime.Spec{Argv: []string{"stat", "-L", "-c", "%F", "/dev/stdin"}}, "character special file\n"},
		"mount":      {runtime.Spec{Mounts: []runtime.Mount{{Path: toolchain}}, Argv: []string{"cat", toolchain + "/tool"}}, "a tool"},
		"no mount":   {runtime.Spec{Argv: []string{"sh", "-c", "ls -d " + toolchain + " || true"}}, ""},
		"file":       {runtime.Spec{Files: []runtime.File{{Path: "a/b", Content: []byte("text")}}, Argv: []string{"cat", "a/b"}}, "text"},
		"large file": {runtime.Spec{Files: []runtime.File{{Path: "b", Content: make([]byte, 10<<20)}}, Argv: []string{"stat", "-c", "%s", "b"}}, "10485760\n"},
		"root":       {runtime.Spec{Argv: []string{"sh", "-c", "touch /x /usr/x /etc/x 2>&1 | grep -c Read-only"}}, "3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			settle(t, r, 1)
			pid := r.pool.ids()[0]
			var stdout, stderr strings.Builder
			c.spec.Stdout, c.spec.Stderr = &stdout, &stderr
			n := begin(t, r, c.spec)
			if len(c.spec.Mounts) == 0 && n.pid != pid {
				t.Error("the run was not given the sandbox from the pool")
			}
			if result := n.Wait(); stdout.String() != c.want {
				t.Errorf("stdout %q, want %q; stderr %q; %+v", stdout.String(), c.want, stderr.String(), result)
			}
		})
	}
}

// TestPoolCloses closes the runtime while its pool is being filled.
func TestPoolCloses(t *testing.T) {
	for range 20 {
		r := factory(Options{Warm: 3})(t).(*Runtime)
		if result := begin(t, r, runtime.Spec{Argv: []string{"true"}}).Wait(); result.Verdict != runtime.OK {
			t.Errorf("%+v", result)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if left := runtimetest.Cgroups(os.Getpid()); len(left) > 0 {
			t.Fatalf("left behind: %v", left)
		}
	}
}
