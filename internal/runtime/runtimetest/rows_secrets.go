//go:build unix

package runtimetest

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// secretRows read the host's secrets and try to reach other runs.
var secretRows = []row{
	{"23 secrets of the host", func(t testing.TB, h *hostile) {
		paths := []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id", "/etc/ssh", "/etc/ssl/private", "/etc/docker",
			"/root", "/home", "/var", "/run", "/sys", "/boot", "/opt", "/srv", "/mnt", "/media", "/lost+found",
			"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/systemd/private",
			"/var/lib/docker", "/var/lib/kubelet", "/run/secrets", "/.dockerenv", "/proc/1/root/etc/shadow",
			"/dev/vda", "/dev/sda", "/dev/mem", "/dev/kvm", "/dev/pts/0", "/dev/tty", "/dev/ptmx", "/dev/console", "/dev/fuse",
			h.canaries.file, filepath.Dir(h.canaries.file)}
		if home, err := os.UserHomeDir(); err == nil && home != "/" && home != "/nonexistent" {
			paths = append(paths, home)
		}
		if wd, err := os.Getwd(); err == nil && !strings.HasPrefix(wd, "/usr") {
			paths = append(paths, wd)
		}
		h.probe(t, "open", paths...)
	}},
	{"24 environment", func(t testing.TB, h *hostile) {
		t.Cleanup(func() { os.Unsetenv("PAWL_TEST_SECRET") })
		os.Setenv("PAWL_TEST_SECRET", h.token)
		spec := shell("tr '\\0' '\\n' < /proc/self/environ")
		result, stdout, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.OK)
		for line := range strings.Lines(stdout) {
			if line = strings.TrimSpace(line); !slices.Contains(spec.Env, line) && !strings.HasPrefix(line, "PWD=") {
				t.Errorf("unexpected %q", line)
			}
		}
	}},
	{"25 descriptors", func(t testing.TB, h *hostile) {
		result, stdout, _ := h.finish(t, h.spec("descriptors"))
		wantVerdict(t, result, runtime.OK)
		if stdout != "0\n1\n2\n" {
			t.Errorf("open descriptors: %q", stdout)
		}
	}},
	{"26 process 1", func(t testing.TB, h *hostile) { h.probe(t, "peek-init") }},
	{"27 write executables", func(t testing.TB, h *hostile) {
		h.probe(t, "write-executables")
		// A program that is a link to the runtime's own binary, or a script that names the binary as its interpreter, makes the runtime execute
		// the binary within reach of other programs. Whatever the result, the binary must not change: it is a canary.
		spec := h.spec("exit")
		spec.Argv = []string{"./script", "-test.run=^$"}
		spec.Env = append(spec.Env, quickExit)
		spec.Files = []runtime.File{{Path: "script", Mode: 0o755, Content: []byte("#!/proc/self/exe -test.run=^$\n")}}
		if run, err := h.runtime.Start(t.Context(), spec); err == nil {
			run.Wait()
		}
		spec.Argv = []string{"/proc/self/exe", "-test.run=^$"}
		if run, err := h.runtime.Start(t.Context(), spec); err == nil {
			run.Wait()
		}
	}},
	{"28 settings of the host", func(t testing.TB, h *hostile) { h.probe(t, "write-settings") }},
	{"29 what the kernel knows", func(t testing.TB, h *hostile) { h.probe(t, "read-kernel") }},
	{"30 network", func(t testing.TB, h *hostile) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		packets, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Fatal(err)
		}
		defer packets.Close()
		heard := make(chan string, 2)
		go func() {
			if c, err := listener.Accept(); err == nil {
				c.Close()
				heard <- "a connection"
			}
		}()
		go func() {
			if n, _, err := packets.ReadFrom(make([]byte, 16)); err == nil {
				heard <- strconv.Itoa(n) + " bytes by UDP"
			}
		}()
		h.probe(t, "network", strconv.Itoa(port), "/etc/resolv.conf")
		select {
		case what := <-heard:
			t.Errorf("the host's listener got %s", what)
		default:
		}
	}},
	{"31 protocol families", func(t testing.TB, h *hostile) { h.probe(t, "families") }},
	{"32 marks across runs", func(t testing.TB, h *hostile) {
		host, err := net.Listen("unix", "@pawl-host-"+h.token)
		if err != nil {
			t.Fatal(err)
		}
		defer host.Close()
		// The probe runs at the same time, and once more after the end of the run that left the marks.
		run, _ := h.start(t, h.spec("leave-marks", h.token), "marked\n")
		h.probe(t, "find-marks", h.token, "host-"+h.token)
		run.Kill("done")
		run.Wait()
		h.probe(t, "find-marks", h.token, "host-"+h.token)
	}},
}

// setUserID is a directory with a set-user-id copy of the hostile program that belongs to this user and, where possible, a device.
func (h *hostile) setUserID(t testing.TB) (dir string, device bool) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "tools")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(dir, "tool")
	if err := os.WriteFile(tool, h.program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(tool, 0o755|fs.ModeSetuid|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	return dir, makeDevice(filepath.Join(dir, "zero"))
}

// quickExit keeps the race detector from sleeping for a second at the end of a program.
const quickExit = "GORACE=atexit_sleep_ms=0"
