package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/sandbox/pid1"
)

// delivery is what a sandbox gets for its one run: the order with its descriptors and input files.
type delivery struct {
	spec    runtime.Spec
	order   pid1.Order
	steps   []pid1.Step // mounts that can only be made while the sandbox is built and still sees the host
	sources []*os.File  // the input files from the host; nil where the content is in spec
	stdin   *os.File    // the end that the program reads; nil when there is no input
	feed    *os.File    // the end that the host writes
	mounts  []*os.File  // detached
	pinned  *pin        // nil: the program runs on any processor
	// template is the template that the program is to be forked from, and asked a descriptor of its socket; nil and 0: the program
	// is executed.
	template *template
	asked    int
}

// pack opens what the run needs from the host. A base contains the mounts already, except those beneath the directories that each run
// mounts for itself. The caller closes the delivery even after an error.
func (r *Runtime) pack(spec runtime.Spec, onto *base) (_ *delivery, err error) {
	d := &delivery{spec: spec, order: pid1.Order{
		ScratchSize: spec.Limits.Disk, ScratchInodes: inodes(spec.Limits.Disk),
		Rlimits: rlimits(spec.Limits, r.cgroups), Argv: spec.Argv, Env: spec.Env,
	}}
	mounts := spec.Mounts
	if onto != nil {
		mounts = slices.DeleteFunc(slices.Clone(mounts), func(m runtime.Mount) bool { return !ofRun(m) })
	}
	if err := r.packMounts(d, mounts); err != nil {
		return d, err
	}
	if err := d.packFiles(); err != nil {
		return d, err
	}
	if spec.Stdin != nil {
		d.order.Input = true
		if d.stdin, d.feed, err = os.Pipe(); err != nil {
			return d, fmt.Errorf("open the run's channels: %w", err)
		}
	}
	return d, nil
}

// close closes what was not handed over.
func (d *delivery) close() {
	closeAll(d.sources)
	closeAll(d.mounts)
	closeAll([]*os.File{d.stdin, d.feed})
	if d.asked != 0 {
		unix.Close(d.asked)
	}
}

// takeFeed hands over the write end of the standard input, if there is one.
func (d *delivery) takeFeed() *os.File {
	feed := d.feed
	d.feed = nil
	return feed
}

// fitsInSocket is an amount that a socket always accepts without a reader.
const fitsInSocket = 32 << 10

// fits reports whether the delivery can be sent before a process exists to receive it.
func (d *delivery) fits() bool {
	size := int64(0)
	for _, f := range d.order.Files {
		size += f.Size
	}
	for _, all := range [][]string{d.order.Argv, d.order.Env} {
		for _, s := range all {
			size += int64(len(s)) + 8
		}
	}
	return size <= fitsInSocket
}

// send writes the order and the inputs to the control socket of a sandbox.
func (d *delivery) send(to *box) error {
	control := to.control
	var rights []int
	if d.stdin != nil {
		rights = append(rights, int(d.stdin.Fd()))
	}
	for _, f := range d.mounts {
		rights = append(rights, int(f.Fd()))
	}
	if d.asked != 0 {
		d.order.Template = true
		rights = append(rights, d.asked)
		if to.cgroup != nil && to.cgroup.dir != nil {
			d.order.IntoCgroup = true
			rights = append(rights, int(to.cgroup.dir.Fd()))
		}
	}
	if err := sendWith(control, d.order.Encode(), rights); err != nil {
		return err
	}
	for i, f := range d.spec.Files {
		if d.sources[i] == nil {
			if _, err := control.Write(f.Content); err != nil {
				return err
			}
			continue
		}
		if _, err := io.CopyN(control, d.sources[i], d.order.Files[i].Size); err != nil {
			return fmt.Errorf("read input file %q from %q: %w", f.Path, f.Source, err)
		}
	}
	return nil
}

// sendWith writes b, with descriptors attached to its first byte.
func sendWith(control *os.File, b []byte, fds []int) error {
	if len(fds) > 0 {
		conn, err := control.SyscallConn()
		if err != nil {
			return err
		}
		var n int
		var callErr error
		err = conn.Write(func(fd uintptr) bool {
			n, callErr = unix.SendmsgN(int(fd), b, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
			return !errors.Is(callErr, unix.EAGAIN) && !errors.Is(callErr, unix.EINTR)
		})
		if err = errors.Join(err, callErr); err != nil {
			return err
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
	}
	_, err := control.Write(b)
	return err
}

// packFiles describes the input files and opens those from the host.
func (d *delivery) packFiles() (err error) {
	d.sources = make([]*os.File, len(d.spec.Files))
	var total int64
	for i, f := range d.spec.Files {
		size := int64(len(f.Content))
		mode := f.Mode.Perm()
		if f.Content == nil && f.Source != "" {
			if d.sources[i], err = os.Open(f.Source); err != nil {
				return fmt.Errorf("%w: input file %q: %w", runtime.ErrSpec, f.Path, err)
			}
			info, err := d.sources[i].Stat()
			if err != nil || !info.Mode().IsRegular() {
				return fmt.Errorf("%w: input file %q: %s is not a regular file", runtime.ErrSpec, f.Path, f.Source)
			}
			size = info.Size()
			mode = cmp.Or(mode, info.Mode().Perm())
		}
		mode = cmp.Or(mode, 0o644)
		if total += size; total > d.spec.Limits.Disk {
			return fmt.Errorf("%w: input files are larger than the disk limit of %d bytes; raise the limit",
				runtime.ErrSpec, d.spec.Limits.Disk)
		}
		d.order.Files = append(d.order.Files, pid1.File{Path: f.Path, Mode: int64(mode), Size: size})
	}
	return nil
}

// inodes bounds the number of files; each costs the kernel about a kilobyte in addition to its content.
func inodes(disk int64) int64 { return min(max(disk>>12, 1<<10), 1<<16) + 16 }

// packMounts opens the toolchains that a run asks for. If Pawl runs as root this is done here, because root can
// reach paths that the sandbox's user cannot (a toolchain below /root).
func (r *Runtime) packMounts(d *delivery, mounts []runtime.Mount) error {
	for _, m := range mounts {
		if r.layout.shows(m.Path) {
			continue
		}
		if err := attachable(m.Path); err != nil {
			return fmt.Errorf("%w: %w", runtime.ErrSpec, err)
		}
		if _, err := os.Stat(m.Path); err != nil {
			return fmt.Errorf("%w: mount: %w", runtime.ErrSpec, err)
		}
		target := strings.TrimPrefix(m.Path, "/")
		tree, err := detachedTree(m.Path)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			d.steps = append(d.steps, pid1.Step{Kind: pid1.BindReadOnly, Source: m.Path, Target: target})
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: mount %q: %w; the sandbox needs Linux 5.12 or newer, %s",
				runtime.ErrUnavailable, m.Path, err, trusted)
		}
		d.order.Mounts, d.mounts = append(d.order.Mounts, target), append(d.mounts, tree)
	}
	if len(d.mounts) >= pid1.MostDescriptors { // one descriptor is for the standard input
		return fmt.Errorf("%w: %d mounts; at most %d can be given, so mount a directory above them",
			runtime.ErrSpec, len(d.mounts), pid1.MostDescriptors-1)
	}
	return nil
}

// detachedTree copies the mounts at path and makes the copy read-only.
func detachedTree(path string) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, err
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		Propagation: unix.MS_PRIVATE,
	})
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
