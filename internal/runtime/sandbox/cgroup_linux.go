package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// The init of a run under cgroup v2 is forked into the run's cgroup and counts against its limits. These amounts are added, so that
// the program gets its full limits. Under v1 the init stays outside, and the program's process enters the cgroups.
const (
	initMemory = 8 << 20
	initTasks  = 1
	initCPU    = 20 * time.Millisecond // more than the init itself uses in a run's cgroups
)

// cgroups is where this process can create cgroups with limits. It is nil where it cannot.
type cgroups struct {
	memory, pids, cpuacct string // own directories in the v1 hierarchies; empty on v2
	cpu                   string // v1: own directory that limits the share of processors; may equal cpuacct
	cpuMax                bool   // v2: the share of processors can be limited
	unified               string // directory in the v2 hierarchy for the runs; empty on plain v1
	limits                bool   // v2 carries the limits
	prefix                string // of the name of every cgroup that this process creates
}

// sequence numbers the cgroups of this process. All its runtimes share it, because they share the prefix.
var sequence atomic.Int64

// enforcement is the value of runtime.Result.Enforcement.
func (c *cgroups) enforcement() string {
	switch {
	case c == nil:
		return "rlimit+watchdog"
	case c.limits:
		return "cgroup-v2"
	case c.unified != "":
		return "hybrid"
	}
	return "cgroup-v1"
}

// roots are the parent directories of the runs' cgroups.
func (c *cgroups) roots() []string {
	var dirs []string
	for _, dir := range []string{c.memory, c.pids, c.cpuacct, c.cpu, c.unified} {
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// limitsCPUs reports whether a run's share of processors can be limited.
func (c *cgroups) limitsCPUs() bool { return c != nil && (c.cpu != "" || c.cpuMax) }

// cpuApart reports whether that limit needs an additional cgroup: in v1, with the cpu controller in its own hierarchy. Runs
// without the limit do not create it.
func (c *cgroups) cpuApart() bool { return c.cpu != "" && c.cpu != c.cpuacct }

// group is the set of cgroups of one run.
type group struct {
	owner *cgroups
	name  string
	dirs  []string
	dir   *os.File // the v2 directory that the init is forked into; nil on plain v1
	tasks []*os.File
	// pressure is the cpu.pressure file of dir, for the init; nil where the kernel has none.
	pressure *os.File
}

// create creates the cgroups of a run, without limits. cpus is true if its share of processors will be limited.
func (c *cgroups) create(cpus bool) (_ *group, err error) {
	g := &group{owner: c, name: c.prefix + strconv.FormatInt(sequence.Add(1), 10)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("create cgroup %s: %w", g.name, err), g.remove())
		}
	}()
	for _, root := range c.roots() {
		if root == c.cpu && c.cpuApart() && !cpus {
			continue
		}
		dir := filepath.Join(root, g.name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		g.dirs = append(g.dirs, dir)
	}
	if c.unified != "" {
		if g.dir, err = os.Open(filepath.Join(c.unified, g.name)); err != nil {
			return nil, err
		}
		g.pressure, _ = os.Open(filepath.Join(c.unified, g.name, pressureFile))
	}
	for _, root := range c.roots() {
		if root == c.unified || root == c.cpu && c.cpuApart() && !cpus {
			continue
		}
		f, err := os.OpenFile(filepath.Join(root, g.name, "tasks"), os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		g.tasks = append(g.tasks, f)
	}
	return g, nil
}

func (g *group) limit(l runtime.Limits) error {
	write := g.limitV1
	if g.owner.limits {
		write = g.limitV2
	}
	if err := write(l); err != nil {
		return fmt.Errorf("limit cgroup %s: %w", g.name, err)
	}
	return nil
}

func (g *group) limitV1(l runtime.Limits) error {
	memory, pids := filepath.Join(g.owner.memory, g.name), filepath.Join(g.owner.pids, g.name)
	value := strconv.FormatInt(l.Memory, 10)
	if err := write(memory, "memory.limit_in_bytes", value); err != nil {
		return err
	}
	// The value includes swap; the file is missing where the kernel does not account for swap.
	if err := write(memory, "memory.memsw.limit_in_bytes", value); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if l.CPUs > 0 {
		if err := limitCPUs(filepath.Join(g.owner.cpu, g.name), l.CPUs); err != nil {
			return err
		}
	}
	return write(pids, "pids.max", strconv.Itoa(l.Pids))
}

// cpuPeriod is the period of the limit on the share of processors. With the kernel's default of 100 ms a program limited
// to half a processor would compute for 50 ms and then wait for 50 ms; below 10 ms the accounting itself becomes costly.
const cpuPeriod = 20 * time.Millisecond

// limitCPUs limits the share of processors of a v1 cgroup.
func limitCPUs(dir string, cpus float64) error {
	if err := write(dir, "cpu.cfs_period_us", strconv.FormatInt(cpuPeriod.Microseconds(), 10)); err != nil {
		return err
	}
	err := write(dir, "cpu.cfs_quota_us", cpuQuota(cpus))
	if errors.Is(err, unix.EINVAL) {
		return nil // Pawl's own cgroup has a lower limit, which applies to the run
	}
	return err
}

func cpuQuota(cpus float64) string {
	return strconv.FormatInt(int64(cpus*float64(cpuPeriod.Microseconds())), 10)
}

func (g *group) limitV2(l runtime.Limits) error {
	dir := g.dir.Name()
	if err := write(dir, "memory.max", strconv.FormatInt(l.Memory+initMemory, 10)); err != nil {
		return err
	}
	if err := write(dir, "memory.swap.max", "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if l.CPUs > 0 {
		if err := write(dir, "cpu.max", fmt.Sprintf("%s %d", cpuQuota(l.CPUs), cpuPeriod.Microseconds())); err != nil {
			return err
		}
	}
	return write(dir, "pids.max", strconv.Itoa(l.Pids+initTasks))
}

// closeInherited closes the descriptors that only the init needs.
func (g *group) closeInherited() {
	closeAll(g.tasks)
	closeAll([]*os.File{g.pressure})
	g.tasks, g.pressure = nil, nil
}

// oomKills counts the run's processes that the kernel killed for memory.
func (g *group) oomKills() int64 {
	if g.owner.limits {
		return field(g.dir.Name(), "memory.events", "oom_kill")
	}
	return field(filepath.Join(g.owner.memory, g.name), "memory.oom_control", "oom_kill")
}

// fullWithin is how far below its limit the peak of a full v1 cgroup may be: the kernel refuses several pages at a time.
const fullWithin = 1 << 20

// full reports whether the run's own memory limit has been reached. If it has not, a memory kill was caused by the machine, or by the
// cgroup above. (memory.failcnt of v1 stays 0 where the limit with swap is the same.)
func (g *group) full(l runtime.Limits) bool {
	if g.owner.limits {
		return field(g.dir.Name(), "memory.events", "oom") > 0
	}
	return number(filepath.Join(g.owner.memory, g.name), "memory.max_usage_in_bytes") >= l.Memory-fullWithin
}

// pidsHit reports whether the kernel has refused the run a process or thread because of its limit.
func (g *group) pidsHit() bool {
	dir := filepath.Join(g.owner.pids, g.name)
	if g.owner.limits {
		dir = g.dir.Name()
	}
	return field(dir, "pids.events", "max") > 0
}

// peakMemory is the run's peak memory in bytes; 0 when the kernel does not report it.
func (g *group) peakMemory() int64 {
	if g.owner.limits {
		return max(0, number(g.dir.Name(), "memory.peak")-initMemory/2)
	}
	return number(filepath.Join(g.owner.memory, g.name), "memory.max_usage_in_bytes")
}

// pageCache is the number of bytes of file cache that the kernel charges to the run now, without files in memory file systems such as
// /work, which count as the run's own memory. The kernel updates such figures in batches: up to half a megabyte may be missing.
func (g *group) pageCache() int64 {
	dir, file := filepath.Join(g.owner.memory, g.name), "cache"
	if g.owner.limits {
		dir, file = g.dir.Name(), "file"
	}
	stat := read(dir, "memory.stat")
	return max(0, fieldOf(stat, file)-fieldOf(stat, "shmem"))
}

// cpu is the user and system time of the run; 0 when the kernel does not report it.
func (g *group) cpu() time.Duration {
	if g.dir != nil {
		return time.Duration(field(g.dir.Name(), "cpu.stat", "usage_usec")) * time.Microsecond
	}
	if g.owner.cpuacct == "" {
		return 0
	}
	return time.Duration(number(filepath.Join(g.owner.cpuacct, g.name), "cpuacct.usage"))
}

// pressureFile is the file of a v2 cgroup with the time that it waited for processors. The kernel maintains it without any controller.
const pressureFile = "cpu.pressure"

// starved is how long the cgroup had work to do and no processor since its creation, including the time in which its init
// built the sandbox; 0 when the kernel does not report it.
func (g *group) starved() time.Duration {
	if g.dir == nil {
		return 0
	}
	return time.Duration(pid1.Starved(read(g.dir.Name(), pressureFile)))
}

// kill kills every process of the run at once, where the kernel has cgroup.kill.
func (g *group) kill() {
	if g.dir != nil {
		_ = write(g.dir.Name(), "cgroup.kill", "1") // Linux 5.14; the init's death does the same
	}
}

// remove removes the cgroups. The processes are dead by then, but the kernel may take a moment to notice.
func (g *group) remove() error {
	g.closeInherited()
	if g.dir != nil {
		g.dir.Close()
	}
	deadline := time.Now().Add(removeWithin)
	for _, dir := range g.dirs {
		for wait := 100 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
			err := unix.Rmdir(dir)
			if err == nil || errors.Is(err, unix.ENOENT) {
				break
			}
			if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
				return fmt.Errorf("remove cgroup %s: %w", dir, err)
			}
			time.Sleep(wait)
		}
	}
	return nil
}

// removeWithin bounds the wait for a cgroup to become empty after its processes have been reaped.
const removeWithin = 5 * time.Second

func write(dir, file, value string) error {
	path := filepath.Join(dir, file)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for {
		_, err := unix.Write(fd, []byte(value))
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR): // the memory controller aborts a write for a signal, such as Go's preemption signal
			return &os.PathError{Op: "write " + value + " to", Path: path, Err: err}
		}
	}
}

// read reads one control file; nil when it cannot be read.
func read(dir, file string) []byte {
	fd, err := unix.Open(filepath.Join(dir, file), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var buffer [4096]byte
	n, err := unix.Read(fd, buffer[:])
	if err != nil {
		return nil
	}
	return bytes.Clone(buffer[:n])
}

// number reads a control file with a single number; 0 when that fails.
func number(dir, file string) int64 {
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(read(dir, file))), 10, 64)
	return n
}

// field reads one "key value" line of a control file; 0 when it is missing.
func field(dir, file, key string) int64 { return fieldOf(read(dir, file), key) }

// fieldOf finds one "key value" line in the text of a control file; 0 when it is missing.
func fieldOf(text []byte, key string) int64 {
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == key {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
