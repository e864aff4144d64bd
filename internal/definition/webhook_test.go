package definition

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/signature"
)

const githubHook = `kind: webhook
name: github
description: What happens in our repositories.
verify: {scheme: github, secret_env: [GITHUB_SECRET, GITHUB_SECRET_OLD], secret_file: /run/secrets/github}
trigger: github.${{ headers["x-github-event"] }}
subject: ${{ default(body.repository.full_name, "") }}
keep_headers: [X-GitHub-Event]
max_body: 5MB
replay: 12h
paused: false
`

const hmacHook = `kind: webhook
name: shop
verify:
  scheme: hmac
  header: x-sign
  encoding: base64
  prefix: "sha256="
  signed: "{timestamp}.{id}.{body}"
  timestamp: x-time
  id: x-id
  tolerance: 1m
  secret_env: SHOP_SECRET
trigger: shop.order
key: ${{ body.order }}/${{ query.part }}
`

const sharedHooks = `---
kind: webhook
name: alertmanager
verify: {scheme: basic, user: alertmanager, secret_env: ALERTMANAGER_PASSWORD}
trigger: alertmanager
---
kind: webhook
name: gitlab
verify: {scheme: token, header: X-Gitlab-Token, prefix: "t ", id: X-Gitlab-Event-UUID, secret_env: GITLAB_TOKEN}
trigger: gitlab
---
kind: webhook
name: azure
verify: {scheme: bearer, id: X-Id, secret_file: /run/secrets/azure}
trigger: azure
`

func TestWebhook(t *testing.T) {
	t.Parallel()
	defs, err := Parse("h.yaml", []byte(githubHook+"---\n"+hmacHook+sharedHooks+"---\nname: github\naction: noop\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range defs[:5] {
		again, err := Decode(d.Canonical())
		if err != nil || string(again.Canonical()) != string(d.Canonical()) || again.Webhook.Verify != d.Webhook.Verify || !slices.Equal(again.Webhook.Secrets, d.Webhook.Secrets) {
			t.Errorf("%s decoded: %v, %+v", d.Name, err, again)
		}
		if d.Runnable() || len(d.References()) > 0 || len(d.QueueRefs()) > 0 {
			t.Errorf("%s mentions %v", d.Name, d.References())
		}
	}
	w := defs[0].Webhook
	if w.MaxBody != 5_000_000 || w.Replay != 12*time.Hour || strings.Join(w.Secrets, " ") != "GITHUB_SECRET GITHUB_SECRET_OLD /run/secrets/github" {
		t.Errorf("%+v", w)
	}
	r, err := w.Request(http.Header{"X-Github-Event": {"push"}, "Authorization": {"Bearer sesame"}, "X-Two": {"a", "b"}}, nil, []byte(`{"repository":{"full_name":"pawl-run/pawl"}}`))
	if err != nil || r.Headers["authorization"] != "" || r.Headers["x-two"] != "a, b" {
		t.Fatalf("%+v, %v", r, err)
	}
	s, err := w.Signal("github", r)
	if err != nil || s.Trigger != "github.push" || s.Subject != "pawl-run/pawl" || s.Key != "" || len(s.Headers) != 1 || s.Headers["x-github-event"] != "push" {
		t.Errorf("%+v, %v", s, err)
	}
	r.Headers = map[string]string{}
	if _, err := w.Signal("github", r); err == nil || !strings.Contains(err.Error(), "trigger") {
		t.Errorf("without the header: %v", err)
	}
	r, err = w.Request(http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}, url.Values{"part": {"2"}, "x": {"a", "b"}}, []byte("order=a%2B7&tag[]=x&tag[]=y&only[]=z&c=1&c=2&e="))
	if err != nil || string(r.Body) != `{"c":["1","2"],"e":"","only[]":["z"],"order":"a+7","tag[]":["x","y"]}` || string(r.Query) != `{"part":"2","x":["a","b"]}` {
		t.Fatalf("%s, %v", r.Body, err)
	}
	if s, err := defs[1].Webhook.Signal("shop", r); err != nil || s.Key != "a+7/2" || s.Trigger != "shop.order" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, form := range []string{"a=%ff", "%ff=a", "a=%zz", "a=%", "a=%00", "a=1;b=2"} {
		if r, err := w.Request(http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, nil, []byte(form)); err == nil {
			t.Errorf("%s was read as %s", form, r.Body)
		}
	}
	if r, err := w.Request(nil, url.Values{"a": {"\xff"}}, []byte("{}")); err == nil {
		t.Errorf("%s", r.Query)
	}
	if r, err := w.Request(nil, nil, []byte("\uFEFF{\"a\":1}")); err != nil || string(r.Body) != `{"a":1}` {
		t.Errorf("with a byte order mark: %v", err)
	}
	for _, body := range []string{"", "<xml/>", `{"a":1} {}`, strings.Repeat("[", 10_000), "\xff"} {
		if _, err := w.Request(nil, nil, []byte(body)); err == nil {
			t.Errorf("%.20q was read", body)
		}
	}
}

// A body is read as JSON or as a form by its content, whatever content type curl and others send, and never as an object with one odd name.
func TestWebhookBodies(t *testing.T) {
	t.Parallel()
	const form, object = "application/x-www-form-urlencoded", `{"ref":"refs/heads/main"}`
	for _, c := range []struct{ kind, body, want string }{
		{"", object, object}, {"text/plain", object, object}, {form, object, object}, {form + "; charset=utf-8", " \n" + object, " \n" + object},
		{form, `[{"a": 1}]`, `[{"a": 1}]`}, {form, `"text"`, `"text"`}, {form, "\uFEFF" + object, object},
		{form, "payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D", object}, {"APPLICATION/X-WWW-FORM-URLENCODED", "payload=%7B%22a%22%3A%22%E2%82%AC+1%22%7D", `{"a":"€ 1"}`},
		{form, "payload=%5B1%5D", "[1]"}, {form, "payload=text", `{"payload":"text"}`}, {form, "payload=%7B%7D&x=1", `{"payload":"{}","x":"1"}`},
		{form, "payload=%7B%7D&payload=%7B%7D", `{"payload":["{}","{}"]}`}, {form, "", "{}"}, {form, "a=1&b", `{"a":"1","b":""}`},
		{form, `{"ref":`, "it begins like none"}, {form, "<xml/>", "it begins like none"}, {form, "hello", "no field name=value"}, {form, "payload=%7B%22a%22", "field payload"},
		{"", `{"a":1,"a":2}`, `the name "a" is given twice`}, {"", `{"a":[{"b":1,"\u0062":2}]}`, `the name "b" is given twice`}, {"", `{"a":"x\u0000"}`, "NUL"}, {form, "payload=%7B%22a%22%3A1%2C%22a%22%3A2%7D", "given twice"},
		{"", `{"a":"\ud800","b":9007199254740993,"c":1e400}`, `{"a":"\ud800","b":9007199254740993,"c":1e400}`}, {"", `{"a":{"b":1},"b":1}`, `{"a":{"b":1},"b":1}`}, {"", `{"a":"\\u0000"}`, `{"a":"\\u0000"}`},
		{"application/json", "payload=%7B%7D", "Content-Type: " + form}, {"", "", "neither JSON nor a form"}, {"application/json", `{"n": 1e4000}`, "the number 1e4000 is out of range"}, {"", `{"n": }`, "not JSON that can be read"}, {"multipart/form-data; boundary=x", "--x--", "neither JSON nor a form"},
	} {
		r, err := (&Webhook{}).Request(http.Header{"Content-Type": {c.kind}}, nil, []byte(c.body))
		got := ""
		if err == nil {
			got = string(r.Body)
		} else if strings.Contains(err.Error(), c.want) {
			got = c.want
		}
		if got != c.want {
			t.Errorf("%q as %q: %s, %v, want %s", c.body, c.kind, got, err, c.want)
		}
	}
}

// Expressions do not see the secret of a request.
func TestWebhookHidesItsSecret(t *testing.T) {
	t.Parallel()
	w := &Webhook{Verify: signature.Hook{Scheme: signature.Token, Header: "X-GitLab-Token"}}
	r, err := w.Request(http.Header{"X-Gitlab-Token": {"sesame"}, "Authorization": {"Bearer sesame"}, "X-Gitlab-Event": {"Push Hook"}}, nil, []byte("{}"))
	if err != nil || len(r.Headers) != 1 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	github, slack := &Webhook{Verify: signature.Hook{Scheme: signature.GitHub}}, &Webhook{Verify: signature.Hook{Scheme: signature.Slack}}
	ping := &WebhookRequest{Headers: map[string]string{"x-github-event": "ping"}, Body: []byte(`{"zen":"x"}`)}
	challenge := &WebhookRequest{Body: []byte(`{"type":"url_verification","challenge":"3eZbrw1a\n"}`)}
	if text, ok := github.Answer(ping); !ok || text != "pong" {
		t.Errorf("%q, %t", text, ok)
	}
	if text, ok := slack.Answer(challenge); !ok || text != "3eZbrw1a\n" {
		t.Errorf("%q, %t", text, ok)
	}
	for _, r := range []*WebhookRequest{{Body: []byte(`[]`)}, {Body: []byte(`{"type":7}`)}, {Body: []byte(`{"type":"event_callback"}`)}, ping} {
		if text, ok := slack.Answer(r); ok {
			t.Errorf("%s: %q", r.Body, text)
		}
	}
}

func TestWebhookProblems(t *testing.T) {
	t.Parallel()
	const head, rest = "kind: webhook\nname: h\n", "trigger: t\n"
	for src, want := range map[string]string{
		head + rest:                              "h.yaml:1:1: the webhook does not say how its requests are signed",
		head + "verify: {scheme: none}":          "h.yaml:1:1: the webhook does not say which signals it emits",
		head + rest + "verify: {scheme: githob}": "verify.scheme:",
		head + rest + "verify: {secret_env: S}":  "h.yaml:4:9: verify: verify has no scheme",
		head + rest + "verify: {scheme: github}": "verify: no secret is named",
		head + rest + "verify: {scheme: github, secret_env: whsec_c2VzYW1lc2VzYW1l}":             "h.yaml:4:38: verify.secret_env: it is not a name of a variable",
		head + rest + "verify: {scheme: github, secret_env: [A, 'sesame open!']}":                "h.yaml:4:42: verify.secret_env[1]: it is not a name of a variable",
		head + rest + "verify: {scheme: github, secret_file: sesame.txt}":                        "h.yaml:4:39: verify.secret_file: it is not an absolute path",
		head + rest + "verify: {scheme: github, secret: sesame}":                                 `h.yaml:4:26: verify: unknown field "secret"`,
		head + rest + "verify: {scheme: none, secret_env: S}":                                    "scheme none checks no signature",
		head + rest + "verify: {scheme: github, secret_env: S, header: x}":                       "h.yaml:4:49: verify.header: scheme github says that itself",
		head + rest + "verify: {scheme: token, secret_env: S}":                                   "verify.header: scheme token needs the header",
		head + rest + "verify: {scheme: token, header: x-t, secret_env: S}\nkeep_headers: [X-T]": "h.yaml:5:16: keep_headers[0]: x-t has a credential",
		head + rest + "verify: {scheme: bearer}":                                                 "verify: no secret is named",
		head + rest + "verify: {scheme: bearer, secret_env: S, header: x}":                       "verify.header: a request of scheme bearer has the secret itself",
		head + rest + "verify: {scheme: basic, secret_env: S, user: 'a:b'}":                      "verify.user:",
		head + rest + "verify: {scheme: basic, secret_env: S, tolerance: 1m}":                    "verify.tolerance: scheme basic signs no time",
		head + rest + "verify: {scheme: baisc, secret_env: S}":                                   "basic",
		head + rest + "verify: {scheme: hmac, secret_env: S}":                                    "verify.header: scheme hmac needs the header",
		head + rest + "verify: {scheme: hmac, secret_env: S, header: x, signed: 'a'}":            "verify.signed: the body must be signed",
		head + rest + "verify: {scheme: standard, secret_env: S, tolerance: 2d}":                 "verify.tolerance:",
		head + rest + "verify: {scheme: none}\nmax_body: 17MiB":                                  "h.yaml:5:11: max_body:",
		head + rest + "verify: {scheme: none}\nmax_body: [1]":                                    "max_body:",
		head + rest + "verify: {scheme: none}\nreplay: 8d":                                       "replay:",
		head + rest + "verify: {scheme: none}\nkeep_headers: [x-a, Authorization]":               "h.yaml:5:21: keep_headers[1]: authorization has a credential",
		head + rest + "verify: {scheme: none}\nkeep_headers: ['a b']":                            "keep_headers[0]:",
		head + "verify: {scheme: none}\ntrigger: '${{ input.x }}'":                               "trigger:",
		head + "verify: {scheme: none}\ntrigger: execution.ended":                                "h.yaml:4:10: trigger: it is a trigger",
		head + "verify: {scheme: none}\ntrigger: 'rule.${{ body.x }}'":                           "h.yaml:4:10: trigger: it is a trigger",
		head + "verify: {scheme: none}\ntrigger: {a: b}":                                         "trigger: want a text",
		head + rest + "verify: {scheme: none}\nrun: {action: noop}":                              `unknown field "run"`,
		"kind: webhook\nverify: {scheme: none}\ntrigger: t":                                      "the webhook has no name",
		head + rest + "verify: {scheme: none}\n---\n" + head + rest + "verify: {scheme: none}":   `the name "h" is here twice`,
	} {
		_, err := Parse("h.yaml", []byte(src))
		var ps Problems
		if !errors.As(err, &ps) || !slices.ContainsFunc(ps, func(p Problem) bool { return strings.Contains(p.String(), want) }) {
			t.Errorf("%s\ngives %v, want %s", src, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "c2VzYW1l")) {
			t.Errorf("the message repeats the secret: %v", err)
		}
	}
}

// For any request, reading it does not panic, and the body is JSON.
func FuzzWebhookRequest(f *testing.F) {
	f.Add("application/json", "a=1", []byte(`{"repository":{"full_name":"a/b"}}`))
	f.Add("application/x-www-form-urlencoded", "a=1&a=2", []byte("order=7&%zz"))
	defs, err := Parse("h.yaml", []byte(githubHook+"---\n"+hmacHook))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind, query string, body []byte) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		r, err := defs[0].Webhook.Request(http.Header{"Content-Type": {kind}, "X-Github-Event": {kind}}, q, body)
		if err != nil {
			return
		}
		if _, err := jsonvalue.Decode(r.Body); err != nil {
			t.Errorf("%q became %s: %v", body, r.Body, err)
		}
		for _, d := range defs {
			d.Webhook.Answer(r)
			if s, err := d.Webhook.Signal(d.Name, r); err == nil && s.Trigger == "" {
				t.Errorf("no trigger of %q", body)
			}
		}
	})
}

// A key that is too long is shortened so that equal keys stay equal and different keys stay different.
func TestLongKeysOfWebhooks(t *testing.T) {
	t.Parallel()
	defs, err := Parse("h.yaml", []byte("kind: webhook\nname: h\nverify: {scheme: none}\ntrigger: t\nkey: ${{ body.k }}\n"))
	if err != nil {
		t.Fatal(err)
	}
	keyOf := func(k string) string {
		s, err := defs[0].Webhook.Signal("h", &WebhookRequest{Body: append(jsonvalue.AppendText([]byte(`{"k":`), k), '}')})
		if err != nil {
			t.Fatal(err)
		}
		return s.Key
	}
	long := strings.Repeat("é", 300)
	a, b := keyOf(long+"a"), keyOf(long+"b")
	if a == b || a != keyOf(long+"a") || len(a) > 512 || !utf8.ValidString(a) || !strings.HasPrefix(a, long[:400]) {
		t.Errorf("%q and %q", a, b)
	}
	if short := strings.Repeat("k", 512); keyOf(short) != short || DeliveryKey("h", "1") != "h/1" || len(DeliveryKey("h", long)) > 512 {
		t.Errorf("%q", keyOf(short))
	}
}
