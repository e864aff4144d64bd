package task_test

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// The message is the line with the fault, whatever a language's runtime writes around it.
func TestMessages(t *testing.T) {
	t.Parallel()
	rt := runtimes(t)[0]
	for _, c := range []struct{ language, source, want string }{
		{"python", "raise ValueError('first\\nsecond')", "nonzero_exit exit code 1: ValueError: first"},
		{"python", "try:\n  1/0\nexcept Exception as e:\n  e.add_note('a note')\n  raise KeyError('outer') from e", "nonzero_exit exit code 1: KeyError: 'outer'"},
		{"python", "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])", "nonzero_exit exit code 1: ExceptionGroup: several (2 sub-exceptions)"},
		{"python", "import sys; sys.exit('no more money')", "nonzero_exit exit code 1: no more money"},
		{"python", "import sys; sys.stderr.write('log\\n' * 60000); raise ValueError('far down')", "nonzero_exit exit code 1: ValueError: far down"},
		{"javascript", "null.x", "nonzero_exit exit code 1: TypeError: Cannot read properties of null (reading 'x')"},
		{"javascript", "require('fs').readFileSync('missing')", "nonzero_exit exit code 1: Error: ENOENT: no such file or directory, open 'missing'"},
		{"javascript", "throw Object.assign(new Error('with more\\nlines'), {code: 7})", "nonzero_exit exit code 1: Error: with more"},
		{"javascript", "throw 'just text'", "nonzero_exit exit code 1: just text"},
		{"javascript", "Promise.reject(new RangeError('later'))", "nonzero_exit exit code 1: RangeError: later"},
		{"javascript", "try { null.x } catch (e) { console.error(Object.assign(e, {code: 7})); process.exit(3) }", "nonzero_exit exit code 3: TypeError: Cannot read properties of null (reading 'x')"},
		{"typescript", "throw Object.assign(new Error('with more' as string), {code: 7})", "nonzero_exit exit code 1: Error: with more"},
		{"typescript", "const x: any = null; x.y", "nonzero_exit exit code 1: TypeError: Cannot read properties of null (reading 'y')"},
		{"ruby", "def f = nil.upcase\nf", "(NoMethodError)"},
		{"ruby", "begin; Integer('x'); rescue => e; raise \"outer\\nlines\"; end", ": outer (RuntimeError)"},
		{"go", "package main\nfunc main() { var a []int; _ = a[len(a)] }", "nonzero_exit exit code 2: panic: runtime error: index out of range [0] with length 0"},
		{"go", "package main\nfunc main() { panic(\"the disk is full\") }", "nonzero_exit exit code 2: panic: the disk is full"},
		{"go", "package main\nfunc main() { select {} }", "nonzero_exit exit code 2: fatal error: all goroutines are asleep - deadlock!"},
		{"rust", "fn main() { let v: Vec<i32> = vec![]; println!(\"{}\", v[0]); }", "nonzero_exit exit code 101: thread 'main'"},
		{"rust", "fn main() { None::<i32>.expect(\"nothing there\"); }", "nothing there"},
		{"java", "public class Main { public static void main(String[] a) { try { f(0); } catch (Exception e) { throw new RuntimeException(\"outer\", e); } } static int f(int x) { return 1 / x; } }", "nonzero_exit exit code 1: Exception in thread \"main\" java.lang.RuntimeException: outer"},
		{"java", "public class Main { public static void main(String[] a) { long[][] all = new long[1 << 20][]; for (int i = 0; ; i++) all[i] = new long[1 << 16]; } }", "oom the program ran out of memory: Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space"},
		{"c++", "#include <vector>\nint main() { return std::vector<int>().at(3); }", "terminate called after throwing an instance of 'std::out_of_range': vector::_M_range_check"},
		{"c", "#include <assert.h>\nint main(int n, char **a) { assert(n == 7); }", "SIGABRT: main.bin: main.c:2: main: Assertion `n == 7' failed."},
		{"bash", "echo busy >&2; nothing-of-this-name", "nonzero_exit exit code 127: main.sh: line 1: nothing-of-this-name: command not found"},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			need(t, c.language)
			r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: c.language, Source: c.source}))
			if r.err == nil || !strings.Contains(r.err.Code+" "+r.err.Message, c.want) || strings.Contains(c.source, "v[0]") && !strings.HasSuffix(r.err.Message, "main.rs:1:55: index out of bounds: the len is 0 but the index is 0") {
				t.Errorf("%s:\n%v\nwant %s\n%s", c.source, r.err, c.want, r.result.Stderr)
			}
			if r.result.Verdict == "oom" && (len(r.result.LimitsHit) != 1 || r.result.LimitsHit[0] != "memory") {
				t.Errorf("limits hit: %v", r.result.LimitsHit)
			}
		})
	}
}
