//go:build linux && !amd64 && !arm64

package pid1

// vfork creates a child with a copy of this process's memory. It returns 0 in the child, and a negative errno on failure.
func vfork() (pid int64) {
	pid, errno := fork(0, -1)
	if errno != 0 {
		return -int64(errno)
	}
	return pid
}
