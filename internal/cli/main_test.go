package cli

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
	"github.com/rogpeppe/go-internal/testscript"
)

// actAsPawl makes the test binary act as pawl: the tests run it as its users do, including the race detector. Its value is the process id
// of the tests, with which this process ends.
const actAsPawl = "TEST_ACTS_AS_PAWL"

// bin is a directory that contains a pawl.
var bin string

func TestMain(m *testing.M) {
	if parent := os.Getenv(actAsPawl); parent != "" {
		go programtest.EndWith(parent)
		os.Exit(Main(os.Args[1:]))
	}
	// These tests mostly wait for programs: with as many in parallel as there are processors, two processors took 14 minutes.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code, err := withPawl(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withPawl(run func() int) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	if bin, err = os.MkdirTemp("", "pawl-bin-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(bin)
	script := fmt.Sprintf("#!/bin/sh\nexport %s=%d\nexec '%s' \"$@\"\n", actAsPawl, os.Getpid(), self)
	if err := os.WriteFile(filepath.Join(bin, "pawl"), []byte(script), 0o755); err != nil {
		return 1, err
	}
	return run(), nil
}

// environment is the environment for pawl: with its own state directory, and without the configuration of the user who runs the tests.
func environment(t *testing.T) []string {
	t.Helper()
	dir := programtest.ConfigHome(t)
	return append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PAWL_STATE_DIR="+filepath.Join(dir, "state"),
		"PAWL_RUNTIME="+runtimeHere(), "PAWL_ALLOW_DEGRADED=true", "XDG_CONFIG_HOME="+dir, "PAWL_SERVER=", "PAWL_TOKEN=", "PAWL_CONFIG=")
}

// runtimeHere is the sandbox if there is one. The programs of these tests may be trusted.
func runtimeHere() string {
	if runtime.GOOS == "linux" {
		return "sandbox"
	}
	return "process"
}

// need skips a test if this machine lacks its tools, except in CI.
func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			lacks(t, "%s", tool)
		}
	}
}

// lacks skips a test that this machine cannot run, except in CI, where everything must be tested.
func lacks(t *testing.T, format string, args ...any) {
	t.Helper()
	say := fmt.Sprintf(format, args...) + " is needed and not here"
	if os.Getenv("PAWL_TEST_STRICT") != "" {
		t.Fatal(say)
	}
	t.Skip("NOT TESTED: " + say)
}

func TestScripts(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
			env.Setenv("HOME", os.Getenv("HOME"))
			env.Setenv("PAWL_STATE_DIR", filepath.Join(env.WorkDir, "state"))
			env.Setenv("PAWL_RUNTIME", runtimeHere())
			env.Setenv("PAWL_ALLOW_DEGRADED", "true") // these scripts only run trusted programs
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("ROOT", root)
			return nil
		},
	})
}
