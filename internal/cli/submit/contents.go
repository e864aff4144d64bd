package submit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

const (
	// inlineContent bounds the bytes of a content inside the request. Larger ones are uploaded.
	inlineContent = 1 << 20
	// inlineRequest bounds the bytes of all contents inside one request, as JSON: the API accepts 16 MB, and the program is part of them.
	inlineRequest = 6 << 20
)

// contents are this machine's files for a request: small ones are inside it, large ones are uploaded before it is sent.
type contents struct {
	in     io.Reader // what "-" stands for
	inline int       // bytes in the request
	large  []largeContent
}

type largeContent struct {
	path  string // of the file
	spool bool   // the file is a temporary copy
	set   func(api.Content)
}

// add reads a file and passes it to set: at once if it is small, else after its upload.
func (c *contents) add(path string, mode uint32, set func(api.Content)) error {
	name := path
	var from io.Reader = c.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err // err contains the operation and the path
		}
		defer func() { _ = f.Close() }()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory: name a file", path)
		}
		from = f
	} else {
		name = "standard input"
	}
	b, err := io.ReadAll(io.LimitReader(from, inlineContent+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	content := api.Content{Bytes: b, Mode: mode}
	if len(b) <= inlineContent {
		coded, err := json.Marshal(content)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if c.inline+len(coded) <= inlineRequest {
			c.inline += len(coded)
			set(content)
			return nil
		}
	}
	l := largeContent{path: path, set: func(up api.Content) { up.Mode = mode; set(up) }}
	if path == "-" {
		if l.path, err = spool(b, from); err != nil {
			return fmt.Errorf("keep standard input until it is uploaded: %w", err)
		}
		l.spool = true
	}
	c.large = append(c.large, l)
	return nil
}

// spool copies an input that cannot be read twice to a file.
func spool(begun []byte, rest io.Reader) (path string, err error) {
	f, err := os.CreateTemp("", "pawl-stdin-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(begun)
	if err == nil {
		_, err = io.Copy(f, rest)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// upload uploads the large contents. It skips those that the server has already.
func (c *contents) upload(ctx context.Context, s *app.Session) error {
	for _, l := range c.large {
		b, err := uploadFile(ctx, s, l.path)
		if err != nil {
			return err
		}
		l.set(api.Content{Blob: b.Blob})
	}
	return nil
}

// close removes copies.
func (c *contents) close() {
	for _, l := range c.large {
		if l.spool {
			_ = os.Remove(l.path) // it is a temporary file
		}
	}
}

func uploadFile(ctx context.Context, s *app.Session, path string) (*api.Blob, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("upload %s: it is a directory: name files, or pack it and pipe it in, as in: tar c %s | pawl upload -", path, path)
	}
	b, err := s.Upload(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("upload %s: %w", path, err)
	}
	return b, nil
}

// placed are the files that a request places beside the program, each with its path on this machine.
type placed map[string]string

// place records a file's name in the request. Two files cannot have the same name.
func (p placed) place(name, path string) error {
	if other, taken := p[name]; taken {
		return exit.Usagef("%s and %s would both be placed as %s: name one of them otherwise, as in NAME=PATH", other, path, name)
	}
	p[name] = path
	return nil
}

// nameOf is the default name of a path: the path itself, with its directories, if it lies beneath the current directory,
// else its last element.
func nameOf(local string) string {
	if name := filepath.ToSlash(filepath.Clean(local)); filepath.IsLocal(local) {
		return name
	}
	return filepath.Base(local)
}

func (c *contents) addFiles(e *api.Evaluation, files, dirs []string) error {
	p := placed{}
	for _, spec := range files {
		name, local, given := strings.Cut(spec, "=")
		if !given {
			name, local = nameOf(spec), spec
		}
		if info, err := os.Stat(local); err == nil && info.IsDir() {
			return exit.Usagef("--file: %s is a directory: give it with --dir", local)
		}
		if err := c.addFile(e, p, name, local); err != nil {
			return fmt.Errorf("--file: %w", err)
		}
	}
	for _, spec := range dirs {
		name, local, given := strings.Cut(spec, "=")
		if !given {
			name, local = nameOf(spec), spec
		}
		if err := c.addDir(e, p, path.Clean(name), local); err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
	}
	return nil
}

func (c *contents) addFile(e *api.Evaluation, p placed, name, local string) error {
	info, err := os.Stat(local)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
	case info.IsDir():
		return fmt.Errorf("%s leads to a directory: give that with another --dir, or leave the link out", local)
	default:
		return fmt.Errorf("%s is not a regular file", local)
	}
	if err := p.place(name, local); err != nil {
		return err
	}
	var mode uint32
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if e.Files == nil {
		e.Files = map[string]api.Content{}
	}
	return c.add(local, mode, func(content api.Content) { e.Files[name] = content })
}

// addDir adds every file beneath a directory.
func (c *contents) addDir(e *api.Evaluation, p placed, name, local string) error {
	if info, err := os.Stat(local); err == nil && !info.IsDir() {
		return exit.Usagef("%s is a file: give it with --file", local)
	}
	root := filepath.Clean(local) + string(filepath.Separator) // a link to a directory counts as one
	return filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		return c.addFile(e, p, path.Join(name, filepath.ToSlash(rel)), filepath.Clean(at))
	})
}
