// Package python tests the Python package with the tools of its project: pytest, mypy and ruff, in a virtual environment.
package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/e2e/pythontest"
	"github.com/pawl-run/pawl/internal/programtest"
)

const sdk = "../../sdk/python"

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

func TestPackage(t *testing.T) {
	t.Parallel()
	python := environment(t, pythontest.Interpreters(t)[0])
	for name, args := range map[string][]string{
		"pytest": {"-m", "pytest", "-q"}, "types": {"-m", "mypy"}, "lint": {"-m", "ruff", "check"}, "format": {"-m", "ruff", "format", "--check"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, python, args...)
		})
	}
}

// TestPackageLong grades 10,000 programs while their server is killed five times.
func TestPackageLong(t *testing.T) {
	t.Parallel()
	run(t, environment(t, pythontest.Interpreters(t)[0]), "-m", "pytest", "-q", "-o", "timeout=1500", "--long")
}

// TestPackageOnEachPython tests with all that are installed: from 3.10, which the package needs at least, to the newest.
func TestPackageOnEachPython(t *testing.T) {
	t.Parallel()
	for _, python := range pythontest.Interpreters(t)[1:] {
		t.Run(filepath.Base(python), func(t *testing.T) { run(t, environment(t, python), "-m", "pytest", "-q") })
	}
}

func environment(t *testing.T, base string) string {
	t.Helper()
	return pythontest.Environment(t, base, filepath.Join(sdk, "tests", "requirements.txt"))
}

func run(t *testing.T, python string, args ...string) {
	t.Helper()
	pawl, err := programtest.Pawl()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), python, args...)
	cmd.Dir = sdk
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(pawl)+":"+os.Getenv("PATH"), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1",
		"MYPY_CACHE_DIR="+filepath.Join(home, "mypy"), "RUFF_NO_CACHE=true", "PAWL_ALLOW_DEGRADED=true", "PAWL_SERVER=", "PAWL_TOKEN=", "PAWL_CONFIG=",
		"PAWL_STATE_DIR="+filepath.Join(home, "state"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"))
	// The servers that pytest starts are in its process group, and end with this test.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", python, strings.Join(args, " "), err, out)
	}
}
