//go:build unix

package runtimetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

//go:embed programs
var sources embed.FS

// hostile is the compiled programs and the runtime that it attacks.
type hostile struct {
	suite     *suite
	row       string // the current row's number
	runtime   runtime.Runtime
	program   []byte
	namespace string // the host's pid namespace
	token     string // of the current program; also how its processes are found
	canaries  *canaries
}

// attack runs the hostile programs. The numbers in their names are those of the table of threats that the sandbox was
// designed against; row 48, the death of the worker, is WorkerKilled.
func attack(t *testing.T, s *suite, r runtime.Runtime) {
	h := &hostile{suite: s, runtime: r, program: Program(t), namespace: pidNamespace(t), canaries: plantCanaries(t)}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			h.token = rand.Text()
			h.row, _, _ = strings.Cut(p.name, " ")
			s.check(t, h.row, func(t testing.TB) { p.run(t, h) })
			s.finish(t, h.row+"/")
			h.after(t)
		})
	}
}

// after finds out whether the host is as it was and whether the next program runs.
func (h *hostile) after(t testing.TB) {
	t.Helper()
	h.canaries.check(t, h.token)
	if left := leftCgroups(t, h.runtime); len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
	if left := h.suite.left(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	result, stdout, _ := finish(t, h.runtime, shell("echo next"))
	if result.Verdict != runtime.OK || stdout != "next\n" {
		t.Errorf("the next run: %+v, stdout %q", result, stdout)
	}
}

// nothing checks what a probe has printed: each line is something that it was able to do.
func (h *hostile) nothing(t testing.TB, stdout string) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		line = strings.TrimSpace(line)
		if why, ok := h.suite.allows(h.row + "/" + line); ok {
			t.Logf("able to %s, as listed: %s", line, why)
			continue
		}
		t.Errorf("was able to: %s", line)
	}
}

// Program is the hostile program, compiled statically so that it needs nothing from where it runs: not even a shell or
// a C library in a container's image. It is an error to run it outside of a sandbox, and it refuses that.
func Program(t testing.TB) []byte {
	t.Helper()
	program, err := compiled()
	if err != nil {
		t.Skipf("the hostile programs need a C compiler and a static C library (gcc, libc6-dev): %v", err)
	}
	return program
}

var compiled = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "pawl-hostile-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, sources); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "programs", "*.c"))
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "hostile")
	cmd := exec.Command("cc", append([]string{"-Os", "-s", "-static", "-pthread", "-o", binary}, files...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(binary)
})

// spec is a run of one hostile command with limits that a healthy host can bear to see exhausted.
func (h *hostile) spec(command string, args ...string) runtime.Spec {
	return runtime.Spec{
		Name:  "hostile",
		Argv:  append([]string{"./hostile", h.token, h.namespace, command}, args...),
		Env:   []string{"PATH=/usr/bin:/bin", "PAWL_HOSTILE_TOKEN=" + h.token},
		Files: []runtime.File{{Path: "hostile", Mode: 0o755, Content: h.program}},
		Limits: runtime.Limits{
			Wall: 20 * time.Second, CPU: 20 * time.Second, Memory: 64 << 20, Pids: 32, Output: 1 << 20, Disk: 16 << 20,
		},
	}
}

func (h *hostile) finish(t testing.TB, spec runtime.Spec) (runtime.Result, string, string) {
	t.Helper()
	result, stdout, stderr := finish(t, h.runtime, spec)
	if strings.Contains(stderr, "refusing to run") {
		t.Fatalf("the program's guard refused: %s", stderr)
	}
	return result, stdout, stderr
}

// start begins a run and waits until it has written text.
func (h *hostile) start(t testing.TB, spec runtime.Spec, text string) (runtime.Run, *output) {
	t.Helper()
	out := newOutput()
	spec.Stdout = out
	run, err := h.runtime.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	out.await(t, text)
	return run, out
}

// programs are rows of the table of threats.
var programs = []struct {
	name string
	run  func(testing.TB, *hostile)
}{
	{"01 busy loop", func(t testing.TB, h *hostile) {
		spec := h.spec("spin")
		spec.Limits.Wall = 300 * time.Millisecond
		result, _, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.Timeout)
		spec = h.spec("spin")
		spec.Limits.CPU = 200 * time.Millisecond
		result, _, _ = h.finish(t, spec)
		wantVerdict(t, result, runtime.CPUTimeout)
		if result.CPU < 200*time.Millisecond || result.CPU > 2*time.Second {
			t.Errorf("used %v of CPU time, the limit was 200ms", result.CPU)
		}
	}},
	{"02 sleep for ever", func(t testing.TB, h *hostile) {
		spec := h.spec("sleep")
		spec.Limits.Wall = 200 * time.Millisecond
		result, _, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.Timeout)
	}},
	{"03 ignore TERM, HUP, INT", func(t testing.TB, h *hostile) {
		run, _ := h.start(t, h.spec("stubborn"), "ready\n")
		begin := time.Now()
		run.Kill("cancelled")
		wantVerdict(t, run.Wait(), runtime.Killed)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the kill took %v", took)
		}
	}},
	{"04 memory bomb", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("memory"))
		wantVerdict(t, result, runtime.OOM)
		if result.PeakMemory > 256<<20 {
			t.Errorf("reached %d bytes, the limit was 64 MiB", result.PeakMemory)
		}
	}},
	{"05 child out of memory, parent exits 0", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("child-memory"))
		wantVerdict(t, result, runtime.OK)
		if !result.ChildOOM {
			t.Errorf("child_oom is not set: %+v", result)
		}
	}},
	{"06 fill memfd, tmp and shm", func(t testing.TB, h *hostile) {
		for _, where := range [][]string{
			{"fill-memfd"}, {"fill-file", "/dev/shm/fill"}, {"fill-file", "/tmp/fill"}, {"fill-file", "fill"},
		} {
			spec := h.spec(where[0], where[1:]...)
			spec.Limits.Disk = 256 << 20
			result, _, stderr := h.finish(t, spec)
			// The exit code is an errno: no space, or no such call.
			if result.Verdict != runtime.OOM && !slices.Contains([]int{1, 28, 38}, result.ExitCode) {
				t.Errorf("%v: %+v %s", where, result, stderr)
			}
		}
	}},
	{"07 page-cache pressure", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("page-cache"))
		wantVerdict(t, result, runtime.OK)
	}},
	{"08 SIGKILL itself", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("signal", "9"))
		wantVerdict(t, result, runtime.Signal)
		if result.Signal != "SIGKILL" {
			t.Errorf("signal %s, want SIGKILL", result.Signal)
		}
	}},
	{"09 exit 137", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("exit", "137"))
		wantVerdict(t, result, runtime.NonzeroExit)
		if result.ExitCode != 137 {
			t.Errorf("exit code %d, want 137", result.ExitCode)
		}
	}},
	{"10 SIGSEGV, SIGABRT", func(t testing.TB, h *hostile) {
		for want, args := range map[string][]string{"SIGSEGV": {"segfault"}, "SIGABRT": {"signal", "6"}} {
			spec := h.spec(args[0], args[1:]...)
			spec.Collect, spec.CollectInto = []string{"core*"}, t.TempDir()
			result, _, _ := h.finish(t, spec)
			wantVerdict(t, result, runtime.Signal)
			if result.Signal != want || len(result.Files) > 0 || len(result.Refused) > 0 {
				t.Errorf("want %s and no core file: %+v", want, result)
			}
		}
	}},
	{"11 fork bomb", func(t testing.TB, h *hostile) {
		result, stdout, _ := h.finish(t, h.spec("forks"))
		wantVerdict(t, result, runtime.OK)
		count, why, _ := strings.Cut(strings.TrimSpace(stdout), " ")
		if n, err := strconv.Atoi(count); err != nil || why != "EAGAIN" || n < 8 || n > 48 {
			t.Errorf("forked %q, want EAGAIN after about 32 processes", stdout)
		}
		run, _ := h.start(t, h.spec("wild-forks"), "ready\n")
		begin := time.Now()
		run.Kill("cancelled")
		wantVerdict(t, run.Wait(), runtime.Killed)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("killing the fork bomb took %v", took)
		}
	}},
	{"12 thread bomb", func(t testing.TB, h *hostile) {
		result, stdout, _ := h.finish(t, h.spec("threads"))
		wantVerdict(t, result, runtime.OK)
		count, why, _ := strings.Cut(strings.TrimSpace(stdout), " ")
		if n, err := strconv.Atoi(count); err != nil || why != "EAGAIN" || n < 8 || n > 48 {
			t.Errorf("created %q, want EAGAIN after about 32 threads", stdout)
		}
	}},
	{"13 daemon holding stdout", func(t testing.TB, h *hostile) {
		begin := time.Now()
		result, stdout, _ := h.finish(t, h.spec("daemon"))
		wantVerdict(t, result, runtime.OK)
		if took := time.Since(begin); stdout != "parent done\n" || took > 2*time.Second {
			t.Errorf("stdout %q after %v", stdout, took)
		}
	}},
	{"14 zombie factory", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("zombies"))
		wantVerdict(t, result, runtime.OK)
	}},
	{"15 fill tmp, inodes", func(t testing.TB, h *hostile) {
		for _, args := range [][]string{{"fill-file", "/tmp/fill"}, {"fill-file", "fill"}, {"inodes", "/tmp"}, {"inodes", "."}} {
			spec := h.spec(args[0], args[1:]...)
			spec.Limits.Memory = 256 << 20
			result, _, _ := h.finish(t, spec)
			if result.ExitCode != int(syscall.ENOSPC) {
				t.Errorf("%v: %+v, want ENOSPC as the exit code", args, result)
			}
		}
	}},
	{"16 flood stdout, stderr", func(t testing.TB, h *hostile) {
		for _, fd := range []string{"1", "2"} {
			result, stdout, stderr := h.finish(t, h.spec("flood", fd))
			wantVerdict(t, result, runtime.OutputLimit)
			if got := len(stdout) + len(stderr); got != 1<<20 {
				t.Errorf("kept %d bytes, want exactly the limit", got)
			}
		}
	}},
	{"17 output at the limit", func(t testing.TB, h *hostile) {
		const limit = 100 << 10
		for _, extra := range []int{-1, 0, 1} {
			spec := h.spec("bytes", strconv.Itoa(limit+extra))
			spec.Limits.Output = limit
			result, stdout, _ := h.finish(t, spec)
			want := runtime.OK
			if extra > 0 {
				want = runtime.OutputLimit
			}
			wantVerdict(t, result, want)
			if len(stdout) != min(limit+extra, limit) {
				t.Errorf("%+d: kept %d bytes", extra, len(stdout))
			}
		}
	}},
	{"18 odd bytes", func(t testing.TB, h *hostile) {
		result, stdout, _ := h.finish(t, h.spec("odd"))
		wantVerdict(t, result, runtime.OK)
		if want := "a\x00b\xff\xfe\xc3\x28\x1b[31mred\x1b[0m\r\n\ttail"; stdout != want {
			t.Errorf("stdout %q, want %q", stdout, want)
		}
	}},
	{"19 partial line, then timeout", func(t testing.TB, h *hostile) {
		spec := h.spec("sleep", "no newline")
		spec.Limits.Wall = 200 * time.Millisecond
		result, stdout, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.Timeout)
		if stdout != "no newline" {
			t.Errorf("stdout %q", stdout)
		}
	}},
	{"20 read absent stdin", func(t testing.TB, h *hostile) {
		result, _, _ := h.finish(t, h.spec("read"))
		wantVerdict(t, result, runtime.OK)
	}},
	{"22 close stdout and go on", func(t testing.TB, h *hostile) {
		spec := h.spec("deaf")
		spec.Limits.Wall = 200 * time.Millisecond
		result, _, _ := h.finish(t, spec)
		wantVerdict(t, result, runtime.Timeout)
	}},
	{"23 secrets of the host", func(t testing.TB, h *hostile) {
		paths := []string{"/etc/shadow", "/etc/gshadow", "/etc/ssh", "/root", "/home", "/var", "/run", "/sys", "/boot",
			"/var/run/docker.sock", "/run/docker.sock", "/dev/vda", "/dev/sda", "/dev/mem", "/dev/kvm", h.canaries.file}
		if home, err := os.UserHomeDir(); err == nil && home != "/" {
			paths = append(paths, home)
		}
		result, stdout, _ := h.finish(t, h.spec("open", paths...))
		wantVerdict(t, result, runtime.OK)
		if stdout != "" {
			t.Errorf("reached:\n%s", stdout)
		}
	}},
	{"24 environment", func(t testing.TB, h *hostile) {
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
		result, stdout, _ := h.finish(t, h.spec("network", strconv.Itoa(port)))
		wantVerdict(t, result, runtime.OK)
		if stdout != "" {
			t.Errorf("reached:\n%s", stdout)
		}
	}},
	{"26-43 forbidden calls and files", beyond},
}

// beyond are programs of the rows 26 to 43, all of which try what must be blocked.
func beyond(t testing.TB, h *hostile) {
	result, stdout, _ := h.finish(t, h.spec("probe"))
	wantVerdict(t, result, runtime.OK)
	if stdout != "alive\n" {
		t.Errorf("was able to:\n%s", stdout)
	}
	if goruntime.GOARCH == "amd64" {
		result, _, _ = h.finish(t, h.spec("int80"))
		wantVerdict(t, result, runtime.Signal)
		if result.Signal != "SIGSYS" {
			t.Errorf("a 32-bit call ended with %+v, want SIGSYS", result)
		}
	}
}

// canaries are things of the host that no program may change.
type canaries struct {
	file     string
	hostname string
	pattern  []byte
	mounts   []byte
}

const canaryText = "the host's own\n"

func plantCanaries(t testing.TB) *canaries {
	c := &canaries{file: filepath.Join(t.TempDir(), "canary")}
	if err := os.WriteFile(c.file, []byte(canaryText), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.file, 0o666); err != nil {
		t.Fatal(err)
	}
	c.hostname, _ = os.Hostname()
	c.pattern, _ = os.ReadFile("/proc/sys/kernel/core_pattern")
	c.mounts, _ = os.ReadFile("/proc/self/mountinfo")
	return c
}

// check finds out whether the host is as it was and whether anything of the run with this token is left.
func (c *canaries) check(t testing.TB, token string) {
	t.Helper()
	if text, err := os.ReadFile(c.file); err != nil || string(text) != canaryText {
		t.Errorf("the canary file is %q (%v)", text, err)
	}
	if name, _ := os.Hostname(); name != c.hostname {
		t.Errorf("the hostname is %q and was %q", name, c.hostname)
	}
	if pattern, _ := os.ReadFile("/proc/sys/kernel/core_pattern"); !bytes.Equal(pattern, c.pattern) {
		t.Errorf("core_pattern is %q and was %q", pattern, c.pattern)
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); !bytes.Equal(mounts, c.mounts) {
		t.Errorf("mounts were\n%s\nand are\n%s", c.mounts, mounts)
	}
	if left := Processes(token); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// Processes lists the host's processes whose command line holds text, as "pid command".
func Processes(text string) []string {
	var found []string
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		line, err := os.ReadFile(entry)
		if err == nil && bytes.Contains(line, []byte(text)) && entry != fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			found = append(found, strings.Split(entry, "/")[2]+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// Cgroups lists the cgroups that the process with this id has made for runs: backends put their own id in the name.
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
