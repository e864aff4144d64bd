// Package python tests the package for Python with what its own project tests it: pytest, mypy and ruff, in a virtual environment.
package python

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
	python := environment(t, interpreters(t)[0])
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
	run(t, environment(t, interpreters(t)[0]), "-m", "pytest", "-q", "-o", "timeout=1500", "--long")
}

// TestPackageOnEachPython tests with all that are installed: from 3.10, which the package needs at least, to the newest.
func TestPackageOnEachPython(t *testing.T) {
	t.Parallel()
	for _, python := range interpreters(t)[1:] {
		t.Run(filepath.Base(python), func(t *testing.T) { run(t, environment(t, python), "-m", "pytest", "-q") })
	}
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

// environment returns the Python of a virtual environment with the packages of requirements.txt. The user's cache directory keeps it.
func environment(t *testing.T, base string) string {
	t.Helper()
	requirements, err := filepath.Abs(filepath.Join(sdk, "tests", "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(append([]byte(base+"\n"), wanted...))
	dir := filepath.Join(cache, "pawl", "python-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	python, whole := filepath.Join(dir, "bin", "python"), filepath.Join(dir, "whole")
	if _, err := os.Stat(whole); err == nil {
		return python
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, base, "-m", "venv", "--clear", dir).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: a Python that makes virtual environments is needed and not here: %v: %s", err, last(out))
	}
	install := exec.CommandContext(ctx, python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r", requirements)
	switch out, err := install.CombinedOutput(); {
	case err != nil && bytes.Contains(out, []byte("DO NOT MATCH THE HASHES")):
		t.Fatalf("%s", out)
	case err != nil:
		t.Skipf("NOT TESTED: a package index is needed and not here: %v: %s", err, last(out))
	}
	if err := os.WriteFile(whole, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return python
}

// interpreters returns the Pythons that the package supports: the one that is python3 first, then others that PATH or pyenv has.
func interpreters(t *testing.T) []string {
	t.Helper()
	names := []string{"python3", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"}
	if home, err := os.UserHomeDir(); err == nil {
		more, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "3.*", "bin", "python3"))
		names = append(names, more...)
	}
	var found []string
	for _, name := range names {
		// The program itself, and not a script in PATH that chooses one by the directory.
		cmd := exec.CommandContext(t.Context(), name, "-c", "import sys; print(sys.executable if sys.version_info >= (3, 10) else '')")
		out, err := cmd.Output()
		if err != nil {
			continue
		}
		python, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
		if err == nil && !slices.Contains(found, python) {
			found = append(found, python)
		}
	}
	if len(found) == 0 {
		t.Skip("NOT TESTED: Python 3.10 or later is needed and not here")
	}
	return found
}

func last(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Sprintf("%.300s", lines[len(lines)-1])
}
