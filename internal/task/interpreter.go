package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/runtime"
)

// finder finds the tools of languages on this host, once each. What the search path names is often a wrapper that needs
// the user's whole home (pyenv, nvm, asdf): the tool itself is asked where it really lies.
type finder struct {
	dir string // host directory for what must be prepared; mounted read-only into runs; "": prepare nothing

	mu    sync.Mutex
	found map[string]*finding
}

// finding is the search for one language.
type finding struct {
	turn chan struct{} // capacity 1: holds the one who searches
	done bool
	toolchain
}

// errNoTool means that this host lacks what a language needs.
var errNoTool = errors.New("not on this host")

// find returns the toolchain of a language. The first search for a language may take a while, and is done by one caller
// while the others wait; a search that failed is done again by the next.
func (f *finder) find(ctx context.Context, name string) (toolchain, error) {
	f.mu.Lock()
	if f.found == nil {
		f.found = map[string]*finding{}
	}
	found := f.found[name]
	if found == nil {
		found = &finding{turn: make(chan struct{}, 1)}
		f.found[name] = found
	}
	f.mu.Unlock()
	select {
	case found.turn <- struct{}{}:
		defer func() { <-found.turn }()
	case <-ctx.Done():
		return toolchain{}, context.Cause(ctx)
	}
	if found.done {
		return found.toolchain, nil
	}
	tc, err := f.search(ctx, name)
	if err == nil {
		found.toolchain, found.done = tc, true
	}
	return tc, err
}

func (f *finder) search(ctx context.Context, name string) (toolchain, error) {
	l := languages[name]
	for _, tool := range l.tools {
		path, err := exec.LookPath(tool)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return toolchain{}, fmt.Errorf("find %s: %w", tool, err)
		}
		tc, err := l.find(f, ctx, path)
		if err != nil {
			if s, stopped := Stopped(ctx); stopped {
				return toolchain{}, s
			}
			return toolchain{}, fmt.Errorf("find %s: %w", tool, err)
		}
		return tc, nil
	}
	return toolchain{}, fmt.Errorf("%w: %s (needed for %s): %s on the worker's host, where its PATH finds it", errNoTool, l.tools[0], name, l.install)
}

// ask runs a tool on the host and returns the lines that it prints.
func ask(ctx context.Context, env []string, dir string, argv ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w: %.300s", strings.Join(argv, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

func (f *finder) python(ctx context.Context, path string) (toolchain, error) {
	lines, err := ask(ctx, nil, "", path, "-c", "import sys\nfor x in (sys.executable, sys.base_prefix, sys.prefix, sys.version.split()[0]): print(x)")
	if err != nil {
		return toolchain{}, err
	}
	if len(lines) != 4 {
		return toolchain{}, fmt.Errorf("%s does not say where it lies: %q", path, lines)
	}
	return toolchain{tool: lines[0], mounts: mounts(lines[1], lines[2]), version: lines[3]}, nil
}

func (f *finder) node(ctx context.Context, path string) (toolchain, error) {
	lines, err := ask(ctx, nil, "", path, "-p", "process.execPath + '\\n' + process.version")
	if err != nil {
		return toolchain{}, err
	}
	if len(lines) != 2 {
		return toolchain{}, fmt.Errorf("%s does not say where it lies: %q", path, lines)
	}
	return toolchain{tool: lines[0], mounts: mounts(lines[0]), version: lines[1]}, nil
}

// single is a tool that is one file.
func (f *finder) single(_ context.Context, path string) (toolchain, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return toolchain{}, err
	}
	return toolchain{tool: path, mounts: mounts(path)}, nil
}

// compiler is a tool that has others beside it.
func (f *finder) compiler(ctx context.Context, path string) (toolchain, error) {
	lines, err := ask(ctx, nil, "", path, "-dumpversion")
	if err != nil {
		return toolchain{}, err
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return toolchain{}, err
	}
	return toolchain{tool: path, mounts: mounts(filepath.Dir(filepath.Dir(path))), version: lines[0]}, nil
}

// golang prepares the compiled standard library beside asking where Go lies.
func (f *finder) golang(ctx context.Context, path string) (toolchain, error) {
	env := []string{"GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0"}
	lines, err := ask(ctx, env, "", path, "env", "GOROOT", "GOVERSION", "GOTOOLDIR", "GOOS", "GOARCH")
	if err != nil {
		return toolchain{}, err
	}
	if len(lines) != 5 {
		return toolchain{}, fmt.Errorf("%s does not say where it lies: %q", path, lines)
	}
	root, version, tools := lines[0], lines[1], lines[2]
	if f.dir == "" {
		return toolchain{tool: tools, version: version}, nil
	}
	std := filepath.Join(f.dir, strings.Join([]string{"std", version, lines[3], lines[4]}, "-"))
	if _, err := os.Stat(filepath.Join(std, "importcfg")); err != nil {
		if err := prepareStd(ctx, env, path, root, std); err != nil {
			return toolchain{}, fmt.Errorf("prepare the standard library: %w", err)
		}
	}
	return toolchain{tool: tools, std: std, mounts: append(mounts(root, tools), runtime.Mount{Path: std}), version: version}, nil
}

// prepareStd builds the standard library with the host's own cache and lays it out at dir, whole or not at all.
func prepareStd(ctx context.Context, env []string, tool, root, dir string) error {
	lines, err := ask(ctx, env, filepath.Join(root, "src"), tool, "list", "-export", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}", "std")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".std-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // gone already when all went well
	var cfg bytes.Buffer
	for i, line := range lines {
		pkg, export, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		name := fmt.Sprintf("%d.a", i)
		if err := place(export, filepath.Join(tmp, name)); err != nil {
			return err
		}
		fmt.Fprintf(&cfg, "packagefile %s=%s\n", pkg, filepath.Join(dir, name))
	}
	if err := os.WriteFile(filepath.Join(tmp, "importcfg"), cfg.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(filepath.Join(dir, "importcfg")); there == nil {
			return nil // another process was faster
		}
		return err
	}
	return nil
}

// place links a file, or copies it where it cannot be linked.
func place(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

// systemDirs are what every runtime gives to programs.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}

// mounts are the paths among those given that a run does not see anyway, each once. The root and the user's home are
// never mounted: a tool that says it needs them has to do without.
func mounts(paths ...string) []runtime.Mount {
	home, _ := os.UserHomeDir() // without one there is nothing to protect
	var out []runtime.Mount
	for _, p := range paths {
		p = filepath.Clean(p)
		m := runtime.Mount{Path: p}
		if p == "/" || p == home || slices.Contains(out, m) || slices.ContainsFunc(systemDirs, func(dir string) bool { return beneath(p, dir) }) {
			continue
		}
		if slices.ContainsFunc(out, func(o runtime.Mount) bool { return beneath(p, o.Path) }) {
			continue
		}
		out = append(out, m)
	}
	return out
}

func beneath(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
