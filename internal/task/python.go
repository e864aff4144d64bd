package task

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/runtime"
)

// askPython makes an interpreter print its path, its version and its package directories.
const askPython = `import sys, os, site
for x in (sys.executable, sys.base_prefix, sys.prefix, sys.version.split()[0], os.path.basename(os.path.dirname(os.__file__))): print(x)
for x in getattr(site, 'getsitepackages', list)(): print(x)`

// interpreter is what a Python prints for askPython.
type interpreter struct {
	executable   string
	base, prefix string // they differ in a virtual environment
	version      string
	library      string // name of the standard library's directory: "python3.11"
	packages     []string
}

// python finds out the path of an interpreter. In a virtual environment it keeps the environment's path and does not follow the link,
// because Python finds the environment by that path. Any other interpreter runs without the hooks of the host's packages.
func (f *finder) python(ctx context.Context, path string) (toolchain, error) {
	lines, err := ask(ctx, nil, "", path, "-c", askPython)
	if err != nil {
		return toolchain{}, err
	}
	if len(lines) < 5 {
		return toolchain{}, fmt.Errorf("%s did not print its path: %q", path, lines)
	}
	in := interpreter{lines[0], lines[1], lines[2], lines[3], lines[4], lines[5:]}
	tc := toolchain{tool: in.executable, mounts: mounts(in.base, in.prefix), version: in.version}
	if f.dir == "" || in.base != in.prefix {
		return tc, nil
	}
	hooks, more := pathFiles(in.packages)
	if !hooks {
		return tc, nil
	}
	dir, err := f.withoutHooks(ctx, in, more)
	if err != nil {
		return toolchain{}, fmt.Errorf("prepare a Python without the hooks of the host's packages: %w", err)
	}
	if dir != "" {
		tc.named, tc.tool = tc.tool, filepath.Join(dir, "bin", "python3")
		tc.mounts = append(tc.mounts, runtime.Mount{Path: dir})
	}
	return tc, nil
}

// pathFiles reads the .pth files of package directories. It returns whether any has a line of code, which the interpreter would
// run at every start, and the directories that the other lines add.
func pathFiles(packages []string) (hooks bool, dirs []string) {
	for _, dir := range packages {
		files, _ := filepath.Glob(filepath.Join(dir, "*.pth")) // the pattern is well-formed
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				continue // the interpreter cannot read it either
			}
			lines := bufio.NewScanner(bytes.NewReader(content))
			for lines.Scan() {
				line := strings.TrimSpace(lines.Text())
				if strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t") {
					hooks = true
					continue
				}
				if line == "" || line[0] == '#' {
					continue
				}
				if !filepath.IsAbs(line) {
					line = filepath.Join(dir, line)
				}
				if info, err := os.Stat(line); err == nil && info.IsDir() {
					dirs = append(dirs, line)
				}
			}
		}
	}
	return hooks, dirs
}

// withoutHooks creates a virtual environment of an interpreter with the same packages but without their hooks. Its only .pth
// file names the directories; .pth files inside those are not read. A program that does nothing takes 11 ms of processor time
// in it, and 12 to 41 ms with hooks, which import packages that the program did not ask for. The result is "" if the
// interpreter does not find its packages there.
func (f *finder) withoutHooks(ctx context.Context, in interpreter, more []string) (string, error) {
	real, err := filepath.EvalSymlinks(in.executable)
	if err != nil {
		return "", err
	}
	paths := slices.Concat(in.packages, more)
	sum := sha256.Sum256([]byte(strings.Join(append(paths, real), "\n")))
	dir := filepath.Join(f.dir, "python-"+in.version+"-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(filepath.Join(dir, "pyvenv.cfg")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(f.dir, ".python-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp) // after success it no longer exists
	site := filepath.Join(tmp, "lib", in.library, "site-packages")
	for _, d := range []string{filepath.Join(tmp, "bin"), site} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"python3", "python"} {
		if err := os.Symlink(real, filepath.Join(tmp, "bin", name)); err != nil {
			return "", err
		}
	}
	for name, content := range map[string]string{
		filepath.Join(tmp, "pyvenv.cfg"):    fmt.Sprintf("home = %s\ninclude-system-site-packages = false\nversion = %s\n", filepath.Dir(real), in.version),
		filepath.Join(site, "packages.pth"): strings.Join(paths, "\n") + "\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	found, err := ask(ctx, nil, "", filepath.Join(tmp, "bin", "python3"), "-c", "import sys\nfor x in sys.path: print(x)")
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil && !slices.Contains(found, path) {
			return "", nil
		}
	}
	return dir, rename(tmp, dir, "pyvenv.cfg")
}

// inEnvironment reports whether a program is in a Python virtual environment.
func inEnvironment(path string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(path)), "pyvenv.cfg"))
	return err == nil
}
