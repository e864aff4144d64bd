// Package pythontest gives tests a Python with packages from the package index.
package pythontest

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
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Environment returns the Python of a virtual environment with the packages of a file of requirements, which has the hash of each. The
// user's cache directory keeps it. Without a package index the test is skipped.
func Environment(t *testing.T, base, requirements string) string {
	t.Helper()
	requirements, err := filepath.Abs(requirements)
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

// Interpreters returns the Pythons that the package supports: first python3, then others in PATH or pyenv.
func Interpreters(t *testing.T) []string {
	t.Helper()
	names := []string{"python3", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"}
	if home, err := os.UserHomeDir(); err == nil {
		more, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "3.*", "bin", "python3"))
		names = append(names, more...)
	}
	var found []string
	for _, name := range names {
		// The program itself, not a script in PATH that chooses a Python by the directory.
		cmd := exec.CommandContext(t.Context(), name, "-c", "import sys; print(sys.executable if sys.version_info >= (3, 10) else '')")
		out, err := cmd.Output()
		if err != nil || len(bytes.TrimSpace(out)) == 0 {
			continue // it is missing, or older
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
