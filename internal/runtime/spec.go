package runtime

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// DefaultLimits are the limits of a run that sets none.
func DefaultLimits() Limits {
	return Limits{
		Wall:   time.Minute,
		CPU:    time.Minute,
		Memory: 512 << 20,
		Pids:   128,
		Output: 10 << 20,
		Disk:   256 << 20,
	}
}

// Or returns l with its zero fields taken from defaults.
func (l Limits) Or(defaults Limits) Limits {
	l.Wall = cmp.Or(l.Wall, defaults.Wall)
	l.CPU = cmp.Or(l.CPU, defaults.CPU)
	l.Memory = cmp.Or(l.Memory, defaults.Memory)
	l.Pids = cmp.Or(l.Pids, defaults.Pids)
	l.CPUs = cmp.Or(l.CPUs, defaults.CPUs)
	l.Output = cmp.Or(l.Output, defaults.Output)
	l.Disk = cmp.Or(l.Disk, defaults.Disk)
	l.Stack = cmp.Or(l.Stack, defaults.Stack)
	return l
}

// Check rejects a Spec that no backend for the host's own programs could run. The error wraps ErrSpec.
func (s *Spec) Check() error {
	if s.Container != nil {
		return fmt.Errorf("%w: image %.200q; this runtime runs the host's own programs, ask for one that runs containers",
			ErrSpec, s.Container.Image)
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return fmt.Errorf("%w: argv is empty; name the program to run", ErrSpec)
	}
	return s.check()
}

// CheckContainer rejects a Spec that no backend for images could run. A Spec without a container gets the backend's own image without
// its entrypoint, if the backend has one. The error wraps ErrSpec.
func (s *Spec) CheckContainer(image string) error {
	if s.Container == nil && image != "" {
		s.Container = &Container{Image: image, Entrypoint: []string{}}
		if len(s.Argv) == 0 {
			return fmt.Errorf("%w: argv is empty; name the program to run", ErrSpec)
		}
	}
	c := s.Container
	if c == nil || c.Image == "" {
		return fmt.Errorf("%w: image is missing; this runtime runs images, name one", ErrSpec)
	}
	if c.WorkDir != "" && (!path.IsAbs(c.WorkDir) || path.Clean(c.WorkDir) != c.WorkDir || c.WorkDir == "/") {
		return fmt.Errorf("%w: working directory %.200q; give a clean absolute path other than /", ErrSpec, c.WorkDir)
	}
	switch c.Pull {
	case "", PullMissing, PullAlways, PullNever:
	default:
		return fmt.Errorf("%w: pull policy %.40q; write missing, always or never", ErrSpec, c.Pull)
	}
	for _, arg := range c.Entrypoint {
		if strings.IndexByte(arg, 0) >= 0 {
			return fmt.Errorf("%w: the entrypoint holds a NUL byte; pass such data on stdin or in a file", ErrSpec)
		}
	}
	return s.check()
}

func (s *Spec) check() error {
	for i, arg := range s.Argv {
		if strings.IndexByte(arg, 0) >= 0 {
			return fmt.Errorf("%w: argument %d holds a NUL byte; pass such data on stdin or in a file", ErrSpec, i)
		}
	}
	for _, kv := range s.Env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.IndexByte(kv, 0) >= 0 {
			return fmt.Errorf("%w: environment entry %.60q; write NAME=value without NUL bytes", ErrSpec, kv)
		}
	}
	for _, m := range s.Mounts {
		if !filepath.IsAbs(m.Path) || filepath.Clean(m.Path) != m.Path || m.Path == "/" {
			return fmt.Errorf("%w: mount %.200q; give a clean absolute path other than /", ErrSpec, m.Path)
		}
	}
	if err := s.checkFiles(); err != nil {
		return err
	}
	l := s.Limits
	if l.Wall < 0 || l.CPU < 0 || l.Memory < 0 || l.Pids < 0 || l.CPUs < 0 || l.Output < 0 || l.Disk < 0 || l.Stack < 0 || l.Overrun < 0 {
		return fmt.Errorf("%w: a limit is negative in %+v; zero means the default", ErrSpec, l)
	}
	return nil
}

func (s *Spec) checkFiles() error {
	seen := make(map[string]bool, len(s.Files))
	for _, f := range s.Files {
		if !filepath.IsLocal(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "." || strings.IndexByte(f.Path, 0) >= 0 {
			return fmt.Errorf("%w: file path %.200q; give a clean relative path beneath the working directory",
				ErrSpec, f.Path)
		}
		if seen[f.Path] {
			return fmt.Errorf("%w: file %.200q is given twice", ErrSpec, f.Path)
		}
		seen[f.Path] = true
	}
	for _, pattern := range s.Collect {
		if !filepath.IsLocal(pattern) {
			return fmt.Errorf("%w: collect pattern %.200q; give a relative path beneath the working directory",
				ErrSpec, pattern)
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%w: collect pattern %.200q: %w", ErrSpec, pattern, err)
		}
	}
	if len(s.Collect) > 0 && s.CollectInto == "" {
		return fmt.Errorf("%w: collect names files and collect_into no host directory", ErrSpec)
	}
	return nil
}

// NetworkOf returns the network of the container, "none" by default. The error for a network that is not offered wraps ErrSpec.
func (c *Container) NetworkOf(offered []string) (string, error) {
	if c.Network == "" || c.Network == "none" {
		return "none", nil
	}
	if !slices.Contains(offered, c.Network) {
		names := cmp.Or(strings.Join(offered, ", "), "none (its operator may name some)")
		return "", fmt.Errorf("%w: network %.100q; this worker offers %s", ErrSpec, c.Network, names)
	}
	return c.Network, nil
}
