package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cli/exit"
)

// TestDegradedHostIsRefused starts servers as the user nobody, without delegated cgroups.
func TestDegradedHostIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can become a user who has no cgroups")
	}
	dir, err := os.MkdirTemp("", "pawl-public-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const nobody = 65534
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	pawl := filepath.Join(dir, "pawl")
	// A process that is forked meanwhile would hold the file open for writing, and such a file cannot be executed.
	syscall.ForkLock.RLock()
	err = os.WriteFile(pawl, self, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	server := func(args ...string) *exec.Cmd {
		c := exec.Command(pawl, append([]string{"server", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(dir, "state")}, args...)...)
		c.Dir, c.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, actAsPawl + "=" + strconv.Itoa(os.Getpid())}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		c.WaitDelay = 10 * time.Second
		return c
	}
	refused := server()
	out, err := refused.CombinedOutput()
	if refused.ProcessState.ExitCode() != exit.Misuse || !strings.Contains(string(out), "--allow-degraded") || !strings.Contains(string(out), "Delegate=yes") {
		t.Fatalf("%v\n%s", err, out)
	}
	accepted := server("--allow-degraded")
	stderr, err := accepted.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := accepted.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	for buf := make([]byte, 1024); !strings.Contains(said.String(), "serving on"); {
		n, err := stderr.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
	}
	if err := accepted.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(stderr) // it ends with the process
	if err := accepted.Wait(); err != nil {
		t.Fatalf("%v\n%s%s", err, said.String(), rest)
	}
}
