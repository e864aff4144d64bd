//go:build unix

// Package nobody is for tests of what a user without privileges experiences. Root may read and write everything, so such a test
// shows nothing when it runs as root, as in CI.
package nobody

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// uid is the user and the group "nobody" on every Linux distribution.
const uid = 65534

// Runs runs only the calling test, in a copy of the test binary, as the user nobody, and fails if that fails. It
// returns false if the caller is not root and must run the test itself. The copy has its own directory as working
// directory, HOME and TMPDIR.
func Runs(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "pawl-nobody-") // nobody cannot enter package testing's directories
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	copySelf(t, binary)
	cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "PAWL_TEST_STRICT=" + os.Getenv("PAWL_TEST_STRICT")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return true
}

// copySelf copies this process's binary to a file that every user may execute. A process that is forked while the copy is open for
// writing would also hold it open, and such a file cannot be executed.
func copySelf(t *testing.T, path string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	from, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
