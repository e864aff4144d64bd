package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/nobody"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

// byName are programs that open their streams by file name, in the idiom of each language. Each copies its input to standard output and
// writes "err" to standard error.
var byName = map[string]string{
	"python":     "text = open('/dev/stdin').read()\nopen('/dev/stdout', 'w').write(text)\nopen('/dev/stderr', 'w').write('err')",
	"javascript": "const fs = require('fs'); fs.writeFileSync('/dev/stdout', fs.readFileSync('/dev/stdin', 'utf8')); fs.writeFileSync('/dev/stderr', 'err')",
	"bash":       "cat /dev/stdin > /dev/stdout; printf err > /dev/stderr",
	"c":          "#include <stdio.h>\nint main() { FILE *in = fopen(\"/dev/stdin\", \"r\"), *out = fopen(\"/dev/stdout\", \"w\"), *err = fopen(\"/dev/stderr\", \"w\"); if (!in || !out || !err) return 9; for (int c; (c = fgetc(in)) != EOF;) fputc(c, out); fputs(\"err\", err); }",
	"c++":        "#include <fstream>\nint main() { std::ifstream in(\"/dev/stdin\"); std::ofstream out(\"/dev/stdout\"), err(\"/dev/stderr\"); if (!in || !out || !err) return 9; for (char c; in.get(c);) out << c; err << \"err\"; }",
	"go":         "package main\nimport \"os\"\nfunc main() { b, err := os.ReadFile(\"/dev/stdin\"); if err != nil { panic(err) }; out, err := os.OpenFile(\"/dev/stdout\", os.O_WRONLY, 0); if err != nil { panic(err) }; out.Write(b); e, err := os.OpenFile(\"/proc/self/fd/2\", os.O_WRONLY, 0); if err != nil { panic(err) }; e.WriteString(\"err\") }",
	"rust":       "use std::io::Write;\nfn main() { let text = std::fs::read_to_string(\"/dev/stdin\").unwrap(); let open = |name| std::fs::OpenOptions::new().write(true).open(name).unwrap(); open(\"/dev/stdout\").write_all(text.as_bytes()).unwrap(); open(\"/dev/stderr\").write_all(b\"err\").unwrap(); }",
	"java":       "import java.io.*;\npublic class Main { public static void main(String[] a) throws IOException { try (var in = new FileInputStream(\"/dev/stdin\"); var out = new FileOutputStream(\"/dev/stdout\"); var err = new FileOutputStream(\"/dev/stderr\")) { in.transferTo(out); err.write(\"err\".getBytes()); } } }",
	"ruby":       "File.write('/dev/stdout', File.read('/dev/stdin')); File.write('/dev/stderr', 'err')",
}

// Standard streams can be opened by name, with and without an input, in cases and in interactive executions.
func TestStreamsByName(t *testing.T) {
	t.Parallel()
	streamsByName(t, "python", "javascript", "bash", "c", "c++", "go", "rust", "java", "ruby")
}

// If Pawl runs as root, its programs own their streams; an unprivileged Pawl and its programs are the same user.
func TestStreamsByNameUnprivileged(t *testing.T) {
	if !nobody.Runs(t) {
		streamsByName(t, "python", "bash")
	}
}

func streamsByName(t *testing.T, languages ...string) {
	for _, rt := range runtimes(t) {
		for _, name := range languages {
			t.Run(name+"/"+rt.Name(), func(t *testing.T) {
				need(t, name)
				r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: name, Source: byName[name], Cases: []api.Case{
					{Stdin: api.Text("in\n"), Expect: expect("in")}, {Expect: expect("")},
				}}))
				if r.err != nil || verdicts(r.result) != "1=ok 2=ok" {
					t.Errorf("%v, %s\n%+v\n%+v", r.err, verdicts(r.result), r.result, r.result.Compile)
				}
			})
		}
		k := converse(t, t.Context(), rt, api.Code{Language: "bash", Source: byName["bash"]})
		k.say <- "typed\n"
		close(k.say)
		if r := <-k.done; r.err != nil || r.result.Stdout != "typed\n" || r.result.Stderr != "err" {
			t.Errorf("interactive in %s: %v, %+v", rt.Name(), r.err, r.result)
		}
	}
}

// fullDisk is a worker whose disk is full.
type fullDisk struct{ *desk }

func (d fullDisk) Log(stream string) io.Writer { return fullLog{} }

type fullLog struct{}

func (fullLog) Spool(string, int64) {}

func (fullLog) Write(p []byte) (int, error) {
	return 0, fmt.Errorf("%w: %w", task.ErrSpool, syscall.ENOSPC)
}

// If the worker cannot store output, the worker is at fault, whatever the program has done.
func TestNoDiskForTheOutput(t *testing.T) {
	for _, rt := range runtimes(t) {
		h, err := task.NewCode(task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std})
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range []string{"echo hello", "echo hello >&2; exit 3"} {
			_, err = h.Run(t.Context(), &task.Task{Execution: flow.ID{1}, Attempt: 1, Kind: flow.KindCode, Host: fullDisk{newDesk()},
				Payload: json.RawMessage(code(t, api.Code{Language: "bash", Source: source}))})
			if end, ok := errors.AsType[*task.Error](err); !ok || end.Code != "infra_error" || !strings.Contains(end.Message, "no space left") {
				t.Errorf("%s in %s: %v", source, rt.Name(), err)
			}
		}
	}
}
