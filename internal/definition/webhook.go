package definition

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	slashed "path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/jsonvalue"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/signature"
	"github.com/pawl-run/pawl/internal/strictjson"
)

// Webhook turns the requests of one provider into signals.
type Webhook struct {
	Verify signature.Hook
	// Secrets has names of environment variables and absolute paths of files of the server. A request with any of them is accepted.
	Secrets []string
	// Paused is set in the document: requests are refused for now, and the sender may repeat them.
	Paused bool
	// Trigger, Key and Subject evaluate to fields of the signal; Key and Subject are nil if the document has none.
	Trigger, Key, Subject *Template
	TriggerText           string   // as the document has it
	KeepHeaders           []string // in lower case
	MaxBody               int64
	// Replay is how long the signed part of a request is stored if it does not contain the request's id: a repetition within this time makes
	// no second signal. 0: it is not stored.
	Replay time.Duration
}

// Limits of a webhook's requests.
const (
	defaultMaxBody = 1 << 20
	MostMaxBody    = 16 << 20
	defaultReplay  = 24 * time.Hour
	mostReplay     = 7 * 24 * time.Hour
	mostSecrets    = 10
	mostKept       = 32 // headers
)

// WebhookRequest is a request in the form for expressions of a webhook.
type WebhookRequest struct {
	Headers map[string]string // names in lower case; several values of one name are joined by commas
	Query   json.RawMessage
	Body    json.RawMessage
}

type WebhookSignal struct {
	Trigger, Key, Subject string
	Headers               map[string]string // the headers to keep
}

// hiddenHeaders contain credentials: expressions do not see them, and they are not kept.
var hiddenHeaders = []string{"authorization", "cookie", "proxy-authorization"}

// Request parses a request. The body must be JSON or a form; otherwise it returns an error.
func (w *Webhook) Request(header map[string][]string, query url.Values, body []byte) (*WebhookRequest, error) {
	r := &WebhookRequest{Headers: make(map[string]string, len(header))}
	for name, values := range header {
		if name = strings.ToLower(name); !w.hides(name) {
			r.Headers[name] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
		}
	}
	var err error
	if r.Query, err = formObject(query, "query"); err != nil {
		return nil, err
	}
	r.Body, err = bodyOf(r.Headers["content-type"], body)
	return r, err
}

// hides reports whether a header contains a credential. name is in lower case.
func (w *Webhook) hides(name string) bool {
	return slices.Contains(hiddenHeaders, name) || w.Verify.Scheme == signature.Token && name == strings.ToLower(w.Verify.Header)
}

// bodyOf parses the value in a body. The content type decides whether it is a form, unless the body begins as no form does, with {, [, " or
// <: curl -d and other clients send the form's content type for any body, and JSON read as a form would be a form with one odd name.
func bodyOf(contentType string, body []byte) (json.RawMessage, error) {
	body = bytes.TrimPrefix(body, []byte("\uFEFF")) // a byte order mark, which is not part of JSON
	kind, _, _ := strings.Cut(contentType, ";")
	isForm := strings.EqualFold(strings.TrimSpace(kind), formType)
	text := bytes.TrimLeft(body, " \t\r\n")
	if isForm && !bytes.ContainsAny(text[:min(len(text), 1)], "{[\"<") {
		return formBody(body)
	}
	_, err := jsonvalue.Decode(body)
	switch {
	case err == nil && len(body) > 0:
		return body, oneMeaning(body)
	case !isForm && len(text) > 0 && (text[0] == '{' || text[0] == '['):
		return nil, fmt.Errorf("the body is not JSON that can be read: %w", err)
	case isForm:
		return nil, fmt.Errorf("the content type says that the body is a form, and it begins like none: %.60q "+
			"(send a form as name=value&name=value, or JSON)", body)
	}
	return nil, fmt.Errorf("the body is neither JSON nor a form: %.60q (send JSON, or a form with Content-Type: %s)", body, formType)
}

// oneMeaning refuses JSON that readers interpret differently, or that cannot be the input of an execution: a repeated member name, of which
// a condition may see the first and a program the last, and NUL characters. Signals from the API are refused for the same reasons.
func oneMeaning(body []byte) error {
	var value json.RawMessage
	err := new(strictjson.Rules).Decode(body, "", &value)
	if e, ok := errors.AsType[*strictjson.Error](err); ok && !e.Syntax {
		return fmt.Errorf("the body is not JSON that can be read: %w", err)
	}
	return nil
}

const formType = "application/x-www-form-urlencoded"

// formBody parses a form into an object of its fields, or into the JSON in its only field, payload, as GitHub and Slack send it.
func formBody(body []byte) (json.RawMessage, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("the body is not the form that its content type says: %w", err)
	}
	if len(body) > 0 && !bytes.Contains(body, []byte("=")) {
		return nil, fmt.Errorf("the content type says that the body is a form, and it has no field name=value: %.60q "+
			"(send JSON with Content-Type: application/json)", body)
	}
	if payload := form["payload"]; len(form) == 1 && len(payload) == 1 {
		if text := strings.TrimSpace(payload[0]); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			if _, err := jsonvalue.Decode([]byte(text)); err != nil {
				return nil, fmt.Errorf("the field payload of the form begins like JSON and is none: %w", err)
			}
			return json.RawMessage(text), oneMeaning([]byte(text))
		}
	}
	return formObject(form, "form")
}

// formObject writes the fields of a form as an object. A field that is repeated, or whose name ends in [], becomes a list: tag=x&tag=y is
// {"tag":["x","y"]}.
func formObject(form url.Values, what string) (json.RawMessage, error) {
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(form)) {
		values := form[name]
		for _, text := range append([]string{name}, values...) {
			if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
				return nil, fmt.Errorf("the field %.60q of the %s is not text in UTF-8", name, what)
			}
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonvalue.AppendText(b, name), ':')
		if len(values) == 1 && !strings.HasSuffix(name, "[]") {
			b = jsonvalue.AppendText(b, values[0])
			continue
		}
		b = append(b, '[')
		for i, text := range values {
			if i > 0 {
				b = append(b, ',')
			}
			b = jsonvalue.AppendText(b, text)
		}
		b = append(b, ']')
	}
	return append(b, '}'), nil
}

// Signal evaluates the signal of a request. An error is an *EvalError.
func (w *Webhook) Signal(name string, r *WebhookRequest) (s WebhookSignal, err error) {
	v := &Vars{Name: name, Body: r.Body, Headers: r.Headers, Query: r.Query}
	for _, of := range []struct {
		t    *Template
		into *string
	}{{w.Trigger, &s.Trigger}, {w.Key, &s.Key}, {w.Subject, &s.Subject}} {
		if of.t == nil {
			continue
		}
		if *of.into, err = of.t.Text(v); err != nil {
			return s, err
		}
	}
	s.Key = shortKey(s.Key)
	for _, h := range w.KeepHeaders {
		if value, there := r.Headers[h]; there {
			if s.Headers == nil {
				s.Headers = map[string]string{}
			}
			s.Headers[h] = value
		}
	}
	return s, nil
}

// DeliveryKey is the signal's key for a request with an id, if the document sets no other key.
func DeliveryKey(webhook, id string) string { return shortKey(webhook + "/" + id) }

// deliveryKeyLimit is the largest size in bytes of a key for the engine.
const deliveryKeyLimit = 512

// shortKey returns a key made from a provider's data; if it is too long, its beginning and its SHA-256. Alertmanager's group keys contain
// all labels of a group, and it does not repeat a request that was refused with 422.
func shortKey(key string) string {
	if len(key) <= deliveryKeyLimit || !utf8.ValidString(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	begin := key[:deliveryKeyLimit-len("…sha256:")-2*len(sum)]
	for !utf8.ValidString(begin) {
		begin = begin[:len(begin)-1]
	}
	return begin + "…sha256:" + hex.EncodeToString(sum[:])
}

// Answer reports whether a request only checks that the webhook exists, as GitHub's "ping" does, and returns the text that the provider
// expects as its answer.
func (w *Webhook) Answer(r *WebhookRequest) (text string, is bool) {
	switch w.Verify.Scheme {
	case signature.GitHub:
		return "pong", r.Headers["x-github-event"] == "ping"
	case signature.Slack:
		if member(r.Body, "type") == "url_verification" {
			return member(r.Body, "challenge"), true
		}
	}
	return "", false
}

// member returns a string member of a JSON object; "" if there is none.
func member(object json.RawMessage, name string) string {
	if jsonvalue.KindOf(object) != "object" {
		return ""
	}
	raw, found, err := strictjson.Member(object, name)
	if err != nil || !found || jsonvalue.KindOf(raw) != "string" {
		return ""
	}
	return plain(raw)
}

var headerName = regexp.MustCompile("^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$")

var (
	webhookFields = []string{"kind", "name", "description", "verify", "trigger", "key", "subject", "keep_headers", "max_body", "replay", "paused"}
	verifyFields  = []string{"scheme", "secret_env", "secret_file", "header", "encoding", "prefix", "signed", "timestamp", "id", "user", "tolerance"}
)

func (b *builder) webhookDocument(v *value, d *Definition) {
	w := &Webhook{MaxBody: defaultMaxBody, Replay: defaultReplay, Paused: b.boolean(v.get("paused"), "paused")}
	b.verify(v.get("verify"), v, w)
	if v.get("trigger") == nil {
		b.fail(v, "", `add trigger: my-service.${{ body.type }}, or a plain name`, "the webhook does not say which signals it emits")
	}
	if w.Trigger = b.hookText(v.get("trigger"), "trigger"); w.Trigger != nil {
		w.TriggerText = v.get("trigger").text
		if flow.OwnTrigger(w.TriggerText) && !b.trusted {
			b.fail(v.get("trigger"), "trigger", "choose a name that does not begin with execution., schedule., inquiry. or rule.",
				"it is a trigger that Pawl emits itself")
		}
	}
	w.Key = b.hookText(v.get("key"), "key")
	w.Subject = b.hookText(v.get("subject"), "subject")
	for i, name := range b.texts(v.get("keep_headers"), "keep_headers") {
		at := fmt.Sprintf("keep_headers[%d]", i)
		switch name = strings.ToLower(name); {
		case w.hides(name):
			b.fail(v.below(at), at, "remove it", "%s has a credential, which is not kept", name)
		case name != "" && !headerName.MatchString(name):
			b.fail(v.below(at), at, "write a name such as x-github-event", "%q is not the name of a header", problem.Clip(name, 60))
		}
		w.KeepHeaders = append(w.KeepHeaders, name)
	}
	if len(w.KeepHeaders) > mostKept {
		b.fail(v.get("keep_headers"), "keep_headers", "keep those that something looks at", "there are %d headers; at most %d are kept", len(w.KeepHeaders), mostKept)
	}
	if n := v.get("max_body"); n != nil {
		w.MaxBody = b.sizeWithin(n, "max_body", "16MiB", MostMaxBody, defaultMaxBody)
	}
	if !w.Verify.Scheme.Signs() {
		w.Replay = 0 // without a signature, a replay has no advantage over a new request
	}
	if r := v.get("replay"); r != nil {
		if w.Replay = b.duration(r, "replay", true); w.Replay > mostReplay {
			b.fail(r, "replay", "write at most 7d", "%s is too long", w.Replay)
		}
	}
	d.Webhook = w
	b.sum(v, d)
}

// sizeWithin reads a size from 1 byte to most; limit is most as text. It returns assumed if v is not such a size.
func (b *builder) sizeWithin(v *value, path, limit string, most, assumed int64) int64 {
	size, err := api.ParseSize(v.text)
	if v.kind != textValue && v.kind != numberValue || err != nil || size < 1 || int64(size) > most {
		b.fail(v, path, `write "5MB", "64KiB" or a number of bytes, from 1 to `+limit, "%s is not a size within the range", problem.Clip(v.text, 40))
		return assumed
	}
	return int64(size)
}

// hookText reads a text with expressions for a request.
func (b *builder) hookText(v *value, path string) *Template {
	if v == nil {
		return nil
	}
	if v.kind != textValue || v.text == "" {
		b.fail(v, path, "write a text, or leave it out", "want a text, not %s", v.describe())
		return nil
	}
	return b.template(v, path, scopeHook, noTask)
}

func (b *builder) verify(v, owner *value, w *Webhook) {
	if v == nil {
		b.fail(owner, "", "add verify: {scheme: standard, secret_env: [MY_SECRET]}", "the webhook does not say how its requests are signed")
		return
	}
	if !b.object(v, "verify", verifyFields) {
		return
	}
	at := func(field string) string { return problem.Join("verify", field) }
	schemes := signature.Schemes()
	h := signature.Hook{
		Header: b.plainText(v.get("header"), at("header"), 100), Encoding: b.oneOf(v.get("encoding"), at("encoding"), signature.Hex, signature.Base64),
		Prefix: b.plainText(v.get("prefix"), at("prefix"), 100), Signed: b.plainText(v.get("signed"), at("signed"), 1000),
		Timestamp: b.plainText(v.get("timestamp"), at("timestamp"), 100), ID: b.plainText(v.get("id"), at("id"), 100),
		User:      b.plainText(v.get("user"), at("user"), 100),
		Tolerance: b.duration(v.get("tolerance"), at("tolerance"), false),
	}
	if s := v.get("scheme"); s == nil {
		b.fail(v, "verify", "add scheme: "+strings.Join(schemes, ", "), "verify has no scheme")
	} else if h.Scheme = signature.Scheme(b.oneOf(s, at("scheme"), schemes...)); h.Scheme != "" && !b.trusted {
		for _, f := range h.Check() {
			place := cmp.Or(v.get(f.Field), v)
			b.fail(place, at(f.Field), f.Fix, "%s", f.Message)
		}
	}
	w.Verify = h
	b.secrets(v, w)
}

// secrets reads the names of secrets. A literal secret is refused, and the message does not repeat it.
func (b *builder) secrets(v *value, w *Webhook) {
	list := func(field string, bad func(string) bool, message, fix string) {
		at := problem.Join("verify", field)
		for i, name := range b.texts(v.get(field), at) {
			place, path := v.get(field), at
			if place.kind == listValue {
				place, path = place.list[i], fmt.Sprintf("%s[%d]", at, i)
			}
			if name != "" && bad(name) {
				b.fail(place, path, fix, "%s", message)
				continue
			}
			w.Secrets = append(w.Secrets, name)
		}
	}
	list("secret_env", payload.WrittenOut, "it is not a name of a variable: a secret does not belong into a document",
		"put the secret into a variable of the server, and write the variable's name, such as GITHUB_SECRET")
	list("secret_file", func(name string) bool { return !slashed.IsAbs(name) || slashed.Clean(name) != name },
		"it is not an absolute path: a secret does not belong into a document",
		"put the secret into a file where the server runs, and write its path, such as /run/secrets/github")
	switch none := w.Verify.Scheme == signature.None; {
	case none && len(w.Secrets) > 0:
		b.fail(v, "verify", "remove the secrets, or name the scheme by which requests are signed", "scheme none checks no signature")
	case !none && w.Verify.Scheme != "" && v.get("secret_env") == nil && v.get("secret_file") == nil:
		b.fail(v, "verify", "add secret_env: [MY_SECRET], a variable of the server that has it", "no secret is named")
	case len(w.Secrets) > mostSecrets:
		b.fail(v, "verify", "remove those that are no longer in use", "there are %d secrets; at most %d are tried", len(w.Secrets), mostSecrets)
	}
}
