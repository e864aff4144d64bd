package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/moby/moby/client"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/collect"
)

// volume is the path on this host of the volume with the working directory; empty when it cannot be reached from here. The volume's
// name is random, so a directory with that name is the right one.
func (n *run) volume() string {
	n.where.Do(func() { n.lies = n.findVolume() })
	return n.lies
}

func (n *run) findVolume() string {
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	found, err := n.runtime.engine.ContainerInspect(ctx, n.id, client.ContainerInspectOptions{})
	if err != nil {
		return ""
	}
	for _, m := range found.Container.Mounts {
		if m.Destination != volumeDir || m.Name == "" || !strings.Contains(m.Source, m.Name) {
			continue
		}
		if dir, err := os.Open(m.Source); err == nil {
			dir.Close()
			return m.Source
		}
	}
	return ""
}

// sizeOf adds up the content of a directory until it exceeds most. It does not count what it cannot read.
func sizeOf(ctx context.Context, dir string, most int64) int64 {
	const perEntry = 512
	var all int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile
		}
		all += perEntry
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				all += st.Blocks * 512
			}
		}
		if all > most || ctx.Err() != nil {
			return fs.SkipAll
		}
		return nil
	})
	return all
}

// collect copies the files that the Spec names: from the volume itself where it can be reached, else from the engine's archive of it.
func (n *run) collect() error {
	if len(n.spec.Collect) == 0 {
		return nil
	}
	source, name := n.volume(), path.Base(runtime.ContainerFiles)
	if source == "" {
		if err := os.MkdirAll(n.spec.CollectInto, 0o700); err != nil {
			return fmt.Errorf("collect: %w", err)
		}
		fetched, err := os.MkdirTemp(n.spec.CollectInto, ".fetched-")
		if err != nil {
			return fmt.Errorf("collect: %w", err)
		}
		defer os.RemoveAll(fetched)
		if err := n.fetch(fetched); err != nil {
			return err
		}
		source, name = fetched, "."
	}
	root, err := os.OpenRoot(source) // the program may have put a link in the directory's place
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	defer root.Close()
	dir, err := root.Open(name)
	if err != nil {
		n.result.Refused = append(n.result.Refused, "everything: the working directory is gone or is a link: "+err.Error())
		return nil
	}
	defer dir.Close()
	files, refused, err := collect.From(dir, n.spec.Collect, n.spec.CollectInto, n.spec.Limits.Disk)
	n.result.Files, n.result.Refused = files, append(n.result.Refused, refused...)
	return err
}

// fetch unpacks the engine's archive of the working directory into a directory of this host; no name in the archive can lead out of it.
// Links and devices become empty placeholders of their kind, so that the collection refuses them by the same rules.
func (n *run) fetch(into string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answer, err := n.runtime.engine.CopyFromContainer(ctx, n.id, client.CopyFromContainerOptions{SourcePath: runtime.ContainerFiles})
	if err != nil {
		return n.runtime.refused("fetch the working directory", err)
	}
	defer answer.Content.Close()
	root, err := os.OpenRoot(into)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	defer root.Close()
	archive := tar.NewReader(answer.Content)
	left, entries := n.spec.Limits.Disk, 0
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("docker: read the working directory: %w", err)
		}
		name := inWork(h.Name)
		if name == "" || name == "." {
			continue
		}
		if entries++; entries > mostEntries || h.Size > left {
			n.result.Refused = append(n.result.Refused, fmt.Sprintf("%s: the working directory holds more than %d bytes or %d entries; what follows was not fetched",
				name, n.spec.Limits.Disk, mostEntries))
			return nil
		}
		left -= h.Size
		if err := unpack(root, name, h, archive); err != nil && !errors.Is(err, fs.ErrExist) {
			n.result.Refused = append(n.result.Refused, name+": "+err.Error())
		}
	}
}

const mostEntries = 100_000

func unpack(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.Mkdir(name, 0o700)
	case tar.TypeReg:
		out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, h.FileInfo().Mode().Perm()|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, content)
		return errors.Join(err, out.Close())
	case tar.TypeLink:
		return root.Link(inWork(h.Linkname), name)
	}
	return root.Symlink("-", name)
}
