package kubernetes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/runtime/collect"
	"github.com/pawl-run/pawl/internal/runtime/kubernetes/wire"
)

// fetch is one request for the files that a program left. Frames from a pod are checked as if the program had sent them.
type fetch struct {
	request int64
	root    *os.Root
	into    string
	left    int64 // bytes that may still come

	writing  *os.File
	expected int64
	files    []runtime.Collected
	answer   wire.Refusals
	done     bool
	err      error
}

// take takes one frame and reports whether it was the last.
func (c *fetch) take(f wire.Frame) bool {
	if c.done {
		return false
	}
	var err error
	switch f.Kind {
	case wire.File:
		err = c.begin(f)
	case wire.Data:
		err = c.add(f.Data)
	case wire.Fetched:
		if err = f.Decode(&c.answer); err == nil && c.expected > 0 {
			err = errors.New("a collected file is shorter than was said")
		}
		c.done = true
	}
	if err != nil {
		c.err, c.done = fmt.Errorf("%w: collect: %w", errInfra, err), true
	}
	if c.done {
		c.close()
	}
	return c.done
}

func (c *fetch) begin(f wire.Frame) error {
	var h wire.FileHeader
	if err := f.Decode(&h); err != nil {
		return err
	}
	switch {
	case c.expected > 0:
		return errors.New("a collected file is shorter than was said")
	case !filepath.IsLocal(h.Path) || path.Clean(h.Path) != h.Path || h.Size < 0:
		return fmt.Errorf("the pod sent a file %.200q of %d bytes", h.Path, h.Size)
	case len(c.files) >= collect.MaxFiles || h.Size > c.left:
		return fmt.Errorf("the pod sent more files, or larger ones, than may be collected: %.200q of %d bytes", h.Path, h.Size)
	}
	c.left -= h.Size
	mode := fs.FileMode(h.Mode) & 0o755
	if err := c.root.MkdirAll(path.Dir(h.Path), 0o755); err != nil {
		return err
	}
	file, err := c.root.OpenFile(h.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode|0o600)
	if err != nil {
		return err
	}
	c.writing, c.expected = file, h.Size
	c.files = append(c.files, runtime.Collected{Path: h.Path, Size: h.Size, Mode: mode, Host: filepath.Join(c.into, filepath.FromSlash(h.Path))})
	return c.add(nil)
}

func (c *fetch) add(data []byte) error {
	if c.writing == nil || int64(len(data)) > c.expected {
		return errors.New("a collected file is longer than was said")
	}
	if _, err := c.writing.Write(data); err != nil {
		return err
	}
	if c.expected -= int64(len(data)); c.expected > 0 {
		return nil
	}
	err := c.writing.Close()
	c.writing = nil
	return err
}

func (c *fetch) close() {
	if c.writing != nil {
		_ = c.writing.Close()
		c.writing = nil
	}
}

// collect fetches the files that the Spec names. It starts again when the stream breaks off.
func (n *run) collect() error {
	if len(n.spec.Collect) == 0 {
		return nil
	}
	if err := os.MkdirAll(n.spec.CollectInto, 0o700); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	root, err := os.OpenRoot(n.spec.CollectInto)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	defer root.Close()
	wanted := wire.Pack(wire.Fetch, 0, &wire.Wanted{Patterns: n.spec.Collect, Most: n.spec.Limits.Disk})
	var asked *link
	var request int64
	err = n.await(func(wire.State) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.fetches != nil && n.fetches.done {
			return true
		}
		if l := n.link; asked != l {
			asked = l
			request++
			if n.fetches != nil {
				n.fetches.close()
			}
			n.fetches = &fetch{request: request, root: root, into: n.spec.CollectInto, left: n.spec.Limits.Disk}
			ask := wanted
			ask.Offset = request
			go func() { _ = l.send(ask) }()
		}
		return false
	})
	n.mu.Lock()
	c := n.fetches
	n.mu.Unlock()
	switch {
	case err != nil:
		return err
	case c.err != nil:
		return c.err
	case c.answer.Failure != "":
		return fmt.Errorf("%w: collect: %s", errInfra, c.answer.Failure)
	}
	n.result.Files, n.result.Refused = c.files, append(n.result.Refused, c.answer.Refused...)
	return nil
}
