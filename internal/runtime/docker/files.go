package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
)

// putFiles gives the working directory to the program's user and fills it.
func (n *run) putFiles(ctx context.Context, user string) error {
	read, write := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := n.writeFiles(write, user)
		write.CloseWithError(err)
		written <- err
	}()
	_, err := n.runtime.engine.CopyToContainer(ctx, n.id, client.CopyToContainerOptions{
		DestinationPath: volumeDir, Content: read,
	})
	read.CloseWithError(errors.New("the engine has stopped reading"))
	if werr := <-written; errors.Is(werr, runtime.ErrSpec) {
		return werr
	}
	if err != nil {
		return n.runtime.refused("put files into the container", err)
	}
	return nil
}

// writeFiles writes the archive of the inputs, starting with the directory itself.
func (n *run) writeFiles(w io.Writer, user string) error {
	archive := tar.NewWriter(w)
	uid, gid, numeric := ids(user)
	made := map[string]bool{}
	header := func(name string, kind byte, mode fs.FileMode, size int64) error {
		if !numeric {
			mode |= mode & 0o700 >> 3 & 0o077 // a user name of the image does not tell its id
			mode |= mode & 0o700 >> 6
			if kind == tar.TypeDir {
				mode |= 0o777
			}
		}
		return archive.WriteHeader(&tar.Header{
			Name: name, Typeflag: kind, Mode: int64(mode.Perm()), Size: size, Uid: uid, Gid: gid, ModTime: time.Now(),
		})
	}
	top := path.Base(runtime.ContainerFiles)
	if err := header(top+"/", tar.TypeDir, 0o755, 0); err != nil {
		return err
	}
	left := n.spec.Limits.Disk
	for _, f := range n.spec.Files {
		for dir := range parents(f.Path) {
			if !made[dir] {
				made[dir] = true
				if err := header(path.Join(top, dir)+"/", tar.TypeDir, 0o755, 0); err != nil {
					return err
				}
			}
		}
		if made[f.Path] || slices.ContainsFunc(n.spec.Files, func(other runtime.File) bool { return strings.HasPrefix(f.Path, other.Path+"/") }) {
			return fmt.Errorf("%w: input file %q lies beneath another file", runtime.ErrSpec, f.Path)
		}
		content, size, mode, err := f.Open()
		if err != nil {
			return err
		}
		if left -= size; left < 0 {
			content.Close()
			return fmt.Errorf("%w: input files are larger than the disk limit of %d bytes; raise the limit", runtime.ErrSpec, n.spec.Limits.Disk)
		}
		err = header(path.Join(top, f.Path), tar.TypeReg, mode, size)
		if err == nil {
			_, err = io.CopyN(archive, content, size)
		}
		if err = errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("input file %q: %w", f.Path, err)
		}
	}
	return archive.Close()
}

// parents yields the directories above a path, outermost first.
func parents(name string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i, c := range name {
			if c == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}

// ids parses "uid" or "uid:gid".
func ids(user string) (uid, gid int, ok bool) {
	first, second, both := strings.Cut(user, ":")
	uid, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	if both {
		if gid, err = strconv.Atoi(second); err != nil {
			return 0, 0, false
		}
	}
	return uid, gid, true
}

// inWork is the path of an archive's entry relative to the working directory; archives begin with its last name.
func inWork(name string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(path.Clean(name), "/"), "/")
	return rest
}
