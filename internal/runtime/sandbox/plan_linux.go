package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// systemDirs are the host's directories that programs need. Those that are links into /usr become the same links.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}

// systemFiles are the parts of /etc that programs need and that reveal nothing about the host's users or secrets.
var systemFiles = []string{"/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"}

// madeFiles are generated rather than taken from the host.
var madeFiles = []pid1.Step{
	{Kind: pid1.MakeFile, Target: "etc/passwd", Source: "root:x:0:0:root:/:/usr/sbin/nologin\n" +
		"pawl:x:1000:1000:pawl:/work:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
	{Kind: pid1.MakeFile, Target: "etc/group", Source: "root:x:0:\npawl:x:1000:\nnogroup:x:65534:\n"},
	{Kind: pid1.MakeFile, Target: "etc/hosts", Source: "127.0.0.1 localhost\n"},
	{Kind: pid1.MakeFile, Target: "etc/nsswitch.conf", Source: "passwd: files\ngroup: files\nhosts: files\n"},
}

// devices are the only devices in the sandbox; major 1 is the kernel's memory devices.
var devices = []struct {
	name  string
	minor uint32
}{{"null", 3}, {"zero", 5}, {"full", 7}, {"random", 8}, {"urandom", 9}}

// masked are files of /proc that reveal the host; frozen are those that configure the host and become read-only.
var (
	masked = []string{"acpi", "asound", "interrupts", "kallsyms", "kcore", "key-users", "keys", "kmsg",
		"kpagecount", "kpageflags", "latency_stats", "modules", "pressure", "sched_debug", "scsi", "slabinfo", "timer_list",
		"timer_stats", "vmallocinfo", "sysrq-trigger"}
	frozen = []string{"bus", "fs", "irq", "sys"}
)

// layout is the part of a root file system that is the same for every run.
type layout struct {
	steps   []byte
	covered []string // host directories that the sandbox shows under the same path
	cover   string
}

// planLayout inspects the host once. watched is true where only the watchdog limits memory.
func planLayout(watched bool) (*layout, error) {
	l := &layout{}
	var steps []pid1.Step
	for _, dir := range systemDirs {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		target := strings.TrimPrefix(dir, "/")
		if info.Mode()&os.ModeSymlink != 0 {
			link, err := os.Readlink(dir)
			if err != nil {
				return nil, fmt.Errorf("plan the sandbox's root: %w", err)
			}
			steps = append(steps, pid1.Step{Kind: pid1.MakeLink, Source: link, Target: target})
			continue
		}
		steps = append(steps, pid1.Step{Kind: pid1.BindReadOnly, Source: dir, Target: target})
		l.covered = append(l.covered, dir)
	}
	for _, file := range systemFiles {
		if _, err := os.Stat(file); err == nil {
			target := strings.TrimPrefix(file, "/")
			steps = append(steps, pid1.Step{Kind: pid1.BindReadOnly, Source: file, Target: target})
		}
	}
	steps = append(steps, madeFiles...)
	for _, d := range devices {
		source, minor := d.name, d.minor
		if watched && d.name == "zero" {
			// A shared mapping of /dev/zero is memory that is not attributed to any process. /dev/full reads the same and cannot be mapped.
			source, minor = "full", 7
		}
		steps = append(steps, pid1.Step{
			Kind: pid1.BindDevice, Source: "/dev/" + source, Target: "dev/" + d.name, Number: int64(unix.Mkdev(1, minor)),
		})
	}
	for name, fd := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		steps = append(steps, pid1.Step{Kind: pid1.MakeLink, Source: "/proc/self/fd" + fd, Target: "dev/" + name})
	}
	steps = append(steps, pid1.Step{Kind: pid1.MountScratch}, pid1.Step{Kind: pid1.MountProc, Target: "proc"})
	for _, name := range frozen {
		if _, err := os.Lstat("/proc/" + name); err == nil {
			steps = append(steps, pid1.Step{Kind: pid1.Freeze, Target: "proc/" + name})
		}
	}
	for _, name := range masked {
		if _, err := os.Lstat("/proc/" + name); err == nil {
			steps = append(steps, pid1.Step{Kind: pid1.Mask, Target: "proc/" + name})
		}
	}
	for _, dir := range []string{"/tmp", "/mnt", "/var/tmp", "/run", "/home"} {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			l.cover = dir
			break
		}
	}
	if l.cover == "" {
		return nil, fmt.Errorf("plan the sandbox's root: none of /tmp, /mnt, /var/tmp, /run, /home is a directory to build it over")
	}
	l.steps = pid1.EncodeSteps(steps)
	return l, nil
}

// shows reports whether the layout already shows a host path under the same path.
func (l *layout) shows(path string) bool {
	for _, dir := range l.covered {
		if rest, ok := strings.CutPrefix(path, dir); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	// A path through /bin or /lib may be a link into /usr.
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		if first, _, _ := strings.Cut(path[1:], "/"); isLink("/" + first) {
			return l.shows(real)
		}
	}
	return false
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

// reserved are paths of the sandbox that a mount must not cover or lie beneath.
var reserved = []string{"/proc", "/dev", "/work", "/tmp", "/sys"}

// ofRun reports whether a mount lies beneath a directory that each run mounts for itself, and so must be mounted after it.
func ofRun(m runtime.Mount) bool {
	return slices.ContainsFunc(reserved, func(dir string) bool { return strings.HasPrefix(m.Path, dir+"/") })
}

// attachable returns an error if a host path cannot be mounted.
func attachable(path string) error {
	for _, dir := range reserved {
		if path == dir || strings.HasPrefix(dir, path+"/") {
			return fmt.Errorf("mount %q would cover %s of the sandbox", path, dir)
		}
	}
	return nil
}
