package outgoing_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/task/outgoing"
)

// recorded answers chat requests with a server's recorded answer.
func recorded(t *testing.T, file string) (*httptest.Server, *obj, *http.Header) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	asked, header := &obj{}, &http.Header{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*header = r.Header
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, asked); err != nil || r.URL.Path != "/v1/chat/completions" {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(file, ".json") {
			w.Header().Set("Content-Type", "application/json")
		} else {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		for i := 0; i < len(b); i += 37 { // pieces that do not end at lines
			w.Write(b[i:min(i+37, len(b))])
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(srv.Close)
	return srv, asked, header
}

func llm(t *testing.T, keys ...string) *outgoing.LLM {
	t.Helper()
	l, err := outgoing.NewLLM(outgoing.LLMOptions{Egress: egress(t, outgoing.EgressOptions{AllowPrivate: true}), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLLMStream(t *testing.T) {
	t.Setenv("PAWL_TEST_KEY", "sesame")
	srv, asked, header := recorded(t, "chat.sse")
	out, d, err := call(t.Context(), llm(t, "PAWL_TEST_KEY@"+strings.TrimPrefix(srv.URL, "http://")), obj{"base_url": srv.URL + "/v1/", "model": "echo-1", "system": "be brief", "prompt": "what is a pawl?",
		"temperature": 0, "max_tokens": 20, "api_key_env": "PAWL_TEST_KEY"})
	if err != nil {
		t.Fatal(err)
	}
	if out["text"] != "A pawl holds – one way." || out["finish_reason"] != "stop" || out["model"] != "echo-1-0815" || out["usage"].(obj)["total_tokens"] != 21.0 {
		t.Errorf("output %v", out)
	}
	if d.text("log") != "A pawl holds – one way." {
		t.Errorf("log %q", d.text("log"))
	}
	if header.Get("Authorization") != "Bearer sesame" || header.Get("Idempotency-Key") == "" {
		t.Errorf("headers %v", *header)
	}
	ms := (*asked)["messages"].([]any)
	if len(ms) != 2 || ms[0].(obj)["role"] != "system" || ms[1].(obj)["content"] != "what is a pawl?" || (*asked)["temperature"] != 0.0 || (*asked)["stream"] != true {
		t.Errorf("asked %v", *asked)
	}
}

func TestLLMWhole(t *testing.T) {
	t.Parallel()
	srv, _, _ := recorded(t, "chat_whole.json")
	out, d, err := call(t.Context(), llm(t), obj{"base_url": srv.URL + "/v1", "model": "m", "messages": []obj{{"role": "user", "content": "x"}}, "response_format": obj{"type": "json_object"}})
	if err != nil || out["text"] != `{"n": 1}` || out["json"].(obj)["n"] != 1.0 || d.text("log") != `{"n": 1}` {
		t.Errorf("%v, %v", out, err)
	}
}

func TestLLMFailures(t *testing.T) {
	t.Parallel()
	for file, code := range map[string]string{"chat_cut.sse": "stream_cut", "chat_error.sse": "llm_error"} {
		srv, _, _ := recorded(t, file)
		_, d, err := call(t.Context(), llm(t), obj{"base_url": srv.URL + "/v1", "model": "m", "prompt": "x"})
		if te, ok := errors.AsType[*task.Error](err); !ok || te.Code != code {
			t.Errorf("%s: %v", file, err)
		}
		if file == "chat_cut.sse" && d.text("log") == "" {
			t.Error("what came before the cut is not in the log")
		}
	}
	srv, _, _ := recorded(t, "chat.sse")
	_, _, err := call(t.Context(), llm(t), obj{"base_url": srv.URL + "/v2", "model": "m", "prompt": "x"})
	if te, ok := errors.AsType[*task.Error](err); !ok || te.Code != "http_404" {
		t.Errorf("%v", err)
	}
}

func TestLLMRefusals(t *testing.T) {
	t.Setenv("PAWL_TEST_KEY", "sesame")
	for in, say := range map[string]string{
		`{"model":"m","prompt":"x"}`:                                    "base_url",
		`{"base_url":"http://a","prompt":"x"}`:                          "model: it is missing",
		`{"base_url":"http://a","model":"m"}`:                           "nothing to ask",
		`{"base_url":"http://a","model":"m","messages":[{}]}`:           "messages[0]",
		`{"base_url":"http://a","model":"m","prompt":"x","api_key":""}`: `api_key: there is no such field: "api_key"`,
	} {
		if err := payload.Validate(flow.KindLLM, []byte(in)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, keys := range [][]string{nil, {"OTHER"}, {"PAWL_TEST_KEY@example.com"}} {
		_, _, err := call(t.Context(), llm(t, keys...), obj{"base_url": "http://127.0.0.1:1", "model": "m", "prompt": "x", "api_key_env": "PAWL_TEST_KEY"})
		if te, ok := errors.AsType[*task.Error](err); !ok || te.Code != flow.CodeInvalidInput || !strings.Contains(te.Message, "does not let") {
			t.Errorf("%v: %v", keys, err)
		}
	}
}

// A key for a host is sent over https or to this machine, and only to its port.
func TestLLMKeyForAHost(t *testing.T) {
	t.Setenv("PAWL_TEST_KEY", "sesame")
	plain, _, _ := recorded(t, "chat.sse")
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(plain.URL, "http://"), ":")
	_, securePort, _ := strings.Cut(strings.TrimPrefix(secure.URL, "https://"), ":")
	for _, tc := range []struct{ key, base, say string }{
		{"PAWL_TEST_KEY@127.0.0.1:" + port, plain.URL + "/v1", ""},
		{"PAWL_TEST_KEY@localhost:" + port, "http://LOCALHOST:" + port + "/v1", ""},
		{"PAWL_TEST_KEY", plain.URL + "/v1", ""},
		{"PAWL_TEST_KEY@127.0.0.1", plain.URL + "/v1", "port 80 of 127.0.0.1, not for port " + port},
		{"PAWL_TEST_KEY@127.0.0.1:9", plain.URL + "/v1", "port 9 of 127.0.0.1, not for port " + port},
		{"PAWL_TEST_KEY@llm.example.com", "http://llm.example.com/v1", "over https only, and the URL is of http"},
		{"PAWL_TEST_KEY@llm.example.com:8000", "http://llm.example.com:8000/v1", "over https only"},
		{"PAWL_TEST_KEY@10.1.2.3:80", "http://10.1.2.3/v1", "over https only"},
		{"PAWL_TEST_KEY@llm.example.com", "https://llm.example.com:8443/v1", "port 443 of llm.example.com, not for port 8443"},
		{"PAWL_TEST_KEY@llm.example.com", "https://example.com/v1", "does not let tasks use it for example.com"},
		// The key would be sent; the client stops at the test's certificate, which no authority has signed.
		{"PAWL_TEST_KEY@127.0.0.1:" + securePort, secure.URL + "/v1", "certificate"},
		{"PAWL_TEST_KEY@127.0.0.1", secure.URL + "/v1", "port 443 of 127.0.0.1, not for port " + securePort},
	} {
		_, _, err := call(t.Context(), llm(t, tc.key), obj{"base_url": tc.base, "model": "m", "prompt": "x", "api_key_env": "PAWL_TEST_KEY"})
		if tc.say == "" && err != nil || tc.say != "" && (err == nil || !strings.Contains(err.Error(), tc.say)) {
			t.Errorf("%s to %s: %v", tc.key, tc.base, err)
		}
	}
	for _, bad := range []string{"", "@host", "A=B", "NAME@", "NAME@https://host", "NAME@host/v1", "NAME@host:", "NAME@a:b:c", "NAME@:80"} {
		if _, err := outgoing.NewLLM(outgoing.LLMOptions{Keys: []string{bad}}); err == nil || !strings.Contains(err.Error(), "NAME@host") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"NAME", "NAME@host", "NAME@host:8443", "NAME@::1", "NAME@[::1]", "NAME@[::1]:8000"} {
		if _, err := outgoing.NewLLM(outgoing.LLMOptions{Keys: []string{good}}); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}
