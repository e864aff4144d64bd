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

	"golang.org/x/sys/unix"
)

// mountPoint is the mount of a cgroup hierarchy: its directory, and the part of the hierarchy that it shows.
type mountPoint struct{ root, dir string }

// findCgroups looks for a place for the runs' cgroups, beneath this process's own if possible, so that limits on Pawl
// as a whole include its runs. The error says why there is none.
func findCgroups() (*cgroups, error) {
	mounts, err := cgroupMounts("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := ownCgroups("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	prefix, err := ownerPrefix()
	if err != nil {
		return nil, err
	}
	c := &cgroups{prefix: prefix}
	place := func(controller string) string {
		m, mounted := mounts[controller]
		path, member := own[controller]
		if !mounted || !member {
			return ""
		}
		rel, err := filepath.Rel(m.root, path)
		if err != nil || strings.HasPrefix(rel, "..") {
			rel = "." // our own cgroup lies outside of the mount: a cgroup namespace
		}
		return filepath.Join(m.dir, rel)
	}
	c.memory, c.pids, c.cpuacct = place("memory"), place("pids"), place("cpuacct")
	unified := place("")
	if c.memory != "" && c.pids != "" {
		for _, dir := range []string{c.memory, c.pids} {
			if err := usable(dir, prefix); err != nil {
				return nil, err
			}
		}
		if c.cpuacct != "" && usable(c.cpuacct, prefix) != nil {
			c.cpuacct = ""
		}
		if c.cpu = place("cpu"); c.cpu != "" && c.cpu != c.cpuacct && usable(c.cpu, prefix) != nil {
			c.cpu = ""
		}
		if unified != "" && usable(unified, prefix) == nil {
			c.unified, c.cpuacct = unified, "" // v2 counts processor time without a controller
		}
		c.sweep()
		return c, nil
	}
	if unified == "" {
		return nil, errors.New("no cgroup hierarchy with the memory and pids controllers is mounted")
	}
	c.memory, c.pids, c.cpuacct = "", "", ""
	if c.unified, err = delegated(unified, mounts[""].dir, prefix); err != nil {
		return nil, err
	}
	c.limits, c.cpuMax = true, enableCPU(c.unified)
	c.sweep()
	return c, nil
}

// cgroupMounts maps controllers to their mounts; the v2 hierarchy has the empty name.
func cgroupMounts(mountinfo string) (map[string]mountPoint, error) {
	text, err := os.ReadFile(mountinfo)
	if err != nil {
		return nil, fmt.Errorf("find cgroup mounts: %w", err)
	}
	mounts := make(map[string]mountPoint)
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		m := mountPoint{root: left[3], dir: left[4]}
		switch right[0] {
		case "cgroup2":
			mounts[""] = m
		case "cgroup":
			for option := range strings.SplitSeq(right[2], ",") {
				if _, known := mounts[option]; !known {
					mounts[option] = m
				}
			}
		}
	}
	return mounts, nil
}

// ownCgroups maps controllers to this process's cgroup in their hierarchies.
func ownCgroups(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("find own cgroup: %w", err)
	}
	own := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			own[controller] = parts[2]
		}
	}
	return own, nil
}

// usable returns an error if cgroups cannot be created in dir.
func usable(dir, prefix string) error {
	probe := filepath.Join(dir, prefix+strconv.FormatInt(sequence.Add(1), 10))
	if err := os.Mkdir(probe, 0o755); err != nil {
		return fmt.Errorf("cgroups cannot be made in %s: %w", dir, err)
	}
	return os.Remove(probe)
}

// delegated finds the closest v2 cgroup, from our own upwards, that can enable the memory and pids controllers for
// its children. Our own cgroup cannot while it contains processes, unless it is the root of the hierarchy; if this
// process is the only one in it, the process moves into a child cgroup.
func delegated(own, top, prefix string) (string, error) {
	var first error
	if filepath.Base(own) == prefix+"self" {
		own = filepath.Dir(own) // an earlier runtime of this process has moved it into that child
	}
	for dir := own; ; dir = filepath.Dir(dir) {
		err := enableControllers(dir)
		if errors.Is(err, unix.EBUSY) && dir == own && alone(dir) {
			if err = stepAside(dir, prefix); err == nil {
				err = enableControllers(dir)
			}
		}
		if err == nil {
			err = usable(dir, prefix)
		}
		if err == nil {
			return dir, nil
		}
		if first == nil {
			first = err
		}
		if dir == top || dir == "/" || dir == "." {
			return "", first
		}
	}
}

func enableControllers(dir string) error {
	missing := ""
	have := " " + strings.TrimSpace(string(read(dir, "cgroup.subtree_control"))) + " "
	can := " " + strings.TrimSpace(string(read(dir, "cgroup.controllers"))) + " "
	for _, controller := range []string{"memory", "pids"} {
		if strings.Contains(have, " "+controller+" ") {
			continue
		}
		if !strings.Contains(can, " "+controller+" ") {
			return fmt.Errorf("the %s controller is not delegated to %s", controller, dir)
		}
		missing += " +" + controller
	}
	if missing == "" {
		return nil
	}
	return write(dir, "cgroup.subtree_control", missing[1:])
}

// enableCPU enables the cpu controller for a group's children, where the group has it.
func enableCPU(dir string) bool {
	if slices.Contains(strings.Fields(string(read(dir, "cgroup.subtree_control"))), "cpu") {
		return true
	}
	return slices.Contains(strings.Fields(string(read(dir, "cgroup.controllers"))), "cpu") && write(dir, "cgroup.subtree_control", "+cpu") == nil
}

// alone reports whether this process is the only one in the cgroup.
func alone(dir string) bool {
	members := strings.Fields(string(read(dir, "cgroup.procs")))
	return len(members) == 1 && members[0] == strconv.Itoa(os.Getpid())
}

func stepAside(dir, prefix string) error {
	aside := filepath.Join(dir, prefix+"self")
	if err := os.Mkdir(aside, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return write(aside, "cgroup.procs", "0")
}

// ownerPrefix identifies this process so that another can tell whether it is alive: its pid namespace, pid and start time.
func ownerPrefix() (string, error) {
	start, err := startTime(os.Getpid())
	if err != nil {
		return "", err
	}
	ns, err := pidNamespace()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("pawl-%d.%d.%d-", ns, os.Getpid(), start), nil
}

func pidNamespace() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("identify the pid namespace: %w", err)
	}
	return st.Ino, nil
}

// startTime is when a process started, in ticks since boot; pid and start time together are unique.
func startTime(pid int) (uint64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("read the start time of process %d: %w", pid, err)
	}
	// The command in parentheses may contain anything, so count from the last parenthesis; the start time is field 22.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("read the start time of process %d: short line", pid)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// sweep removes what dead processes of Pawl left. Their runs died with them.
func (c *cgroups) sweep() {
	ns, err := pidNamespace()
	if err != nil {
		return
	}
	for _, root := range c.roots() {
		entries, err := os.ReadDir(root)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			rest, ok := strings.CutPrefix(entry.Name(), "pawl-"+strconv.FormatUint(ns, 10)+".")
			if !ok || !entry.IsDir() {
				continue
			}
			var pid int
			var start uint64
			if n, _ := fmt.Sscanf(rest, "%d.%d-", &pid, &start); n != 2 {
				continue
			}
			if now, err := startTime(pid); err == nil && now == start {
				continue
			}
			_ = unix.Rmdir(filepath.Join(root, entry.Name())) // a live sandbox in it is ending; the next sweep removes it
		}
	}
}
