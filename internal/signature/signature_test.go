package signature_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/signature"
)

const slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"

// vector is a request that Pawl did not sign: the published examples of Standard Webhooks, GitHub and Slack, and for Stripe, which
// publishes none, one made with openssl dgst -sha256 -hmac.
type vector struct {
	name   string
	hook   signature.Hook
	secret string
	header http.Header
	body   string
	at     int64 // when it came
	want   signature.Delivery
}

func vectors() []vector {
	header := func(fields ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(fields); i += 2 {
			h.Set(fields[i], fields[i+1])
		}
		return h
	}
	return []vector{
		{"standard", signature.Hook{Scheme: signature.Standard}, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
			header("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330", "webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
			`{"test": 2432232314}`, 1614265331, signature.Delivery{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", At: time.Unix(1614265330, 0).UTC(), Signed: true}},
		{"github", signature.Hook{Scheme: signature.GitHub}, "It's a Secret to Everybody",
			header("x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
			"Hello, World!", 1700000000, signature.Delivery{ID: "72d3162e-cc78-11e3-81ab-4c9367dc0958", At: time.Unix(1700000000, 0).UTC()}},
		{"stripe", signature.Hook{Scheme: signature.Stripe}, "whsec_test_secret",
			header("stripe-signature", "t=1492774577,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39,v1=654b43d3508ecadb3f8cefc4bc7d3d2bdc5ba9e03bf2c89b2d0657a8e24e4543"),
			`{"id":"evt_1","object":"event"}`, 1492774580, signature.Delivery{ID: "evt_1", At: time.Unix(1492774577, 0).UTC(), Signed: true}},
		{"slack", signature.Hook{Scheme: signature.Slack}, "8f742231b10e8888abcd99yyyzzz85a5",
			header("x-slack-request-timestamp", "1531420618", "x-slack-signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
			slackBody, 1531420700, signature.Delivery{At: time.Unix(1531420618, 0).UTC(), Signed: true}},
		{"standard under the names of Svix", signature.Hook{Scheme: signature.Standard}, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
			header("svix-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "svix-timestamp", "1614265330", "svix-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
			`{"test": 2432232314}`, 1614265331, signature.Delivery{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", At: time.Unix(1614265330, 0).UTC(), Signed: true}},
		{"hmac in base64 of the body", signature.Hook{Scheme: signature.HMAC, Header: "X-Shop-Hmac", Encoding: signature.Base64}, "shop-secret",
			header("x-shop-hmac", "plW8VGqq0nDMIEhDqaNNW99asdUCy7EIqLZVcQwtAZ0="), `{"id":1}`, 1700000000, signature.Delivery{At: time.Unix(1700000000, 0).UTC()}},
	}
}

func TestVectors(t *testing.T) {
	for _, v := range vectors() {
		t.Run(v.name, func(t *testing.T) {
			now := time.Unix(v.at, 0).UTC()
			verify := func(secrets []string, header http.Header, body string, now time.Time) (signature.Delivery, error) {
				return signature.Verify(&v.hook, secrets, header, []byte(body), now)
			}
			if got, err := verify([]string{v.secret}, v.header, v.body, now); err != nil || got.ID != v.want.ID || !got.At.Equal(v.want.At) || got.Signed != v.want.Signed || got.Sum == [32]byte{} {
				t.Fatalf("%+v, %v, want %+v", got, err, v.want)
			}
			// Both secrets are accepted during a rotation.
			if _, err := verify([]string{"bmV3c2VjcmV0", v.secret}, v.header, v.body, now); err != nil {
				t.Errorf("beside another secret: %v", err)
			}
			refused(t, signature.Mismatch, func() error { _, err := verify([]string{"bmV3c2VjcmV0"}, v.header, v.body, now); return err })
			refused(t, signature.Mismatch, func() error { _, err := verify([]string{v.secret}, v.header, v.body+" ", now); return err })
			for name := range v.header {
				twice := v.header.Clone()
				twice.Add(name, v.header.Get(name))
				refused(t, signature.Garbled, func() error { _, err := verify([]string{v.secret}, twice, v.body, now); return err })
				less := v.header.Clone()
				less.Del(name)
				if name == "X-Github-Delivery" { // GitHub does not sign it
					continue
				}
				refused(t, signature.Missing, func() error { _, err := verify([]string{v.secret}, less, v.body, now); return err })
			}
			if _, err := verify(nil, v.header, v.body, now); !errors.Is(err, signature.ErrSecret) {
				t.Errorf("without a secret: %v", err)
			}
			if _, err := verify([]string{""}, v.header, v.body, now); !errors.Is(err, signature.ErrSecret) {
				t.Errorf("with an empty secret: %v", err)
			}
			if v.want.At.Equal(now) {
				return
			}
			for _, at := range []struct {
				after  time.Duration
				reason string
			}{{signature.DefaultTolerance, ""}, {signature.DefaultTolerance + time.Second, signature.Stale}, {-signature.DefaultTolerance, ""}, {-signature.DefaultTolerance - time.Second, signature.Future}} {
				_, err := verify([]string{v.secret}, v.header, v.body, v.want.At.Add(at.after))
				if at.reason == "" && err != nil {
					t.Errorf("%s after it was signed: %v", at.after, err)
				}
				if at.reason != "" {
					refused(t, at.reason, func() error { return err })
				}
			}
		})
	}
}

func refused(t *testing.T, reason string, verify func() error) {
	t.Helper()
	var r *signature.Refusal
	if err := verify(); !errors.As(err, &r) || r.Reason != reason {
		t.Errorf("%v, want a refusal as %s", err, reason)
	}
}

// A request that Sign made is verified; one in which any byte of a signed part differs is not.
func TestSignedIsVerified(t *testing.T) {
	at := time.Unix(1763000000, 0).UTC()
	body := []byte(`{"id":"evt_7","event_id":"Ev7","n":1}`)
	hmac := signature.Hook{Scheme: signature.HMAC, Header: "x-sign", Prefix: "sha256=", Signed: "v1:{timestamp}:{id}:{body}", Timestamp: "x-time", ID: "x-id", Tolerance: time.Minute}
	for _, h := range []signature.Hook{{Scheme: signature.Standard}, {Scheme: signature.GitHub}, {Scheme: signature.Stripe}, {Scheme: signature.Slack}, hmac} {
		fields, err := signature.Sign(&h, "c2VjcmV0c2VjcmV0", "id-7", at, body)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		for _, f := range fields {
			header.Set(f.Name, f.Value)
		}
		d, err := signature.Verify(&h, []string{"c2VjcmV0c2VjcmV0"}, header, body, at)
		if err != nil || d.ID == "" || !d.At.Equal(at) || d.Signed != (h.Scheme != signature.GitHub) {
			t.Errorf("%s: %+v, %v", h.Scheme, d, err)
		}
		for name := range header {
			if name == "X-Github-Delivery" {
				continue
			}
			changed := header.Clone()
			text := []byte(header.Get(name))
			text[len(text)-2] ^= 1
			changed.Set(name, string(text))
			if _, err := signature.Verify(&h, []string{"c2VjcmV0c2VjcmV0"}, changed, body, at); err == nil {
				t.Errorf("%s: accepted with %s: %s", h.Scheme, name, text)
			}
		}
	}
}

func TestNoneTakesTheIDOfItsHeader(t *testing.T) {
	h := signature.Hook{Scheme: signature.None, ID: "x-id"}
	d, err := signature.Verify(&h, nil, http.Header{"X-Id": {"7"}}, nil, time.Unix(5, 0))
	if err != nil || d.ID != "7" || d.Signed {
		t.Errorf("%+v, %v", d, err)
	}
	refused(t, signature.Missing, func() error { _, err := signature.Verify(&h, nil, nil, nil, time.Unix(5, 0)); return err })
}

func TestTimesOfAHeader(t *testing.T) {
	h := signature.Hook{Scheme: signature.HMAC, Header: "x-sign", Signed: "{timestamp}{body}", Timestamp: "x-time"}
	want := time.Unix(1763000000, 0).UTC()
	for _, text := range []string{"1763000000", "1763000000000", "2025-11-13T02:13:20Z", "2025-11-13T03:13:20+01:00"} {
		// The signed text is used as it is, whatever its form.
		raw := signature.Hook{Scheme: signature.HMAC, Header: "x-sign", Signed: text + "{body}"}
		fields, err := signature.Sign(&raw, "s", "", want, []byte("b"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := signature.Verify(&h, []string{"s"}, http.Header{"X-Sign": {fields[0].Value}, "X-Time": {text}}, []byte("b"), want)
		if err != nil || !d.At.Equal(want) {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
	for _, text := range []string{"-1", "+5", "1e9", "yesterday", "99999999999999999999", strings.Repeat("9", 5000), "17630000000000000"} {
		refused(t, signature.Garbled, func() error {
			_, err := signature.Verify(&h, []string{"s"}, http.Header{"X-Sign": {strings.Repeat("0", 64)}, "X-Time": {text}}, nil, want)
			return err
		})
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		hook signature.Hook
		want string // the fields at fault
	}{
		{"standard", signature.Hook{Scheme: signature.Standard, Tolerance: time.Minute}, ""},
		{"too long", signature.Hook{Scheme: signature.Standard, Tolerance: 25 * time.Hour}, "tolerance"},
		{"fields of hmac", signature.Hook{Scheme: signature.GitHub, Header: "x", Encoding: "hex", Prefix: "p", Signed: "{body}", Timestamp: "t", ID: "i", Tolerance: 1}, "header encoding prefix signed timestamp id tolerance"},
		{"id of none", signature.Hook{Scheme: signature.None, ID: "x-id"}, ""},
		{"hmac", signature.Hook{Scheme: signature.HMAC, Header: "x-sign", Signed: "{timestamp}.{id}.{body}", Timestamp: "x-time", ID: "x-id"}, ""},
		{"no header", signature.Hook{Scheme: signature.HMAC}, "header"},
		{"no name of a header", signature.Hook{Scheme: signature.HMAC, Header: "a b"}, "header"},
		{"no body", signature.Hook{Scheme: signature.HMAC, Header: "x", Signed: "{id}", ID: "x-id"}, "signed"},
		{"body twice", signature.Hook{Scheme: signature.HMAC, Header: "x", Signed: "{body}{body}"}, "signed"},
		{"unknown name", signature.Hook{Scheme: signature.HMAC, Header: "x", Signed: "{method}{body}"}, "signed"},
		{"no headers for names", signature.Hook{Scheme: signature.HMAC, Header: "x", Signed: "{id}{timestamp}{body}"}, "signed signed"},
		{"time not signed", signature.Hook{Scheme: signature.HMAC, Header: "x", Timestamp: "t", Signed: "{body}"}, "timestamp"},
		{"token", signature.Hook{Scheme: signature.Token, Header: "X-Gitlab-Token", Prefix: "p ", ID: "x-id"}, ""},
		{"token without header", signature.Hook{Scheme: signature.Token, Tolerance: time.Minute}, "tolerance header"},
		{"fields of hmac beside a token", signature.Hook{Scheme: signature.Token, Header: "x", Encoding: "hex", Signed: "{body}", Timestamp: "t"}, "encoding signed timestamp"},
		{"bearer", signature.Hook{Scheme: signature.Bearer, ID: "x-id"}, ""},
		{"bearer with a header and a user", signature.Hook{Scheme: signature.Bearer, Header: "x", User: "u"}, "header user"},
		{"basic", signature.Hook{Scheme: signature.Basic, User: "alertmanager", ID: "x-id"}, ""},
		{"basic with a colon", signature.Hook{Scheme: signature.Basic, User: "a:b"}, "user"},
		{"user of github", signature.Hook{Scheme: signature.GitHub, User: "u"}, "user"},
		{"tolerance without time", signature.Hook{Scheme: signature.HMAC, Header: "x", Tolerance: time.Minute}, "tolerance"},
	} {
		fields := []string{}
		for _, f := range c.hook.Check() {
			fields = append(fields, f.Field)
			if f.Message == "" || f.Fix == "" {
				t.Errorf("%s: %+v has no message or fix", c.name, f)
			}
		}
		if got := strings.Join(fields, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// For any request, Verify neither panics nor accepts one that was not signed with the secret.
func FuzzVerify(f *testing.F) {
	names := []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "X-Hub-Signature-256", "X-Github-Delivery", "Stripe-Signature",
		"X-Slack-Request-Timestamp", "X-Slack-Signature", "X-Sign", "X-Time"}
	for _, v := range vectors() {
		for name := range v.header {
			f.Add(v.header.Get(name), "1614265330", []byte(v.body))
		}
	}
	f.Add("t=1,t=2,v1=00,v1", "99999999999999999999999", []byte(`{"id":7}`))
	hooks := []signature.Hook{{Scheme: signature.Standard}, {Scheme: signature.GitHub}, {Scheme: signature.Stripe}, {Scheme: signature.Slack},
		{Scheme: signature.HMAC, Header: "X-Sign", Signed: "{timestamp}.{body}", Timestamp: "X-Time"}}
	f.Fuzz(func(t *testing.T, one, two string, body []byte) {
		header := http.Header{}
		for i, name := range names {
			header.Set(name, []string{one, two}[i%2])
		}
		for i := range hooks {
			for _, other := range []bool{false, true} {
				if other {
					for i, name := range names {
						header.Set(name, []string{two, one}[i%2])
					}
				}
				if d, err := signature.Verify(&hooks[i], []string{"c2VjcmV0IHRoYXQgbm9ib2R5IGtub3dz"}, header, body, time.Unix(1614265330, 0)); err == nil {
					t.Errorf("%s accepted %q and %q over %q: %+v", hooks[i].Scheme, one, two, body, d)
				}
			}
		}
	})
}

// Signed content is verified, whatever it is.
func FuzzSign(f *testing.F) {
	f.Add("msg_1", int64(1614265330), []byte("{}"), "{id}.{timestamp}.{body}")
	f.Add("a.b", int64(0), []byte("{body}{id}"), "{body}{timestamp}{id}")
	f.Fuzz(func(t *testing.T, id string, seconds int64, body []byte, signed string) {
		h := signature.Hook{Scheme: signature.HMAC, Header: "x-sign", Signed: signed, Timestamp: "x-time", ID: "x-id"}
		if len(h.Check()) > 0 || id == "" || len(id) > 200 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) || seconds < 0 || seconds > 4102444800 {
			return
		}
		for _, hook := range []signature.Hook{h, {Scheme: signature.Standard}} {
			at := time.Unix(seconds, 0)
			fields, err := signature.Sign(&hook, "c2VjcmV0", id, at, body)
			if err != nil {
				t.Fatal(err)
			}
			header := http.Header{}
			for _, f := range fields {
				header.Set(f.Name, f.Value)
			}
			d, err := signature.Verify(&hook, []string{"c2VjcmV0"}, header, body, at)
			if err != nil || d.ID != id {
				t.Errorf("%s: %+v, %v", hook.Scheme, d, err)
			}
		}
	})
}

// A request of scheme token, bearer or basic contains the secret itself.
func TestSharedSecrets(t *testing.T) {
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	token, bearer := signature.Hook{Scheme: signature.Token, Header: "X-Gitlab-Token"}, signature.Hook{Scheme: signature.Bearer}
	prefixed := signature.Hook{Scheme: signature.Token, Header: "Authorization", Prefix: "GenieKey "}
	ada, anyone := signature.Hook{Scheme: signature.Basic, User: "ada"}, signature.Hook{Scheme: signature.Basic}
	for _, c := range []struct {
		hook  signature.Hook
		value string // of the header
		want  string // why it is refused
	}{
		{token, "new secret", ""}, {token, "old: secret", ""}, {token, "", signature.Missing}, {token, "new secre", signature.Mismatch}, {token, "new secrett", signature.Mismatch},
		{token, "NEW SECRET", signature.Mismatch}, {token, "new secret, new secret", signature.Mismatch},
		{prefixed, "GenieKey new secret", ""}, {prefixed, "new secret", signature.Garbled}, {prefixed, "GenieKey ", signature.Garbled}, {prefixed, "GenieKey x", signature.Mismatch},
		{bearer, "Bearer new secret", ""}, {bearer, "bearer  new secret ", ""}, {bearer, "new secret", signature.Garbled}, {bearer, "Bearer", signature.Garbled},
		{bearer, "Bearer ", signature.Garbled}, {bearer, "Basic new secret", signature.Garbled}, {bearer, "Bearer other", signature.Mismatch},
		{ada, basic("ada:new secret"), ""}, {ada, basic("ada:old: secret"), ""}, {ada, strings.TrimRight(basic("ada:new secret"), "="), ""},
		{ada, basic("bob:new secret"), signature.Mismatch}, {ada, basic(":new secret"), signature.Mismatch}, {ada, basic("ada:"), signature.Mismatch},
		{ada, basic("ada"), signature.Garbled}, {ada, "Basic %%%", signature.Garbled}, {ada, "Bearer new secret", signature.Garbled},
		{anyone, basic(":new secret"), ""}, {anyone, basic("bob:new secret"), ""}, {anyone, basic("new secret:bob"), signature.Mismatch},
	} {
		header := http.Header{}
		if c.value != "" {
			name := "Authorization"
			if c.hook.Header != "" {
				name = c.hook.Header
			}
			header.Set(name, c.value)
		}
		_, err := signature.Verify(&c.hook, []string{"new secret", "old: secret"}, header, []byte("body"), time.Unix(5, 0))
		var r *signature.Refusal
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %q: %v", c.hook.Scheme, c.value, err)
		case c.want != "" && (!errors.As(err, &r) || r.Reason != c.want):
			t.Errorf("%s %q: %v, want %s", c.hook.Scheme, c.value, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "new secret") {
			t.Errorf("the message repeats the secret: %v", err)
		}
	}
	for _, h := range []signature.Hook{token, prefixed, bearer, ada, anyone} {
		h.ID = "x-id"
		fields, err := signature.Sign(&h, "new secret", "7", time.Unix(5, 0), []byte("body"))
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		for _, f := range fields {
			header.Set(f.Name, f.Value)
		}
		if d, err := signature.Verify(&h, []string{"new secret"}, header, []byte("body"), time.Unix(5, 0)); err != nil || d.ID != "7" || d.Signed || d.Sum == [32]byte{} {
			t.Errorf("%s: %+v, %v", h.Scheme, d, err)
		}
		header.Add(fields[0].Name, fields[0].Value)
		refused(t, signature.Garbled, func() error {
			_, err := signature.Verify(&h, []string{"new secret"}, header, nil, time.Unix(5, 0))
			return err
		})
		for _, secrets := range [][]string{nil, {""}} {
			if _, err := signature.Verify(&h, secrets, header, nil, time.Unix(5, 0)); !errors.Is(err, signature.ErrSecret) {
				t.Errorf("%s with secrets %q: %v", h.Scheme, secrets, err)
			}
		}
	}
}
