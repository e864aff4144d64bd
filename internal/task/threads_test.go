package task_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

// manyProcessors is a library that overrides the C library and reports 128 processors.
const manyProcessors = `#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <unistd.h>
long __sysconf(int);
long sysconf(int name) { return name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN ? 128 : __sysconf(name); }
int sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set) { memset(set, 0, n); memset(set, 0xff, n < 16 ? n : 16); return 0; }
int get_nprocs(void) { return 128; }
int get_nprocs_conf(void) { return 128; }
`

// lacks skips a test that this machine cannot run, except in CI.
func lacks(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("PAWL_TEST_STRICT") != "" {
		t.Fatalf("needed and not here: "+format, args...)
	}
	t.Skipf("not here: "+format, args...)
}

// numpy skips a test if the system's Python has no numpy.
func numpy(t *testing.T) *task.Languages {
	t.Helper()
	const python = "/usr/bin/python3"
	if out, err := exec.Command(python, "-c", "import numpy").CombinedOutput(); err != nil {
		lacks(t, "numpy (Debian: apt install python3-numpy libopenblas0-pthread): %v %s", err, out)
	}
	return profiles(t, task.Profile{Name: "python-system", Like: "python", Tools: []string{python}})
}

// Numpy works with the default limits, even on a host with 128 processors, and leaves room for processes of the program.
func TestNumpyOnManyProcessors(t *testing.T) {
	t.Parallel()
	languages := numpy(t)
	source, library := filepath.Join(t.TempDir(), "many.c"), filepath.Join(t.TempDir(), "many.so")
	if err := os.WriteFile(source, []byte(manyProcessors), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		lacks(t, "a C compiler: %v %s", err, out)
	}
	many, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range runtimes(t) {
		if rt.Isolation() != runtime.Contained {
			continue // nothing limits its threads
		}
		r := with(t, rt, languages, api.Code{Language: "python-system", Limits: api.CodeLimits{Pids: 64},
			Env: map[string]string{"LD_PRELOAD": "./many.so"}, Files: map[string]api.Content{"many.so": {Bytes: many}},
			Source: `import os, subprocess
import numpy as np
a = np.ones((300, 300))
print(os.cpu_count(), (a @ a)[0, 0], open('/proc/self/status').read().split('Threads:')[1].split()[0])
print(subprocess.run(['/bin/true']).returncode)`})
		var processors, threads, code int
		var product float64
		if n, err := fmt.Sscan(r.result.Stdout, &processors, &product, &threads, &code); r.err != nil || n != 4 || processors != 128 || product != 300 || threads > 16 || code != 0 || r.result.Stderr != "" {
			t.Errorf("%s: %v, %v\n%s%s", rt.Name(), r.err, err, r.result.Stdout, r.result.Stderr)
		}
	}
}

// The variables for the number of threads follow the processors that a run may use, and the program can set them.
func TestThreadVariables(t *testing.T) {
	t.Parallel()
	const source = `echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS $MKL_NUM_THREADS $GOMAXPROCS $RAYON_NUM_THREADS`
	own := profiles(t, task.Profile{Name: "mybash", Like: "bash", Env: map[string]string{"GOMAXPROCS": "7"}})
	n := goruntime.NumCPU()
	for _, c := range []struct {
		language string
		pids     int
		cpus     float64
		env      map[string]string
		want     string
	}{
		{"bash", 100_000, 0, nil, fmt.Sprintf("%d %[1]d %[1]d %[1]d %[1]d", n)},
		{"bash", 0, 0, nil, fmt.Sprintf("%d %[1]d %[1]d %[1]d %[1]d", min(n, 16))},
		{"bash", 4, 0, nil, "1 1 1 1 1"},
		{"bash", 100_000, 0.5, nil, "1 1 1 1 1"},
		{"bash", 2, 0, map[string]string{"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": ""}, "3 1 1 1"},
		{"mybash", 4, 0, nil, "1 1 1 7 1"},
	} {
		for _, rt := range runtimes(t) {
			r := with(t, rt, own, api.Code{Language: c.language, Source: source, Limits: api.CodeLimits{Pids: c.pids, CPUs: c.cpus}, Env: c.env})
			if r.err != nil && os.Geteuid() != 0 && strings.Contains(r.err.Error(), "no cgroup with the cpu controller") {
				continue // an ordinary user has none unless it is delegated
			}
			if r.err != nil || r.result.Stdout != c.want+"\n" {
				t.Errorf("%s, pids %d: %v, %q, want %q", rt.Name(), c.pids, r.err, r.result.Stdout, c.want)
			}
		}
	}
}
