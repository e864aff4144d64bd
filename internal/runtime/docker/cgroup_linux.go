package docker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// signalName is "SIGKILL" for 9; empty for what is no signal.
func signalName(n int64) string { return unix.SignalName(unix.Signal(n)) }

// cgroup is the part of this host's cgroup tree that a container lives in.
type cgroup struct {
	memory, cpu string // directories
	unified     bool
	alarm       *alarm // nil with version 2
}

// findCgroup looks for the cgroup of a container where engines put them: with the cgroupfs driver in "docker", with the
// systemd driver in a scope of "system.slice". It returns nil where the engine runs elsewhere.
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

// fullWithin is how far below its limit the most memory of a v1 cgroup may have stayed that was full: the kernel refuses several pages at
// a time.
const fullWithin = 1 << 20

// read takes a reading; what cannot be read is zero. Kills are read before what tells whether the limit was reached, which comes first.
func (c *cgroup) read(limit int64) (r reading) {
	if c.unified {
		events := filepath.Join(c.memory, "memory.events")
		r.cpu = time.Duration(field(filepath.Join(c.cpu, "cpu.stat"), "usage_usec")) * time.Microsecond
		r.oomKills = field(events, "oom_kill")
		r.peak = number(filepath.Join(c.memory, "memory.peak"))
		r.hostFull = r.oomKills > 0 && field(events, "oom") == 0 && has(c.memory, "memory.events") // a cgroup that is gone says nothing
		return r
	}
	r.cpu = time.Duration(number(filepath.Join(c.cpu, "cpuacct.usage")))
	r.oomKills = field(filepath.Join(c.memory, "memory.oom_control"), "oom_kill")
	r.peak = number(filepath.Join(c.memory, "memory.max_usage_in_bytes"))
	r.hostFull = r.oomKills > 0 && r.peak > 0 && r.peak < limit-fullWithin
	return r
}

// last says whether there was a memory kill, however short the time for reading counters was, and lets go of the cgroup.
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
