//go:build unix

package runtimetest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// canaries are parts of the host that no program may change.
type canaries struct {
	file     string
	hostname string
	binary   os.FileInfo // this very program
	settings map[string]string
	mounts   []string
	cgroups  int // of an idle runtime, which may keep some ready
}

const canaryText = "the host's own\n"

// watchedSettings are the settings that an escaped program would change first.
var watchedSettings = []string{
	"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/sysrq", "/proc/sys/kernel/hostname",
	"/proc/sys/kernel/domainname", "/proc/sys/vm/overcommit_memory", "/proc/sys/user/max_user_namespaces",
	"/proc/sys/net/ipv4/ip_forward", "/etc/passwd", "/etc/hosts", "/proc/self/oom_score_adj",
}

func plantCanaries(t testing.TB) *canaries {
	c := &canaries{file: filepath.Join(t.TempDir(), "canary"), settings: make(map[string]string)}
	if err := os.WriteFile(c.file, []byte(canaryText), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.file, 0o666); err != nil {
		t.Fatal(err)
	}
	c.hostname, _ = os.Hostname()
	c.binary, _ = os.Stat("/proc/self/exe")
	for _, path := range watchedSettings {
		text, _ := os.ReadFile(path)
		c.settings[path] = string(text)
	}
	c.mounts = hostMounts()
	return c
}

// check verifies that the host is unchanged and that no process of the run with this token is left.
func (c *canaries) check(t testing.TB, token string) {
	t.Helper()
	if text, err := os.ReadFile(c.file); err != nil || string(text) != canaryText {
		t.Errorf("the canary file is %q (%v)", text, err)
	}
	if name, _ := os.Hostname(); name != c.hostname {
		t.Errorf("the hostname is %q and was %q", name, c.hostname)
	}
	if binary, _ := os.Stat("/proc/self/exe"); c.binary != nil &&
		(binary == nil || binary.Size() != c.binary.Size() || !binary.ModTime().Equal(c.binary.ModTime()) || binary.Mode() != c.binary.Mode()) {
		t.Errorf("this program's binary is %+v and was %+v", binary, c.binary)
	}
	for _, path := range watchedSettings {
		if text, _ := os.ReadFile(path); string(text) != c.settings[path] {
			t.Errorf("%s is %q and was %q", path, text, c.settings[path])
		}
	}
	// A backend's daemon may unmount a moment after the end of the run.
	if more, ok := settles(func() bool { return slices.Equal(hostMounts(), c.mounts) },
		func() []string { return changes(c.mounts, hostMounts()) }); !ok {
		t.Errorf("mounts of the host have changed: %q", more)
	}
	if left := Processes(token); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if left, ok := settles(func() bool { return len(Cgroups(os.Getpid())) <= c.cgroups },
		func() []string { return Cgroups(os.Getpid()) }); !ok {
		t.Errorf("an idle runtime had %d cgroups and now there are %v", c.cgroups, left)
	}
}

// steady waits, for at most two seconds, until a count stays the same, and returns it.
func steady(count func() int) int {
	last, same := -1, 0
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for tries := 0; same < 5 && tries < 100; tries++ {
		if now := count(); now == last {
			same++
		} else {
			last, same = now, 0
		}
		<-tick.C
	}
	return last
}

// hostMounts lists this namespace's mounts, without those that container engines, network namespaces and the temporary
// directories of other tests create and remove meanwhile.
func hostMounts() []string {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	var mounts []string
	for line := range strings.Lines(string(text)) {
		if _, kind, _ := strings.Cut(line, " - "); strings.HasPrefix(kind, "overlay ") || strings.HasPrefix(kind, "nsfs ") ||
			strings.Contains(line, "docker") || strings.Contains(line, "/pawl-") || strings.Contains(line, "/containers/") || strings.Contains(line, "/containerd") {
			continue
		}
		mounts = append(mounts, line)
	}
	slices.Sort(mounts)
	return mounts
}

// changes are the lines that are in only one of two sorted lists.
func changes(before, after []string) []string {
	var only []string
	for _, line := range before {
		if _, ok := slices.BinarySearch(after, line); !ok {
			only = append(only, "-"+line)
		}
	}
	for _, line := range after {
		if _, ok := slices.BinarySearch(before, line); !ok {
			only = append(only, "+"+line)
		}
	}
	return only
}

// settles waits for at most two seconds until good returns true; it then returns what for the message.
func settles[T any](good func() bool, what func() T) (T, bool) {
	var zero T
	deadline := time.Now().Add(2 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !good() {
		if time.Now().After(deadline) {
			return what(), false
		}
		<-tick.C
	}
	return zero, true
}

// Processes lists the host's processes whose command line holds text, as "pid command".
func Processes(text string) []string {
	var found []string
	entries, _ := os.ReadDir("/proc") // filepath.Glob would list the 50 files of each process as well
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err == nil && bytes.Contains(line, []byte(text)) {
			found = append(found, entry.Name()+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// Cgroups lists the cgroups that the process with this id created for runs: backends put their own id into the name.
func Cgroups(pid int) []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), "pawl-") &&
			strings.Contains(entry.Name(), "."+strconv.Itoa(pid)+".") {
			found = append(found, path)
		}
		return nil
	})
	return found
}
