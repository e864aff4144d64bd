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

// finder finds the tools of languages on this host, each once. A name in the search path is often a wrapper that needs the
// user's whole home (pyenv, nvm, asdf), so the finder asks the tool itself for its real path.
type finder struct {
	dir string // host directory for prepared libraries, mounted read-only into runs; "": none are prepared

	mu    sync.Mutex
	found map[string]*finding
}

type finding struct {
	turn chan struct{} // capacity 1: full while a goroutine searches
	done bool
	toolchain
}

// missing is the error of a host without something that a language needs.
type missing struct{ what, fix string }

func (m *missing) Error() string {
	return fmt.Sprintf("not on this worker's host: %s: %s", m.what, m.fix)
}

// find returns the toolchain of a language. The first search for a language may take seconds; one caller does it while the
// others wait. A search that failed is repeated by the next caller.
func (f *finder) find(ctx context.Context, p *Profile) (toolchain, error) {
	f.mu.Lock()
	if f.found == nil {
		f.found = map[string]*finding{}
	}
	found := f.found[p.Name]
	if found == nil {
		found = &finding{turn: make(chan struct{}, 1)}
		f.found[p.Name] = found
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
	tc, err := f.search(ctx, p)
	if err == nil {
		found.toolchain, found.done = tc, true
	}
	return tc, err
}

// recheck names the part of a known toolchain that has disappeared, and forgets the toolchain, so that the next call searches again.
func (f *finder) recheck(p *Profile, tc toolchain) error {
	needs := []string{tc.tool}
	for _, m := range tc.mounts {
		needs = append(needs, m.Path)
	}
	for _, path := range needs {
		if !filepath.IsAbs(path) {
			continue // not present, or in an image
		}
		if _, err := os.Stat(path); err != nil {
			f.mu.Lock()
			delete(f.found, p.Name)
			f.mu.Unlock()
			return &missing{fmt.Sprintf("a file that %s needs has gone: %v", p.Name, err), p.install()}
		}
	}
	return nil
}

func (f *finder) search(ctx context.Context, p *Profile) (tc toolchain, err error) {
	if len(p.Tools) > 0 {
		path, err := p.locate()
		if err != nil {
			return toolchain{}, err
		}
		switch {
		case p.find != nil:
			tc, err = p.find(f, ctx, path)
		case inEnvironment(path):
			tc, err = f.python(ctx, path)
		default:
			tc, err = p.ordinary(ctx, path)
		}
		if err == nil && len(p.dialects) > 0 {
			tc.dialect, err = dialect(ctx, tc.tool, p.dialects)
		}
		if s, stopped := Stopped(ctx); err != nil && stopped {
			return toolchain{}, s
		} else if _, lacks := errors.AsType[*missing](err); lacks {
			return toolchain{}, err
		} else if err != nil {
			return toolchain{}, fmt.Errorf("find %s: %w", filepath.Base(path), err)
		}
	}
	for _, m := range p.Mounts {
		if err := readable(m); err != nil {
			return toolchain{}, &missing{fmt.Sprintf("the profile of %s mounts %s: %v", p.Name, m, err), "make it readable for the user who runs Pawl, or correct mounts in the profile"}
		}
	}
	tc.mounts = append(tc.mounts, mounts(p.Mounts...)...)
	return tc, nil
}

// locate is the path of the first of the profile's tools that exists on this host.
func (p *Profile) locate() (string, error) {
	for _, tool := range p.Tools {
		path, err := exec.LookPath(tool)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return "", fmt.Errorf("find %s: %w", tool, err)
		}
		return path, nil
	}
	return "", &missing{fmt.Sprintf("%s, needed for %s, is not in PATH", p.Tools[0], p.Name), p.install()}
}

func (p *Profile) install() string {
	if p.Install == "" {
		return "install " + p.Tools[0]
	}
	return p.Install
}

// readable returns an error if a mount of a profile cannot be read.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// ordinary is the toolchain of a profile that the operator wrote. The tool and its directory are mounted.
func (p *Profile) ordinary(ctx context.Context, path string) (toolchain, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return toolchain{}, err
	}
	tc := toolchain{tool: path, mounts: mounts(path)}
	if len(p.Version) == 0 {
		return tc, nil
	}
	argv := slices.Clone(p.Version)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "{tool}", path)
	}
	lines, err := ask(ctx, nil, "", argv...)
	if err != nil {
		return toolchain{}, err
	}
	tc.version = lines[0]
	return tc, nil
}

// ask runs a tool on the host, to find out its path or its needs, and returns its output lines.
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
		words, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "Stack backtrace:") // the rest is rustup's stack trace
		return nil, fmt.Errorf("ask %s: %w: %.300s", strings.Join(argv, " "), err, strings.Join(strings.FieldsFunc(words, func(r rune) bool { return r == '\n' }), "; "))
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

func (f *finder) node(ctx context.Context, path string) (toolchain, error) {
	lines, err := ask(ctx, nil, "", path, "-p", "[process.execPath, process.version, process.allowedNodeEnvironmentFlags.has('"+transformTypes+"')].join('\\n')")
	if err != nil {
		return toolchain{}, err
	}
	if len(lines) != 3 {
		return toolchain{}, fmt.Errorf("%s did not print its path: %q", path, lines)
	}
	tc := toolchain{tool: lines[0], types: stripTypes, mounts: mounts(lines[0]), version: lines[1]}
	if lines[2] == "true" {
		tc.types = transformTypes
	}
	return tc, nil
}

// The options with which node reads TypeScript. Node 22.7 to 25 can transform enums, namespaces and parameter properties; other
// versions only remove types, and refuse code that must be transformed.
const (
	stripTypes     = "--experimental-strip-types"
	transformTypes = "--experimental-transform-types"
)

// nodeWithTypes is a node that can read TypeScript.
func (f *finder) nodeWithTypes(ctx context.Context, path string) (toolchain, error) {
	tc, err := f.node(ctx, path)
	if err != nil {
		return toolchain{}, err
	}
	var major, minor int
	if _, err := fmt.Sscanf(tc.version, "v%d.%d", &major, &minor); err != nil {
		return toolchain{}, fmt.Errorf("%s has the version %q, which cannot be read", path, tc.version)
	}
	if major < 22 || major == 22 && minor < 6 {
		return toolchain{}, &missing{"node " + tc.version + " does not read TypeScript, as it does from 22.6 on", "install Node.js 22.6 or later from https://nodejs.org, or give the language a profile of another tool"}
	}
	return tc, nil
}

func (f *finder) rust(ctx context.Context, path string) (toolchain, error) {
	lines, err := ask(ctx, nil, "", path, "--print", "sysroot")
	if err != nil {
		return toolchain{}, err
	}
	root := lines[0]
	if lines, err = ask(ctx, nil, "", path, "--version"); err != nil {
		return toolchain{}, err
	}
	version, _ := strings.CutPrefix(lines[0], "rustc ")
	if _, err := exec.LookPath("cc"); err != nil {
		return toolchain{}, &missing{"rustc links with cc, which is not in PATH", "install a C compiler (Debian: apt install gcc libc6-dev)"}
	}
	return toolchain{tool: filepath.Join(root, "bin", "rustc"), mounts: mounts(root), version: version}, nil
}

// java finds the JDK's directory of tools. Distributions keep parts of its configuration in /etc, behind symbolic links.
func (f *finder) java(ctx context.Context, path string) (toolchain, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return toolchain{}, err
	}
	home := filepath.Dir(filepath.Dir(path))
	java := filepath.Join(home, "bin", "java")
	lines, err := ask(ctx, nil, "", java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--version")
	if err != nil {
		return toolchain{}, fmt.Errorf("the java beside %s: %w", path, err)
	}
	needs := []string{home}
	for _, file := range []string{"lib/jvm.cfg", "conf/net.properties", "conf/security/java.security"} {
		if real, err := filepath.EvalSymlinks(filepath.Join(home, file)); err == nil && !beneath(real, home) {
			needs = append(needs, filepath.Dir(real))
		}
	}
	return toolchain{tool: filepath.Join(home, "bin"), named: filepath.Join(home, "bin", "javac"), mounts: mounts(needs...), version: strings.ReplaceAll(lines[0], `"`, "")}, nil
}

func (f *finder) ruby(ctx context.Context, path string) (toolchain, error) {
	lines, err := ask(ctx, nil, "", path, "-e", "puts RbConfig.ruby, RbConfig::CONFIG['prefix'], RUBY_VERSION")
	if err != nil {
		return toolchain{}, err
	}
	if len(lines) != 3 {
		return toolchain{}, fmt.Errorf("%s did not print its path: %q", path, lines)
	}
	return toolchain{tool: lines[0], mounts: mounts(lines[1]), version: lines[2]}, nil
}

// bash is a toolchain of a single file.
func (f *finder) bash(ctx context.Context, path string) (toolchain, error) {
	lines, err := ask(ctx, nil, "", path, "-c", `echo "$BASH_VERSION"`)
	if err != nil {
		return toolchain{}, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return toolchain{}, err
	}
	return toolchain{tool: path, mounts: mounts(path), version: lines[0]}, nil
}

// compiler is a toolchain whose tool needs the other tools in its directory.
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

// dialect is the first of the standards that a C or C++ compiler supports. A compiler that supports none keeps its default.
func dialect(ctx context.Context, tool string, dialects []string) (string, error) {
	for _, d := range dialects {
		source := "c"
		if strings.Contains(d, "++") {
			source = "c++"
		}
		if _, err := ask(ctx, nil, "", tool, "-std="+d, "-fsyntax-only", "-x", source, os.DevNull); err == nil {
			return d, nil
		} else if _, ran := errors.AsType[*exec.ExitError](err); !ran {
			return "", err
		}
	}
	return "", nil
}

// golang finds the directory of the Go installation, and prepares the compiled standard library.
func (f *finder) golang(ctx context.Context, path string) (toolchain, error) {
	env := []string{"GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0"}
	lines, err := ask(ctx, env, "", path, "env", "GOROOT", "GOVERSION", "GOTOOLDIR", "GOOS", "GOARCH")
	if err != nil {
		return toolchain{}, err
	}
	if len(lines) != 5 {
		return toolchain{}, fmt.Errorf("%s did not print its path: %q", path, lines)
	}
	root, version, tools := lines[0], lines[1], lines[2]
	if f.dir == "" {
		return toolchain{tool: tools, named: path, version: version}, nil
	}
	std := filepath.Join(f.dir, strings.Join([]string{"std", version, lines[3], lines[4]}, "-"))
	if _, err := os.Stat(filepath.Join(std, "importcfg")); err != nil {
		if err := prepareStd(ctx, env, path, root, std); err != nil {
			return toolchain{}, fmt.Errorf("prepare the standard library: %w", err)
		}
	}
	return toolchain{tool: tools, named: path, std: std, mounts: append(mounts(root, tools), runtime.Mount{Path: std}), version: version}, nil
}

// prepareStd builds the standard library with the host's own cache and puts it into dir, completely or not at all.
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
	defer os.RemoveAll(tmp) // after success it no longer exists
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
	return rename(tmp, dir, "importcfg")
}

// rename gives a prepared directory its final name. If another process did so before, the directory contains the file mark.
func rename(tmp, dir, mark string) error {
	err := os.Rename(tmp, dir)
	if err == nil {
		return nil
	}
	if _, there := os.Stat(filepath.Join(dir, mark)); there == nil {
		return nil
	}
	return err
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

// systemDirs are the directories that every runtime shows to programs.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}

// mounts are those paths that a run does not see anyway, without duplicates. The root and the user's home are never mounted,
// even for a tool that reports that it needs them.
func mounts(paths ...string) []runtime.Mount {
	home, _ := os.UserHomeDir() // without a home there is nothing to protect
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
