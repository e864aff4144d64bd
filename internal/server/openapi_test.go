package server

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/handoff"
)

func contextWith(t *testing.T, a net.Addr) context.Context {
	return context.WithValue(t.Context(), http.LocalAddrContextKey, a)
}

type document struct {
	OpenAPI string
	Servers []struct{ URL string }
	Paths   map[string]map[string]struct {
		OperationID string
		Parameters  []struct{ Name, In string }
		RequestBody *struct{ Content map[string]json.RawMessage }
		Responses   map[string]struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct{ Schemas map[string]json.RawMessage }
}

func readDocument(t *testing.T, h *house) (document, any) {
	t.Helper()
	res, body := h.do(t, "GET", "/openapi.json", "")
	var d document
	if err := json.Unmarshal(body, &d); err != nil || res.StatusCode != 200 || !strings.HasPrefix(d.OpenAPI, "3.1") {
		t.Fatalf("%s %v %.300s", res.Status, err, body)
	}
	whole, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	return d, whole
}

// The handler of every operation in the document answers with a status and a body that the document has.
func TestOpenAPIIsServed(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d, whole := readDocument(t, h)
	schemas := jsonschema.NewCompiler()
	if err := schemas.AddResource("https://pawl.test/openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Define(t.Context(), []byte(diamond), ""); err != nil {
		t.Fatal(err)
	}
	wf, err := h.client.Submit(t.Context(), api.Submission{Action: "diamond", Input: json.RawMessage(`{"items":[1,2]}`), Labels: map[string]string{"a": "b"},
		Retry: &api.Retry{MaxAttempts: 2, On: []string{"oom"}}, Timeout: 1e10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Wait(t.Context(), wf.ID); err != nil {
		t.Fatal(err)
	}
	done := h.code(t, "hello")
	h.await(t, done, "ended", terminal)
	bodies := map[string]string{
		"submit": `{"action":"noop"}`, "submit-batch": `{"executions":[{"action":"noop"},{"action":"x"}]}`,
		"evaluate": `{"language":"python","source":"hello"}`, "define": diamond, "validate": "name: x\n",
		"send-stdin": "typed\n", "evaluate-batch": `{"evaluations":[{"language":"python","source":"hello"},{"language":"x"}]}`, "upload": "sent ahead",
		"log-in": `{"token":"any"}`, "receive": `{"a":1}`, "backfill-schedule": `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","dry_run":true}`, "preview-schedules": "kind: schedule\nname: s\nevery: 1h\nrun: {action: noop}\n", "emit": `{"trigger":"t","data":{"a":1}}`, "emit-to": `{"trigger":"t"}`, "emit-batch": `{"signals":[{"trigger":"t"},{"trigger":"T"}]}`,
		"compare-replay": `{"document":"name: diamond\ntasks: {a: {action: noop}}"}`,
		"replay-rule":    `{"dry_run":true}`, "test-rules": `{"document":"kind: rule\nname: r\non: t\nif: signal.data.a == 1\nrun: {action: noop}\n"}`,
		"answer-inquiry": `{"answer":1,"by":"ada"}`, "link-inquiry": `{"for":"ada"}`, "answer-by-link": "f0=1",
		"move-alias": `{"to":[{"version":1}]}`, "check-submission": `{"action":"diamond"}`, "check-evaluation": `{"language":"x","source":"hello"}`, "why-many": `{"ids":["` + done + `","ex_nope"]}`,
	}
	uploaded, err := h.client.Upload(t.Context(), strings.NewReader(bodies["upload"]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Define(t.Context(), []byte("kind: schedule\nname: diamond\ncron: '0 0 * * *'\nrun: {action: noop}\n---\nkind: webhook\nname: diamond\nverify: {scheme: none}\ntrigger: t\n---\nkind: rule\nname: diamond\non: t\nrun: {action: noop}\n---\nkind: queue\nname: diamond\n"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Engine.Open(t.Context(), handoff.Session{Name: "diamond", Queues: []string{"diamond"}, Slots: 1}); err != nil { // to be paused
		t.Fatal(err)
	}
	if _, err := h.client.MoveAlias(t.Context(), "diamond", "stable", api.AliasOrder{To: []api.AliasTarget{{Version: 1}}}); err != nil {
		t.Fatal(err)
	}
	emitted, err := h.client.Emit(t.Context(), api.Emission{Trigger: "t", Key: "k", Subject: "s"})
	if err != nil {
		t.Fatal(err)
	}
	naming, err := h.client.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "python", Source: "hello", Files: map[string]api.Content{"f": {Blob: uploaded.Blob}}}})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, operations := range d.Paths {
		for method, op := range operations {
			id := done
			switch {
			case strings.HasPrefix(op.OperationID, "task"), op.OperationID == "compare-replay":
				id = wf.ID
			case op.OperationID == "emit-to":
				id = h.asked(t, `{"title":"?"}`).Execution
			case strings.Contains(path, "/inquiries/"):
				id = h.asked(t, `{"title":"?"}`).ID
			case strings.Contains(path, "/signals/"):
				id = emitted.Signal
			case op.OperationID == "given":
				id = naming.ID
			case strings.Contains(op.OperationID, "stdin"):
				id = h.interactive(t)
			case strings.HasSuffix(op.OperationID, "-execution") && op.OperationID != "get-execution":
				id = h.pausable(t)
			case op.OperationID == "cancel" || strings.Contains(op.OperationID, "kill"):
				id = h.code(t, "hang")
			}
			base, _, _ := strings.Cut(op.OperationID, "-alias-")
			target := strings.NewReplacer("{id}", id, "{name}", "diamond", "{alias}", "stable", "{signal}", emitted.Signal, "{rule}", "diamond", "{attempt}", "1", "{task}", "each", "{file}", "out/said.txt", "{blob}", uploaded.Blob, "/answer/{token}", h.linked(t, h.asked(t, `{"title":"?"}`).ID, "ada")).Replace(path)
			if strings.HasPrefix(base, "count-") || base == "score-evaluations" || strings.HasSuffix(base, "-outcomes") || strings.HasSuffix(base, "-many") && base != "why-many" {
				target += "?label=a%3Db"
			}
			switch base {
			case "export-executions":
				target += "?id=" + done
			case "search-logs":
				target += "?q=e"
			case "key-line":
				target += "?key=deploy"
			case "queue-line":
				target = strings.Replace(target, "diamond", "default", 1)
			}
			header := []string{}
			if op.RequestBody != nil && op.RequestBody.Content["application/yaml"] != nil {
				header = []string{"Content-Type", "application/yaml"}
			}
			if base == "answer-by-link" {
				header = []string{"Content-Type", mediaForm}
			}
			if base == "send-stdin" || base == "upload" || base == "receive" {
				header = []string{"Content-Type", "application/octet-stream"}
			}
			res, body := h.do(t, strings.ToUpper(method), target, bodies[base], header...)
			said, ok := op.Responses[itoa(res.StatusCode)]
			if !ok {
				t.Errorf("%s %s: %s is not in the document\n%s", method, target, res.Status, body)
				continue
			}
			seen++
			media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
			content, ok := said.Content[media]
			if !ok {
				t.Errorf("%s %s: content type %q is not in the document", method, target, media)
				continue
			}
			if media != "application/json" {
				continue
			}
			at := strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
			s, err := schemas.Compile("https://pawl.test/openapi.json#/paths/" + escapeFragment(at) + "/" + method + "/responses/" + itoa(res.StatusCode) + "/content/application~1json/schema")
			if err != nil {
				t.Errorf("%s %s: schema %s: %v", method, path, content.Schema, err)
				continue
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(v); err != nil {
				t.Errorf("%s %s answers what the document does not have: %v\n%s", method, target, err, body)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d operations were tried", seen)
	}
	if h.do(t, "GET", "/docs", ""); len(d.Components.Schemas) < 20 {
		t.Errorf("%d schemas", len(d.Components.Schemas))
	}
}

// Every route that is served is in the document, with its parameters.
func TestOpenAPIIsComplete(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d, _ := readDocument(t, h)
	ids := map[string]bool{}
	for _, rt := range h.routes() {
		for _, path := range append([]string{rt.path}, rt.aliases...) {
			op, ok := d.Paths[strings.ReplaceAll(path, "...}", "}")][strings.ToLower(rt.method)]
			if !ok {
				t.Errorf("%s %s is served and not in the document", rt.method, path)
				continue
			}
			if ids[op.OperationID] {
				t.Errorf("operation id %s comes twice", op.OperationID)
			}
			ids[op.OperationID] = true
			for _, p := range rt.params {
				if !slices.ContainsFunc(op.Parameters, func(q struct{ Name, In string }) bool { return q.Name == p.name && q.In == "query" }) {
					t.Errorf("%s %s: parameter %s is not in the document", rt.method, path, p.name)
				}
			}
			if (rt.body != nil || rt.document || rt.raw || rt.form) != (op.RequestBody != nil) {
				t.Errorf("%s %s: the body is not in the document", rt.method, path)
			}
		}
	}
}

// schema has the parts of a JSON schema that the tests check.
type schema struct {
	Type        any
	Ref         string `json:"$ref"`
	Description string
	Enum        []string
	OneOf       []schema
	Items       *schema
	Properties  map[string]schema
	Additional  any `json:"additionalProperties"`
}

// The document has what generated clients need: the server's address, an error for every operation, the meaning of each field, and that
// answers may get more fields, have durations as strings, and have lists that are never null.
func TestOpenAPIForClients(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d, _ := readDocument(t, h)
	if len(d.Servers) != 1 || d.Servers[0].URL != "/" {
		t.Errorf("servers: %+v", d.Servers)
	}
	all := map[string]schema{}
	for name, raw := range d.Components.Schemas {
		var s schema
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = s
		for field, p := range s.Properties {
			if p.Description == "" {
				t.Errorf("%s.%s is not described: give it a doc tag", name, field)
			}
		}
	}
	seen := map[string]bool{}
	var answered func(at string, s schema)
	answered = func(at string, s schema) {
		if name, ok := strings.CutPrefix(s.Ref, schemaPrefix); ok && !seen[name] {
			seen[name] = true
			answered(name, all[name])
		}
		if s.Additional == false {
			t.Errorf("%s must have no other fields, and may get some", at)
		}
		if _, several := s.Type.([]any); several || len(s.OneOf) > 0 {
			t.Errorf("%s has more than one type: %v %v", at, s.Type, s.OneOf)
		}
		if s.Items != nil {
			answered(at+"[]", *s.Items)
		}
		for field, p := range s.Properties {
			answered(at+"."+field, p)
		}
	}
	for path, operations := range d.Paths {
		for method, op := range operations {
			if _, ok := op.Responses["4XX"].Content[mediaProblem]; !ok {
				t.Errorf("%s %s: a refusal is not in the document", method, path)
			}
			for status, r := range op.Responses {
				var s schema
				if content, ok := r.Content["application/json"]; ok {
					if err := json.Unmarshal(content.Schema, &s); err != nil {
						t.Fatal(err)
					}
				}
				answered(method+" "+path+" "+status, s)
			}
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d schemas of answers", len(seen))
	}
	statuses := []string{}
	for _, s := range api.Statuses() {
		statuses = append(statuses, string(s))
	}
	if got := all["Execution"].Properties["status"].Enum; !slices.Equal(got, statuses) {
		t.Errorf("an execution may be %v", got)
	}
	if got := all["Task"].Properties["status"].Enum; !slices.Equal(got, append([]string{string(api.TaskPending), string(api.TaskSkipped)}, statuses...)) {
		t.Errorf("a task may be %v", got)
	}
	if got := all["Submission"]; got.Additional != false || len(got.Properties["timeout"].OneOf) != 2 || got.Properties["retry"].Ref != schemaPrefix+"RetryRequest" {
		t.Errorf("a submission is %+v", got)
	}
}

// Lists are never null, even if they are empty.
func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "hang")
	for _, path := range []string{"executions", "executions?status=failed", "evaluations?verdict=oom", "executions:count?label=a%3Db", "definitions", "queues", "keys", "workers", "stats", "verify",
		"executions/" + id + "/events?after=1000", "executions/" + id + "/logs", "executions/" + id + "/why"} {
		if res, body := h.do(t, "GET", "/api/v1/"+path, ""); res.StatusCode != 200 || strings.Contains(string(body), "null") {
			t.Errorf("%s: %s %s", path, res.Status, body)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func escapeFragment(s string) string { return strings.NewReplacer("{", "%7B", "}", "%7D").Replace(s) }
