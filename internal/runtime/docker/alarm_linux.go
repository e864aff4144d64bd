package docker

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// alarm is notified of memory kills in a cgroup of version 1, whose counter disappears with the cgroup as soon as its
// last process ends. The kernel signals the end of the cgroup to the same descriptor; a second descriptor that gets
// only the signal of the end tells the two apart.
type alarm struct {
	dir       string
	kill, end int // event descriptors; -1: none
	heard     uint64
}

// setAlarm returns nil where the kernel or this user's permissions do not allow it; the counter is then only polled.
func setAlarm(dir string) *alarm {
	a := &alarm{dir: dir, kill: -1, end: -1}
	var err error
	if a.kill, err = listen(dir, "memory.oom_control", ""); err == nil {
		a.end, err = listen(dir, "memory.usage_in_bytes", fmt.Sprint(int64(1)<<62))
	}
	if err != nil {
		a.close()
		return nil
	}
	return a
}

// listen subscribes to the events of a cgroup's file.
func listen(dir, file, argument string) (int, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	watched, err := os.Open(filepath.Join(dir, file))
	if err == nil {
		defer watched.Close()
		order := fmt.Sprintf("%d %d %s", fd, watched.Fd(), argument)
		err = os.WriteFile(filepath.Join(dir, "cgroup.event_control"), []byte(order), 0)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

const endWithin = 100 * time.Millisecond

// rang reports whether there has been a memory kill. It is called once, when the program has ended.
func (a *alarm) rang() bool {
	a.heard += drained(a.kill)
	if a.heard == 0 {
		return false
	}
	if _, err := os.Stat(a.dir); err == nil || a.heard > 1 {
		return true
	}
	// The cgroup is gone: one of the signals is of its end.
	for begin := time.Now(); drained(a.end) == 0 && time.Since(begin) < endWithin; {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond) // both descriptors are signalled at once, by different threads of the kernel
	a.heard += drained(a.kill)
	return a.heard > 1
}

// drained is the number of signals since the last call.
func drained(events int) uint64 {
	var buffer [8]byte
	n, err := unix.Read(events, buffer[:])
	if err != nil || n != len(buffer) {
		return 0
	}
	return binary.NativeEndian.Uint64(buffer[:])
}

func (a *alarm) close() {
	for _, fd := range []int{a.kill, a.end} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
