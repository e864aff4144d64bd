//go:build unix

package dockertest

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// takenVar tells a process that a test started that the test holds the engine for it.
const takenVar = "PAWL_TEST_DOCKER_TAKEN"

var (
	inherited = os.Getenv(takenVar) != ""

	turn struct {
		sync.Mutex
		file  *os.File // locked while tests use the engine
		tests int
	}
)

// take waits until no other process uses the engine for tests. A worker removes the containers of dead workers unless its own server
// expects them back, so two packages would remove each other's.
func take(host string) error {
	turn.Lock()
	defer turn.Unlock()
	if turn.tests == 0 && !inherited {
		name := fnv.New64a()
		name.Write([]byte(host))
		f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("pawl-test-docker-%016x.lock", name.Sum64())), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		for err = syscall.EINTR; err == syscall.EINTR; {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		if err == nil {
			err = os.Setenv(takenVar, "1")
		}
		if err != nil {
			_ = f.Close()
			return err
		}
		turn.file = f
	}
	turn.tests++
	return nil
}

// release ends a test's use of the engine.
func release() {
	turn.Lock()
	defer turn.Unlock()
	if turn.tests--; turn.tests == 0 && turn.file != nil {
		_ = turn.file.Close() // which unlocks it
		_ = os.Unsetenv(takenVar)
		turn.file = nil
	}
}
