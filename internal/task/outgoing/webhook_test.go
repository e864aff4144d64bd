package outgoing_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/signature"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/task/outgoing"
)

func webhook(t *testing.T, secrets ...string) *outgoing.Webhook {
	t.Helper()
	h, err := outgoing.NewWebhook(outgoing.WebhookOptions{Egress: egress(t, outgoing.EgressOptions{AllowPrivate: true}), Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A receiver that implements Standard Webhooks can verify the requests, and gets the same id and body in each attempt.
func TestWebhookIsSigned(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	t.Setenv("PAWL_TEST_HOOK", secret)
	file := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var ids, bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d, err := signature.Verify(&signature.Hook{Scheme: signature.Standard}, []string{secret}, r.Header, body, time.Now())
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v: %v", r.Method, r.Header, err)
		}
		ids, bodies = append(ids, d.ID), append(bodies, string(body))
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(srv.Close)
	h := webhook(t, "PAWL_TEST_HOOK@"+strings.TrimPrefix(srv.URL, "http://"), file)
	for _, in := range []obj{
		{"url": srv.URL, "event": "deploy.failed", "data": obj{"n": 1}, "secret_env": "PAWL_TEST_HOOK"},
		{"url": srv.URL, "event": "deploy.failed", "data": obj{"n": 1}, "secret_file": file},
	} {
		out, d, err := call(t.Context(), h, in)
		if err != nil || out["status"] != 204.0 || out["id"] != (flow.ID{1}).String() {
			t.Errorf("%v, %v", out, err)
		}
		if log := d.text("log"); !strings.Contains(log, "deploy.failed → ") || strings.Contains(log, "whsec") {
			t.Errorf("log %q", log)
		}
	}
	if len(ids) != 2 || ids[0] != (flow.ID{1}).String() || ids[1] != ids[0] || bodies[0] != `{"type":"deploy.failed","data":{"n":1}}` || bodies[1] != bodies[0] {
		t.Errorf("ids %q, bodies %q", ids, bodies)
	}
}

func TestWebhookAnswers(t *testing.T) {
	t.Setenv("PAWL_TEST_HOOK", "c2VzYW1l")
	var asked int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/jump":
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/busy":
			w.Header().Set("Retry-After", time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/odd":
			w.Header().Set("Retry-After", "soon")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/bad":
			w.Header().Set("Retry-After", "7") // has no meaning with this status
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(srv.Close)
	for _, c := range []struct {
		path, code string
		least      float64 // retry_in
	}{{"/ok", "", 0}, {"/gone", flow.CodeGone, 0}, {"/jump", "http_307", 0}, {"/busy", "http_503", 80}, {"/odd", "http_429", 0}, {"/bad", "http_400", 0}} {
		asked = 0
		_, _, err := call(t.Context(), webhook(t, "PAWL_TEST_HOOK"), obj{"url": srv.URL + c.path, "event": "e", "secret_env": "PAWL_TEST_HOOK"})
		var details struct {
			RetryIn float64 `json:"retry_in"`
		}
		code := ""
		if te, ok := errors.AsType[*task.Error](err); ok {
			code = te.Code
			_ = json.Unmarshal(te.Details, &details)
		}
		if code != c.code || details.RetryIn < c.least || details.RetryIn > c.least+10 || asked != 1 {
			t.Errorf("%s: %v, again in %g s, asked %d times", c.path, err, details.RetryIn, asked)
		}
	}
}

func TestWebhookSecretsOfTheWorker(t *testing.T) {
	t.Setenv("PAWL_TEST_HOOK", "no base64!")
	for _, c := range []struct {
		grants []string
		in     obj
		code   string
	}{
		{nil, obj{"secret_env": "PAWL_TEST_HOOK"}, flow.CodeInvalidInput},
		{[]string{"PAWL_TEST_HOOK"}, obj{"secret_file": "/etc/passwd"}, flow.CodeInvalidInput},
		{[]string{"PAWL_TEST_HOOK@example.com"}, obj{"secret_env": "PAWL_TEST_HOOK"}, flow.CodeInvalidInput},
		{[]string{"PAWL_TEST_MISSING"}, obj{"secret_env": "PAWL_TEST_MISSING"}, "secret_unavailable"},
		{[]string{"/nowhere/secret"}, obj{"secret_file": "/nowhere/secret"}, "secret_unavailable"},
		{[]string{"PAWL_TEST_HOOK"}, obj{"secret_env": "PAWL_TEST_HOOK"}, "secret_unavailable"},
	} {
		c.in["url"], c.in["event"] = "http://127.0.0.1:1", "e"
		_, _, err := call(t.Context(), webhook(t, c.grants...), c.in)
		if te, ok := errors.AsType[*task.Error](err); !ok || te.Code != c.code || strings.Contains(te.Message, "base64!") {
			t.Errorf("%v of %v: %v", c.in, c.grants, err)
		}
	}
}

// A secret in a document is refused, and the message does not repeat it.
func TestWebhookRefusals(t *testing.T) {
	t.Parallel()
	for in, say := range map[string]string{
		`{"event":"e","secret_env":"S"}`:                                           "url: it is not an absolute",
		`{"url":"http://a","secret_env":"S"}`:                                      "event",
		`{"url":"http://a","event":"a b","secret_env":"S"}`:                        "event: it is not the name",
		`{"url":"http://a","event":"e"}`:                                           "secret_env: no secret is named",
		`{"url":"http://a","event":"e","secret_env":"S","secret_file":"/s"}`:       "secret_file: it is given beside secret_env",
		`{"url":"http://a","event":"e","secret_env":"whsec_c2VzYW1lc2VzYW1l"}`:     "secret_env: it is not a name of a variable",
		`{"url":"http://a","event":"e","secret_env":"sesame-open/please=="}`:       "secret_env: it is not a name of a variable",
		`{"url":"http://a","event":"e","secret_file":"s"}`:                         "secret_file: it is not an absolute path",
		`{"url":"http://a","event":"e","secret_file":"/run/../s"}`:                 "secret_file: it is not an absolute path",
		`{"url":"http://a","event":"e","secret_env":"S","secret":"c2VzYW1lc2Vz"}`:  `there is no such field: "secret"`,
		`{"url":"http://a","event":"e","secret_env":"S","follow_redirects":false}`: `there is no such field: "follow_redirects"`,
	} {
		err := payload.Validate(flow.KindWebhook, []byte(in))
		if err == nil || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "c2VzYW1l") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// Requests of an execution that rules led to have the header with the rules; others do not.
func TestChainIsSent(t *testing.T) {
	t.Setenv("PAWL_TEST_HOOK", "c2VzYW1l")
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, strings.Join(r.Header.Values("Pawl-Chain"), "|"))
	}))
	t.Cleanup(srv.Close)
	const chain = "0123456789abcdef,fedcba9876543210"
	for _, chain := range []string{"", chain} {
		for kind, h := range map[flow.Kind]task.Handler{flow.KindHTTP: outgoing.HTTP{Egress: egress(t, outgoing.EgressOptions{AllowPrivate: true})}, flow.KindWebhook: webhook(t, "PAWL_TEST_HOOK")} {
			in := fmt.Sprintf(`{"url":%q,"method":"POST"}`, srv.URL)
			if kind == flow.KindWebhook {
				in = fmt.Sprintf(`{"url":%q,"event":"e","secret_env":"PAWL_TEST_HOOK"}`, srv.URL)
			}
			got = nil
			if _, err := h.Run(t.Context(), &task.Task{Execution: flow.ID{1}, Attempt: 1, Kind: kind, Payload: json.RawMessage(in), Chain: chain, Host: &host{}}); err != nil || len(got) != 1 || got[0] != chain {
				t.Errorf("%s with chain %q sends %q, %v", kind, chain, got, err)
			}
		}
	}
}
