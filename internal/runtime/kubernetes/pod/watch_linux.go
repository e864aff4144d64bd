package pod

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// watch enforces the limits that neither the kubelet nor the kernel enforces, so that they hold without a worker.
type watch struct {
	first  *first
	began  time.Time
	before counts
	over   chan struct{} // closed when there is nothing left to watch

	mu     sync.Mutex
	ending wire.Ending
	ended  bool // the program has ended: by itself, unless ending is set
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
	// closestLook and farthestLook bound the pause between two readings of the processor time that the program has used.
	// With a reading every 20 ms of every cgroup file, 60 sleeping pods kept two processors busy. tasksLook is the pause
	// where processes are counted as well: they double in milliseconds.
	closestLook  = 5 * time.Millisecond
	farthestLook = 250 * time.Millisecond
	tasksLook    = 20 * time.Millisecond
	diskEvery    = 200 * time.Millisecond
)

// clock ends the program at its time limits, and at its process limit where the kernel does not count processes.
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
		case !c.CountUser && w.first.usage.tasks.number() > int64(c.Pids)+w.before.tasks:
			w.end(wire.ByPids)
		}
		timer.Reset(min(pause(c.CPU-used, runtime.NumCPU(), !c.CountUser), max(c.Wall-wall, time.Millisecond)))
	}
}

// pause is the time until the next reading: within it all processors together can use at most half of the remaining time.
func pause(left time.Duration, processors int, tasks bool) time.Duration {
	farthest := farthestLook
	if tasks {
		farthest = tasksLook
	}
	return min(max(left/time.Duration(2*processors), closestLook), farthest)
}

// disk ends a program whose directories exceed their limit twice in a row. A scan takes time in proportion to the
// number of files, so a longer scan is followed by a longer pause.
func (w *watch) disk() {
	c := &w.first.command
	timer := time.NewTimer(diskEvery)
	defer timer.Stop()
	held := sizes{dirs: []string{w.first.places.in(wire.WorkRoot) + "\x00", w.first.places.in(wire.Temp) + "\x00"}, most: c.Disk, over: w.over}
	for over := false; ; {
		select {
		case <-w.over:
			return
		case <-timer.C:
		}
		begin := time.Now()
		before := over
		if over = held.sum() > c.Disk; over && before {
			w.end(wire.ByDisk)
			return
		}
		timer.Reset(max(diskEvery, 20*time.Since(begin)))
	}
}

// counts are the kernel's counters of the container.
type counts struct {
	cpu      time.Duration
	peak     int64 // bytes
	oomKills int64
	ooms     int64 // how often the container's own memory limit was exhausted; only version 2 counts it
	tasks    int64
}

// usage reads the container's cgroup, which container runtimes mount read-only in the container itself.
type usage struct {
	v2                      bool
	limit                   int64 // in version 1, in bytes
	cpu, memory, oom, tasks counter
}

// counter is a file of the cgroup. It is read several times a second into the same memory; see sizes.
type counter struct {
	file *os.File
	text [1 << 10]byte
}

func openUsage() (*usage, error) {
	const root = "/sys/fs/cgroup/"
	u := &usage{}
	names := [4]string{"cpuacct/cpuacct.usage", "memory/memory.max_usage_in_bytes", "memory/memory.oom_control", "pids/pids.current"}
	if _, err := os.Stat(root + "cgroup.controllers"); err == nil {
		u.v2, names = true, [4]string{"cpu.stat", "memory.peak", "memory.events", "pids.current"}
	}
	if !u.v2 {
		limit, _ := os.ReadFile(root + "memory/memory.limit_in_bytes")
		u.limit = number(limit)
	}
	for i, c := range []*counter{&u.cpu, &u.memory, &u.oom, &u.tasks} {
		var err error
		if c.file, err = os.Open(root + names[i]); err == nil {
			_, err = c.file.ReadAt(c.text[:1], 0)
		}
		if err != nil && (c == &u.cpu || c == &u.oom) {
			return nil, fmt.Errorf("the container's cgroup cannot be read, so time and memory cannot be counted: %w", err)
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

// used is the processor time of the container.
func (u *usage) used() time.Duration {
	if u.v2 {
		return time.Duration(u.cpu.field("usage_usec")) * time.Microsecond
	}
	return time.Duration(u.cpu.number())
}

func (u *usage) read() counts {
	return counts{cpu: u.used(), peak: u.memory.number(), oomKills: u.oom.field("oom_kill"), ooms: u.oom.field("oom"), tasks: u.tasks.number()}
}

// fullWithin is how far below its limit the peak of a full v1 cgroup may be: the kernel refuses several pages at a time.
const fullWithin = 1 << 20

// hostFull reports whether, between two readings, the kernel killed although the container had memory left: the node, or a cgroup above
// the container's, had none.
func (u *usage) hostFull(before, after counts) bool {
	switch {
	case after.oomKills <= before.oomKills:
		return false
	case u.v2:
		return after.ooms <= before.ooms
	}
	return after.peak > 0 && after.peak < u.limit-fullWithin
}

// read returns the file's content; it is empty where the kernel has no such file.
func (c *counter) read() []byte {
	n, _ := c.file.ReadAt(c.text[:], 0)
	return c.text[:max(n, 0)]
}

func (c *counter) number() int64 { return number(c.read()) }

func (c *counter) field(name string) int64 {
	for line := range bytes.Lines(c.read()) {
		if key, value, ok := bytes.Cut(line, []byte(" ")); ok && string(key) == name {
			return number(value)
		}
	}
	return 0
}

func number(text []byte) int64 {
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

// threads is the number of this process's own tasks.
func threads() int {
	all, _ := os.ReadDir("/proc/self/task")
	return len(all)
}

// limits sets the resource limits; the program's own process calls it just before it executes the program.
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
	if c.Stack > 0 {
		var own unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_STACK, &own); err != nil {
			all = append(all, fmt.Errorf("read the limit on the stack: %w", err))
		}
		all = append(all, set(unix.RLIMIT_STACK, min(uint64(c.Stack), own.Max)))
	}
	// A core limit of one byte also disables a handler that core_pattern pipes to. A file may slightly exceed the disk limit
	// before its writer gets a signal.
	return errors.Join(append(all, set(unix.RLIMIT_CORE, 1), set(unix.RLIMIT_FSIZE, uint64(c.Disk)+1<<20))...)
}
