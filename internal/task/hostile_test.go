package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

// TestOutputAroundTheInlineLimit is the storage part of row 17 of the hostile programs: 100 KB are kept in the row, and only the rest
// goes to blobs.
func TestOutputAroundTheInlineLimit(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		for _, extra := range []int{-1, 0, 1} {
			t.Run(fmt.Sprintf("%+d/%s", extra, rt.Name()), func(t *testing.T) {
				blobs := &shelf{blobs: map[string][]byte{}}
				size := blob.InlineLimit + extra
				r := evaluate(t, t.Context(), rt, blobs, code(t, api.Code{
					Language: "bash", Collect: []string{"file"},
					Source: fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x | tee file", size),
				}))
				if r.err != nil {
					t.Fatalf("%v %+v", r.err, r.result)
				}
				above := extra > 0
				if r.result.StdoutTruncated != above || r.result.StdoutBytes != int64(size) || len(r.result.Stdout) != min(size, blob.InlineLimit) {
					t.Errorf("truncated %v, %d of %d bytes inline", r.result.StdoutTruncated, len(r.result.Stdout), r.result.StdoutBytes)
				}
				if logged := r.desk.text("stdout"); len(logged) != size {
					t.Errorf("the log has %d bytes of %d", len(logged), size)
				}
				if len(r.result.Files) != 1 || (r.result.Files[0].Blob != "") != above || (r.result.Files[0].Content == nil) != above {
					t.Fatalf("files %+v", r.result.Files)
				}
				if above && len(blobs.blobs[r.result.Files[0].Blob]) != size {
					t.Errorf("the blob has %d bytes of %d", len(blobs.blobs[r.result.Files[0].Blob]), size)
				}
			})
		}
	}
}

// TestCompileBombs is row 46 of the hostile programs: sources whose compilation never ends or exhausts a resource. The compile step is in
// a sandbox like the program itself, so it ends at its limits, and no file of the host is read.
func TestCompileBombs(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the host's own secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// The compilers' own limits allow a minute's work, which is too long for a test.
	impatient := api.CodeLimits{Wall: api.Duration(1500 * time.Millisecond), CPU: api.Duration(10 * time.Second), Memory: 200e6, Pids: 64, Output: 1e6, Disk: 32e6}
	stopped := []string{string(runtime.Timeout), string(runtime.CPUTimeout), string(runtime.OOM)}
	refused := []string{string(runtime.NonzeroExit), string(runtime.Signal), string(runtime.OutputLimit), string(runtime.OOM), string(runtime.Timeout)}
	for _, rt := range runtimes(t) {
		if rt.Isolation() < runtime.Contained {
			continue // a compiler on the host itself has no limits
		}
		for _, c := range []struct {
			name, language, source string
			want                   []string
		}{
			{"include zeros", "c", "#include \"/dev/zero\"\nint main() { return 0; }", stopped},
			{"include random bytes", "c", "#include \"/dev/urandom\"\nint main() { return 0; }", stopped},
			{"include itself", "c", strings.Repeat("#include __FILE__\n", 8) + "int main() { return 0; }", append(stopped, refused...)},
			{"macros", "c", "#define A B B B B B B B B\n#define B C C C C C C C C\n#define C D D D D D D D D\n#define D E E E E E E E E\n#define E F F F F F F F F\n#define F G G G G G G G G\n#define G H H H H H H H H\n#define H I I I I I I I I\n#define I x;\nint main() { int x; A return 0; }", stopped},
			{"a large program", "c", "int main[1 << 29] = {1};", refused},
			{"include a secret", "c", fmt.Sprintf("#include %q\nint main() { return 0; }", secret), refused},
			{"assemble a secret", "c", fmt.Sprintf("__asm__(\".incbin \\\"%s\\\"\");\nint main() { return 0; }", secret), refused},
			{"templates", "c++", "template<int D, long K> struct T { static const long v = T<D - 1, 2 * K>::v + T<D - 1, 2 * K + 1>::v; };\ntemplate<long K> struct T<0, K> { static const long v = K; };\nint main() { return T<40, 1>::v; }", stopped},
			{"constant expressions", "c++", "constexpr unsigned long f(unsigned long n) { return n < 2 ? n : f(n - 1) + f(n - 2) * (n % 7); }\nstatic_assert(f(400) != 1);\nint main() {}", append(stopped, refused...)},
		} {
			t.Run(c.name+"/"+rt.Name(), func(t *testing.T) {
				need(t, c.language)
				h, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				payload := json.RawMessage(code(t, api.Code{Language: c.language, Source: c.source, CompileLimits: impatient}))
				begin := time.Now()
				out, err := h.Run(t.Context(), &task.Task{Execution: flow.ID{1}, Attempt: 1, Kind: flow.KindCode, Payload: payload, Host: newDesk()})
				var failed *task.Error
				if !errors.As(err, &failed) {
					t.Fatalf("it compiled: %v %s", err, out)
				}
				var result api.CodeResult
				if err := json.Unmarshal(failed.Output, &result); err != nil || result.Compile == nil {
					t.Fatalf("%v: %s", err, failed.Output)
				}
				if failed.Code != api.CompileError || !slices.Contains(c.want, result.Compile.Verdict) || !strings.HasPrefix(failed.Message, "compile: ") {
					t.Errorf("%s, of the compiler %s: %s, want one of %v", failed.Code, result.Compile.Verdict, failed.Message, c.want)
				}
				if strings.Contains(string(failed.Output), "own secret") {
					t.Errorf("the compiler has read the host's file: %s", failed.Output)
				}
				t.Logf("%s after %v: %.200s", failed.Code, time.Since(begin).Round(time.Millisecond), failed.Message)
			})
		}
	}
}
