package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/runtime"
)

// A program's limits do not depend on the shell that started Pawl.
func TestLimitsAreNotInherited(t *testing.T) {
	if os.Getenv("PAWL_TEST_SHELL") == "" {
		binary := copyTestBinary(t, publicDir(t))
		const other = "ulimit -S -s 1024 -n 256 -f 100000 -i 100 -v 100000000; "
		var said []string
		shells := []string{"", other}
		if os.Geteuid() == 0 { // an ordinary user cannot lower its own nice value
			shells = append(shells, other+"exec nice -n 7 ")
		}
		for _, shell := range shells {
			cmd := exec.CommandContext(t.Context(), "bash", "-c", shell+`"$0" -test.run '^TestLimitsAreNotInherited$' -test.v`, binary)
			cmd.Env = append(os.Environ(), "PAWL_TEST_SHELL=yes")
			out, err := cmd.CombinedOutput()
			_, limits, ok := strings.Cut(string(out), "<<<")
			limits, _, _ = strings.Cut(limits, ">>>")
			if err != nil || !ok {
				t.Fatalf("%v\n%s", err, out)
			}
			said = append(said, limits)
		}
		for _, limits := range said[1:] {
			if limits != said[0] {
				t.Errorf("under other limits:\n%s\nand otherwise:\n%s", limits, said[0])
			}
		}
		return
	}
	r := factory(Options{})(t)
	defer r.Close()
	var text strings.Builder
	run, err := r.Start(t.Context(), runtime.Spec{
		Argv: []string{"bash", "-c", "ulimit -aH; ulimit -a; nice; cat /proc/self/oom_score_adj"}, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: &text,
		Limits: runtime.Limits{Memory: 256 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result := run.Wait(); result.Verdict != runtime.OK {
		t.Fatalf("%+v", result)
	}
	if r.(*Runtime).cgroups != nil && !strings.Contains(text.String(), "(kbytes, -s) 262144") {
		t.Errorf("the stack is not bounded by the memory limit:\n%s", text.String())
	}
	if !strings.HasSuffix(text.String(), "\n0\n1000\n") {
		t.Errorf("nice value and oom_score_adj:\n%s", text.String())
	}
	t.Logf("<<<%s>>>", text.String())
}

// Reserved memory that is not touched does not count: from version 24 on Node.js reserves 512 MiB for code, and Java 64 MiB for each
// thread's stack. Touched memory counts.
func TestReservedMemory(t *testing.T) {
	const source = `#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static void *thread(void *p) { return p; }
int main(int count, char **args) {
	size_t size = 640 << 20;
	char *code = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (code == MAP_FAILED) return 1;
	pthread_t threads[8];
	for (int i = 0; i < 8; i++) if (pthread_create(&threads[i], 0, thread, 0)) return 2;
	for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
	for (size_t i = 0; count > 1 && i < size; i += 4096) code[i] = 1;
	return 0;
}`
	for _, o := range []Options{{}, {WithoutCgroups: true}} {
		r := factory(o)(t)
		defer r.Close()
		for script, want := range map[string]runtime.Verdict{"exec ./reserve": runtime.OK, "exec ./reserve touch": runtime.OOM} {
			run, err := r.Start(t.Context(), runtime.Spec{
				Argv: []string{"sh", "-c", "cc -pthread -o reserve reserve.c && " + script}, Env: []string{"PATH=/usr/bin:/bin"},
				Files:  []runtime.File{{Path: "reserve.c", Content: []byte(source)}},
				Limits: runtime.Limits{Memory: 64 << 20},
			})
			if err != nil {
				t.Fatal(err)
			}
			if result := run.Wait(); result.Verdict != want {
				t.Errorf("%s, without cgroups: %t: %+v", script, o.WithoutCgroups, result)
			}
		}
	}
}

// Recursion needs the stack of its language and no more than the memory limit.
func TestDeepRecursion(t *testing.T) {
	r := factory(Options{})(t)
	defer r.Close()
	if r.(*Runtime).cgroups != nil {
		deepRecursion(t, r, "1000000", 0, runtime.OK)
		deepRecursion(t, r, "100000000", 0, runtime.OOM)
		deepRecursion(t, r, "100000", 1<<20, runtime.Signal)
	}
	r = factory(Options{WithoutCgroups: true})(t) // the stack is small there, because threads reserve as much
	defer r.Close()
	deepRecursion(t, r, "1000000", 0, runtime.Signal)
	deepRecursion(t, r, "1000000", 200<<20, runtime.OK)
}

// deepRecursion uses about 100 bytes of the stack per call.
func deepRecursion(t *testing.T, r runtime.Runtime, depth string, stack int64, want runtime.Verdict) {
	t.Helper()
	source := "int f(int n, volatile char *up) { volatile char here[32]; here[0] = *up; return n ? f(n - 1, here) + here[0] : 0; }\n" +
		"int main(void) { char c = 0; return f(" + depth + ", &c); }\n"
	run, err := r.Start(t.Context(), runtime.Spec{
		Argv: []string{"sh", "-c", "cc -O1 -o deep deep.c && exec ./deep"}, Env: []string{"PATH=/usr/bin:/bin"},
		Files:  []runtime.File{{Path: "deep.c", Content: []byte(source)}},
		Limits: runtime.Limits{Memory: 256 << 20, Stack: stack},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result := run.Wait(); result.Verdict != want || stack > 0 && result.Stack != stack {
		t.Errorf("depth %s, stack %d: %+v", depth, stack, result)
	}
}
