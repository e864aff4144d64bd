package definition

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// problems returns the errors of Parse, one per line.
func problems(t testing.TB, file, src string) []string {
	t.Helper()
	defs, err := Parse(file, []byte(src))
	if err == nil {
		return nil
	}
	var ps Problems
	if !errors.As(err, &ps) {
		t.Fatalf("the error is of type %T, not Problems", err)
	}
	if defs != nil {
		t.Fatal("definitions come with problems")
	}
	if !slices.IsSortedFunc(ps, func(a, b Problem) int { return a.Line - b.Line }) {
		t.Errorf("problems are out of order:\n%v", err)
	}
	return strings.Split(err.Error(), "\n")
}

// TestProblems has one mistake per row; want has parts of the one line that reports it, beginning with the position.
func TestProblems(t *testing.T) {
	t.Parallel()
	const head = "name: w\ntasks:\n"
	for _, tc := range []struct {
		src  string
		want []string
	}{
		{"", []string{"f.yaml:1:1", "no document"}},
		{"just text", []string{"f.yaml:1:1", "not a string"}},
		{"- a\n- b\n", []string{"f.yaml:1:1", "not a list"}},
		{"name: x\n", []string{"f.yaml:1:1", "neither a workflow nor an action"}},
		{"tasks: {a: {action: noop}}", []string{"f.yaml:1:1", "has no name", "add name: my-workflow"}},
		{"name: W\ntasks: {a: {action: noop}}", []string{"f.yaml:1:7", `"W" is not a name`}},
		{"name: 12\ntasks: {a: {action: noop}}", []string{"f.yaml:1:7", "want a string, not a number", `"12"`}},
		{"name: code\ntasks: {a: {action: noop}}", []string{"f.yaml:1:7", "built-in"}},
		{"kind: wrkflow\nname: w\ntasks: {a: {action: noop}}", []string{"f.yaml:1:7", `did you mean "workflow"?`}},
		{"name: w\nconcurency: {}\ntasks: {a: {action: noop}}", []string{"f.yaml:2:1", `unknown field "concurency"`, `did you mean "concurrency"?`}},
		{head + "  a: {action: noop, input: {n: 1}}\n", []string{"f.yaml:3:21", `unknown field "input"`, `did you mean "with"?`}},
		{head + "  a: {action: noop}\n  b: {action: noop, depends_on: a}\n", []string{"f.yaml:4:21", `unknown field "depends_on"`, `did you mean "needs"?`}},
		{head + "  a: {action: noop, zzz: 1}\n", []string{"f.yaml:3:21", `unknown field "zzz"`, "total_timeout, with, worker_labels"}},
		{"name: w\njobs: {a: {action: noop}}\ntasks: {a: {action: noop}}", []string{"f.yaml:2:1", `did you mean "tasks"?`}},
		{"name: w\ntasks: {a: {action: noop}}\nname: v\n", []string{"f.yaml:3:1", `"name" is here twice`, "line 1"}},
		{head + "  a: {action: noop}\n  a: {action: noop}\n", []string{"f.yaml:4:3", `"a" is here twice`}},
		{"name: w\ntasks: []\n", []string{"f.yaml:2:8", "tasks", "not a list"}},
		{"name: w\ntasks: {}\n", []string{"f.yaml:2:8", "no tasks"}},
		{head + "  a: noop\n", []string{"f.yaml:3:6", "tasks.a", "want an object"}},
		{head + "  a: {}\n", []string{"f.yaml:3:6", "has no action"}},
		{head + "  'a b': {action: noop}\n", []string{"f.yaml:3:3", "not a task's name"}},
		{head + "  " + strings.Repeat("a", 101) + ": {action: noop}\n", []string{"f.yaml:3:3", "more than 100 characters (use at most 100 letters"}},
		{head + "  a: {action: Noop!}\n", []string{"f.yaml:3:15", "not an action's name"}},
		{head + "  a: {action: x@Latest}\n", []string{"f.yaml:3:15", "version"}},
		{head + "  a: {action: noop, needs: b}\n", []string{"f.yaml:3:28", `no task "b"`}},
		{head + "  load: {action: noop}\n  b: {action: noop, needs: [laod]}\n", []string{"f.yaml:4:29", `did you mean "load"?`}},
		{head + "  a: {action: noop, needs: [a]}\n  b: {action: noop}\n", []string{"f.yaml:3:29", "needs itself"}},
		{head + "  a: {action: noop}\n  b: {action: noop, needs: [a, a]}\n", []string{"f.yaml:4:32", "twice"}},
		{"name: w\ntasks:\n\ta: {action: noop}\n", []string{"f.yaml:3", "a tab", "indent with spaces"}},
		{head + "  a: {action: noop, timeout: 0}\n", []string{"f.yaml:3:30", "tasks.a.timeout", "too short"}},
		{head + "  a: {action: noop, timeout: 1m30}\n", []string{"f.yaml:3:30", "last number has no unit"}},
		{head + "  a: {action: noop, timeout: -10}\n", []string{"f.yaml:3:30", "too short"}},
		{head + "  a: {action: noop, timeout: 0s}\n", []string{"f.yaml:3:30", "too short"}},
		{head + "  a: {action: noop, timeout: 367d}\n", []string{"f.yaml:3:30", "too long"}},
		{head + "  a: {action: noop, timeout: soon}\n", []string{"f.yaml:3:30", `"soon" is not a duration`}},
		{head + "  a: {action: noop, priority: 1001}\n", []string{"f.yaml:3:31", "from -1000 to 1000"}},
		{head + "  a: {action: noop, priority: high}\n", []string{"f.yaml:3:31", `not the string "high"`}},
		{head + "  a: {action: noop, retry: {max_attempts: 0}}\n", []string{"f.yaml:3:43", "from 1 to 100"}},
		{head + "  a: {action: noop, retry: {delay: 1s}}\n", []string{"f.yaml:3:28", "max_attempts is missing"}},
		{head + "  a: {action: noop, retry: {max_attempts: 2, backoff: linear}}\n", []string{"f.yaml:3:55", "constant, exponential"}},
		{head + "  a: {action: noop, retry: {max_attempts: 2, jitter: 2}}\n", []string{"f.yaml:3:54", "from 0 to 1"}},
		{head + "  a: {action: noop, retry: {max_attempts: 2, on: ['exit:300']}}\n", []string{"f.yaml:3:51", "exit:300"}},
		{head + "  a: {action: http, with: {url: 'https://example.com'}, retry: {max_attempts: 2, on: [nope]}}\n", []string{"f.yaml:3:", "nope", "not an error code of http"}},
		{head + "  a: {action: noop, retry: {max_attempts: 2, on: [nonzero-exit]}}\n", []string{"f.yaml:3:", "did you mean", "nonzero_exit"}},
		{head + "  a: {action: noop, retry: {max_attempts: 2, delay: 0s}}\n", []string{"f.yaml:3:", "0s is too short", "leave it out for the default"}},
		{head + "  a: {action: noop, retry: {max_attempts: 2, delay: 2m, max_delay: 1m}}\n", []string{"f.yaml:3:68", "less than the delay"}},
		{head + "  a: {action: noop, continue_on_error: yes please}\n", []string{"f.yaml:3:40", "true or false"}},
		{head + "  a: {action: noop, concurrency: 3}\n", []string{"f.yaml:3:34", "foreach"}},
		{head + "  a: {action: noop, foreach: [1], concurrency: 0}\n", []string{"f.yaml:3:48", "from 1 to 100000"}},
		{head + "  a: {action: noop, foreach: [1], concurrency: '${{ \"x\" }}'}\n", []string{"f.yaml:3:48", "want a number"}},
		{head + "  a: {action: noop, concurrency: '${{ 1 }}'}\n", []string{"f.yaml:3:34", "foreach"}},
		{head + "  a: {action: noop, foreach: [1], concurrency: many}\n", []string{"f.yaml:3:48", "whole number"}},
		{head + "  a: {action: noop, batch: 3}\n", []string{"f.yaml:3:28", "foreach"}},
		{head + "  a: {action: noop, foreach: 3}\n", []string{"f.yaml:3:30", "want a list"}},
		{head + "  a: {action: noop, foreach: '${{ 1 + 1 }}'}\n", []string{"f.yaml:3:30", "of type int, not a list"}},
		{head + "  a: {action: noop, foreach: 'x ${{ input }}'}\n", []string{"f.yaml:3:30", "not text"}},
		{head + "  a: {action: noop, wait_for: {inquiry: ok}}\n", []string{"f.yaml:3:21", `unknown field "wait_for"`}},
		{head + "  a: {action: noop, env: {1X: a}}\n", []string{"f.yaml:3:27", "not a variable's name"}},
		{head + "  a: {action: noop, env: {X: [a]}}\n", []string{"f.yaml:3:30", "json(x)"}},
		{head + "  a: {action: code, with: {language: c, source: x, env: {X: [a]}}}\n", []string{"f.yaml:3:61", "tasks.a.with.env.X", "json(x)"}},
		{head + "  a: {action: container, with: {image: x, env: {1X: a}}}\n", []string{"f.yaml:3:49", "not a variable's name"}},
		{head + "  a: {action: noop, labels: {x: {}}}\n", []string{"f.yaml:3:33", "want a string"}},
		{head + "  a: {action: noop, worker_labels: gpu}\n", []string{"f.yaml:3:36", "tasks.a.worker_labels", "want an object of labels", "write worker_labels: {gpu: a100}"}},
		{head + "  a: {action: noop, worker_labels: {x: {}}}\n", []string{"f.yaml:3:40", "want a string"}},
		{head + "  a: {action: noop, worker_labels: {_x: 1}}\n", []string{"f.yaml:3:37", `"_x" is not the key of a worker's label`, "63 letters, digits"}},
		{head + "  a: {action: noop, worker_labels: {x: a b}}\n", []string{"f.yaml:3:40", `"a b" is not the value of a worker's label`, "63 letters, digits"}},
		{head + "  a: {action: noop, worker_labels: {x: '${{ input.x }}'}}\n", []string{"f.yaml:3:40", "cannot have expressions"}},
		{head + "  a: {action: sleep, with: {for: 1s}, worker_labels: {x: a}}\n", []string{"f.yaml:3:54", "no worker runs a sleep"}},
		{head + "  a: {action: workflow, with: {name: x}, worker_labels: {x: a}}\n", []string{"f.yaml:3:57", "no worker runs a workflow"}},
		{head + "  a: {action: noop, worker_labels: {" + strings.Repeat("a", 60) + ": " + strings.Repeat("b", 63) + ", " + strings.Repeat("c", 60) + ": " + strings.Repeat("b", 63) + ", " + strings.Repeat("d", 60) + ": " + strings.Repeat("b", 63) + ", " + strings.Repeat("e", 60) + ": " + strings.Repeat("b", 63) + "}}\n",
			[]string{"f.yaml:3:36", "have 499 bytes together; at most 412"}},
		{"name: w\nworker_labels: {a: b}\ntasks: {a: {action: noop}}\n", []string{"f.yaml:2:1", "unknown field"}},
		{"name: x\naction: noop\nworker_labels: {a: '-'}\n", []string{"f.yaml:3:20", "not the value"}},
		{head + "  a: {action: noop, queue: GPU}\n", []string{"f.yaml:3:28", "queue"}},
		{head + "  a: {action: workflow}\n", []string{"f.yaml:3:6", "the workflow needs name"}},
		{head + "  a: {action: workflow, with: {name: x, inputs: {}}}\n", []string{"f.yaml:3:41", `did you mean "input"?`}},
		{head + "  a: {action: workflow, with: {name: Bad}}\n", []string{"f.yaml:3:38", "workflow's name"}},
		{head + "  a: {action: code}\n", []string{"f.yaml:3:6", "needs language and source"}},
		{head + "  a: {action: code, with: {langauge: python, source: x}}\n", []string{"f.yaml:3:28", `did you mean "language"?`}},
		{head + "  a: {action: code, with: {language: pyhton, source: x}}\n", []string{"f.yaml:3:38", `did you mean "python"?`}},
		{head + "  a: {action: code, with: {language: c, source: x, limits: {mem: 1}}}\n", []string{"f.yaml:3:61", `unknown field "mem"`}},
		{head + "  a: {action: code, with: {language: c, source: x, limits: {memory: 64Q}}}\n", []string{"f.yaml:3:69", "64Q", "64MiB"}},
		{head + "  a: {action: code, with: {language: c, source: x, limits: {memory: 1KB}}}\n", []string{"f.yaml:3:69", "1KB"}},
		{head + "  a: {action: code, with: {language: c, source: x, limits: {cpus: 0}}}\n", []string{"f.yaml:3:67", "write a number from 0.1 to 1024, such as 1 or 0.5"}},
		{head + "  a: {action: code, with: {language: c, source: x, limits: {pids: 0}}}\n", []string{"f.yaml:3:67", "from 1 to 100000"}},
		{head + "  a: {action: code, with: {language: c, source: x, limits: {cpu: 0}}}\n", []string{"f.yaml:3:66", "more than 0"}},
		{head + "  a: {action: code, with: {language: c, source: x, limits: {wall: 25h}}}\n", []string{"f.yaml:3:67", "24h"}},
		{head + "  a: {action: code, with: {language: c, source: x, compile_limits: {wall: 25h}}}\n", []string{"f.yaml:3:75", "compile_limits.wall", "24h"}},
		{head + "  a: {action: sleep, with: {for: soon}}\n", []string{"f.yaml:3:34", "how long"}},
		{head + "  a: {action: http, with: {ulr: x}}\n", []string{"f.yaml:3:28", `did you mean "url"?`}},
		{"name: x\naction: http\nwith: {url: a, methd: GET}\n", []string{"f.yaml:3:16", `did you mean "method"?`}},
		{head + "  a: {action: noop, with: [1]}\n", []string{"f.yaml:3:27", "want an object"}},
		{"name: w\nconcurrency: {limit: 3}\ntasks: {a: {action: noop}}\n", []string{"f.yaml:2:14", "key is missing"}},
		{"name: w\nconcurrency: {key: a, limit: 100001}\ntasks: {a: {action: noop}}\n", []string{"f.yaml:2:30", "from 1 to 100000"}},
		{"name: w\nconcurrency: {key: a, when_full: wait}\ntasks: {a: {action: noop}}\n", []string{"f.yaml:2:34", "cancel_oldest"}},
		{"name: w\nconcurrency: 5\ntasks: {a: {action: noop}}\n", []string{"f.yaml:2:14", "key"}},
		{"name: w\ninput: {type: objct}\ntasks: {a: {action: noop}}\n", []string{"f.yaml:2:15", "input.type", "JSON Schema"}},
		{"name: w\ninput: {$ref: 'https://example.org/x.json'}\ntasks: {a: {action: noop}}\n", []string{"f.yaml:2:8", "elsewhere"}},
		{"name: w\ninput: {$ref: 'file:///etc/passwd'}\ntasks: {a: {action: noop}}\n", []string{"f.yaml:2:8", "elsewhere"}},
		{"name: w\ninput: {properties: {a: {pattern: '('}}}\ntasks: {a: {action: noop}}\n", []string{"f.yaml:2:", "JSON Schema"}},
		// Actions.
		{"name: x\naction: cod\n", []string{"f.yaml:2:9", `did you mean "code"?`}},
		{"name: x\naction: code\nhandler: y\n", []string{"f.yaml:3:10", "remove one"}},
		{"name: x\nhandler: code\n", []string{"f.yaml:2:10", "built-in kind"}},
		{"name: x\naction: code\nneeds: [a]\n", []string{"f.yaml:3:1", "unknown field"}},
		{"name: x\naction: code\nwith: {a: '${{ tasks.x.output }}'}\n", []string{"f.yaml:3:16", `"tasks" is not a variable`, "here are input"}},
		{"name: x\naction: code\n---\nname: x\naction: http\n", []string{"f.yaml:4:7", `"x" is here twice`}},
		// Queues.
		{"kind: queue\n", []string{"f.yaml:1:1", "the queue has no name"}},
		{"kind: queue\nname: gpu\nslots: 4\n", []string{"f.yaml:3:1", `unknown field "slots"`}},
		{"kind: queue\nname: GPU\n", []string{"f.yaml:2:7", `it has 'G'`}},
		{"kind: queue\nname: gpu-\n", []string{"f.yaml:2:7", "end it with a letter or digit"}},
		{"kind: queue\nname: gpu\n---\nkind: queue\nname: gpu\n", []string{"f.yaml:5:7", `"gpu" is here twice`}},
		// Expressions.
		{head + "  a: {action: noop, with: {x: '${{ inptu.x }}'}}\n", []string{"f.yaml:3:36", "tasks.a.with.x", `did you mean "input"?`}},
		{head + "  a:\n    action: noop\n    with:\n      x: |\n        some text\n        ${{ 1 +\n            nope }} more\n", []string{"f.yaml:9:13", `"nope"`}},
		{head + "  a: {action: noop, with: {x: '${{ 1 + }}'}}\n", []string{"f.yaml:3:", "syntax error"}},
		{head + "  a: {action: noop, with: {x: '${{ 1'}}\n", []string{"f.yaml:3:32", "not closed"}},
		{head + "  a: {action: noop, with: {x: 'a ${{ }} b'}}\n", []string{"f.yaml:3:34", "empty"}},
		{head + "  a: {action: noop, with: {'${{ 1 }}': 2}}\n", []string{"f.yaml:3:28", "keys"}},
		{head + "  a: {action: noop, with: {x: '${{ item }}'}}\n", []string{"f.yaml:3:36", "foreach"}},
		{head + "  a: {action: noop, with: {x: '${{ success() }}'}}\n", []string{"f.yaml:3:", "if"}},
		{head + "  a: {action: noop, if: \"input.x == '3\\n'\"}\n", []string{"f.yaml:3:", `tasks.a.if: syntax error: a text in quotes has a line break in it (write \n there; within double quotes of YAML that is \\n)`}},
		{head + "  a: {action: noop, if: 'input.x = 3'}\n", []string{"f.yaml:3:", "syntax error: = is not an operator here (write == to compare)"}},
		{head + "  a: {action: noop, if: '1 + 1'}\n", []string{"f.yaml:3:25", "of type int"}},
		{head + "  a: {action: noop, if: 'x ${{ true }}'}\n", []string{"f.yaml:3:25", "always hold"}},
		{head + "  a: {action: noop, if: sucess()}\n", []string{"f.yaml:3:", `"sucess"`}},
		{head + "  a: {action: noop, if: [a]}\n", []string{"f.yaml:3:25", "want an expression"}},
		{head + "  a: {action: noop}\n  b: {action: noop, with: {x: '${{ tasks.a.output }}'}}\n", []string{"f.yaml:4:36", `"a" does not come before "b"`, "add a to needs of b"}},
		{head + "  a: {action: noop}\n  b: {action: noop, with: {x: '${{ 1 + tasks.a.output }}'}}\n", []string{"f.yaml:4:40", `"a" does not come before "b"`}},
		{head + "  a: {action: noop, with: {x: '${{ tasks.a.output }}'}}\n", []string{"f.yaml:3:36", "its own result"}},
		{head + "  load: {action: noop}\n  b: {action: noop, needs: [load], with: {x: '${{ tasks.laod.output }}'}}\n", []string{"f.yaml:4:51", `did you mean "load"?`}},
		{head + "  a: {action: noop}\n  b: {action: noop, needs: [a], with: {x: '${{ tasks.a.outputs }}'}}\n", []string{"f.yaml:4:48", `has no "outputs"`, `did you mean "output"?`}},
		{head + "  a: {action: noop}\n  b: {action: noop, needs: [a], with: {x: '${{ tasks.a.outputs.x + 1 }}'}}\n", []string{"f.yaml:4:48", `has no "outputs"`}},
		{head + "  load-data: {action: noop}\n  b: {action: noop, needs: [load-data], with: {x: '${{ tasks.load-data.output }}'}}\n", []string{"f.yaml:4:", `tasks["load-data"]`}},
		{head + "  a: {action: noop}\noutputs: {x: '${{ tasks.b.output }}'}\n", []string{"f.yaml:4:19", `no task "b"`}},
		{head + "  a: {action: noop}\noutputs: 3\n", []string{"f.yaml:4:10", "want an object"}},
		{head + "  a: {action: noop, with: {x: '${{ " + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200) + " }}'}}\n", []string{"f.yaml:3:", "recursion"}},
		{head + "  a: {action: noop, with: {x: '${{ " + strings.Repeat("1 + ", 3000) + "1 }}'}}\n", []string{"f.yaml:3:", "size"}},
		// Texts.
		{"name: w\x00", []string{"f.yaml:1:8", "NUL"}},
		{"name: é\xff", []string{"f.yaml:1:8", "0xff", "UTF-8"}},
		{"name: w\n\ttasks: {}\n", []string{"f.yaml:2", "not valid YAML"}},
		{"name: w\ntasks: {a: {action: noop}\n", []string{"f.yaml:", "not valid YAML"}},
		{"name: w\ntasks: *nope\n", []string{"f.yaml:2", "not valid YAML"}},
		{"name: w\ntasks: &t {a: *t}\n", []string{"f.yaml:2:", "nested deeper"}},
		{"name: w\ntasks: !!set {a: {action: noop}}\n? [a]\n: b\n", []string{"f.yaml:3:", "key"}},
		{head + "  a: {action: noop, with: {x: .inf}}\n", []string{"f.yaml:3:31", "number"}},
		{head + "  a: {action: noop, with: {x: !foo y}}\n", []string{"f.yaml:3:31", "tag"}},
		{strings.Repeat("[", 10_000), []string{"f.yaml:1:", "nested deeper"}},
		{strings.Repeat("- ", 10_000), []string{"f.yaml:1:", ""}},
		{strings.Repeat("{a: ", 150) + strings.Repeat("}", 150), []string{"f.yaml:1:", "nested deeper"}},
		{head + "  a: {action: noop, with: {x: " + strings.Repeat("[", 150) + strings.Repeat("]", 150) + "}}\n", []string{"f.yaml:3:", "nested deeper than 100 levels"}},
		{head + "  a:\n    action: noop\n    with:\n      x:\n" + blocks(120), []string{"f.yaml:", "nested deeper than 100 levels"}},
		{"x: " + strings.Repeat(" ", maxDocument), []string{"f.yaml: the file has", "at most"}},
	} {
		got := problems(t, "f.yaml", tc.src)
		found := slices.ContainsFunc(got, func(line string) bool {
			for i, w := range tc.want {
				if i == 0 && !strings.HasPrefix(line, w) || !strings.Contains(line, w) {
					return false
				}
			}
			return true
		})
		if !found {
			t.Errorf("no line has all of %q:\n%s\n--- in\n%.300s", tc.want, strings.Join(got, "\n"), tc.src)
		}
		if strings.Contains(strings.Join(got, ""), "\x00") {
			t.Errorf("a message has a NUL byte: %q", got)
		}
	}
}

func TestGraphProblems(t *testing.T) {
	t.Parallel()
	got := strings.Join(problems(t, "g.yaml", `name: w
tasks:
  a: {action: noop, needs: [c]}
  b: {action: noop, needs: [a]}
  c: {action: noop, needs: [b]}
  d: {action: noop, needs: [c]}
  x: {action: noop, needs: [y]}
  y: {action: noop, needs: [x, d]}
`), "\n")
	for _, want := range []string{
		"g.yaml:3:29: tasks.a.needs: the tasks wait for each other: a → b → c → a (remove one of these needs)",
		"g.yaml:7:29: tasks.x.needs: the tasks wait for each other: x → y → x",
		"g.yaml:6:3: tasks.d: the task can never be reached",
		"g.yaml:3:3: tasks: the workflow has no entry",
		"the workflow has no exit",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing says %q:\n%s", want, got)
		}
	}
}

// TestAllProblemsAtOnce checks that Parse reports every error once.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	got := problems(t, "f.yaml", `
name: w
timeout: 5x
tasks:
  a: {action: noop, retry: {max_attempts: 1000, on: [BAD]}}
  b: {action: noop, needs: [nope], with: {x: "${{ foo }} ${{ bar }}"}}
---
name: x
action: nope
---
name: y
`)
	if len(got) != 8 {
		t.Errorf("%d problems, want 8:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// TestDocumentation parses every definition in the documentation.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) < 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		src, _, _ := strings.Cut(b, "```")
		if _, err := Parse("workflows.md", []byte(src)); err != nil {
			t.Errorf("%v\n%s", err, src)
		}
	}
}

func TestHostileDocumentsAreQuick(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'm'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 10))
	}
	var tasks, chain, dense, cycle, exprs strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&tasks, "  t%d: {action: noop}\n", i)
	}
	for i := range maxTasks {
		fmt.Fprintf(&chain, "  t%d: {action: noop%s}\n", i, map[bool]string{true: fmt.Sprintf(", needs: [t%d], with: {x: '${{ tasks.t0.output }}'}", i-1)}[i > 0])
		fmt.Fprintf(&cycle, "  t%d: {action: noop, needs: [t%d]}\n", i, (i+1)%maxTasks)
	}
	for i := range 600 {
		fmt.Fprintf(&dense, "  t%d: {action: noop, needs: [", i)
		for j := range i {
			fmt.Fprintf(&dense, "t%d,", j)
		}
		dense.WriteString("]}\n")
	}
	for i := range 30_000 {
		fmt.Fprintf(&exprs, "      k%d: '${{ input.x + %d }}'\n", i, i)
	}
	for name, src := range map[string]string{
		"alias bomb":         bomb,
		"many tasks":         "name: w\ntasks:\n" + tasks.String(),
		"long chain":         "name: w\ntasks:\n" + chain.String(),
		"dense graph":        "name: w\ntasks:\n" + dense.String(),
		"long cycle":         "name: w\ntasks:\n" + cycle.String(),
		"many expressions":   "name: w\ntasks:\n  a:\n    action: noop\n    with:\n" + exprs.String(),
		"many unknown":       "name: w\n" + strings.ReplaceAll(tasks.String(), "  t", "t"),
		"many bad":           "name: w\ntasks:\n  a:\n    action: noop\n    with:\n" + strings.ReplaceAll(exprs.String(), "input", "nope"),
		"one long line":      `{"name": "w", "tasks": {"a": {"action": "noop", "with": {"x": [` + strings.Repeat(`"${{ nope }}",`, 100_000) + `1]}}}}`,
		"many documents":     strings.Repeat("---\nname: w\naction: noop\n", 50_000),
		"many commas":        "[" + strings.Repeat("[],", 600_000) + "]",
		"many opening":       "name: w\ntasks: {a: {action: noop, with: {x: '" + strings.Repeat("${{", 500_000) + "'}}}",
		"many openings shut": "name: w\ntasks: {a: {action: noop, with: {x: '" + strings.Repeat("${{ 1 }}", 200_000) + "'}}}",
		"long key":           "name: w\n? " + strings.Repeat("a", 1_000_000) + "\n: 1\n",
		"quotes":             "name: " + strings.Repeat(`"`, 1_000_000),
		"anchors":            "a:\n" + strings.Repeat("- &a [*a]\n", 100_000),
		"merges":             "a: &a {x: 1}\n" + strings.Repeat("b: {<<: [*a, *a, *a, *a]}\n", 50_000),
		"nested quotes":      "name: w\ntasks: {a: {action: noop, with: {x: \"" + strings.Repeat("${{ '", 100_000) + "\"}}}",
		"comments":           strings.Repeat("#\n", 1_000_000),
		"indents":            strings.Repeat("a:\n ", 1000),
		"big schema":         "name: w\naction: noop\ninput: {allOf: [" + strings.Repeat("{properties: {a: {pattern: '(a|b)*c{1,100}'}}},", 20_000) + "]}",
		"schema loop":        "name: w\naction: noop\ninput: {$ref: '#'}",
	} {
		var defs []*Definition
		var err error
		took := spent(t, func() { defs, err = Parse("h.yaml", []byte(src)) })
		n := 0
		if ps, ok := err.(Problems); ok {
			n = len(ps)
			if last := ps[n-1].String(); n > maxProblems && last != fmt.Sprintf("h.yaml: there are more than %d problems; the rest is not listed", maxProblems) {
				t.Errorf("%s: the last problem is %q", name, last)
			}
			if len(err.Error()) > 1<<20 {
				t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
			}
		}
		t.Logf("%-18s %8s  %d bytes, %d definitions, %d problems", name, took.Round(time.Millisecond), len(src), len(defs), n)
		if took > 5*slack*time.Second {
			t.Errorf("%s takes %s", name, took)
		}
	}
}

// blocks returns nested mappings in block style.
func blocks(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", 7+i) + "a:\n")
	}
	return b.String()
}

// Brackets nest only where they are structure: quoted texts, block scalars and comments may contain any number, like a program.
func TestBracketsInTexts(t *testing.T) {
	t.Parallel()
	open := strings.Repeat("[{", 2000)
	for name, src := range map[string]string{
		"double quotes": "name: w\ndescription: \"" + open + "\"\naction: noop\n",
		"single quotes": "name: w\ndescription: '" + open + "'\naction: noop\n",
		"plain":         "name: w\ndescription: a " + open + "\naction: noop\n",
		"block":         "name: w\ndescription: |\n  " + open + "\naction: noop\n",
		"comment":       "name: w # " + open + "\naction: noop\n",
		"JSON":          `{"name": "w", "description": "` + open + `", "action": "noop"}`,
	} {
		if defs, err := Parse("f.yaml", []byte(src)); err != nil || len(defs) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParseReadsQueues reads the declaration of a queue, whose name is in another namespace than an action's.
func TestParseReadsQueues(t *testing.T) {
	t.Parallel()
	defs, err := Parse("q.yaml", []byte("kind: queue\nname: gpu\n---\nname: gpu\naction: noop\nqueue: gpu\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(defs) != 2 || defs[0].Kind != KindQueue || defs[0].Name != "gpu" || defs[0].Position.Line != 1 || defs[1].Kind != KindAction || len(defs[0].References()) != 0 {
		t.Fatalf("%+v %+v", defs[0], defs[1])
	}
}
