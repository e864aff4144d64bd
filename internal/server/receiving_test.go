package server

import (
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/signature"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The documents of docs/receiving.md are those of examples/receiving.yaml, and each provider's request starts the execution of its rule
// once.
func TestReceiving(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var blocks []string
	for _, m := range yamlBlock.FindAllStringSubmatch(read("docs/receiving.md"), -1) {
		blocks = append(blocks, m[1])
	}
	example := read("examples/receiving.yaml")
	if _, documents, _ := strings.Cut(example, "\n"); documents != strings.Join(blocks, "---\n") {
		t.Error("examples/receiving.yaml has other documents than docs/receiving.md")
	}
	const secret = "4f1a6c0e8d2b73954f1a6c0e"
	h := start(t, Options{Tokens: []string{token}, Secret: func(string) (string, error) { return secret, nil }})
	if _, err := h.client.Define(t.Context(), []byte(example), "receiving.yaml"); err != nil {
		t.Fatal(err)
	}
	rig := &hookRig{house: h, t: t}
	delivery := func(name string) string { return strings.TrimSpace(read("examples/deliveries/" + name + ".json")) }
	form := func(body string) string { return url.Values{"payload": {body}}.Encode() }
	const formType = "application/x-www-form-urlencoded"
	header := func(fields ...string) []string { return fields }
	for _, c := range []struct {
		what      string
		q         hookRequest
		trigger   string
		code      int
		of, input string // the label of the execution, and its input; "": none is started
	}{
		{"a push", hookRequest{path: "github", body: delivery("github-push"), scheme: signature.GitHub, secret: secret, id: "d-1", header: header("X-GitHub-Event", "push", "Content-Type", "application/json")},
			"github.push", 202, "github", "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5 of octo-org/octo-repo"},
		{"a push as a form", hookRequest{path: "github", body: form(strings.Replace(delivery("github-push"), "59b20b8d", "69b20b8d", 2)), scheme: signature.GitHub, secret: secret, id: "d-2", header: header("X-GitHub-Event", "push", "Content-Type", formType)},
			"github.push", 202, "github", "69b20b8d5c6ff8d09518454d4dd8b7b30f095ab5 of octo-org/octo-repo"},
		{"a push that says it is a form", hookRequest{path: "github", body: strings.Replace(delivery("github-push"), "59b20b8d", "79b20b8d", 2), scheme: signature.GitHub, secret: secret, id: "d-3", header: header("X-GitHub-Event", "push", "Content-Type", formType)},
			"github.push", 202, "github", "79b20b8d5c6ff8d09518454d4dd8b7b30f095ab5 of octo-org/octo-repo"},
		{"a push that says nothing", hookRequest{path: "github", body: strings.Replace(delivery("github-push"), "59b20b8d", "89b20b8d", 2), scheme: signature.GitHub, secret: secret, id: "d-4", header: header("X-GitHub-Event", "push")},
			"github.push", 202, "github", "89b20b8d5c6ff8d09518454d4dd8b7b30f095ab5 of octo-org/octo-repo"},
		{"a push to GitLab", hookRequest{path: "gitlab", body: delivery("gitlab-push"), header: header("X-Gitlab-Token", secret, "X-Gitlab-Event", "Push Hook", "Idempotency-Key", "f5e6a1c0-1", "Content-Type", "application/json")},
			"gitlab.push", 202, "gitlab", "da1560886d4f094c3e6c9ef40349f7d38b5d27d7 of mona/shop"},
		{"it again", hookRequest{path: "gitlab", body: delivery("gitlab-push"), header: header("X-Gitlab-Token", secret, "Idempotency-Key", "f5e6a1c0-1")}, "gitlab.push", 200, "gitlab", ""},
		{"an alert", hookRequest{path: "alertmanager", body: delivery("alertmanager"), header: header("Authorization", "Bearer "+secret, "User-Agent", "Alertmanager/0.28.1", "Content-Type", "application/json")},
			"alertmanager.firing", 202, "alertmanager", "Disk is almost full on db1:9100"},
		{"it again", hookRequest{path: "alertmanager", body: delivery("alertmanager"), header: header("Authorization", "Bearer "+secret)}, "alertmanager.firing", 200, "alertmanager", ""},
		{"its end", hookRequest{path: "alertmanager", body: strings.ReplaceAll(delivery("alertmanager"), "firing", "resolved"), header: header("Authorization", "Bearer "+secret)}, "alertmanager.resolved", 202, "alertmanager", ""},
		{"a payment", hookRequest{path: "stripe", body: delivery("stripe-payment"), scheme: signature.Stripe, secret: secret, header: header("Content-Type", "application/json; charset=utf-8")},
			"stripe.payment_intent.succeeded", 202, "stripe", "order o-17"},
		{"a mention", hookRequest{path: "slack", body: delivery("slack-mention"), scheme: signature.Slack, secret: secret, header: header("Content-Type", "application/json")},
			"slack.app_mention", 202, "slack", "<@U0LAN0Z89> restart shop"},
		{"a button", hookRequest{path: "slack", body: form(`{"type":"block_actions","actions":[{"action_id":"go"}]}`), scheme: signature.Slack, secret: secret, header: header("Content-Type", formType)}, "slack.block_actions", 202, "slack", ""},
		{"a command", hookRequest{path: "slack", body: "command=%2Fdeploy&text=shop&user_id=U1&trigger_id=1.2", scheme: signature.Slack, secret: secret, header: header("Content-Type", formType)}, "slack.command", 202, "slack", ""},
	} {
		before := h.labelled(t, c.of)
		code, out, body := rig.send(c.q)
		if code != c.code {
			t.Errorf("%s: %d %s, want %d", c.what, code, body, c.code)
			continue
		}
		if s, err := h.client.Signal(t.Context(), out.Signal); err != nil || s.Trigger != c.trigger {
			t.Errorf("%s: %+v, %v", c.what, s, err)
		}
		after := h.labelled(t, c.of)
		if c.input == "" {
			if len(after) != len(before) {
				t.Errorf("%s: an execution has been started", c.what)
			}
			continue
		}
		if len(after) != len(before)+1 {
			t.Errorf("%s: %d executions, %d before", c.what, len(after), len(before))
			continue
		}
		x, err := h.client.Get(t.Context(), after[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		var input struct{ What string }
		if err := json.Unmarshal(x.Input, &input); err != nil || input.What != c.input {
			t.Errorf("%s: %s, %v, want %s", c.what, x.Input, err, c.input)
		}
	}
}

// labelled returns the executions that the rule for a provider has started, latest first.
func (h *house) labelled(t *testing.T, by string) []api.Execution {
	t.Helper()
	page, err := h.client.List(t.Context(), client.Filter{Labels: map[string]string{"by": by}})
	if err != nil {
		t.Fatal(err)
	}
	return page.Executions
}
