package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/signature"
)

const hookDocuments = `kind: webhook
name: github
verify: {scheme: github, secret_env: [NEW, OLD]}
trigger: github.${{ headers["x-github-event"] }}
subject: ${{ default(body.repository.full_name, "") }}
keep_headers: [x-github-event]
max_body: 2000
---
kind: webhook
name: standard
verify: {scheme: standard, secret_env: STANDARD}
trigger: ${{ default(query.as, "any.thing") }}
max_body: 3MB
---
kind: webhook
name: slack
verify: {scheme: slack, secret_env: OLD}
trigger: slack.event
---
kind: webhook
name: keyed
verify: {scheme: github, secret_env: OLD}
trigger: keyed
key: ${{ body.order }}
---
kind: webhook
name: local
verify: {scheme: none}
trigger: local
---
kind: webhook
name: bare
verify: {scheme: github, secret_env: NOWHERE}
trigger: bare
---
kind: webhook
name: asleep
verify: {scheme: github, secret_env: OLD}
trigger: asleep
paused: true
`

type hookRig struct {
	*house
	t *testing.T
}

func hookRigged(t *testing.T) *hookRig {
	t.Helper()
	secrets := map[string]string{"OLD": "old secret", "NEW": "new secret", "STANDARD": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	h := start(t, Options{Tokens: []string{token}, Secret: func(name string) (string, error) {
		if v, there := secrets[name]; there {
			return v, nil
		}
		return "", fmt.Errorf("the environment does not have %s", name)
	}})
	if _, err := h.client.Define(t.Context(), []byte(hookDocuments), "hooks.yaml"); err != nil {
		t.Fatal(err)
	}
	return &hookRig{house: h, t: t}
}

// hookRequest is a request to a webhook over a network.
type hookRequest struct {
	path, body string
	scheme     signature.Scheme
	secret, id string
	at         time.Time
	header     []string
	local      net.Addr
	host       string
}

func (h *hookRig) send(q hookRequest) (int, api.Received, string) {
	h.t.Helper()
	if q.local == nil {
		q.local = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7411}
	}
	if q.at.IsZero() {
		q.at = time.Now()
	}
	ctx := context.WithValue(h.t.Context(), http.LocalAddrContextKey, q.local)
	r := httptest.NewRequestWithContext(ctx, "POST", "http://pawl.example/hooks/"+q.path, strings.NewReader(q.body))
	if q.host != "" {
		r.Host = q.host
	}
	if q.secret != "" {
		fields, err := signature.Sign(&signature.Hook{Scheme: q.scheme}, q.secret, q.id, q.at, []byte(q.body))
		if err != nil {
			h.t.Fatal(err)
		}
		for _, f := range fields {
			r.Header.Set(f.Name, f.Value)
		}
	}
	for i := 0; i < len(q.header); i += 2 {
		r.Header.Set(q.header[i], q.header[i+1])
	}
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	var out api.Received
	_ = json.Unmarshal(w.Body.Bytes(), &out)
	if w.Code == 503 && w.Header().Get("Retry-After") == "" {
		h.t.Errorf("%s: 503 without Retry-After", q.path)
	}
	return w.Code, out, w.Body.String()
}

func TestHookBecomesASignal(t *testing.T) {
	t.Parallel()
	h := hookRigged(t)
	push := hookRequest{path: "github", body: `{"repository":{"full_name":"pawl-run/pawl"}}`, scheme: signature.GitHub, secret: "old secret", id: "d-1", header: []string{"X-GitHub-Event", "push", "Origin", "https://elsewhere.example"}}
	code, first, body := h.send(push)
	if code != 202 || first.Signal == "" || first.Existing {
		t.Fatalf("%d %s", code, body)
	}
	s, err := h.client.Signal(t.Context(), first.Signal)
	if err != nil || s.Trigger != "github.push" || s.Subject != "pawl-run/pawl" || s.Key != "github/d-1" || s.Source != "webhook:github" || string(s.Data) != push.body ||
		len(s.Headers) != 1 || s.Headers["x-github-event"] != "push" {
		t.Errorf("%+v, %v", s, err)
	}
	if code, again, body := h.send(push); code != 200 || !again.Existing || again.Signal != first.Signal {
		t.Errorf("sent again: %d %s", code, body)
	}
	push.secret, push.id = "new secret", "d-2"
	code, replay, body := h.send(push)
	if code != 202 || !replay.Replayed || replay.Signal == first.Signal {
		t.Errorf("the same body under another id: %d %s", code, body)
	}
	if s, err := h.client.Signal(t.Context(), replay.Signal); err != nil || !s.Replayed {
		t.Errorf("%+v, %v", s, err)
	}
	push.id, push.body = "d-1", `{"repository":{"full_name":"pawl-run/other"}}`
	if code, other, body := h.send(push); code != 200 || !other.Differs || other.Signal != first.Signal {
		t.Errorf("other content under the same id: %d %s", code, body)
	}

	keyed := hookRequest{path: "keyed", body: `{"order":7}`, scheme: signature.GitHub, secret: "old secret", id: "e-1"}
	_, one, _ := h.send(keyed)
	keyed.id = "e-2"
	if code, two, body := h.send(keyed); code != 200 || two.Signal != one.Signal || !two.Existing {
		t.Errorf("the same key: %d %s", code, body)
	}

	big := hookRequest{path: "standard?as=big.one", body: `"` + strings.Repeat("x", 2<<20) + `"`, scheme: signature.Standard, secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", id: "msg_1"}
	if code, out, body := h.send(big); code != 202 {
		t.Errorf("2 MB: %d %.200s", code, body)
	} else if s, err := h.client.Signal(t.Context(), out.Signal); err != nil || s.Trigger != "big.one" || len(s.Data) != len(big.body) {
		t.Errorf("%s %d, %v", s.Trigger, len(s.Data), err)
	}
	big.id, big.at = "msg_2", time.Now().Add(time.Second) // signed: a message with another id is another message
	if code, out, body := h.send(big); code != 202 || out.Replayed {
		t.Errorf("the same body under another signed id: %d %.200s", code, body)
	}
}

func TestHookRefusals(t *testing.T) {
	t.Parallel()
	h := hookRigged(t)
	github := func(change func(*hookRequest)) hookRequest {
		q := hookRequest{path: "github", body: `{}`, scheme: signature.GitHub, secret: "old secret", id: "x-1", header: []string{"X-GitHub-Event", "push"}}
		change(&q)
		return q
	}
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7411}
	for _, c := range []struct {
		what   string
		q      hookRequest
		code   int
		reason string // reason of the webhook's latest refusal
	}{
		{"no such webhook", hookRequest{path: "nobody"}, 404, ""},
		{"a path beneath", hookRequest{path: "github/x"}, 404, ""},
		{"no signature", github(func(q *hookRequest) { q.secret = "" }), 401, "missing"},
		{"another secret", github(func(q *hookRequest) { q.secret = "wrong" }), 401, "mismatch"},
		{"no form of a signature", github(func(q *hookRequest) { q.header = []string{"X-Hub-Signature-256", "sha1=00"} }), 401, "garbled"},
		{"too large", github(func(q *hookRequest) { q.body = strings.Repeat("x", 2001) }), 413, "too_large"},
		{"no JSON", github(func(q *hookRequest) { q.body = "<xml/>" }), 422, "invalid"},
		{"an expression that fails", github(func(q *hookRequest) { q.header = nil }), 422, "invalid"},
		{"a trigger that is none", github(func(q *hookRequest) { q.header = []string{"X-GitHub-Event", "no trigger!"} }), 422, "invalid"},
		{"signed too long ago", hookRequest{path: "standard", scheme: signature.Standard, secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", id: "m", at: time.Now().Add(-time.Hour)}, 401, "stale"},
		{"signed in the future", hookRequest{path: "standard", scheme: signature.Standard, secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", id: "m", at: time.Now().Add(time.Hour)}, 401, "future"},
		{"Pawl's own trigger", hookRequest{path: "standard?as=execution.ended", body: "{}", scheme: signature.Standard, secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", id: "m"}, 422, "invalid"},
		{"without a secret", hookRequest{path: "bare", scheme: signature.GitHub, secret: "x"}, 503, "secret"},
		{"paused", hookRequest{path: "asleep", scheme: signature.GitHub, secret: "old secret"}, 503, "paused"},
		{"no signature from elsewhere", hookRequest{path: "local", body: "{}"}, 403, "not_local"},
		{"no signature by another name", hookRequest{path: "local", body: "{}", local: loopback, host: "evil.example"}, 403, "not_local"},
		{"no signature from another site's page", hookRequest{path: "local", body: "{}", local: loopback, host: "localhost:7411", header: []string{"Origin", "https://evil.example"}}, 403, "not_local"},
	} {
		code, _, body := h.send(c.q)
		if code != c.code {
			t.Errorf("%s: %d %s, want %d", c.what, code, body, c.code)
		}
		if code == 401 && !strings.Contains(body, `"title":"The request is not signed as this webhook asks"`) {
			t.Errorf("%s: %s", c.what, body)
		}
		if strings.Contains(body, "NOWHERE") || strings.Contains(body, "old secret") {
			t.Errorf("%s: %s", c.what, body)
		}
		if c.reason == "" {
			continue
		}
		name, _, _ := strings.Cut(c.q.path, "?")
		w, err := h.client.Webhook(t.Context(), name)
		if err != nil || len(w.Refusals) == 0 || w.Refusals[0].Reason != c.reason || w.Refusals[0].Message == "" || w.Refusals[0].Remote == "" {
			t.Errorf("%s: %v, %+v, want %s", c.what, err, w.Refusals, c.reason)
		}
	}
	if page, err := h.client.Signals(t.Context(), client.SignalFilter{}); err != nil || len(page.Signals) != 0 {
		t.Errorf("refused requests left %+v, %v", page, err)
	}
	// A proxy on this machine passes on requests from elsewhere: if the server has tokens, one is required, and requests with headers of a
	// proxy are refused.
	known := []string{"Authorization", "Bearer " + token}
	if code, _, _ := h.send(hookRequest{path: "local", body: "{}", local: loopback, host: "localhost:7411"}); code != 403 {
		t.Errorf("from this machine, without a token: %d", code)
	}
	if code, _, _ := h.send(hookRequest{path: "local", body: "{}", local: loopback, host: "localhost:7411", header: append([]string{"X-Forwarded-For", "10.0.0.7"}, known...)}); code != 403 {
		t.Errorf("through a proxy on this machine: %d", code)
	}
	if code, _, body := h.send(hookRequest{path: "local", body: "{}", local: loopback, host: "localhost:7411", header: known}); code != 202 {
		t.Errorf("from this machine: %d %s", code, body)
	}
	if code, out, body := h.send(hookRequest{path: "local", body: "{}", local: loopback, host: "localhost:7411", header: known}); code != 202 || out.Replayed {
		t.Errorf("from this machine, again: %d %s", code, body)
	}
	_, metrics := h.do(t, "GET", "/metrics", "", "Authorization", "Bearer "+token)
	for _, want := range []string{`pawl_webhooks_refused_total{hook="github",reason="missing"} 1`, `pawl_webhooks_refused_total{hook="",reason="unknown"} 1`, `{hook="bare",reason="secret"} 1`} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("no %s", want)
		}
	}
	for range refusalsKept + 5 {
		h.send(github(func(q *hookRequest) { q.secret = "wrong" }))
	}
	if w, err := h.client.Webhook(t.Context(), "github"); err != nil || len(w.Refusals) != refusalsKept {
		t.Errorf("%d refusals are remembered, %v", len(w.Refusals), err)
	}
}

// A provider that checks whether a webhook exists gets an answer if its signature is right, and nothing is stored.
func TestHookAnswers(t *testing.T) {
	t.Parallel()
	h := hookRigged(t)
	ping := hookRequest{path: "github", body: `{"zen":"x"}`, scheme: signature.GitHub, secret: "old secret", id: "p", header: []string{"X-GitHub-Event", "ping"}}
	if code, _, body := h.send(ping); code != 200 || body != "pong" {
		t.Errorf("ping: %d %s", code, body)
	}
	challenge := hookRequest{path: "slack", body: `{"type":"url_verification","challenge":"3eZbrw1a"}`, scheme: signature.Slack, secret: "old secret"}
	if code, _, body := h.send(challenge); code != 200 || body != "3eZbrw1a" {
		t.Errorf("challenge: %d %s", code, body)
	}
	challenge.secret = "wrong"
	if code, _, body := h.send(challenge); code != 401 {
		t.Errorf("a challenge with another signature: %d %s", code, body)
	}
	if page, err := h.client.Signals(t.Context(), client.SignalFilter{}); err != nil || len(page.Signals) != 0 {
		t.Errorf("they left %+v, %v", page, err)
	}
	command := hookRequest{path: "slack", body: "token=x&command=%2Fdeploy", scheme: signature.Slack, secret: "old secret", at: time.Now(), header: []string{"Content-Type", "application/x-www-form-urlencoded"}}
	_, out, body := h.send(command)
	if s, err := h.client.Signal(t.Context(), out.Signal); err != nil || string(s.Data) != `{"command":"/deploy","token":"x"}` || s.Key != "" {
		t.Errorf("a form: %s, %+v, %v", body, s, err)
	}
	if code, again, body := h.send(command); code != 202 || !again.Replayed {
		t.Errorf("the same signed bytes again: %d %s", code, body)
	}
}

// Programs that cannot sign use a shared secret. A short secret cannot be guessed: after five wrong ones within a minute the address is
// refused, as for logins. Requests with a long secret are not limited, because another sender behind the same proxy would lock this one
// out.
func TestHookSharedSecrets(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"LONG": "4f1a6c0e8d2b7395", "SHORT": "hunter2"}
	h := start(t, Options{Tokens: []string{token}, Secret: func(name string) (string, error) { return secrets[name], nil }})
	const documents = `kind: webhook
name: long
verify: {scheme: bearer, secret_env: LONG}
trigger: long
---
kind: webhook
name: short
verify: {scheme: basic, user: ada, secret_env: SHORT}
trigger: short
---
kind: webhook
name: gitlab
verify: {scheme: token, header: X-Gitlab-Token, id: X-Gitlab-Event-UUID, secret_env: LONG}
trigger: gitlab
`
	if _, err := h.client.Define(t.Context(), []byte(documents), "hooks.yaml"); err != nil {
		t.Fatal(err)
	}
	rig := &hookRig{house: h, t: t}
	send := func(hook, name, value string) (int, string) {
		code, _, body := rig.send(hookRequest{path: hook, body: "{}", header: []string{name, value, "X-Gitlab-Event-UUID", "u-1", "X-Forwarded-For", "203.0.113.7"}})
		return code, body
	}
	for range 2 * wrongLogins {
		if code, body := send("long", "Authorization", "Bearer wrong"); code != 401 || strings.Contains(body, secrets["LONG"]) {
			t.Fatalf("%d %s", code, body)
		}
	}
	for range 2 { // without a signature, these are two requests
		if code, body := send("long", "Authorization", "Bearer 4f1a6c0e8d2b7395"); code != 202 || strings.Contains(body, "replayed") {
			t.Errorf("after wrong ones: %d %s", code, body)
		}
	}
	for _, want := range []int{202, 200} {
		if code, body := send("gitlab", "X-Gitlab-Token", "4f1a6c0e8d2b7395"); code != want {
			t.Errorf("%d %s, want %d", code, body, want)
		}
	}
	const right, wrong = "Basic YWRhOmh1bnRlcjI=", "Basic YWRhOmh1bnRlcjM="
	if code, body := send("short", "Authorization", right); code != 202 {
		t.Errorf("%d %s", code, body)
	}
	for range wrongLogins {
		if code, body := send("short", "Authorization", wrong); code != 401 {
			t.Fatalf("%d %s", code, body)
		}
	}
	for _, value := range []string{right, wrong} {
		if code, body := send("short", "Authorization", value); code != 429 {
			t.Errorf("after five wrong ones: %d %s", code, body)
		}
	}
	w, err := h.client.Webhook(t.Context(), "short")
	if err != nil || len(w.Refusals) != wrongLogins+2 || w.Refusals[0].Reason != hookGuessing || w.Refusals[wrongLogins].Reason != "mismatch" {
		t.Errorf("%v, %+v", err, w)
	}
}

func TestWebhookList(t *testing.T) {
	t.Parallel()
	h := hookRigged(t)
	all, err := h.client.Webhooks(t.Context())
	if err != nil || len(all) != 7 || all[0].Name != "asleep" || !all[0].Paused || all[2].Path != "/hooks/github" || all[2].Scheme != "github" || all[2].Trigger == "" || len(all[1].Missing) != 1 {
		t.Errorf("%v, %+v", err, all)
	}
	w, err := h.client.Webhook(t.Context(), "github")
	if err != nil || w.Version != 1 || len(w.Document) == 0 || strings.Contains(string(w.Document), "secret\"") {
		t.Errorf("%v, %+v", err, w)
	}
	h.problem(t, 404, api.ProblemNotFound, "GET", "/api/v1/webhooks/nobody", "", "Authorization", "Bearer "+token)
	if _, err := h.client.Define(t.Context(), []byte("kind: webhook\nname: github\nverify: {scheme: none}\ntrigger: t\n"), "h.yaml"); err != nil {
		t.Fatal(err)
	}
	if w, err := h.client.Webhook(t.Context(), "github"); err != nil || w.Version != 2 || w.Scheme != "none" {
		t.Errorf("%v, %+v", err, w)
	}
}

// A provider's request runs the rules that listen to it, once for each request, and a replay runs none.
func TestHookRunsRules(t *testing.T) {
	t.Parallel()
	h := hookRigged(t)
	const rule = "kind: rule\nname: on-push\non: [github.push]\nif: signal.data.ref == \"refs/heads/main\"\nrun: {action: noop, input: {ref: '${{ signal.data.ref }}', event: '${{ signal.headers[\"x-github-event\"] }}'}, labels: {by: hook}}\n"
	if _, err := h.client.Define(t.Context(), []byte(rule), "rule.yaml"); err != nil {
		t.Fatal(err)
	}
	push := hookRequest{path: "github", body: `{"ref":"refs/heads/main"}`, scheme: signature.GitHub, secret: "old secret", id: "d-1", header: []string{"X-GitHub-Event", "push"}}
	for _, want := range []int{202, 200} { // the second is a repetition of the first
		if code, _, body := h.send(push); code != want {
			t.Fatalf("%d %s, want %d", code, body, want)
		}
	}
	push.id = "d-2" // a replay
	if code, out, body := h.send(push); code != 202 || !out.Replayed {
		t.Fatalf("%d %s", code, body)
	}
	push.id, push.body = "d-3", `{"ref":"refs/heads/other"}`
	if code, _, body := h.send(push); code != 202 {
		t.Fatalf("%d %s", code, body)
	}
	page, err := h.client.List(t.Context(), client.Filter{Labels: map[string]string{"by": "hook"}})
	if err != nil || len(page.Executions) != 1 {
		t.Fatalf("%v, %+v", err, page)
	}
	x, err := h.client.Wait(t.Context(), page.Executions[0].ID)
	if err != nil || string(x.Output) != `{"event":"push","ref":"refs/heads/main"}` && string(x.Output) != `{"ref":"refs/heads/main","event":"push"}` {
		t.Errorf("%v, %s", err, x.Output)
	}
}

// Requests while the database is unreachable are counted without the webhook's name, and their answers reveal nothing about the database.
func TestHooksWithoutDatabase(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"one", "two"} {
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "http://localhost/hooks/"+name, strings.NewReader("{}")))
		if w.Code != 503 || strings.Contains(w.Body.String(), "canceled") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	_, metrics := h.do(t, "GET", "/metrics", "")
	if strings.Contains(string(metrics), `hook="one"`) || !strings.Contains(string(metrics), `pawl_webhooks_refused_total{hook="",reason="unavailable"} 2`) {
		t.Errorf("%s", metrics)
	}
}

// Requests to webhooks and requests to the API use separate memory budgets.
func TestHooksHaveABudgetOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := hookRigged(t)
	big := hookRequest{path: "standard?as=big.one", body: `"` + strings.Repeat("x", 2<<20) + `"`, scheme: signature.Standard, secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", id: "msg_1"}
	submission := `{"action":"noop","input":"` + strings.Repeat("x", 1<<20) + `"}`
	submit := func() int {
		res, _ := h.do(t, "POST", "/api/v1/executions", submission, "Authorization", "Bearer "+token, "Content-Type", "application/json")
		return res.StatusCode
	}
	h.hookBodies.used.Add(h.hookBodies.limit)
	if code, _, body := h.send(big); code != 429 {
		t.Errorf("beyond the budget of hooks: %d %.200s", code, body)
	}
	if code := submit(); code/100 != 2 {
		t.Errorf("a submission beside hooks that take all of theirs: %d", code)
	}
	small := big
	small.path, small.body, small.id = "standard?as=small.one", `"x"`, "msg_2"
	if code, _, body := h.send(small); code != 429 {
		t.Errorf("a small one beyond the budget of hooks: %d %.200s", code, body)
	}
	h.hookBodies.used.Add(-h.hookBodies.limit)
	if code, _, body := h.send(small); code != 202 {
		t.Errorf("a small one within the budget: %d %.200s", code, body)
	}
	if used := h.hookBodies.used.Load(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
	h.bodies.used.Add(h.bodies.limit)
	if code, _, body := h.send(big); code != 202 {
		t.Errorf("a hook beside submissions that take all of theirs: %d %.200s", code, body)
	}
	if code := submit(); code != 429 {
		t.Errorf("beyond the budget of submissions: %d", code)
	}
	h.bodies.used.Add(-h.bodies.limit)
}

// The log reports a missing secret once a minute, for any number of requests.
func TestMissingSecretIsSaidOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var text strings.Builder
	h := start(t, Options{Tokens: []string{token}, Log: slog.New(slog.NewTextHandler(writes(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(p)
	}), nil))})
	if _, err := h.client.Define(t.Context(), []byte(hookDocuments), "hooks.yaml"); err != nil {
		t.Fatal(err)
	}
	rig := &hookRig{house: h, t: t}
	for range 20 {
		if code, _, body := rig.send(hookRequest{path: "bare", body: "{}"}); code != 503 {
			t.Fatalf("%d %s", code, body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(text.String(), "cannot verify its requests"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

type writes func([]byte) (int, error)

func (w writes) Write(p []byte) (int, error) { return w(p) }
