package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/programtest"
)

// ownDatabase creates a database on the tests' PostgreSQL, which is dropped at the end of the test, and returns its DSN.
func ownDatabase(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("NOT TESTED: PAWL_TEST_POSTGRES names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.")
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower("pawl_cli_" + rand.Text())
	run := func(statement string) {
		ctx := context.Background()
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		if _, err := c.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run("CREATE DATABASE " + name)
	t.Cleanup(func() { run("DROP DATABASE " + name + " WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// serving starts a server and returns its address.
func serving(t *testing.T, env []string, args ...string) (*running, string) {
	t.Helper()
	r := start(t, env, append([]string{"server", "--listen", "127.0.0.1:" + programtest.FreePort(t)}, args...)...)
	within(t, time.Minute, "it serves", func() bool {
		if r.ProcessState != nil {
			t.Fatal(r.err.String())
		}
		return strings.Contains(r.err.String(), "serving on")
	})
	_, rest, _ := strings.Cut(r.err.String(), "serving on ")
	at, _, _ := strings.Cut(rest, "\n")
	return r, strings.TrimSpace(strings.Fields(at)[0])
}

// big writes a file of n bytes without equal lines.
func big(t *testing.T, name string, n int) (path, sum string) {
	t.Helper()
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s %d\n", name, i)
	}
	path = writeFile(t, name, b.String()[:n])
	return path, fmt.Sprintf("%x", sha256.Sum256(b.Bytes()[:n]))
}

const summing = `import hashlib, sys
print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())
for name in sys.argv[1:]: print(hashlib.sha256(open(name, 'rb').read()).hexdigest())
`

// Inputs larger than a request allows reach the program, whichever process runs it: the command's own engine, a server on SQLite, and
// another worker of a server on PostgreSQL.
func TestLargeInputs(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	stdin, stdinSum := big(t, "big.txt", 20<<20)
	file, fileSum := big(t, "data.bin", 17<<20)
	program := writeFile(t, "sum.py", summing)
	for name, place := range map[string]func(t *testing.T) []string{
		"here":   environment,
		"server": func(t *testing.T) []string { env := environment(t); serving(t, env); return env },
		"worker elsewhere": func(t *testing.T) []string {
			_, at := serving(t, environment(t), "--no-worker", "--store", ownDatabase(t))
			start(t, environment(t), "worker", "--server", at)
			return append(environment(t), "PAWL_SERVER="+at)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := place(t)
			out, errs, code := pawl(t, env, "eval", program, "--stdin", stdin, "--file", file, "--arg", "data.bin", "--limit", "wall=1m,disk=100MB")
			if code != exit.OK || out != stdinSum+"\n"+fileSum+"\n" {
				t.Fatalf("exit code %d, %q, want %s and %s\n%s", code, out, stdinSum, fileSum, errs)
			}
			out, errs, code = pawl(t, env, "upload", stdin, file)
			if code != exit.OK || out != "sha256:"+stdinSum+"\nsha256:"+fileSum+"\n" {
				t.Errorf("upload: exit code %d, %q\n%s", code, out, errs)
			}
			cases := t.TempDir()
			for i := range 3 {
				path, sum := big(t, fmt.Sprintf("%d.in", i), 7<<20)
				for name, from := range map[string]string{".in": path, ".out": writeFile(t, "x", sum+"\n")} {
					if err := os.Rename(from, filepath.Join(cases, fmt.Sprint(i)+name)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if out, errs, code := pawl(t, env, "eval", program, "--cases", cases); code != exit.OK || !strings.Contains(out, "3 of 3 cases passed") {
				t.Errorf("cases: exit code %d, %s\n%s", code, out, errs)
			}
		})
	}
}

// Standard input that cannot be read twice is uploaded as well.
func TestLargeStandardInput(t *testing.T) {
	t.Parallel()
	env := environment(t)
	stdin, sum := big(t, "big.txt", 3<<20)
	for _, args := range [][]string{{"eval", writeFile(t, "sum.py", summing), "--stdin", "-"}, {"upload", "-"}} {
		f, err := os.Open(stdin)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "pawl"), args...)
		cmd.Env, cmd.Stdin = append(env, "TMPDIR="+t.TempDir()), io.MultiReader(f) // a pipe
		out, err := cmd.Output()
		_ = f.Close()
		if err != nil || strings.TrimPrefix(string(out), "sha256:") != sum+"\n" {
			t.Errorf("pawl %s: %v, %q", args[0], err, out)
		}
		if left, err := filepath.Glob(filepath.Join(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR="), "*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// Files keep their directories; two files with the same name in the request are refused with both paths.
func TestFilesKeepTheirDirectories(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	env, dir := environment(t), t.TempDir()
	for name, text := range map[string]string{
		"main.py":         "import pkg.util, os\nprint(pkg.util.x, sorted(os.path.join(d, f) for d, _, fs in os.walk('.') for f in fs if '__pycache__' not in d), os.access('pkg/run.sh', os.X_OK))\n",
		"pkg/__init__.py": "", "pkg/util.py": "from . import sub\nx = 7\n", "pkg/sub.py": "", "pkg/run.sh": "", "d1/x.py": "", "d2/x.py": "", "d1/deep/y": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "pkg/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	here := func(args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "pawl"), append([]string{"eval", "main.py"}, args...)...)
		cmd.Env, cmd.Dir = env, dir
		out, _ := cmd.CombinedOutput() // the exit code has the result
		return string(out), cmd.ProcessState.ExitCode()
	}
	all := "7 ['./main.py', './pkg/__init__.py', './pkg/run.sh', './pkg/sub.py', './pkg/util.py'] True\n"
	for _, c := range []struct {
		say  string
		args []string
	}{
		{all, []string{"--file", "pkg/util.py", "--file", "./pkg/__init__.py", "--file", "pkg/sub.py", "--file", "pkg/run.sh"}},
		{all, []string{"--dir", "pkg"}},
		{all, []string{"--dir", filepath.Join(dir, "pkg")}},
		{all, []string{"--dir", "pkg=" + filepath.Join(dir, "pkg/")}},
		{"'./deep/y'", []string{"--dir", "pkg", "--dir", ".=d1"}},
		{"'./y'", []string{"--dir", "pkg", "--file", filepath.Join(dir, "d1/deep/y")}},
		{"'./z/y'", []string{"--dir", "pkg", "--dir", "z=d1/deep"}},
	} {
		if out, code := here(c.args...); code != exit.OK || !strings.Contains(out, c.say) {
			t.Errorf("%v: exit code %d\n%swant %s", c.args, code, out, c.say)
		}
	}
	for say, args := range map[string][]string{
		filepath.Join(dir, "d1/x.py") + " and " + filepath.Join(dir, "d2/x.py") + " would both be placed as x.py": {"--file", filepath.Join(dir, "d1/x.py"), "--file", filepath.Join(dir, "d2/x.py")},
		"d1/x.py and d2/x.py would both be placed as x.py":                                                        {"--dir", ".=d1", "--dir", ".=d2"},
		"pkg is a directory: give it with --dir":                                                                  {"--file", "pkg"},
		"main.py is a file: give it with --file":                                                                  {"--dir", "main.py"},
		"no such file":                                                                                            {"--dir", "nope"},
	} {
		if out, code := here(args...); code == exit.OK || !strings.Contains(out, say) {
			t.Errorf("%v: exit code %d\n%swant %s", args, code, out, say)
		}
	}
}

// A program that gets more input than it may ends at once, and the command says why.
func TestTooMuchTyped(t *testing.T) {
	t.Parallel()
	env := environment(t)
	r, keyboard := typing(t, env, "eval", "-i", writeFile(t, "read.py", "import sys\nprint(len(sys.stdin.buffer.read()))\n"), "--limit", "wall=10m")
	go func() {
		piece := make([]byte, 1<<20)
		for range 18 {
			if _, err := keyboard.Write(piece); err != nil {
				return
			}
		}
		_ = keyboard.Close()
	}()
	within(t, time.Minute, "it ends", func() bool { return len(executions(t, env)) == 1 && executions(t, env)[0].Status.Terminal() })
	if code := r.code(); code != exit.General || !strings.Contains(r.err.String(), "the input is full") || r.out.String() != "" {
		t.Errorf("exit code %d, %q\n%s", code, r.out.String(), r.err.String())
	}
	if x := executions(t, env)[0]; x.Status != api.Cancelled {
		t.Errorf("%+v", x)
	}
}
