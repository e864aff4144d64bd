//go:build linux

package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

func TestConformance(t *testing.T) { runtimetest.Exercise(t, factory(Options{})) }

// TestConformanceWithoutCgroups is what an unprivileged user without delegated cgroups has, under the current user.
func TestConformanceWithoutCgroups(t *testing.T) {
	runtimetest.Exercise(t, factory(Options{WithoutCgroups: true}))
}

// TestUnprivileged runs this package's tests again as a user who is nobody on this host.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this already is an unprivileged user")
	}
	const nobody = 65534
	dir := publicDir(t)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	binary := copyTestBinary(t, dir)
	cmd := exec.Command(binary, "-test.v", "-test.run", "^(TestConformance|TestDiagnose|TestWorkerKilled)$")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, "HOME=/nonexistent"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// publicDir is a temporary directory that every user can enter, which testing's own are not.
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

// copyTestBinary puts this test binary where every user can execute it.
func copyTestBinary(t *testing.T, dir string) string {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
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
