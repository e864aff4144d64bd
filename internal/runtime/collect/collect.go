//go:build unix

// Package collect copies the files that a program left to the host without following anything that the program may have planted: it
// descends through directory descriptors, opens only regular files, and bounds size, count and depth. Backends share it.
package collect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/runtime"
)

const (
	MaxFiles   = 1000
	MaxDepth   = 32
	maxEntries = 100_000 // directory entries looked at
	maxRefused = 100     // refusals listed; the last line has the total
)

// From copies the files beneath the directory work that match patterns into the host directory into. The sizes of all copies together are
// at most maxBytes. It returns what it refused instead of failing; the error is one of the host.
func From(work *os.File, patterns []string, into string, maxBytes int64) ([]runtime.Collected, []string, error) {
	c := &collection{into: into, left: maxBytes}
	for _, p := range patterns {
		c.patterns = append(c.patterns, path.Clean(p))
	}
	err := c.named(work)
	if err == nil {
		err = c.walk(work, "", false, 0)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, nil, err
	}
	if c.unlisted > 0 {
		c.refused = append(c.refused, fmt.Sprintf("and %d more", c.unlisted))
	}
	return c.taken, c.refused, nil
}

// errEnough ends a walk that has reached a limit.
var errEnough = errors.New("bound reached")

type collection struct {
	patterns []string
	seen     map[string]bool // entries of the working directory that named has handled and the walk skips
	into     string
	left     int64
	entries  int
	taken    []runtime.Collected
	refused  []string
	unlisted int // refusals beyond maxRefused
}

// refuse adds a refusal to the list. Beyond maxRefused it only counts them: a program can leave 100,000 links with
// long names, whose refusals take 80 MB.
func (c *collection) refuse(name, why string) {
	if len(c.refused) == maxRefused {
		c.unlisted++
		return
	}
	c.refused = append(c.refused, shown(name)+": "+why)
}

// shown is a name made safe to display: the program chose it, and may have meant to mislead its reader.
func shown(name string) string {
	const enough = 200
	cut := ""
	if len(name) > enough {
		name, cut = name[:enough], "..."
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }) {
		name = strconv.Quote(name)
	}
	return name + cut
}

// wanted reports whether a pattern matches the path itself.
func (c *collection) wanted(name string) bool {
	return slices.ContainsFunc(c.patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok || p == "."
	})
}

// leads reports whether a pattern may match something beneath the directory.
func (c *collection) leads(dir string) bool {
	depth := strings.Count(dir, "/") + 1
	return slices.ContainsFunc(c.patterns, func(p string) bool {
		parts := strings.Split(p, "/")
		if len(parts) <= depth {
			return false
		}
		ok, _ := path.Match(strings.Join(parts[:depth], "/"), dir)
		return ok
	})
}

// named collects the files of the working directory whose names are given literally, in the order of the patterns, before the walk: the
// 1,500 files that "*" finds must not use up the limits first.
func (c *collection) named(work *os.File) error {
	c.seen = map[string]bool{}
	for _, p := range c.patterns {
		var st unix.Stat_t
		if c.seen[p] || strings.ContainsAny(p, `/*?[\`) || unix.Fstatat(int(work.Fd()), p, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || uint32(st.Mode)&unix.S_IFMT == unix.S_IFDIR {
			continue
		}
		c.seen[p] = true
		if err := c.entry(work, p, "", false, 0); err != nil {
			return err
		}
	}
	return nil
}

// walk visits one directory; all means that everything in it is collected.
func (c *collection) walk(dir *os.File, prefix string, all bool, depth int) error {
	for {
		names, err := dir.Readdirnames(256)
		slices.Sort(names)
		for _, name := range names {
			if prefix == "" && c.seen[name] {
				continue
			}
			if c.entries++; c.entries > maxEntries {
				c.refuse(path.Join(prefix, name), fmt.Sprintf("more than %d directory entries", maxEntries))
				return errEnough
			}
			if err := c.entry(dir, name, prefix, all, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			c.refuse(prefix, "cannot be listed: "+err.Error())
			return nil
		}
	}
}

func (c *collection) entry(dir *os.File, name, prefix string, all bool, depth int) error {
	full := path.Join(prefix, name)
	wanted := all || c.wanted(full)
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if wanted {
			c.refuse(full, "cannot be inspected: "+err.Error())
		}
		return nil
	}
	switch kind := uint32(st.Mode) & unix.S_IFMT; {
	case kind == unix.S_IFDIR && (wanted || c.leads(full)):
		if depth+1 >= MaxDepth {
			c.refuse(full, fmt.Sprintf("deeper than %d directories", MaxDepth))
			return nil
		}
		sub, err := openBeneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			c.refuse(full, "cannot be opened: "+err.Error())
			return nil
		}
		defer sub.Close()
		before := len(c.taken) + len(c.refused) + c.unlisted
		err = c.walk(sub, full, wanted, depth+1)
		if err == nil && len(c.taken)+len(c.refused)+c.unlisted == before && slices.Contains(c.patterns, full) {
			c.refuse(full, "is an empty directory") // without this, a run would look as if it had left nothing of the name
		}
		return err
	case !wanted || kind == unix.S_IFDIR:
		return nil
	case kind != unix.S_IFREG:
		c.refuse(full, "is "+kindName(kind)+" and not a regular file")
		return nil
	}
	return c.take(dir, name, full)
}

// nameless are errors that a file name alone can cause, on one file system or another; they are the program's fault, not the host's.
var nameless = []error{unix.ENAMETOOLONG, unix.EEXIST, unix.EILSEQ, unix.EINVAL, unix.ENOTDIR, unix.EISDIR}

// take copies one regular file.
func (c *collection) take(dir *os.File, name, full string) error {
	if len(c.taken) >= MaxFiles {
		c.refuse(full, fmt.Sprintf("more than %d files", MaxFiles))
		return errEnough
	}
	// O_NONBLOCK, because the entry may have become a FIFO since it was inspected; the checks use the open descriptor.
	file, err := openBeneath(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		c.refuse(full, "cannot be opened: "+err.Error())
		return nil
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		c.refuse(full, "cannot be inspected: "+err.Error())
		return nil
	}
	switch {
	case uint32(st.Mode)&unix.S_IFMT != unix.S_IFREG:
		c.refuse(full, "is no longer a regular file")
		return nil
	case st.Nlink > 1:
		c.refuse(full, "has more than one name (a hard link)")
		return nil
	case st.Size > c.left:
		c.refuse(full, fmt.Sprintf("its %d bytes exceed the %d that are left of the limit", st.Size, c.left))
		return nil
	}
	mode := fs.FileMode(st.Mode) & 0o755
	host := filepath.Join(c.into, filepath.FromSlash(full))
	err = os.MkdirAll(filepath.Dir(host), 0o755)
	var out *os.File
	if err == nil {
		out, err = os.OpenFile(host, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o600)
	}
	if slices.ContainsFunc(nameless, func(why error) bool { return errors.Is(err, why) }) {
		c.refuse(full, "the host takes no file of that name: "+errors.Unwrap(err).Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("collect %q: %w", full, err)
	}
	size, err := io.Copy(out, io.LimitReader(file, st.Size))
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("collect %q: %w", full, err)
	}
	c.left -= size
	c.taken = append(c.taken, runtime.Collected{Path: full, Size: size, Mode: mode, Host: host})
	return nil
}

func kindName(kind uint32) string {
	switch kind {
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "a device"
	}
	return "something else"
}
