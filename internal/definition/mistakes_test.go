package definition

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
)

// said returns the problems of a file, one per line.
func said(t *testing.T, src string) string {
	t.Helper()
	_, err := Parse("w.yaml", []byte(src))
	var ps Problems
	if err != nil && !errors.As(err, &ps) {
		t.Fatal(err)
	}
	lines := make([]string, len(ps))
	for i := range ps {
		lines[i] = ps[i].String()
	}
	return strings.Join(lines, "\n")
}

// An error code that no execution can have is refused, with a suggestion. A custom handler may have codes of its own, so for other actions
// only a misspelling is refused.
func TestRetryCodes(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"action: http, retry: {max_attempts: 2, on: [http_error, timeoutt]}, with: {url: 'http://h/'}":                                                                     "write http_ and the status, as in http_503",
		"action: http, retry: {max_attempts: 2, on: [timeoutt]}, with: {url: 'http://h/'}":                                                                                 `did you mean "timeout"?`,
		"action: http, retry: {max_attempts: 2, on: http_5xx}, with: {url: 'http://h/'}":                                                                                   "as in http_503",
		"action: http, retry: {max_attempts: 2, on: http_999}, with: {url: 'http://h/'}":                                                                                   "as in http_503",
		"action: noop, retry: {max_attempts: 2, on: [banana]}":                                                                                                             "the codes are timeout, worker_lost,",
		"action: noop, retry: {max_attempts: 2, on: [timed_out]}":                                                                                                          `did you mean "timeout"?`,
		"action: noop, retry: {max_attempts: 2, on: [cancelled]}":                                                                                                          "after which nothing is tried again",
		"action: noop, retry: {max_attempts: 2, on: [queue_timeout]}":                                                                                                      "after which nothing is tried again",
		"action: noop, retry: {max_attempts: 2, on: ['exit:0']}":                                                                                                           "write exit:1 to exit:255",
		"action: mine, retry: {max_attempts: 2, on: [timeoutt]}":                                                                                                           `did you mean "timeout"?`,
		"action: mine, retry: {max_attempts: 2, on: [busy, card_declined, http_down]}":                                                                                     "",
		"action: http, retry: {max_attempts: 2, on: [timeout, http_503, http_429, connection_failed, worker_lost, infra_error, 'exit:75', oom]}, with: {url: 'http://h/'}": "",
	} {
		got := said(t, "name: w\ntasks:\n  a: {"+src+"}\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\ngives %s\nwant %q", src, got, want)
		}
	}
	for src, want := range map[string]string{
		"name: a\naction: code\nwith: {language: bash, source: x}\nretry: {max_attempts: 2, on: [non_zero_exit]}": `did you mean "nonzero_exit"?`,
		"name: a\nhandler: mine\nretry: {max_attempts: 2, on: [soon]}":                                            "",
		"name: w\nretry: {max_attempts: 2, on: [task_faild]}\ntasks: {a: {action: noop}}":                         `did you mean "task_failed"?`,
		"name: w\ntasks: {a: {action: noop, retry: yes}}":                                                         "tasks.a.retry: want a number or an object, not the string \"yes\" (write how many attempts there are in all, as in retry: 3",
		"name: w\ntasks: {a: {action: noop, retry: true}}":                                                        "as in retry: 3",
		"name: w\ntasks: {a: {action: noop, retry: 3}}":                                                           "",
	} {
		if got := said(t, src); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\ngives %s\nwant %q", src, got, want)
		}
	}
}

// An entry that cannot match any failure is recognized by its form and, for built-in kinds, by their codes.
func TestBadRetryCode(t *testing.T) {
	t.Parallel()
	bad := func(code string, kind flow.Kind) bool { message, _ := BadRetryCode(code, kind); return message != "" }
	for _, good := range []string{"timeout", "oom", "http_429", "exit:1", "exit:255", "connection_failed", "dns_failed"} {
		if bad(good, flow.KindCode) || bad(good, "charge") {
			t.Errorf("%s is refused", good)
		}
	}
	for _, code := range []string{"nope", "exit:0", "exit:256", "exit:01", "exit:", "exit:x", "http_42", "http_600", "Timeout", ""} {
		if !bad(code, flow.KindNoop) {
			t.Errorf("%q is taken", code)
		}
	}
	for _, own := range []string{"card_refused", "Out of stock"} {
		if bad(own, "charge") || bad(own, flow.KindWorkflow) {
			t.Errorf("the code %s of a handler is refused", own)
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"FETCH": `tasks.a.with.method: "FETCH": it is not a method of HTTP`, "PSOT": `did you mean "POST"?`, "pst": `did you mean "POST"?`, "get": "", "PROPFIND": "", "PURGE": "",
		"'${{ input.m }}'": "",
	} {
		got := said(t, "name: w\ntasks:\n  a: {action: http, with: {url: 'http://h/', method: "+method+"}}\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s gives %s, want %q", method, got, want)
		}
	}
}

// A payload without expressions that a submission would refuse is refused when its document is applied: the task could never run.
func TestFixedPayloads(t *testing.T) {
	t.Parallel()
	const task = "name: w\ninput: {type: object, properties: {x: {type: string}}}\ntasks:\n  a: "
	for src, want := range map[string]string{
		"{action: http, with: {url: nope}}":                                                        "w.yaml:4:33: tasks.a.with.url: it is not",
		"{action: http, with: {url: 'http://h/', expect: 700}}":                                    "tasks.a.with.expect:",
		"{action: http, with: {url: 'http://h/', headers: {a: [1]}}}":                              "tasks.a.with.headers.a:",
		"{action: http, with: {url: 'http://h/', max_bytes: 1GB}}":                                 "tasks.a.with.max_bytes: it is out of range",
		"{action: http, with: {url: 'http://h/', response: xml}}":                                  "tasks.a.with.response:",
		"{action: http, with: {url: 'http://h/', body: {a: 1}, expect: [200, 2xx], timeout: 1m}}":  "",
		"{action: http, with: {url: '${{ input.x }}', expect: 700}}":                               "", // nothing is checked
		"{action: webhook, with: {url: 'ftp://x', event: e}}":                                      "tasks.a.with.url:",
		"{action: llm, with: {base_url: nope, model: m, prompt: p}}":                               "tasks.a.with.base_url:",
		"{action: code, with: {language: python, source: x, std: c++17}}":                          "tasks.a.with.std: python takes neither",
		"{action: code, with: {language: python, source: x, files: {'../x': a}}}":                  "tasks.a.with.files",
		"{action: code, with: {language: python, source: x, env: {N: 5, B: true}, args: [a]}}":     "",
		"{action: code, env: {N: 5}, with: {language: python, source: x, limits: {memory: 64MB}}}": "",
	} {
		got := said(t, task+src+"\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s gives %q, want %q", src, got, want)
		}
	}
	for _, src := range []string{
		"kind: rule\nname: r\non: a.b\nrun: {action: http, input: {url: nope}}\n",
		"kind: schedule\nname: s\nevery: 1h\nrun: {action: http, input: {url: nope}}\n",
		"kind: action\nname: a\naction: http\nwith: {url: nope}\n",
	} {
		if got := said(t, src); !strings.Contains(got, "url: it is not an absolute") {
			t.Errorf("%s gives %q", src, got)
		}
	}
}

// Mistakes that come from other systems, and omissions, are answered with the right way to write it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	const task = "name: w\ninput: {type: object, properties: {x: {type: string}, list: {type: array}}}\ntasks:\n  a: {action: noop}\n  b:\n    needs: a\n    action: noop\n    "
	for src, want := range map[string]string{
		"on: push\njobs:\n  a: {runs-on: x}\n":                                                 "w.yaml:2:1: the document is of another system: \"jobs\" is not a field of Pawl's (jobs are tasks here",
		"stages: [a]\n":                                                                        "write name: my-workflow and tasks:",
		task + "if: failure()":                                                                 "(write failed())",
		task + "if: canceled()":                                                                "(write cancelled())",
		task + "if: inputs.x == 'a'":                                                           "(write input)",
		task + "with: {v: '${{ fromJSON(input.x) }}'}":                                         "(write parse_json(text))",
		task + "with: {v: '${{ secrets.GH }}'}":                                                "expressions do not see secrets",
		task + "strategy: {matrix: {os: [a]}}":                                                 "foreach: [{os: linux}",
		task + "timeout-minutes: 3":                                                            "write timeout: 10m",
		task + "concurrency: {group: x, limit: 1}":                                             `did you mean "key"?`,
		task + "concurrency: {key: x, cancel-in-progress: true}":                               "when_full: cancel_oldest",
		task + "if: ${{ input.x == {\"a\": 1} }}":                                              "quote the expression",
		"name: w\ntasks: {a: {action: noop, if: ${{ input.x == \"a\" }}}}":                     "quote the expression",
		"name: w\ntasks:\n  a:\n    action: noop\n    with: {v: ${{ {\"os\": o} }}}":           "quote the expression",
		task + "with: {v: 'day {{ inputs.x }}'}":                                               `tasks.b.with.v: {{ inputs.x }} is not an expression: the text has it as it stands (write ${{ input.x }};`,
		task + "with: {v: '{{input.list}}'}":                                                   "write ${{ input.list }}",
		task + "with: {v: '{{ tasks.a.output }}'}":                                             "write ${{ tasks.a }}",
		task + "with: {v: '{{ input.other }} {{ .State }} {{ tasks.z.output }} {{ item.x }}'}": "",
		task + "with: {v: '${{ input.x }} $${{ input.x }} ${{ \"{{ inputs.x }}\" }}'}":         "",
	} {
		if got := said(t, src); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\ngives %s\nwant %q", src, got, want)
		}
	}
	for src, want := range map[string]int{ // number of errors, each reported once
		"name: w\ntasks: {a: {action: ask, with: {titel: Deploy?}}}\n":                  1,
		"name: w\ntasks: {a: {action: ask, with: {titel: Deploy?, asignees: [ada]}}}\n": 2,
		"name: w\ntasks: {a: {action: ask, with: {text: x}}}\n":                         1,
		"name: w\ntasks: {a: {action: wait, with: {singal: x}}}\n":                      1,
		"name: w\ntasks: {a: {action: http, with: {ulr: 'http://h/'}}}\n":               1,
	} {
		if got := said(t, src); len(strings.Split(got, "\n")) != want {
			t.Errorf("%s\ngives %s\nwant %d lines", src, got, want)
		}
	}
}

// An answer has only the requested fields, and an input with a misspelt name is refused rather than read as one without the field.
func TestUnaskedFields(t *testing.T) {
	t.Parallel()
	const properties = `"properties":{"canary_minutes":{"type":"integer","default":5},"region":{"type":"string"}}`
	answers := func(form, answer string) string {
		_, err := new(Questions).Answer(&flow.Question{Form: []byte(form)}, []byte(answer), "answer")
		if err != nil {
			return err.Error()
		}
		return ""
	}
	for _, c := range []struct{ form, answer, want string }{
		{"{" + properties + "}", `{"region":"eu","wrong":1}`, `answer.wrong: there is no such field: "wrong" (it asks for canary_minutes, region)`},
		{"{" + properties + "}", `{"regoin":"eu"}`, `did you mean "region"?`},
		{"{" + properties + "}", `{"region":"eu"}`, ""},
		{"{" + properties + `,"additionalProperties":true}`, `{"wrong":1}`, ""},
		{`{"type":"object"}`, `{"wrong":1}`, ""},
		{`{"type":"string"}`, `"x"`, ""},
	} {
		if got := answers(c.form, c.answer); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s gives %q, want %q", c.form, c.answer, got, c.want)
		}
	}
	for _, c := range []struct{ schema, input, want string }{
		{"{" + properties + "}", `{"canary_minuts":30}`, `input.canary_minuts: there is no such field: "canary_minuts" (did you mean "canary_minutes"?)`},
		{"{" + properties + "}", `{"canary_minuts":30,"canary_minutes":30}`, ""},
		{"{" + properties + "}", `{"other":1}`, ""},
		{"{" + properties + `,"additionalProperties":true}`, `{"canary_minuts":30}`, ""},
		{"{" + properties + `,"additionalProperties":{}}`, `{"canary_minuts":30}`, ""},
	} {
		defs, err := Parse("w.yaml", []byte("name: w\naction: noop\ninput: "+c.schema+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := validateInput(defs[0], []byte(c.input), nil); err != nil {
			got = err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s gives %q, want %q", c.schema, c.input, got, c.want)
		}
	}
}
