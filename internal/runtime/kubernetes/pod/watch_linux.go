package pod

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// watch enforces what neither the kubelet nor the kernel does, so that limits hold while no worker is there.
type watch struct {
	first  *first
	began  time.Time
	before counts
	over   chan struct{} // closed when nothing is left to be watched

	mu     sync.Mutex
	ending wire.Ending
	ended  bool // the program has ended, by itself unless ending says otherwise
}

// end kills the program unless it has ended. The first reason counts.
func (w *watch) end(why wire.Ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended && w.ending == "" {
		w.ending = why
	}
	w.first.killAll()
}

func (w *watch) close() wire.Ending {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	return w.ending
}

func (w *watch) closed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended || w.ending != ""
}

const (
	// closestLook and farthestLook bound the pause between two looks at the processor time that the program has used. Every 20 ms, and at all that the
	// cgroup tells, 60 pods that slept kept two processors busy. tasksLook is the pause where processes are counted as well: they double in milliseconds.
	closestLook  = 5 * time.Millisecond
	farthestLook = 250 * time.Millisecond
	tasksLook    = 20 * time.Millisecond
	diskEvery    = 200 * time.Millisecond
)

// clock ends the program at its limits of time, and of processes where the kernel does not count them.
func (w *watch) clock() {
	c := &w.first.command
	timer := time.NewTimer(closestLook)
	defer timer.Stop()
	for {
		select {
		case <-w.over:
			return
		case <-timer.C:
		}
		used := w.first.usage.used() - w.before.cpu
		wall := time.Since(w.began)
		switch {
		case wall >= c.Wall:
			w.end(wire.ByWall)
		case used > c.CPU:
			w.end(wire.ByCPU)
		case !c.CountUser && number(w.first.usage.tasks) > int64(c.Pids)+w.before.tasks:
			w.end(wire.ByPids)
		}
		timer.Reset(min(pause(c.CPU-used, runtime.NumCPU(), !c.CountUser), max(c.Wall-wall, time.Millisecond)))
	}
}

// pause is how long the next look may be put off: all processors together use half of the time that is left meanwhile, at the most.
func pause(left time.Duration, processors int, tasks bool) time.Duration {
	farthest := farthestLook
	if tasks {
		farthest = tasksLook
	}
	return min(max(left/time.Duration(2*processors), closestLook), farthest)
}

// disk ends a program whose directories hold more than they may twice in a row. Looking costs time in proportion to the
// number of files, so the next look is put off accordingly.
func (w *watch) disk() {
	c := &w.first.command
	timer := time.NewTimer(diskEvery)
	defer timer.Stop()
	for over := false; ; {
		select {
		case <-w.over:
			return
		case <-timer.C:
		}
		begin := time.Now()
		before := over
		var held int64
		for _, dir := range []string{wire.WorkRoot, wire.Temp} {
			held += sizeOf(w.first.places.in(dir), c.Disk, w.over)
		}
		if over = held > c.Disk; over && before {
			w.end(wire.ByDisk)
			return
		}
		timer.Reset(max(diskEvery, 20*time.Since(begin)))
	}
}

// sizeOf is how much a directory holds, looked at until that is more than most. What it cannot see it does not count; the
// volume's own limit, which the kubelet looks after, does.
func sizeOf(dir string, most int64, over <-chan struct{}) int64 {
	const perEntry = 512
	var all int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile
		}
		all += perEntry
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				all += st.Blocks * 512
			}
		}
		select {
		case <-over:
			return fs.SkipAll
		default:
		}
		if all > most {
			return fs.SkipAll
		}
		return nil
	})
	return all
}

// counts are what the kernel says of the container.
type counts struct {
	cpu      time.Duration
	peak     int64 // bytes
	oomKills int64
	tasks    int64
}

// usage reads the container's cgroup, which container runtimes show read-only in the container itself.
type usage struct {
	v2                      bool
	cpu, memory, oom, tasks string
}

func openUsage() (usage, error) {
	const root = "/sys/fs/cgroup/"
	u := usage{cpu: root + "cpuacct/cpuacct.usage", memory: root + "memory/memory.max_usage_in_bytes", oom: root + "memory/memory.oom_control",
		tasks: root + "pids/pids.current"}
	if _, err := os.Stat(root + "cgroup.controllers"); err == nil {
		u = usage{true, root + "cpu.stat", root + "memory.peak", root + "memory.events", root + "pids.current"}
	}
	for _, file := range []string{u.cpu, u.oom} {
		if _, err := os.ReadFile(file); err != nil {
			return u, fmt.Errorf("the container's cgroup cannot be read, so time and memory cannot be counted: %w", err)
		}
	}
	return u, nil
}

func (u *usage) name() string {
	if u.v2 {
		return "cgroup-v2"
	}
	return "cgroup-v1"
}

// used is the container's processor time.
func (u *usage) used() time.Duration {
	if u.v2 {
		return time.Duration(field(u.cpu, "usage_usec")) * time.Microsecond
	}
	return time.Duration(number(u.cpu))
}

func (u *usage) read() counts {
	var c counts
	c.cpu = u.used()
	c.peak, c.oomKills, c.tasks = number(u.memory), field(u.oom, "oom_kill"), number(u.tasks)
	return c
}

func number(file string) int64 {
	text, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

func field(file, name string) int64 {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// threads is how many tasks of its own a process has.
func threads() int {
	all, _ := os.ReadDir("/proc/self/task")
	return len(all)
}

// limits are set by the program's own process just before it becomes the program.
func limits(c *wire.Command, own int) error {
	set := func(resource int, value uint64) error {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("set resource limit %d: %w", resource, err)
		}
		return nil
	}
	var all []error
	if c.CountUser {
		all = append(all, set(unix.RLIMIT_NPROC, uint64(min(c.Pids, math.MaxInt32)+own)))
	}
	// One byte stops a handler that core_pattern pipes to, too. A file may exceed the limit of the disk by a little before its
	// writer is told by a signal.
	return errors.Join(append(all, set(unix.RLIMIT_CORE, 1), set(unix.RLIMIT_FSIZE, uint64(c.Disk)+1<<20))...)
}
