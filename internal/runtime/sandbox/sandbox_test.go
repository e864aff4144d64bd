//go:build linux

package sandbox

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/runtimetest"
)

func factory(o Options) runtimetest.Factory {
	return func(t testing.TB) runtime.Runtime {
		r, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func TestConformance(t *testing.T) {
	o := Options{}
	if os.Geteuid() != 0 { // TestUnprivileged is not the first to run it
		runtimetest.Exercise(t, factory(o), differing(t, o), runtimetest.Brief())
		return
	}
	runtimetest.Exercise(t, factory(o), differing(t, o))
}

// TestConformanceWithoutCgroups is the case of an unprivileged user without delegated cgroups, as the current user. Parallel tests must
// not use cgroups: it would take theirs for leftovers.
func TestConformanceWithoutCgroups(t *testing.T) {
	t.Parallel()
	o := Options{WithoutCgroups: true}
	runtimetest.Exercise(t, factory(o), differing(t, o), runtimetest.Brief())
}

// differing lists what only cgroups can do, for options without them.
func differing(t *testing.T, o Options) runtimetest.Option {
	t.Helper()
	r := factory(o)(t).(*Runtime)
	defer r.Close()
	if r.cgroups != nil {
		return runtimetest.Differing(nil)
	}
	return runtimetest.Differing(runtimetest.Differs{
		"54": "without a cgroup nobody adds up the time of children that nobody waits for; what bounds it is the wall limit, times " +
			"the number of processors",
	})
}

// TestConformanceWarm runs the suite in sandboxes that were built in advance, as far as the pool keeps up. It does not run in parallel:
// other tests would take the cgroups of its pool for leftovers.
func TestConformanceWarm(t *testing.T) {
	o := Options{Warm: 4}
	runtimetest.Exercise(t, factory(o), differing(t, o), runtimetest.Brief())
}

func TestWorkerKilledWarm(t *testing.T) { runtimetest.WorkerKilled(t, factory(Options{Warm: 4})) }

// TestUnprivileged runs this package's tests again as the user nobody.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this already is an unprivileged user")
	}
	t.Parallel()
	const nobody = 65534
	dir := publicDir(t)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	binary := copyTestBinary(t, dir)
	cmd := exec.Command(binary, "-test.v", "-test.run", "^(TestConformance|TestConformanceWarm|TestDiagnose|TestWorkerKilled|TestWorkerKilledWarm|TestTinyLimits|TestRefused)$")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, "HOME=/nonexistent"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPrivateBinary runs as root from a binary that only root may execute.
func TestPrivateBinary(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives programs a user that is not its own")
	}
	binary := copyTestBinary(t, t.TempDir())
	if err := os.Chmod(binary, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(binary, "-test.run", "^(TestDiagnose|TestTinyLimits)$", "-test.v").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// publicDir is a temporary directory that every user can enter, unlike package testing's.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pawl-public-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyTestBinary copies this test binary to where every user can execute it.
func copyTestBinary(t *testing.T, dir string) string {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	// A process that is forked meanwhile would hold the file open for writing, and such a file cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	path := filepath.Join(dir, "sandbox.test")
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWorkerKilled(t *testing.T) { runtimetest.WorkerKilled(t, factory(Options{})) }

func TestDiagnose(t *testing.T) {
	r := factory(Options{})(t)
	defer r.Close()
	findings := r.Diagnose(t.Context())
	if len(findings) < 3 || findings[0].What != "isolation" || !findings[0].OK {
		t.Fatalf("this host cannot isolate: %+v", findings)
	}
	for _, f := range findings {
		if f.Say == "" || f.OK != (f.Fix == "") {
			t.Errorf("a finding says what is wrong if and only if it says how to mend it: %+v", f)
		}
	}
	if left := runtimetest.Cgroups(os.Getpid()); len(left) > 0 {
		t.Errorf("the diagnosis left %v", left)
	}
}

// TestRefused forbids user namespaces, in its own user namespace whose limit is zero, and checks the error.
func TestRefused(t *testing.T) {
	const marker = "PAWL_TEST_NO_NAMESPACES"
	if os.Getenv(marker) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestRefused$", "-test.v")
		cmd.Env = append(os.Environ(), marker+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getgid(), Size: 1}},
			AmbientCaps: allCapabilities(),
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	r := factory(Options{})(t)
	defer r.Close()
	run, err := r.Start(t.Context(), runtime.Spec{Argv: []string{"true"}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err == nil {
		t.Fatalf("started: %+v", run.Wait())
	}
	if !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("error %q does not wrap ErrUnavailable", err)
	}
	for _, part := range []string{"namespaces", "sysctl -w user.max_user_namespaces", "--runtime process"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	finding := r.Diagnose(t.Context())[0]
	if finding.OK || !strings.Contains(finding.Fix, "sysctl") {
		t.Errorf("diagnosis: %+v", finding)
	}
}

// allCapabilities are numbered up to 40, the kernel's newest.
func allCapabilities() []uintptr {
	caps := make([]uintptr, 41)
	for i := range caps {
		caps[i] = uintptr(i)
	}
	return caps
}

// TestTinyLimits uses limits below what any program needs: whatever the result, the host must not be at fault.
func TestTinyLimits(t *testing.T) {
	r := factory(Options{})(t)
	defer r.Close()
	for name, limits := range map[string]runtime.Limits{
		"wall": {Wall: 1}, "cpu": {CPU: 1}, "memory": {Memory: 1}, "little memory": {Memory: 256 << 10}, "pids": {Pids: 1},
		"output": {Output: 1}, "disk": {Disk: 1},
	} {
		run, err := r.Start(t.Context(), runtime.Spec{
			Argv: []string{"sh", "-c", "echo hello; ls / | cat; echo x > file"}, Env: []string{"PATH=/usr/bin:/bin"},
			Limits: limits,
		})
		if err != nil {
			t.Logf("%s: %v", name, err)
			if !errors.Is(err, runtime.ErrSpec) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		result := run.Wait()
		t.Logf("%s: %s %s", name, result.Verdict, result.Reason)
		if result.Verdict == runtime.InfraError {
			t.Errorf("%s: %+v", name, result)
		}
	}
}

// TestTwoRuntimes runs programs in two runtimes of one process at the same time.
func TestTwoRuntimes(t *testing.T) {
	for range 2 {
		r := factory(Options{})(t)
		defer r.Close()
		run, err := r.Start(t.Context(), runtime.Spec{Argv: []string{"sleep", "60"}, Env: []string{"PATH=/usr/bin:/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		defer run.Kill("the test is over")
	}
}

// TestUnpaidCPU counts the usage of a child that was never waited for, although the program ended by itself.
func TestUnpaidCPU(t *testing.T) {
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("there is no /usr/bin/python3")
	}
	r := factory(Options{})(t)
	defer r.Close()
	if r.(*Runtime).Degraded() != nil {
		t.Skip("without cgroups nobody counts it")
	}
	run, err := r.Start(t.Context(), runtime.Spec{Argv: []string{python, "-c", `
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 0.3: pass
    os._exit(0)
try: os.wait()
except ChildProcessError: pass
`}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	if result := run.Wait(); result.Verdict != runtime.OK || result.CPU < 300*1e6-initCPU {
		t.Errorf("%s %s: counted %v of CPU time; the child alone used 300ms", result.Verdict, result.Reason, result.CPU)
	}
}
