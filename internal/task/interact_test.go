package task_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/runtime"
	"github.com/pawl-run/pawl/internal/task"
)

// higher is the interactor of a game: the program finds the number in input.txt with at most 10 guesses. Its reason for a rejection is on
// stderr.
const higher = `import sys
number = int(open(sys.argv[1]).read())
for n in range(10):
    line = sys.stdin.readline()
    if not line.strip().isdigit():
        sys.exit("guess %d is not a number: %r" % (n + 1, line))
    if int(line) == number:
        print("right", flush=True)
        sys.exit(0)
    print("higher" if int(line) < number else "lower", flush=True)
sys.exit("10 guesses were not enough")
`

// player plays it by bisection, unless its first argument says otherwise.
const player = `import os, sys, time
how = sys.argv[1] if len(sys.argv) > 1 else "halves"
if how == "closes":
    print(50, flush=True)
    os.close(1)
    for line in sys.stdin: pass
    raise SystemExit(7)
if how == "stdout-only":
    print("word", flush=True)
    os.close(1)
    time.sleep(60)
if how == "floods":
    while True: print("1" * 1000)
if how == "silent": sys.stdin.readline()
if how == "loops":
    while True: pass
if how == "dies": raise ValueError("my own fault")
if how == "eats":
    x = bytearray(1 << 30)
    print(len(x))
if how == "leaves": raise SystemExit(0)
if how == "once":
    for n in range(10): print(1, flush=True)
low, high = 0, 1000
while True:
    print((low + high) // 2, flush=True)
    answer = input()
    if answer == "right": break
    if answer == "higher": low = (low + high) // 2 + 1
    else: high = (low + high) // 2
if how == "reads on": input()
`

func interactive(i api.Interactor, program string, cases ...api.Case) api.Code {
	if i.Language == "" {
		i.Language = "python"
	}
	return api.Code{Language: "python", Source: program, Limits: api.CodeLimits{Wall: api.Duration(20 * time.Second)}, Cases: cases,
		Compare: &api.Comparison{Mode: api.ModeInteractor, Interactor: &i}}
}

func transcript(c api.CaseResult) string {
	var all strings.Builder
	for _, turn := range c.Transcript {
		if turn.Omitted > 0 {
			fmt.Fprintf(&all, "[%d] ", turn.Omitted)
		}
		fmt.Fprintf(&all, "%s:%s ", turn.By[:1], strings.ReplaceAll(strings.TrimSuffix(turn.Text, "\n"), "\n", "/"))
	}
	return strings.TrimSpace(all.String())
}

func TestInteractor(t *testing.T) {
	t.Parallel()
	need(t, "python")
	short, plays := api.CodeLimits{Wall: api.Duration(time.Second)}, func(how string) api.Case {
		return api.Case{Name: how, Stdin: api.Text("700"), Args: []string{how}}
	}
	silent, loops, floods, eats := plays("silent"), plays("loops"), plays("floods"), plays("eats")
	silent.Limits, loops.Limits, floods.Limits, eats.Limits = api.CodeLimits{Wall: api.Duration(3 * time.Second)}, short, api.CodeLimits{Output: 100_000}, api.CodeLimits{Memory: 100 << 20}
	for _, rt := range runtimes(t) {
		t.Run(rt.Name(), func(t *testing.T) {
			t.Parallel()
			cases := []api.Case{{Name: "halves", Stdin: api.Text("700")}, {Name: "another", Stdin: api.Text("3"), Limits: api.CodeLimits{Wall: api.Duration(10 * time.Second)}},
				plays("closes"), plays("stdout-only"), silent, loops, plays("dies"), plays("leaves"), plays("once"), plays("reads on")}
			want := "halves=ok another=ok closes=wrong_answer stdout-only=wrong_answer silent=timeout loops=timeout dies=nonzero_exit leaves=wrong_answer once=wrong_answer reads on=nonzero_exit"
			if rt.Isolation() == runtime.Contained { // the process runtime does not limit memory
				cases, want = append(cases, eats), want+" eats=oom"
			}
			r := evaluate(t, t.Context(), rt, nil, code(t, interactive(api.Interactor{Source: higher, Reject: []int{1}}, player, cases...)))
			if verdicts(r.result) != want {
				t.Fatalf("got  %s\nwant %s\n%+v", verdicts(r.result), want, r.err)
			}
			got := map[string]api.CaseResult{}
			for _, c := range r.result.Cases {
				got[c.Name] = c
			}
			if c := got["halves"]; c.Uncompared || !strings.HasPrefix(transcript(c), "p:500 i:higher p:750 i:lower p:625 i:higher") || !strings.HasSuffix(transcript(c), "i:right") {
				t.Errorf("%s, %+v", transcript(c), c)
			}
			for name, say := range map[string]string{
				"closes": "guess 2 is not a number: ''", "stdout-only": `guess 1 is not a number: 'word\n'`, "leaves": "guess 1 is not a number: ''",
				"once": "10 guesses were not enough", "dies": "ValueError: my own fault", "reads on": "EOFError",
				"silent": "the program and the interactor waited for each other for", "loops": "ran longer than the limit of 1s",
			} {
				if m := got[name].Message; !strings.Contains(m, say) {
					t.Errorf("%s: %q, want %q", name, m, say)
				}
			}
			// Where the time without a processor is not counted, a program that got little processor time seems to wait.
			if m := got["loops"].Message; rt.Isolation() == runtime.Contained && strings.Contains(m, "waited") {
				t.Errorf("a program that computes is taken for one that waits: %s", m)
			}
			if m := got["silent"].Message; !strings.Contains(m, "neither wrote anything") {
				t.Error(m)
			}
			if s := transcript(got["once"]); !strings.HasPrefix(s, "p:1") || strings.Count(s, "higher") != 10 {
				t.Error(s)
			}

			// A program that writes without end exceeds its own limit, even if the interactor reads none of it.
			for _, source := range []string{higher, "import sys, time\nfor line in sys.stdin: pass", "import time\ntime.sleep(60)"} {
				r = evaluate(t, t.Context(), rt, nil, code(t, interactive(api.Interactor{Source: source}, player, floods)))
				flooded, judged := "floods=output_limit", "floods=wrong_answer"
				if v := verdicts(r.result); v != flooded && (source != higher || v != judged) {
					t.Fatalf("%s: %+v", v, r.err)
				}
				for _, c := range r.result.Cases {
					if size := len(fmt.Sprint(c.Transcript)); size > 5<<10 {
						t.Errorf("a transcript of %d bytes", size)
					}
				}
			}
		})
	}
}

// A fault of an interactor does not count against the program.
func TestInteractorsOwnFault(t *testing.T) {
	t.Parallel()
	need(t, "python")
	need(t, "bash")
	second := api.CodeLimits{Wall: api.Duration(time.Second)}
	const kattis = `read x; echo "saw $x" > $3/judgemessage.txt; exit $((42 + (x != $(cat $2))))`
	limited := func(source string, l api.CodeLimits) api.Interactor {
		return api.Interactor{Language: "bash", Source: source, Limits: l}
	}
	bash := func(source string) api.Interactor { return limited(source, api.CodeLimits{}) }
	for _, rt := range runtimes(t) {
		for _, one := range []struct {
			name       string
			interactor api.Interactor
			program    string
			want, say  string
		}{
			{"throws", api.Interactor{Source: "import sys\nsys.stdin.readline()\n1/0"}, "echo 1; read x", api.CheckerError,
				`the interactor was ended by an error that it does not catch: ZeroDivisionError: division by zero (if what a program writes can do that, catch it, or give "reject": [1]`},
			{"throws as a rejection", api.Interactor{Source: "int(input())", Reject: []int{1}}, "echo x; read x", api.WrongAnswer, "ValueError: invalid literal"},
			{"code", bash("exit 9"), "read x", api.CheckerError, "the interactor ended with exit code 9, which means neither accepted (0) nor rejected (1)"},
			{"signal", bash("kill -SEGV $$"), "read x", api.CheckerError, "the interactor ended with signal: the program was ended by SIGSEGV"},
			{"computes", limited("while :; do :; done", api.CodeLimits{CPU: api.Duration(300 * time.Millisecond)}), "read x", api.CheckerError, "the interactor ended with cpu_timeout"},
			{"never ends", limited("sleep 60", second), "echo 1 #1s", api.CheckerError, "the interactor ended with timeout: ran longer than the limit of 2s"},
			{"floods", limited("yes", api.CodeLimits{Output: 100_000}), "sleep 60", api.CheckerError, "the interactor ended with output_limit"},
			{"does not compile", api.Interactor{Language: "c", Source: "int main( {"}, "echo 1", "", "the interactor: compile: "},
			{"accepts, and the program dies later", bash("read x"), "echo 1; read x; exit 4", "nonzero_exit", "exit code 4"},
			{"accepts, and the program goes on", bash("read x"), "echo 1; sleep 60 #1s", "timeout", "ran longer than the limit of 1s"},
			{"rejects at once", bash("echo no >&2; exit 1"), "sleep 60", api.WrongAnswer, "no"},
			{"rejects, and the program fails of that", bash("read x; exit 1"), "echo 1; read x || exit 3", api.WrongAnswer, "the interactor rejected the program"},
			{"has input and expectation", bash(`read x; test "$x $(cat $1) $(cat $2)" = "1 7 8"`), "echo 1", "ok", ""},
			{"closes its output and reads on", bash("echo 7; exec >&-; read x; test $x = 8"), "echo $(($(cat) + 1))", "ok", ""},
			{"kattis", api.Interactor{Language: "bash", Style: api.CheckerKattis, Source: kattis}, "echo 8", "ok", "saw 8"},
			{"kattis rejects", api.Interactor{Language: "bash", Style: api.CheckerKattis, Source: kattis}, "echo 9", api.WrongAnswer, "saw 9"},
		} {
			t.Run(rt.Name()+"/"+one.name, func(t *testing.T) {
				t.Parallel()
				if one.interactor.Language == "c" {
					need(t, "c")
				}
				c := interactive(one.interactor, one.program, api.Case{Stdin: api.Text("7"), Expect: expect("8")})
				if c.Language = "bash"; strings.HasSuffix(one.program, "#1s") {
					c.Limits = second
				}
				r := evaluate(t, t.Context(), rt, nil, code(t, c))
				if one.want == "" {
					if r.err == nil || r.err.Code != api.CheckerError || !strings.HasPrefix(r.err.Message, one.say) {
						t.Errorf("%+v", r.err)
					}
					return
				}
				if len(r.result.Cases) != 1 {
					t.Fatalf("%+v", r.err)
				}
				if c := r.result.Cases[0]; c.Verdict != one.want || !strings.Contains(c.Message, one.say) {
					t.Errorf("%s: %s; %s", c.Verdict, c.Message, transcript(c))
				}
			})
		}
	}
}

// started signals when runs have started.
type started struct {
	runtime.Runtime
	run func()
}

func (s started) Start(ctx context.Context, spec runtime.Spec) (runtime.Run, error) {
	defer s.run()
	return s.Runtime.Start(ctx, spec)
}

// A stop during a dialogue ends both sides, and the case is not judged.
func TestInteractorStopped(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	for _, rt := range runtimes(t) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var runs atomic.Int32
		both := started{rt, func() {
			if runs.Add(1) == 2 {
				cancel(&task.Stop{As: flow.Cancelled, Code: flow.CodeCancelled, Reason: "enough"})
			}
		}}
		c := interactive(api.Interactor{Language: "bash", Source: "read x; sleep 60"}, "echo ready; read x", api.Case{}, api.Case{})
		c.Language = "bash"
		r := evaluate(t, ctx, both, nil, code(t, c))
		if verdicts(r.result) != "1=killed 2=skipped" || r.err == nil || r.err.As != flow.Cancelled || runs.Load() != 2 {
			t.Errorf("%s: %s, %+v, %d runs", rt.Name(), verdicts(r.result), r.err, runs.Load())
		}
	}
}

type imaged struct{ runtime.Runtime }

func (imaged) Imaged() {}

func TestInteractorNeedsPipes(t *testing.T) {
	t.Parallel()
	for _, rt := range runtimes(t)[:1] {
		r := evaluate(t, t.Context(), imaged{rt}, nil, code(t, interactive(api.Interactor{Source: "1"}, "1", api.Case{})))
		if r.err == nil || r.err.Code != flow.CodeInvalidInput || !strings.HasPrefix(r.err.Message, "compare.interactor: the runtime process runs programs in containers") {
			t.Errorf("%+v", r.err)
		}
	}
}
