package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// times is how often the hostile texts repeat a part.
const times = 10_000

func again(s string) string { return strings.Repeat(s, times) }

// costly is an expression that computes as much as is allowed: 50,000 iterations.
const costly = "size(lists.range(50000).map(x, x * x))"

// Hostile texts, by the kind of text that they imitate.
var hostileTexts = map[string]map[string]string{
	"expression": {
		"parentheses":  again("(") + "1" + again(")"),
		"brackets":     again("[") + again("]"),
		"nots":         again("!") + "true",
		"sum":          "1" + again("+1"),
		"calls":        again("size(") + "''" + again(")"),
		"members":      "input" + again(".a"),
		"conditions":   again("true ? 1 : ") + "1",
		"loops":        again("[1].map(x, ") + "1" + again(")"),
		"costly":       costly,
		"costly list":  "[" + strings.TrimSuffix(strings.Repeat(costly+", ", 100), ", ") + "]",
		"nested loops": "lists.range(50000).map(x, lists.range(50000).map(y, lists.range(50000)))",
		"text":         "'" + again("a") + "'" + strings.Repeat(".replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')", 6),
		"pattern":      "'" + again("a") + "'.matches('(a?){1000}(a*)*b')",
		"digits":       again("9"), "no end": "((((", "surrogate": `"\ud800"`,
	},
	"template": {"many": again("${{ " + costly + " }}"), "open": again("${{ "), "empty": again("${{}}"), "quotes": again("${{ '")},
	"schema": {
		"itself":   `{"$ref": "#"}`,
		"diamonds": `{"$defs": {"a": {"default": 1, "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}`,
		"paths":    diamonds(25),
		"deep":     again(`{"items":`) + "{}" + again("}"),
		"any":      `{"anyOf": [` + strings.TrimSuffix(again(`{"type":"string"},`), ",") + `]}`,
		"patterns": `{"patternProperties": {` + strings.TrimSuffix(numbered(1200, `"(a?){900}%d": {},`), ",") + `}}`,
		"pattern":  `{"pattern": "` + again("(a?)") + `"}`,
		"required": `{"required": [` + strings.TrimSuffix(numbered(times, `"a%d",`), ",") + `]}`,
		"enum":     `{"enum": [` + strings.TrimSuffix(numbered(times, "%d,"), ",") + `]}`,
		"remote":   `{"$ref": "http://127.0.0.1:1/schema"}`,
	},
	"json": {
		"lists":     again("[") + again("]"),
		"objects":   again(`{"a":`) + "1" + again("}"),
		"names":     "{" + strings.TrimSuffix(numbered(times, `"k%d":0,`), ",") + "}",
		"digits":    again("9"),
		"exponent":  "1e" + again("9"),
		"text":      `"` + again("x") + `"`,
		"escapes":   `"` + again(`\ud800`) + `"`,
		"same name": "{" + strings.TrimSuffix(again(`"a":1,`), ",") + "}",
		"open":      again("["),
		"zeros":     "[" + strings.TrimSuffix(again("0,"), ",") + "]",
	},
	"pattern": {"counted": "(a?){1000}",
		"nested":  strings.Repeat("(", 900) + "a" + strings.Repeat("{1,9})", 900),
		"many":    again("(a?)"),
		"classes": again("[a-z]"),
		"open":    again("("),
		"choice":  again("a|")},
	"calendar": {"never": "0 0 30 2 *",
		"every minute": "* * * * *",
		"fields":       again("* "),
		"list":         strings.TrimSuffix(again("1,"), ",") + " * * * *",
		"steps":        "*/" + again("9") + " * * * *",
		"words":        again("x")},
	"name": {"long": again("n"),
		"dots":    again("../"),
		"control": again("\x1b]0;x\x07"),
		"colons":  again("a:"),
		"spaces":  again(" "),
		"empty":   "",
		"at":      again("a@1"),
		"zero":    "a\x00b",
		"bytes":   "\xff\xfe"},
	"filter": {
		"parentheses": again("(") + "action = 'a'" + again(")"),
		"ands":        "action = 'a'" + again(" and action = 'a'"),
		"nots":        again("not ") + "action = 'a'",
		"members":     "input" + again(".a") + " = 1",
		"digits":      "input.n = " + again("9"),
		"exponent":    "input.n > 1e" + again("9"),
		"list":        "action in (" + strings.TrimSuffix(again("'a',"), ",") + ")",
		"quotes":      again("'"),
	},
}

// harmlessTexts has texts of which each place accepts one of its kind: a place that refused them too would prove nothing.
var harmlessTexts = map[string][]string{
	"expression": {"true", "'a'", "['a']"},
	"template":   {"${{ true }}", "${{ 'a' }}", "${{ ['a'] }}"},
	"schema":     {`{"type": "object", "properties": {"a": {"type": "string"}}}`},
	"json": {"{}", "[]", `"a"`, `{"a": "b"}`, `{"a": {"text": "b"}}`, `[{"name": "a", "stdin": "b"}]`,
		`{"max_attempts": 2}`, `{"action": "noop"}`,
		`[{"action": "noop"}]`, `{"name": "h", "tasks": {"a": {"action": "noop"}}}`, `{"language": "python", "source": "x"}`},
	"pattern":  {"a+"},
	"calendar": {"0 0 * * *", "Europe/Berlin"},
	"name":     {"noop", "a", "A", "default", "python", "http://127.0.0.1:1/a", "019aca7d-0000-7000-8000-000000000000"},
	"filter":   {"action = 'noop'"},
}

// unknownPlaces are places for names that do not exist, so that every text is refused.
var unknownPlaces = []string{"path", "path of hook", "cursor", "execution"}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// diamonds is a schema with 2^n paths to one.
func diamonds(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"$ref": "#/$defs/d0", "$defs": {%s "d%d": {"type": "string"}}}`, b.String(), n)
}

// hostileCall is a request with a hostile text in one place.
type hostileCall struct {
	method, path, body string
	header             []string
	run                bool // the definition is then used
}

// hostilePlaces has all places in which a text of a kind can occur. Each function returns the request for a text.
var hostilePlaces = map[string]map[string]func(text string) hostileCall{
	"expression": documentPlaces(func(text string) any { return "${{ " + text + " }}" }),
	"template":   documentPlaces(func(text string) any { return text }),
	"schema": {
		"input of a workflow": func(text string) hostileCall {
			return define(`{"name":"h","input":` + text + `,"tasks":{"a":{"action":"noop"}}}`)
		},
		"input of an action": func(text string) hostileCall {
			return define(`{"name":"h","kind":"action","action":"noop","input":` + text + `}`)
		},
		"data of a trigger": func(text string) hostileCall { return define(`{"name":"h","kind":"trigger","data":` + text + `}`) },
		"form of a question": func(text string) hostileCall {
			return define(`{"name":"h","tasks":{"a":{"action":"ask","with":{"title":"t","form":` + text + `}}}}`)
		},
		"form of a question that is submitted": func(text string) hostileCall {
			return submitted(`{"action":"ask","input":{"title":"t","form":` + text + `}}`)
		},
	},
	"json": {
		"input":    func(text string) hostileCall { return submitted(`{"action":"noop","input":` + text + `}`) },
		"body":     submitted,
		"document": func(text string) hostileCall { return define(text) },
		"with": func(text string) hostileCall {
			return define(`{"name":"h","tasks":{"a":{"action":"noop","with":` + text + `}}}`)
		},
		"labels": func(text string) hostileCall { return submitted(`{"action":"noop","labels":` + text + `}`) },
		"env": func(text string) hostileCall {
			return submitted(`{"action":"code","input":{"language":"python","source":"x","env":` + text + `}}`)
		},
		"files": func(text string) hostileCall {
			return submitted(`{"action":"code","input":{"language":"python","source":"x","files":` + text + `}}`)
		},
		"cases": func(text string) hostileCall {
			return submitted(`{"action":"code","input":{"language":"python","source":"x","cases":` + text + `}}`)
		},
		"retry": func(text string) hostileCall { return submitted(`{"action":"noop","retry":` + text + `}`) },
		"data of a signal": func(text string) hostileCall {
			return post("/api/v1/signals", `{"trigger":"t","data":`+text+`}`)
		},
		"batch": func(text string) hostileCall {
			return post("/api/v1/executions:batch", `{"executions":`+text+`}`)
		},
		"evaluation": func(text string) hostileCall { return post("/api/v1/evaluations", text) },
		"rules to test": func(text string) hostileCall {
			rule := `{"name":"h","kind":"rule","on":"t","run":{"action":"noop","input":` + text + `}}`
			return post("/api/v1/rules:test", encoded(map[string]any{"document": rule}))
		},
		"bulk cancel": func(text string) hostileCall { return post("/api/v1/executions:cancel?label=a%3Db", text) },
	},
	"pattern": {
		"logs": func(text string) hostileCall {
			return hostileCall{method: "GET", path: "/api/v1/executions/{id}/logs/search?" + url.Values{"q": {text},
				"regexp": {"true"}}.Encode()}
		},
		"expression": func(text string) hostileCall {
			return defineValue(map[string]any{"name": "h", "tasks": oneTask("action", "noop", "with",
				map[string]any{"m": fmt.Sprintf("${{ 'aaaa'.matches(%q) }}", text)})})
		},
		"schema": func(text string) hostileCall {
			return defineValue(map[string]any{"name": "h", "input": map[string]any{"pattern": text}, "tasks": oneTask("action", "noop")})
		},
	},
	"calendar": {
		"cron":  func(text string) hostileCall { return scheduled("cron", text) },
		"lines": func(text string) hostileCall { return scheduled("cron", slices.Repeat([]string{text}, 100)) },
		"exceptions": func(text string) hostileCall {
			return scheduled("cron", slices.Repeat([]string{text}, 50), "except", slices.Repeat([]string{"* * 1 1 *"}, 1000))
		},
		"lines of exceptions": func(text string) hostileCall { return scheduled("cron", "0 * * * *", "except", []string{text}) },
		"zone":                func(text string) hostileCall { return scheduled("cron", "0 0 * * *", "zone", text) },
		"preview": func(text string) hostileCall {
			c := scheduled("cron", text)
			c.path, c.run = "/api/v1/schedules:preview?count=1000", false
			return c
		},
	},
	"name": {
		"action": func(text string) hostileCall { return submittedValue(map[string]any{"action": text}) },
		"queue":  func(text string) hostileCall { return submittedValue(map[string]any{"action": "noop", "queue": text}) },
		"label": func(text string) hostileCall {
			return submittedValue(map[string]any{"action": "noop", "labels": map[string]string{text: text}})
		},
		"key": func(text string) hostileCall {
			return submittedValue(map[string]any{"action": "noop", "concurrency": map[string]any{"key": text, "limit": 1}})
		},
		"environment": func(text string) hostileCall {
			return submittedValue(map[string]any{"action": "code", "input": map[string]any{"language": "python",
				"source": "x", "env": map[string]string{text: text}}})
		},
		"secret": func(text string) hostileCall {
			return submittedValue(map[string]any{"action": "http", "input": map[string]any{"url": "http://127.0.0.1:1",
				"headers": map[string]any{"Authorization": "Bearer ${{ secrets." + text + " }}"}}})
		},
		"file": func(text string) hostileCall {
			return submittedValue(map[string]any{"action": "code", "input": map[string]any{"language": "python",
				"source": "x", "files": map[string]string{text: text}}})
		},
		"language": func(text string) hostileCall {
			return submittedValue(map[string]any{"action": "code", "input": map[string]any{"language": text, "source": "x"}})
		},
		"url": func(text string) hostileCall {
			return submittedValue(map[string]any{"action": "http", "input": map[string]any{"url": text}})
		},
		"idempotency": func(text string) hostileCall {
			return submittedValue(map[string]any{"action": "noop", "idempotency_key": text})
		},
		"header": func(text string) hostileCall {
			c := submitted(`{"action":"noop"}`)
			c.header = []string{"Idempotency-Key", url.PathEscape(text)}
			return c
		},
		"definition": func(text string) hostileCall {
			return defineValue(map[string]any{"name": text, "tasks": oneTask("action", "noop")})
		},
		"task": func(text string) hostileCall {
			return defineValue(map[string]any{"name": "h", "tasks": map[string]any{text: map[string]any{"action": "noop"}}})
		},
		"needs": func(text string) hostileCall {
			noop, after := map[string]any{"action": "noop"}, map[string]any{"action": "noop", "needs": []string{text}}
			return defineValue(map[string]any{"name": "h", "tasks": map[string]any{text: noop, "z": after}})
		},
		"webhook": func(text string) hostileCall {
			verify := map[string]any{"scheme": "github", "secret_env": text}
			return defineValue(map[string]any{"name": text, "kind": "webhook", "verify": verify, "trigger": text})
		},
		"trigger": func(text string) hostileCall {
			return post("/api/v1/signals", encoded(map[string]any{"trigger": text, "subject": text, "key": text}))
		},
		"path": func(text string) hostileCall {
			return hostileCall{method: "GET", path: "/api/v1/definitions/" + url.PathEscape(text)}
		},
		"path of hook": func(text string) hostileCall { return post("/hooks/"+url.PathEscape(text), "{}") },
		"list": func(text string) hostileCall {
			return hostileCall{method: "GET", path: "/api/v1/executions?" + url.Values{"action": {text},
				"label": {text + "=" + text}}.Encode()}
		},
		"cursor": func(text string) hostileCall {
			return hostileCall{method: "GET", path: "/api/v1/executions?" + url.Values{"cursor": {text}}.Encode()}
		},
		"execution": func(text string) hostileCall {
			return hostileCall{method: "GET", path: "/api/v1/executions/" + url.PathEscape(text)}
		},
		"cancel reason": func(text string) hostileCall {
			return post("/api/v1/executions:cancel?label=a%3Db", encoded(map[string]any{"reason": text}))
		},
	},
	"filter": {
		"list": func(text string) hostileCall {
			return hostileCall{method: "GET", path: "/api/v1/executions?" + url.Values{"where": {text}}.Encode()}
		},
		"cancel": func(text string) hostileCall {
			return post("/api/v1/executions:cancel?"+url.Values{"where": {text}}.Encode(), `{}`)
		},
	},
}

// documentPlaces returns the places of documents in which expressions can occur.
func documentPlaces(value func(text string) any) map[string]func(string) hostileCall {
	flow := func(of ...any) func(string) hostileCall {
		return func(text string) hostileCall {
			c := defineValue(map[string]any{"name": "h", "tasks": oneTask(append([]any{"action", "noop"}, filled(of, value(text))...)...)})
			c.run = true
			return c
		}
	}
	other := func(kind string, of ...any) func(string) hostileCall {
		return func(text string) hostileCall {
			d := pairs(filled(of, value(text)))
			d["name"], d["kind"] = "h", kind
			c := defineValue(d)
			c.run = true
			return c
		}
	}
	run := map[string]any{"action": "noop"}
	return map[string]func(string) hostileCall{
		"with":         flow("with", map[string]any{"a": here}),
		"many of with": flow("with", map[string]any{"a": slices.Repeat([]any{here}, 100)}),
		"if":           flow("if", here),
		"foreach":      flow("foreach", here),
		"until": flow("repeat", map[string]any{"max": 3,
			"until": here}),
		"key of a task": flow("concurrency", map[string]any{"key": here,
			"limit": 1}),
		"env":                  flow("env", map[string]any{"A": here}),
		"outputs":              other("workflow", "tasks", oneTask("action", "noop"), "outputs", map[string]any{"a": here}),
		"action":               other("action", "action", "noop", "with", map[string]any{"a": here}),
		"rule":                 other("rule", "on", "t", "if", here, "run", run),
		"input of a rule":      other("rule", "on", "t", "run", map[string]any{"action": "noop", "input": here}),
		"window of a rule":     other("rule", "on", "t", "batch", map[string]any{"key": here, "size": 2, "wait": "1s"}, "run", run),
		"key of a trigger":     other("trigger", "key", here),
		"input of a schedule":  other("schedule", "every", "1s", "run", map[string]any{"action": "noop", "input": here}),
		"key of a webhook":     other("webhook", "verify", map[string]any{"scheme": "none"}, "trigger", "t", "key", here),
		"subject of a trigger": other("trigger", "subject", here),
	}
}

// here is replaced by the hostile value.
const here = "\x00here"

func filled(of []any, value any) []any {
	out := make([]any, len(of))
	for i, v := range of {
		out[i] = filledOne(v, value)
	}
	return out
}

func filledOne(v, value any) any {
	switch v := v.(type) {
	case string:
		if v == here {
			return value
		}
	case []any:
		return filled(v, value)
	case map[string]any:
		out := map[string]any{}
		for k, v := range v {
			out[k] = filledOne(v, value)
		}
		return out
	}
	return v
}

func pairs(of []any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(of); i += 2 {
		out[of[i].(string)] = of[i+1]
	}
	return out
}

// oneTask returns the only task of a workflow, with the given fields.
func oneTask(of ...any) map[string]any { return map[string]any{"a": pairs(of)} }

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func post(path, body string) hostileCall { return hostileCall{method: "POST", path: path, body: body} }

func define(document string) hostileCall {
	c := post("/api/v1/definitions", document)
	c.header, c.run = []string{"Content-Type", "application/yaml"}, true
	return c
}

// scheduled returns a request that defines a schedule with the given fields.
func scheduled(of ...any) hostileCall {
	d := pairs(of)
	d["name"], d["kind"], d["run"] = "h", "schedule", map[string]any{"action": "noop"}
	return defineValue(d)
}

func defineValue(d map[string]any) hostileCall { return define(encoded(d)) }

func submitted(body string) hostileCall { return post("/api/v1/executions", body) }

func submittedValue(s map[string]any) hostileCall { return submitted(encoded(s)) }

const (
	// allocationsMost and bytesMost limit the allocations of one request and of the use of its definition. They are counts, so they are the
	// same on a busy machine. A request that takes long without allocating runs into the time limit of the test.
	allocationsMost = 10_000_000
	bytesMost       = 300 << 20
)

// A text that is repeated 10,000 times, in any place, is refused or answered with a limited amount of work, never with a 5xx, and the
// server still answers other requests.
func TestHostileTextsEverywhere(t *testing.T) { // not parallel, because it counts the allocations of the process
	h := start(t, Options{})
	id := h.code(t, "text")
	tried, refused, worst := 0, 0, map[string]uint64{}
	for kind, places := range hostilePlaces {
		for place, call := range places {
			refuses := func(text string) bool { return h.attack(t, kind+" in "+place, call(text), id) }
			if !slices.Contains(unknownPlaces, place) && all(harmlessTexts[kind], refuses) {
				t.Errorf("%s in %s: harmless ones are refused as well", kind, place)
			}
			for text, hostile := range hostileTexts[kind] {
				name := kind + " " + text + " in " + place
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if h.attack(t, name, call(hostile), id) {
					refused++
				}
				tried++
				runtime.ReadMemStats(&after)
				allocations, bytes := after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
				if allocations > allocationsMost || bytes > bytesMost {
					t.Errorf("%s: %d allocations of %d MB", name, allocations, bytes>>20)
				}
				if allocations > worst["allocations"] {
					worst["allocations"] = allocations
					t.Logf("%s: %d allocations of %d MB", name, allocations, bytes>>20)
				}
			}
		}
		if res, body := h.do(t, "POST", "/api/v1/executions?wait=30s",
			`{"action":"noop"}`); res.StatusCode != http.StatusOK || !strings.Contains(string(body), `"completed"`) {
			t.Fatalf("after %s: %s %s", kind, res.Status, body)
		}
	}
	t.Logf("%d requests, %d refused", tried, refused)
	if refused < tried/3 || refused == tried {
		t.Errorf("%d of %d requests were refused: the texts or the places are not what they seem", refused, tried)
	}
}

func all(texts []string, is func(string) bool) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !is(text) })
}

// attack sends a request, uses its definition, and reports whether it was refused.
func (h *house) attack(t *testing.T, name string, c hostileCall, id string) (refused bool) {
	t.Helper()
	send := func(c hostileCall) int {
		if c.body != "" && c.header == nil {
			c.header = []string{"Content-Type", "application/json"}
		}
		res, body := h.do(t, c.method, strings.Replace(c.path, "{id}", id, 1), c.body, c.header...)
		if res.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%s: %s: %.300s", name, res.Status, body)
		}
		return res.StatusCode
	}
	if send(c) >= http.StatusBadRequest {
		return true
	}
	if c.run {
		send(post("/api/v1/executions?wait=30s", `{"action":"h"}`))
		send(post("/api/v1/signals", `{"trigger":"t","data":{}}`))
		send(post("/hooks/h", `{}`))
		for _, kind := range []string{"rules", "schedules", "webhooks"} {
			send(hostileCall{method: "POST", path: "/api/v1/" + kind + "/h/pause", body: `{"reason":"r"}`})
		}
	}
	return false
}
