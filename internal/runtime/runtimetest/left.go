//go:build unix

package runtimetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// NothingLeft runs n programs that end in every way, with files to collect from some of them, and compares the host before the runtime
// was opened and after it was closed: processes, mounts, cgroups, namespaces, descriptors, threads and temporary files.
func NothingLeft(t *testing.T, factory Factory, n int) {
	alone.Lock()
	defer alone.Unlock()
	into, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	token := rand.Text()
	cycle := func(runs int) {
		r := factory(t)
		defer func() {
			if err := r.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		if r.Isolation() < runtime.Contained {
			t.Skipf("runtime %s does not contain grandchildren", r.Name())
		}
		seen := runMany(t, r, token, into, runs)
		if runs == n {
			t.Logf("%d runs ended like this: %v", n, seen)
		}
	}
	cycle(16) // what is opened on first use stays open
	steady(openDescriptors)
	before, kernelBefore := takeCensus(token), kernelObjects()
	begin := time.Now()
	cycle(n)
	took := time.Since(begin)
	// The kernel frees namespaces and cgroups a while after their end.
	after, ok := settles(func() bool { return len(before.grown(takeCensus(token))) == 0 },
		func() census { return takeCensus(token) })
	t.Logf("before: %v, and in the kernel %s", before, kernelBefore)
	if ok {
		after = takeCensus(token)
	}
	t.Logf("after %d runs in %v: %v, and in the kernel %s", n, took.Round(time.Millisecond), after, kernelObjects())
	if grown := before.grown(after); len(grown) > 0 {
		t.Errorf("left by %d runs: %v", n, grown)
	}
}

// runMany runs programs, eight at a time, and counts how they ended.
func runMany(t testing.TB, r runtime.Runtime, token, into string, n int) map[runtime.Verdict]int {
	t.Helper()
	var mu sync.Mutex
	seen := make(map[runtime.Verdict]int)
	next := make(chan int)
	var abreast sync.WaitGroup
	for range 8 {
		abreast.Go(func() {
			for i := range next {
				verdict := runOne(t, r, token, filepath.Join(into, fmt.Sprint(i)), i)
				mu.Lock()
				seen[verdict]++
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	abreast.Wait()
	return seen
}

func runOne(t testing.TB, r runtime.Runtime, token, into string, i int) runtime.Verdict {
	t.Helper()
	script, want := "exit 0", runtime.OK
	spec := shell(script, token)
	switch i % 16 {
	case 1:
		spec.Argv[2], want = "exit 3", runtime.NonzeroExit
	case 2:
		spec.Argv[2], want = "kill -SEGV $$", runtime.Signal
	case 3:
		spec.Argv[2], want = "(sleep 60 &) ; sleep 60 & exit 0", runtime.OK
	case 4:
		spec.Argv[2], want = "sleep 60", runtime.Timeout
		spec.Limits.Wall = time.Millisecond
	case 5:
		spec.Argv[2], want = "cat /dev/zero", runtime.OutputLimit
		spec.Limits.Output = 1000
	case 6:
		spec.Argv[2] = "mkdir out && echo x > out/file && ln -s /etc out/link"
		spec.Collect, spec.CollectInto = []string{"out"}, into
		if err := os.Mkdir(into, 0o700); err != nil {
			t.Error(err)
		}
		defer os.RemoveAll(into)
	case 7:
		spec.Argv[2], want = "sleep 60 & wait", runtime.Killed
	case 8:
		spec.Argv[0], want = "no-such-program", "refused"
	}
	run, err := r.Start(context.Background(), spec)
	if err != nil {
		if want != "refused" {
			t.Errorf("start: %v", err)
		}
		return "refused"
	}
	if want == runtime.Killed {
		run.Kill("enough")
	}
	result := run.Wait()
	if result.Verdict != want {
		t.Errorf("%q ended with %+v, want %s", spec.Argv, result, want)
	}
	return result.Verdict
}

// census counts what runs could leave.
type census map[string]int

// slack is the allowed increase of a count: the Go runtime keeps threads and pollers of its own.
var slack = map[string]int{"threads of this process": 8, "descriptors of this process": 1, "goroutines": 2}

// grown lists the counts that are higher in the later census.
func (c census) grown(later census) []string {
	var more []string
	for _, what := range slices.Sorted(maps.Keys(later)) {
		if later[what] > c[what]+slack[what] {
			more = append(more, fmt.Sprintf("%s: %d, was %d", what, later[what], c[what]))
		}
	}
	return more
}

// takeCensus counts what this process and the programs with the token own; other processes use this host, too.
func takeCensus(token string) census {
	c := census{
		"descriptors of this process": openDescriptors(),
		"goroutines":                  goruntime.NumGoroutine(),
		"mounts":                      len(hostMounts()),
		"cgroups":                     len(Cgroups(os.Getpid())),
		"processes with the token":    len(Processes(token)),
		"children":                    len(childrenOf(os.Getpid())),
		"orphaned inits":              0,
		"namespaces held open":        0,
		"temporary files":             0,
	}
	tasks, _ := os.ReadDir("/proc/self/task")
	c["threads of this process"] = len(tasks)
	for _, entry := range Processes("pawl-init") {
		pid, _, _ := strings.Cut(entry, " ")
		if status, err := os.ReadFile("/proc/" + pid + "/status"); err == nil && strings.Contains(string(status), "\nPPid:\t1\n") {
			c["orphaned inits"]++
		}
	}
	descriptors, _ := filepath.Glob("/proc/self/fd/*")
	for _, path := range descriptors {
		if target, err := os.Readlink(path); err == nil && strings.Contains(target, ":[") &&
			!strings.HasPrefix(target, "pipe") && !strings.HasPrefix(target, "socket") {
			c["namespaces held open"]++
		}
	}
	// Count each kind of namespace with a process below this one.
	spaces := make(map[string]map[string]bool)
	for queue := []int{os.Getpid()}; len(queue) > 0; queue = queue[1:] {
		for _, child := range childrenOf(queue[0]) {
			var pid int
			if _, err := fmt.Sscan(child, &pid); err == nil {
				queue = append(queue, pid)
			}
		}
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/ns/*", queue[0]))
		for _, link := range links {
			kind := filepath.Base(link)
			if spaces[kind] == nil {
				spaces[kind] = make(map[string]bool)
			}
			if target, err := os.Readlink(link); err == nil {
				spaces[kind][target] = true
			}
		}
	}
	for _, kind := range []string{"net", "mnt", "pid", "user", "ipc", "uts", "cgroup"} {
		c[kind+" namespaces"] = len(spaces[kind])
	}
	files, _ := os.ReadDir(os.TempDir())
	c["temporary files"] = len(files)
	return c
}

// kernelObjects lists the numbers of all namespaces and cgroups in the kernel, including those of other programs and
// those that are being freed. It is only printed.
func kernelObjects() string {
	var found []string
	slabs, _ := os.ReadFile("/proc/slabinfo")
	for line := range strings.Lines(string(slabs)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && slices.Contains([]string{"net_namespace", "user_namespace", "pid_namespace", "mnt_cache"}, fields[0]) {
			found = append(found, fields[0]+" "+fields[1])
		}
	}
	groups, _ := os.ReadFile("/proc/cgroups")
	for line := range strings.Lines(string(groups)) {
		fields := strings.Fields(line)
		if len(fields) > 3 && (fields[0] == "memory" || fields[0] == "pids") {
			found = append(found, fields[0]+" cgroups "+fields[2])
		}
	}
	return strings.Join(found, ", ")
}
