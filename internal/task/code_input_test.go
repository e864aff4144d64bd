package task_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

// Input implements task.Host: these tasks get no input unless the desk has one.
func (d *desk) Input(ctx context.Context) io.Reader { return &typed{ctx: ctx, from: d.input} }

// typed is a user's input: each value of the channel is one read, and closing the channel is the end of file.
type typed struct {
	ctx  context.Context
	from <-chan string
	have string
}

func (t *typed) Read(p []byte) (int, error) {
	for t.have == "" {
		select {
		case s, ok := <-t.from:
			if !ok {
				return 0, io.EOF
			}
			t.have = s
		case <-t.ctx.Done():
			return 0, context.Cause(t.ctx)
		}
	}
	n := copy(p, t.have)
	t.have = t.have[n:]
	return n, nil
}

// conversation runs an interactive program; say and hear write to it and read from it.
type conversation struct {
	t    *testing.T
	desk *desk
	say  chan string
	done chan run
}

func converse(t *testing.T, ctx context.Context, rt runtime.Runtime, c api.Code) *conversation {
	t.Helper()
	return conversing(t, ctx, task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std}, c)
}

func conversing(t *testing.T, ctx context.Context, o task.CodeOptions, c api.Code) *conversation {
	t.Helper()
	h, err := task.NewCode(o)
	if err != nil {
		t.Fatal(err)
	}
	c.Interactive = true
	k := &conversation{t: t, desk: newDesk(), say: make(chan string), done: make(chan run, 1)}
	k.desk.input = k.say
	payload := json.RawMessage(code(t, c))
	go func() {
		r := run{desk: k.desk}
		out, err := h.Run(ctx, &task.Task{Execution: flow.ID{1}, Attempt: 1, Kind: flow.KindCode, Payload: payload, Host: k.desk})
		if errors.As(err, &r.err) {
			out = r.err.Output
		}
		_ = json.Unmarshal(out, &r.result)
		k.done <- r
	}()
	return k
}

// hear waits until the program's whole output is want.
func (k *conversation) hear(want string) {
	k.t.Helper()
	deadline := time.After(20 * time.Second)
	for k.desk.text("stdout") != want {
		select {
		case <-k.desk.wrote:
		case r := <-k.done:
			k.done <- r
			if k.desk.text("stdout") != want {
				k.t.Fatalf("it ended with %+v %v and wrote %q, want %q", r.result, r.err, k.desk.text("stdout"), want)
			}
		case <-deadline:
			k.t.Fatalf("heard %q, want %q", k.desk.text("stdout"), want)
		}
	}
}

// A program without input and output is ended; with either it is not idle. Its output stays.
func TestIdle(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		for source, c := range map[string]struct {
			limit   time.Duration
			verdict string
		}{
			"echo up; read x; echo never":                     {300 * time.Millisecond, "idle"},
			"trap '' TERM; echo up; while :; do :; done":      {300 * time.Millisecond, "idle"},
			"echo up; sleep 0.6":                              {0, "ok"},
			"for i in 1 2 3 4 5 6; do echo up; sleep 1; done": {5 * time.Second, "ok"},
		} {
			k := conversing(t, t.Context(), task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std, IdleLimit: c.limit}, api.Code{
				Language: "bash", Source: source, Limits: api.CodeLimits{Wall: api.Duration(time.Minute), CPU: api.Duration(time.Minute)}})
			r := <-k.done
			if r.result.Verdict != c.verdict || !strings.HasPrefix(r.result.Stdout, "up\n") || strings.Contains(r.result.Stdout, "never") {
				t.Errorf("%s: %q: %+v, %v", rt.Name(), source, r.result, r.err)
			}
			if idle := c.verdict == "idle"; idle != (r.err != nil) || idle && (r.err.Code != "idle" || r.err.As != flow.TimedOut || !strings.Contains(r.err.Message, "idle_limit")) {
				t.Errorf("%s: %q: %+v", rt.Name(), source, r.err)
			}
		}
		k := conversing(t, t.Context(), task.CodeOptions{Runtimes: []runtime.Runtime{rt}, Dir: std, IdleLimit: 5 * time.Second}, api.Code{
			Language: "bash", Source: "for i in 1 2 3 4 5 6; do read x; done; echo enough"})
		for i := range 6 { // longer than the limit
			time.AfterFunc(time.Duration(i+1)*time.Second, func() { k.say <- "typed\n" })
		}
		if r := <-k.done; r.err != nil || r.result.Stdout != "enough\n" {
			t.Errorf("%s: %+v, %v", rt.Name(), r.result, r.err)
		}
	}
}

func TestInteractive(t *testing.T) {
	for _, rt := range runtimes(t) {
		t.Run(rt.Name(), func(t *testing.T) {
			need(t, "python")
			k := converse(t, t.Context(), rt, api.Code{Language: "python",
				Source: "name = input('name? ')\nprint('hello', name)\nimport sys\nfor line in sys.stdin: print('got', line.strip())\nprint('end')"})
			k.hear("name? ")
			k.say <- "An"
			k.say <- "na\n"
			k.hear("name? hello Anna\n")
			k.say <- "one\ntwo\n"
			k.hear("name? hello Anna\ngot one\ngot two\n")
			close(k.say)
			if r := <-k.done; r.err != nil || r.result.Verdict != "ok" || r.result.Stdout != "name? hello Anna\ngot one\ngot two\nend\n" {
				t.Errorf("%+v, %v", r.result, r.err)
			}
		})
	}
}

// Python buffers its output as usual, unless the execution is interactive.
func TestOnlyInteractivePythonIsUnbuffered(t *testing.T) {
	need(t, "python")
	const ask = "import os, sys; print(sys.stdout.write_through, os.environ.get('PYTHONUNBUFFERED'), flush=True)"
	for _, rt := range runtimes(t) {
		if r := evaluate(t, t.Context(), rt, nil, code(t, api.Code{Language: "python", Source: ask})); r.result.Stdout != "False None\n" {
			t.Errorf("%s: %q, %v", rt.Name(), r.result.Stdout, r.err)
		}
		cases := api.Code{Language: "python", Source: ask, Cases: []api.Case{{}}}
		if r := evaluate(t, t.Context(), rt, nil, code(t, cases)); r.result.Cases[0].Stdout != "False None\n" {
			t.Errorf("%s: %+v, %v", rt.Name(), r.result.Cases, r.err)
		}
		k := converse(t, t.Context(), rt, api.Code{Language: "python", Source: ask})
		close(k.say)
		if r := <-k.done; r.result.Stdout != "True 1\n" {
			t.Errorf("%s, interactive: %q, %v", rt.Name(), r.result.Stdout, r.err)
		}
	}
}

// A program that does not wait for more input ends, and one that waits for ever is ended.
func TestInteractiveEnds(t *testing.T) {
	for _, rt := range runtimes(t) {
		t.Run(rt.Name(), func(t *testing.T) {
			need(t, "bash")
			k := converse(t, t.Context(), rt, api.Code{Language: "bash", Source: "read x; echo $x; exit 4"})
			k.say <- "in\n"
			if r := <-k.done; r.result.Verdict != "nonzero_exit" || r.result.Stdout != "in\n" || *r.result.ExitCode != 4 {
				t.Errorf("it stopped reading: %+v, %v", r.result, r.err)
			}
			k = converse(t, t.Context(), rt, api.Code{Language: "bash", Source: "echo waiting; read x", Limits: api.CodeLimits{Wall: api.Duration(300 * time.Millisecond)}})
			if r := <-k.done; r.result.Verdict != "timeout" || r.result.Stdout != "waiting\n" {
				t.Errorf("it waits for ever: %+v, %v", r.result, r.err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			k = converse(t, ctx, rt, api.Code{Language: "bash", Source: "echo waiting; read x"})
			k.hear("waiting\n")
			cancel(&task.Stop{As: flow.Cancelled, Code: flow.CodeCancelled, Reason: "enough"})
			if r := <-k.done; r.result.Verdict != "killed" {
				t.Errorf("it was killed: %+v, %v", r.result, r.err)
			}
		})
	}
}

// A program that reads slowly delays its input, and gets all of it.
func TestInteractiveReadsSlowly(t *testing.T) {
	for _, rt := range runtimes(t) {
		t.Run(rt.Name(), func(t *testing.T) {
			need(t, "python")
			k := converse(t, t.Context(), rt, api.Code{Language: "python", Source: `import sys, hashlib
print("ready")
h, n = hashlib.sha256(), 0
sys.stdin.buffer.readline()
while b := sys.stdin.buffer.read(1 << 16): h.update(b); n += len(b)
print(n, h.hexdigest())`})
			k.hear("ready\n")
			var all []byte
			for i := range 64 {
				piece := bytes.Repeat([]byte{byte(i)}, 16<<10)
				all = append(all, piece...)
			}
			given := make(chan int, 1)
			go func() {
				k.say <- "go\n"
				n := 0
				for piece := range slices.Chunk(all, 16<<10) {
					k.say <- string(piece)
					n++
				}
				given <- n
				close(k.say)
			}()
			r := <-k.done
			if want := fmt.Sprintf("ready\n%d %x\n", len(all), sha256.Sum256(all)); r.err != nil || r.result.Stdout != want || <-given != 64 {
				t.Errorf("%+v, %v; want %q", r.result, r.err, want)
			}
		})
	}
}
