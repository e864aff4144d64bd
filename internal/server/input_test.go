package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/payload"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct {
		path, body string
		status     int
		at         string // path of the first error; "" if line and column identify it
		say, fix   string // parts of the message and of the fix
	}{
		"empty":                {"/api/v1/executions", ``, 400, "", "empty", "JSON object"},
		"no JSON":              {"/api/v1/executions", `{"action":}`, 400, "", "cannot begin", ""},
		"cut off":              {"/api/v1/executions", `{"action":"noop"`, 400, "", "ends too early", "brackets"},
		"two values":           {"/api/v1/executions", `{"action":"noop"} {}`, 400, "", "follows", "one value"},
		"single quotes":        {"/api/v1/executions", `{'action':'noop'}`, 400, "", "double quotes", ""},
		"trailing comma":       {"/api/v1/executions", `{"action":"noop",}`, 400, "", "double quotes", ""},
		"control":              {"/api/v1/executions", "{\"action\":\"no\x01op\"}", 400, "", "control", "escape"},
		"bad number":           {"/api/v1/executions", `{"action":"noop","priority":01}`, 400, "", "not a JSON number", ""},
		"bad escape":           {"/api/v1/executions", `{"action":"\x41"}`, 400, "", "not an escape", `\\`},
		"UTF-8":                {"/api/v1/executions", "{\"action\":\"no\xffop\"}", 400, "", "not UTF-8", "base64"},
		"NUL":                  {"/api/v1/executions", `{"action":"noop","input":{"a":"x\u0000y"}}`, 422, "input", "NUL", `\u0000`},
		"NUL in a name":        {"/api/v1/executions", `{"action":"noop","labels":{"a\u0000":"x"}}`, 422, `labels["a\x00"]`, "NUL", ""},
		"raw NUL":              {"/api/v1/executions", "{\"action\":\"no\x00op\"}", 400, "", "NUL", "remove"},
		"10,000 deep":          {"/api/v1/executions", `{"action":"noop","input":` + deep(10_000) + `}`, 400, "", "deeper than 200", "flatten"},
		"deep, unclosed":       {"/api/v1/executions", strings.Repeat(`{"a":`, 100_000), 400, "", "deeper than 200", "flatten"},
		"unknown field":        {"/api/v1/executions", `{"action":"noop","lables":{}}`, 422, "lables", "no such field", `"labels"`},
		"other case":           {"/api/v1/executions", `{"Action":"noop"}`, 422, "Action", "no such field", `"action"`},
		"twice":                {"/api/v1/executions", `{"action":"noop","action":"code"}`, 422, "action", "twice", "once"},
		"twice in input":       {"/api/v1/executions", `{"action":"noop","input":{"a":1,"a":2}}`, 422, "input", "twice", "once"},
		"missing":              {"/api/v1/executions", `{}`, 422, "action", "missing", ""},
		"wrong type":           {"/api/v1/executions", `{"action":7}`, 422, "action", "should be a string", "quotes"},
		"list for object":      {"/api/v1/executions", `["noop"]`, 422, "", "should be an object", "write {…}"},
		"label's type":         {"/api/v1/executions", `{"action":"noop","labels":{"n":1}}`, 422, "labels.n", "should be a string", ""},
		"selector's type":      {"/api/v1/executions", `{"action":"noop","worker_labels":{"n":1}}`, 422, "worker_labels.n", "should be a string", ""},
		"selector's value":     {"/api/v1/executions", `{"action":"noop","worker_labels":{"gpu":"a 100"}}`, 422, "worker_labels.gpu", "not the value of a worker's label", "at most 63 letters"},
		"selector's key":       {"/api/eval", `{"language":"python","source":"x","worker_labels":{"g/p/u":"a100"}}`, 422, "worker_labels", "not the key of a worker's label", "1 to 63 letters"},
		"half a priority":      {"/api/v1/executions", `{"action":"noop","priority":1.5}`, 422, "priority", "whole number", ""},
		"huge priority":        {"/api/v1/executions", `{"action":"noop","priority":1e400}`, 422, "priority", "whole number", ""},
		"priority's range":     {"/api/v1/executions", `{"action":"noop","priority":1001}`, 422, "priority", "range", "-1000"},
		"duration":             {"/api/v1/executions", `{"action":"noop","timeout":"soon"}`, 422, "timeout", "not a duration", `"1.5s"`},
		"negative":             {"/api/v1/executions", `{"action":"noop","timeout":"-1s"}`, 422, "timeout", "negative", ""},
		"time":                 {"/api/v1/executions", `{"action":"noop","not_before":"tomorrow"}`, 422, "not_before", "not a time", "RFC 3339"},
		"enum":                 {"/api/v1/executions", `{"action":"noop","retry":{"backoff":"exponental"}}`, 422, "retry.backoff", "not a known value", `"exponential"`},
		"no attempts":          {"/api/v1/executions", `{"action":"noop","retry":{"max_attempts":0}}`, 422, "retry.max_attempts", "is 0", "leave it out"},
		"no time":              {"/api/eval", `{"language":"python","source":"x","timeout":"0s"}`, 422, "timeout", "is 0", "leave it out"},
		"an empty key":         {"/api/v1/executions", `{"action":"noop","idempotency_key":""}`, 422, "idempotency_key", "empty", "leave it out"},
		"an empty choice":      {"/api/v1/executions", `{"action":"noop","retry":{"backoff":""}}`, 422, "retry.backoff", "not a known value", "exponential"},
		"year 10000 in UTC":    {"/api/v1/executions", `{"action":"noop","not_before":"9999-12-31T23:00:00-12:00"}`, 422, "not_before", "four digits", "9999"},
		"year -1 in UTC":       {"/api/v1/executions", `{"action":"noop","not_before":"0000-01-01T00:00:00+14:00"}`, 422, "not_before", "four digits", "0001"},
		"year 9999":            {"/api/v1/executions", `{"action":"noop","not_before":"9999-01-01T00:00:00Z"}`, 422, "not_before", "100 years", "within"},
		"an unknown code":      {"/api/v1/executions", `{"action":"noop","retry":{"max_attempts":2,"on":["nope"]}}`, 422, "retry.on[0]", "nope", "timeout"},
		"a code's near name":   {"/api/eval", `{"language":"python","source":"x","retry":{"max_attempts":2,"on":["oom","nonzero-exit"]}}`, 422, "retry.on[1]", "nonzero-exit", "nonzero_exit"},
		"an exit code":         {"/api/eval", `{"language":"python","source":"x","retry":{"max_attempts":2,"on":["exit:256"]}}`, 422, "retry.on[0]", "exit:256", "exit:255"},
		"nested unknown":       {"/api/v1/executions", `{"action":"noop","retry":{"max":3}}`, 422, "retry.max", "no such field", ""},
		"key limit":            {"/api/v1/executions", `{"action":"noop","concurrency":{"key":"k","limit":0}}`, 422, "concurrency.limit", "range", "1"},
		"no key limit":         {"/api/v1/executions", `{"action":"noop","concurrency":{"key":"k"}}`, 422, "concurrency.limit", "missing", ""},
		"unknown action":       {"/api/v1/executions", `{"action":"nope"}`, 422, "action", "no action", "apply"},
		"unknown queue":        {"/api/v1/executions", `{"action":"noop","queue":"gpu"}`, 422, "queue", "gpu", "worker"},
		"in a batch":           {"/api/v1/executions:batch", `{"executions":[{"action":"noop"},{"action":"noop","priorty":1}]}`, 422, "executions[1].priorty", "no such field", `"priority"`},
		"no language":          {"/api/v1/evaluations", `{"source":"x"}`, 422, "language", "missing", "python"},
		"cache of interactive": {"/api/eval", `{"language":"python","source":"x","interactive":true,"cache":{"ttl":"1h"}}`, 422, "cache", "given while it runs", "leave out"},
		"cache of a year":      {"/api/eval", `{"language":"python","source":"x","cache":{"ttl":"8760h"}}`, 422, "cache.ttl", "out of range", "30 days"},
		"unknown language":     {"/api/eval", `{"language":"cobol","source":"x"}`, 422, "language", "not a language that this server", "python"},
		"a limit's range":      {"/api/eval", `{"language":"python","source":"x","limits":{"memory":"1B"}}`, 422, "limits.memory", "size", ""},
		"unknown in code":      {"/api/eval", `{"language":"python","source":"x","limit":{}}`, 422, "limit", "no such field", "limits"},
		"cancel":               {"/api/v1/executions/ex_00000000000000000000000010/cancel", `{"why":"x"}`, 422, "why", "no such field", "reason"},
	} {
		p := h.problem(t, c.status, api.ProblemInvalid, "POST", c.path, c.body)
		if len(p.Errors) == 0 {
			t.Errorf("%s: no errors: %+v", name, p)
			continue
		}
		e := p.Errors[0]
		if e.Path != c.at || !strings.Contains(e.Message, c.say) || !strings.Contains(e.Fix, c.fix) || e.Path == "" && e.Line == 0 && c.body != "" {
			t.Errorf("%s: %+v, want path %q, message %q, fix %q", name, e, c.at, c.say, c.fix)
		}
		if len(e.Value) > 100 || len(p.Detail) > 1000 {
			t.Errorf("%s: the problem repeats too much of the request: %+v", name, p)
		}
	}
	page, err := h.client.List(t.Context(), listAll)
	if err != nil || len(page.Executions) != 0 {
		t.Errorf("something of the bad input was stored: %+v, %v", page, err)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	p := problemOf(payload.Decode([]byte("{\n \"acton\": 1,\n \"priority\": \"high\",\n \"labels\": [\"é\", {\"x\": 1}]}"), "body", new(api.Submission)))
	var got []string
	for _, e := range p.Errors {
		got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Path))
	}
	want := []string{"2:2 acton", "3:14 priority", "4:12 labels", "1:1 action"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("faults at %q, want %q", got, want)
	}
}

func TestBadQueries(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	const list = "/api/v1/executions"
	for path, at := range map[string]string{
		list + "?stauts=running":            "?stauts",
		list + "?status=runing":             "?status",
		list + "?limit=0":                   "?limit",
		list + "?status=":                   "?status",
		list + "?label=":                    "?label",
		list + "?action=":                   "?action",
		list + "?since=":                    "?since",
		list + "?limit=1001":                "?limit",
		list + "?limit=ten":                 "?limit",
		list + "?limit=1&limit=2":           "?limit",
		list + "?label=team":                "?label",
		list + "?since=yesterday":           "?since",
		list + "?cursor=abc":                "?cursor",
		list + "?workflow=abc":              "?workflow",
		list + "?top_level=maybe":           "?top_level",
		list + "?action=%ff":                "?action",
		list + "?action=a%00b":              "?action",
		"/api/v1/keys?limit=-1":             "?limit",
		"/api/v1/definitions?cursr=a":       "?cursr",
		"/api/v1/definitions/x?version=one": "?version",
		"/healthz?verbose=1":                "?verbose",
	} {
		p := h.problem(t, 400, api.ProblemInvalid, "GET", path, "")
		if len(p.Errors) != 1 || p.Errors[0].Path != at || p.Errors[0].Message == "" {
			t.Errorf("%s: %+v", path, p.Errors)
		}
	}
	h.problem(t, 400, api.ProblemInvalid, "POST", list+"?wait=long", `{"action":"noop"}`)
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for _, path := range []string{"/", "/nothing", "/api", "/api/v1", "/api/v1/nothing", "/api/v1/executions/x/y", "/api/v2/executions"} {
		h.problem(t, 404, api.ProblemNotFound, "GET", path, "")
	}
	for _, id := range []string{"x", "ex_", "ex_zzz", "ex_0000000000000000000000000u", "ex_00000000000000000000000004"} {
		for _, rest := range []string{"", "/events", "/logs", "/why", "/result", "/tasks"} {
			h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/executions/"+id+rest, "")
			h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/executions/"+id+rest, "", "Accept", "text/event-stream")
		}
		h.problem(t, 404, api.ProblemNotFound, "POST", "/api/v1/executions/"+id+"/cancel", "")
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/definitions/nothing", "")
	for path, method := range map[string]string{
		"/api/v1/executions": "DELETE", "/api/v1/executions:batch": "GET", "/healthz": "POST", "/metrics": "PUT",
		"/api/eval": "GET", "/api/v1/executions/ex_00000000000000000000000004/kill": "GET", "/openapi.json": "PATCH",
	} {
		h.problem(t, 405, api.ProblemMethodNotAllowed, method, path, "")
		res, _ := h.do(t, method, path, "")
		if res.Header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow header", method, path)
		}
	}
	h.problem(t, 415, api.ProblemUnsupportedMedia, "POST", "/api/v1/executions", `<x/>`, "Content-Type", "application/xml")
}

func TestLargeBodies(t *testing.T) { // not parallel, because it measures memory
	h := start(t, Options{BodyLimit: 1 << 20})
	big := `{"action":"noop","input":"` + strings.Repeat("x", 50<<20) + `"}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := h.problem(t, 413, api.ProblemTooLarge, "POST", "/api/v1/executions", big)
	if !strings.Contains(p.Detail, "1048576") {
		t.Errorf("the limit is not named: %s", p.Detail)
	}
	// Chunked, so that no length is announced.
	req, err := http.NewRequestWithContext(t.Context(), "POST", h.url+"/api/v1/executions", struct{ io.Reader }{strings.NewReader(big)})
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = -1
	if res, err := h.http.Do(req); err == nil { // the connection may break before the whole body has been sent
		if res.StatusCode != 413 {
			t.Errorf("in chunks: %s", res.Status)
		}
		_ = res.Body.Close()
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc) - int64(before.TotalAlloc); grown > 40<<20 {
		t.Errorf("refusing two bodies of 50 MB allocated %d MB", grown>>20)
	}
	ok := `{"action":"noop","input":"` + strings.Repeat("x", 1<<19) + `"}`
	if res, body := h.do(t, "POST", "/api/v1/executions?wait=10s", ok); res.StatusCode != 200 {
		t.Errorf("half a megabyte: %s %.200s", res.Status, body)
	}
	if used := h.bodies.used.Load(); used != 0 {
		t.Errorf("%d bytes of bodies are still counted", used)
	}
}

func TestTooManyLargeBodies(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	h.bodies.used.Store(h.bodies.limit)
	body := `{"action":"noop","input":"` + strings.Repeat("x", 1<<19) + `"}`
	h.problem(t, 429, api.ProblemOverloaded, "POST", "/api/v1/executions", body)
	if res, _ := h.do(t, "POST", "/api/v1/executions", body); res.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if res, _ := h.do(t, "POST", "/api/v1/executions", `{"action":"noop"}`); res.StatusCode != 202 {
		t.Errorf("a small body was refused: %s", res.Status)
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d, err := h.client.Define(t.Context(), []byte(diamond), "d.yaml")
	if err != nil || len(d.Definitions) != 1 || d.Definitions[0] != (api.DefinedVersion{Name: "diamond", Version: 1, Kind: "workflow", Created: true}) {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err = h.client.Define(t.Context(), []byte(diamond), "d.yaml"); err != nil || d.Definitions[0].Created || d.Definitions[0].Version != 1 {
		t.Errorf("the same again: %+v, %v", d, err)
	}
	if d, err = h.client.Define(t.Context(), []byte(`{"name":"double","action":"input","with":{"n":2}}`), ""); err != nil || d.Definitions[0].Kind != "action" {
		t.Errorf("JSON: %+v, %v", d, err)
	}
	got, err := h.client.Definition(t.Context(), "diamond", 1)
	if err != nil || got.Kind != "workflow" || !json.Valid(got.Document) {
		t.Errorf("%+v, %v", got, err)
	}
	if d, err = h.client.Define(t.Context(), got.Document, "again.json"); err != nil || d.Definitions[0] != (api.DefinedVersion{Name: "diamond", Version: got.Version, Kind: "workflow"}) {
		t.Errorf("its document is taken again as %+v, %v", d, err)
	}
	var names []string
	for d, err := range h.client.Definitions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, d.Name)
	}
	if fmt.Sprint(names) != "[diamond double]" {
		t.Errorf("listed %v", names)
	}
	if d, err = h.client.Define(t.Context(), []byte(`{"name":"double","action":"input","with":{"n":3}}`), ""); err != nil || d.Definitions[0].Version != 2 {
		t.Errorf("a second version: %+v, %v", d, err)
	}
	var versions []int
	for d, err := range h.client.DefinitionVersions(t.Context(), "double") {
		if err != nil || d.Name != "double" || d.CreatedAt.IsZero() || d.Document != nil {
			t.Fatalf("%+v, %v", d, err)
		}
		versions = append(versions, d.Version)
	}
	if fmt.Sprint(versions) != "[2 1]" {
		t.Errorf("versions %v", versions)
	}
	if res, body := h.do(t, "GET", "/api/v1/definitions/double/versions?limit=1", ""); res.StatusCode != 200 || !strings.Contains(string(body), `"next_cursor":"2"`) {
		t.Errorf("a page of one version: %s %s", res.Status, body)
	}
	if res, body := h.do(t, "GET", "/api/v1/definitions/double/versions?limit=1&cursor=2", ""); res.StatusCode != 200 || !strings.Contains(string(body), `"version":1`) || strings.Contains(string(body), "next_cursor") {
		t.Errorf("the page behind it: %s %s", res.Status, body)
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/definitions/other/versions", "")
	const cyclic = "name: c\ntasks:\n  a: {needs: [b], action: input}\n  b: {needs: [a], action: input}\n"
	p := h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/definitions?file=c.yaml", cyclic, "Content-Type", "application/yaml")
	if len(p.Errors) == 0 || p.Errors[0].File != "c.yaml" || p.Errors[0].Line == 0 || p.Errors[0].Column == 0 {
		t.Errorf("a cycle: %+v", p)
	}
	v, err := h.client.Validate(t.Context(), []byte(cyclic), "c.yaml")
	if err != nil || v.Valid || len(v.Problems) == 0 || !strings.HasPrefix(v.Problems[0].String(), "c.yaml:") {
		t.Errorf("validate: %+v, %v", v, err)
	}
	if v, err = h.client.Validate(t.Context(), []byte("kind: workflow"), ""); err != nil || v.Valid || v.Problems[0].File != "body" {
		t.Errorf("a document without a file's name: %v %+v", err, v)
	}
	if v, err = h.client.Validate(t.Context(), []byte(strings.Replace(diamond, "diamond", "other", 1)), ""); err != nil || !v.Valid || v.Definitions[0].Name != "other" {
		t.Errorf("validate: %+v, %v", v, err)
	}
	const several = "name: several\ntasks:\n  a: {action: nobody, needs: [nope], queue: gpus}\n  b: {action: wait, with: {signal: lost}, if: 1 +}\n  c: {}\n"
	p = h.problem(t, 422, api.ProblemInvalid, "POST", "/api/v1/definitions?file=c.yaml", several, "Content-Type", "application/yaml")
	if v, err = h.client.Validate(t.Context(), []byte(several), "c.yaml"); err != nil || v.Valid || fmt.Sprint(v.Problems) != fmt.Sprint(p.Errors) {
		t.Errorf("%v: validate lists %v, apply %v", err, v.Problems, p.Errors)
	}
	for _, want := range []string{`no action or workflow "nobody"`, `no task "nope"`, `"gpus"`, `no trigger "lost"`, "tasks.b.if: syntax error", "tasks.c"} {
		if n := strings.Count(fmt.Sprint(p.Errors), want); n != 1 {
			t.Errorf("%s is there %d times in %v", want, n, p.Errors)
		}
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/definitions/other", "")
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/definitions/diamond?version=2", "")
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/definitions/queue:default", "")
}

// FuzzBodies looks for bodies that crash the server, that it accepts although encoding/json would not, or that it accepts and then cannot
// read.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"action":"noop","input":{"a":[1,2.5e3,true,null,"x"]},"labels":{"k":"v"}}`,
		`{"action":"a@3","retry":{"max_attempts":3,"backoff":"constant","delay":"1s","on":["oom","exit:3"]},"timeout":1.5}`,
		`{"executions":[{"action":"noop"},{"action":"code","input":{"language":"c"}}]}`,
		`{"language":"python","source":"print(1)","files":{"a/b":{"base64":"AA=="}},"limits":{"memory":"64MB"}}`,
		`{"action":"\u00e9\ud83d\ude00\\\/","not_before":"2026-01-02T03:04:05Z"}`,
		"[[[[", `{"a":{"a":1,"a":2}}`, "\xff", "{\"a\":\"\\u0000\"}", `nul`, `-`, `1 2`, `{"reason":"x"}`,
	} {
		for which := range 4 {
			f.Add(which, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, which int, body []byte) {
		var out any
		switch which & 3 {
		case 0:
			out = new(api.Submission)
		case 1:
			out = new(api.Batch)
		case 2:
			out = new(api.Evaluation)
		case 3:
			out = new(api.CancelRequest)
		}
		err := payload.Decode(body, "body", out)
		if err == nil && !json.Valid(body) {
			t.Fatalf("took %q, which is no JSON", body)
		}
		if err != nil {
			p := problemOf(err)
			if p.Status != 400 && p.Status != 422 || len(p.Errors) == 0 {
				t.Fatalf("%q: %+v", body, p)
			}
			if p.Status == 400 && json.Valid(body) && utf8.Valid(body) && !strings.Contains(p.Errors[0].Message, "nested deeper") {
				t.Fatalf("cannot read %q, which is JSON: %+v", body, p)
			}
			return
		}
		again, err := json.Marshal(out)
		if err != nil {
			t.Fatalf("cannot write what was read from %q: %v", body, err)
		}
		if bytes.Contains(again, []byte(`\u0000`)) && !bytes.Contains(again, []byte(`\\u0000`)) {
			t.Fatalf("let a NUL through in %q", body)
		}
	})
}

func BenchmarkDecodeSubmission(b *testing.B) {
	body := []byte(`{"action":"noop","input":{"customer":"acme","items":[1,2,3]},"labels":{"team":"blue"},"idempotency_key":"0123456789"}`)
	b.ReportAllocs()
	for b.Loop() {
		var s api.Submission
		if err := payload.Decode(body, "body", &s); err != nil {
			b.Fatal(err)
		}
	}
}
