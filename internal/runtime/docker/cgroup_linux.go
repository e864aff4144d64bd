package docker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cgroup is a container's part of this host's cgroup tree.
type cgroup struct {
	memory, cpu string // directories
	unified     bool
	alarm       *alarm // nil with version 2
}

// findCgroup looks for the cgroup of a container in the engines' usual places: beneath "docker" with the cgroupfs
// driver, in a scope of "system.slice" with the systemd driver. It returns nil where the engine runs elsewhere.
func findCgroup(id string) *cgroup {
	const root = "/sys/fs/cgroup"
	for _, name := range []string{"docker/" + id, "system.slice/docker-" + id + ".scope"} {
		if dir := filepath.Join(root, name); has(dir, "memory.events") {
			return &cgroup{memory: dir, cpu: dir, unified: true}
		}
		memory := filepath.Join(root, "memory", name)
		if !has(memory, "memory.oom_control") {
			continue
		}
		for _, controller := range []string{"cpuacct", "cpu,cpuacct"} {
			if cpu := filepath.Join(root, controller, name); has(cpu, "cpuacct.usage") {
				return &cgroup{memory: memory, cpu: cpu, alarm: setAlarm(memory)}
			}
		}
	}
	return nil
}

func has(dir, file string) bool {
	_, err := os.Stat(filepath.Join(dir, file))
	return err == nil
}

// fullWithin is how far below its limit the peak of a full v1 cgroup may be: the kernel refuses several pages at a time.
const fullWithin = 1 << 20

// read takes a reading; a value that cannot be read is zero. It reads the kills before the counter that shows whether the limit
// was reached: the limit is reached before a kill.
func (c *cgroup) read(limit int64) (r reading) {
	if c.unified {
		events := filepath.Join(c.memory, "memory.events")
		r.cpu = time.Duration(field(filepath.Join(c.cpu, "cpu.stat"), "usage_usec")) * time.Microsecond
		r.oomKills = field(events, "oom_kill")
		r.peak = number(filepath.Join(c.memory, "memory.peak"))
		r.hostFull = r.oomKills > 0 && field(events, "oom") == 0 && has(c.memory, "memory.events") // a cgroup that is gone proves nothing
		return r
	}
	r.cpu = time.Duration(number(filepath.Join(c.cpu, "cpuacct.usage")))
	r.oomKills = field(filepath.Join(c.memory, "memory.oom_control"), "oom_kill")
	r.peak = number(filepath.Join(c.memory, "memory.max_usage_in_bytes"))
	r.hostFull = r.oomKills > 0 && r.peak > 0 && r.peak < limit-fullWithin
	return r
}

// last reports whether there was a memory kill, even if the container ended between two readings, and closes the alarm.
func (c *cgroup) last() (killed bool) {
	if c.alarm == nil {
		return false
	}
	defer c.alarm.close()
	return c.alarm.rang()
}

func number(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

// field reads the number after a name in a file of "name number" lines.
func field(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}
