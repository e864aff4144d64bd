package submit

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// hasUnread reports whether this command got piped input that it has not read. A redirected file does not count: loops such as
// "while read f; do pawl eval $f; done < list" have their list there.
func hasUnread(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0
}
