package task

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime"
)

// input is a file of the submission. It is fetched if it is in the blob store.
func (e *evaluation) input(ctx context.Context, path string, c api.Content) (runtime.File, error) {
	f, err := e.content(ctx, c, fmt.Sprintf("in-%d", len(e.files)))
	f.Path = path
	if c.Mode != 0 {
		f.Mode = os.FileMode(c.Mode)
	}
	return f, err
}

// content is a content as a file: its bytes, or the host file into which it was fetched.
func (e *evaluation) content(ctx context.Context, c api.Content, as string) (runtime.File, error) {
	f := runtime.File{Mode: 0o644, Content: c.Bytes}
	if c.Blob != "" {
		f.Content, f.Source = nil, filepath.Join(e.dir, as)
		return f, e.fetch(ctx, c.Blob, f.Source)
	}
	if f.Content == nil {
		f.Content = []byte{}
	}
	return f, nil
}

func open(f runtime.File) (io.ReadCloser, error) {
	if f.Source == "" {
		return io.NopCloser(bytes.NewReader(f.Content)), nil
	}
	in, err := os.Open(f.Source)
	if err != nil {
		return nil, fmt.Errorf("open stdin: %w", err)
	}
	return in, nil
}

// mounts are the directories that a run needs in addition to the standard ones. A compiled program usually needs
// none of its compiler's directories.
func (e *evaluation) mounts() []runtime.Mount {
	if e.lang.toolAtRun() {
		return e.tools.mounts
	}
	return mounts(e.lang.Mounts...)
}

const (
	// threadStack is the size of stacks that a language allocates itself, such as Java's, unless limits.stack sets it.
	threadStack = 64 << 20
	// smallestStack is the size of the first thread's stack that every runtime gives unless limits.stack sets it: that of the
	// sandbox without cgroups.
	smallestStack = 16 << 20
)

// argv fills in the placeholders of an argument list.
func (e *evaluation) argv(list []string, l runtime.Limits) []string {
	fill := strings.NewReplacer("{tool}", e.tools.tool, "{std}", e.tools.std, "{types}", e.tools.types, "{file}", e.file,
		"{program}", program, "{memory}", strconv.FormatInt(l.Memory, 10),
		"{processors}", strconv.Itoa(e.processors(l)), "{stack}", strconv.FormatInt(cmp.Or(l.Stack, threadStack)>>10, 10),
		"{frames}", strconv.FormatInt(cmp.Or(l.Stack, smallestStack)/4*3>>10, 10))
	var out []string
	for _, arg := range list {
		if arg == "{flags}" {
			if std := cmp.Or(e.code.Std, e.tools.dialect); std != "" {
				out = append(out, "-std="+std)
			}
			out = append(out, e.code.Flags...)
			continue
		}
		if arg != "{sources}" {
			out = append(out, fill.Replace(arg))
			continue
		}
		out = append(out, e.file)
		for _, f := range e.files {
			ext := strings.TrimPrefix(path.Ext(f.Path), ".")
			if slices.Contains(e.lang.Extensions, ext) && (e.lang.compiles == nil || e.lang.compiles(f)) {
				out = append(out, "./"+f.Path)
			}
		}
	}
	return out
}

// env is the whole environment of a program with these limits. The submission's variables override the language's, and the
// language's override Pawl's.
func (e *evaluation) env(given map[string]string, l runtime.Limits) []string {
	path := "/usr/local/bin:/usr/bin:/bin"
	if dir := filepath.Dir(e.tools.tool); len(e.tools.mounts) > 0 && e.tools.tool != "" && e.lang.toolAtRun() {
		path = dir + ":" + path
		if named := filepath.Dir(e.tools.name()); named != dir && len(mounts(named)) > 0 {
			path = dir + ":" + named + strings.TrimPrefix(path, dir)
		}
	}
	all := map[string]string{"PATH": path, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
	maps.Copy(all, threads(e.processors(l)))
	maps.Copy(all, e.lang.Env)
	if e.code.Interactive {
		maps.Copy(all, unbuffered)
	}
	maps.Copy(all, given)
	return e.withTask(all, payload.OutputFile)
}

// template is the template from which a run of a language with warm interpreters may be forked; nil: it is executed. Only the operator
// decides how a template starts: a user's variables and flags could make it load anything.
func (e *evaluation) template(argv []string, l runtime.Limits) *runtime.Template {
	if e.lang.Warm == nil || len(e.code.Env) > 0 || slices.Contains(e.lang.Run, "{flags}") || slices.Contains(e.lang.Run, "{sources}") {
		return nil
	}
	env := slices.DeleteFunc(e.env(nil, l), func(kv string) bool { return strings.HasPrefix(kv, "PAWL_") })
	return &runtime.Template{Argv: argv, Env: env, Imports: e.lang.Warm.Imports}
}

// withTask adds the variables that describe the task to a program, and the file for its output.
func (e *evaluation) withTask(all map[string]string, output string) []string {
	all["PAWL_OUTPUT"] = output
	all["PAWL_EXECUTION"] = e.task.Execution.String()
	all["PAWL_ATTEMPT"] = strconv.Itoa(e.task.Attempt)
	all["PAWL_IDEMPOTENCY_KEY"] = e.task.IdempotencyKey()
	if e.task.Chain != "" {
		all["PAWL_CHAIN"] = e.task.Chain
	}
	out := make([]string, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, k+"="+all[k])
	}
	return out
}

// limits are the submission's; the language's apply where it sets none. For wall-clock time the attempt's timeout comes between the two.
func (e *evaluation) limits() runtime.Limits {
	l := limitsOf(e.code.Limits)
	l.Wall = cmp.Or(l.Wall, e.task.Timeout)
	chosen := l.Wall != 0
	l = l.Or(limitsOf(e.lang.Limits))
	l.CPU = cmp.Or(l.CPU, l.Wall)
	if _, imaged := e.runtime.(runtime.Imaged); imaged { // else it would be the default of the engine's host or of the node
		l.Stack = l.StackOf(int64(api.MaxStack))
	}
	l.Overrun = e.overrun()
	if e.code.Interactive && !chosen {
		l.Wall = max(l.Wall, typingTime)
	}
	return l
}

// typingTime is the limit on wall-clock time of an interactive program that sets none, since people need time to answer.
const typingTime = 10 * time.Minute

func (e *evaluation) stdin(ctx context.Context) (io.ReadCloser, error) {
	if e.code.Interactive {
		// A stop kills the program. If its input ended first, the program could end by itself, and the kill would not show.
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		return live{e.task.Input(ctx), stop}, nil
	}
	f, err := e.content(ctx, e.code.Stdin, "stdin")
	if err != nil {
		return nil, err
	}
	return open(f)
}

// unbuffered are the variables that make programs of some languages write to a pipe without buffering. Only interactive runs have
// them: a program that prints 500,000 lines takes 6 times the processor time when each line is a system call.
var unbuffered = map[string]string{"PYTHONUNBUFFERED": "1"}

// live is input that comes while the program runs. Its reads end when the program ends.
type live struct {
	io.Reader
	stop context.CancelFunc
}

func (l live) Close() error {
	l.stop()
	return nil
}

// head keeps the first bytes of a stream and forwards all of it.
type head struct {
	kept []byte
	most int
	last []byte    // the latest bytes, if not all are kept
	then io.Writer // nil: none
	came func()    // called after each write; may be nil
	err  error     // of then
}

// lastKept is the least number of final bytes of a stream that are kept: a program that logs much gives the reason for its
// failure at the end.
const lastKept = 16 << 10

func (h *head) Write(p []byte) (int, error) {
	if h.came != nil {
		h.came()
	}
	room := min(max(0, h.most-len(h.kept)), len(p))
	h.kept = append(h.kept, p[:room]...)
	if rest := p[room:]; len(rest) > 0 {
		h.last = append(h.last, rest[max(0, len(rest)-2*lastKept):]...)
		if len(h.last) > 2*lastKept {
			h.last = append(h.last[:0], h.last[len(h.last)-lastKept:]...)
		}
	}
	if h.then == nil {
		return len(p), nil
	}
	n, err := h.then.Write(p)
	h.err = err
	return n, err
}

// end is the stream's end, or all of it if all is kept.
func (h *head) end() []byte {
	switch {
	case len(h.last) == 0:
		return h.kept
	case len(h.last) >= lastKept:
		return h.last
	}
	return slices.Concat(h.kept[max(0, len(h.kept)-lastKept):], h.last)
}
