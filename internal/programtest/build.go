// Package programtest builds pawl for the tests that start it as a separate process, finds ports for such processes, and ties them to
// the test binary: one that is killed, or that exceeds its time limit, leaves no server and no worker behind.
package programtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// dirVar names the directory that the test binaries of one `make test` share, so that pawl is linked once and not once per
// package, which takes 4 s of a processor. scripts/with-services sets it to an empty directory.
const dirVar = "PAWL_TEST_PROGRAMS"

var built struct {
	sync.Mutex
	dir   string            // created by this process; empty: none, or the one of dirVar
	paths map[string]string // by build tags
}

// Pawl returns the path of cmd/pawl, built with the given build tags and without C. The first call for a set of tags builds it; it
// is safe to call from several tests at once. Remove removes what it built.
func Pawl(tags ...string) (string, error) {
	built.Lock()
	defer built.Unlock()
	set := strings.Join(tags, ",")
	if path, ok := built.paths[set]; ok {
		return path, nil
	}
	dir := os.Getenv(dirVar)
	if dir == "" && built.dir == "" {
		var err error
		if built.dir, err = os.MkdirTemp("", "pawl-programs-"); err != nil {
			return "", err
		}
	}
	if dir == "" {
		dir = built.dir
	}
	path := filepath.Join(dir, strings.Join(append([]string{"pawl"}, tags...), "-"))
	if err := build(path, set); err != nil {
		return "", err
	}
	if built.paths == nil {
		built.paths = map[string]string{}
	}
	built.paths[set] = path
	return path, nil
}

// Remove removes the programs that Pawl has built for this process only. Call it at the end of TestMain.
func Remove() {
	built.Lock()
	defer built.Unlock()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	built.dir, built.paths = "", nil
}

// build builds the program unless another test binary has done so. Concurrent callers wait for one build.
func build(path, tags string) error {
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	cmd := exec.Command("go", "build", "-tags", tags, "-o", path+".new", "github.com/pawl-run/pawl/cmd/pawl")
	cmd.Dir = root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build pawl: %w\n%s", err, out)
	}
	return os.Rename(path+".new", path)
}

// root is the directory of Pawl's module, relative to a test's working directory, which may be in another module (e2e/browser).
func root() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "pawl", "main.go")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// lockFile opens the file, creates it if necessary, and holds its lock until it is closed.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// EndWith ends this process once the process with the given decimal id is gone. A test binary that acts as pawl calls it in a
// goroutine: a shell is between it and the test that started it, so the kernel does not notify it of that test's end.
func EndWith(id string) {
	pid, err := strconv.Atoi(id)
	if err != nil {
		return
	}
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) { // EPERM means that the process is another user's
		time.Sleep(time.Second)
	}
	os.Exit(1)
}
