package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/webhooks.md work as documented.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl")
	out := followed(t, documented(t, "webhooks.md", "", 1)[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"webhook github is valid", "octo-org/octo-repo", "webhook github@1 registered", "/hooks/github", `"existing":true`, `"replayed":true`, "github.push", "mismatch",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// The commands of docs/receiving.md work as documented: an alert that is sent twice and ends runs its remedy once.
func TestReceivingCommands(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl")
	blocks := documented(t, "receiving.md", "", 7)
	out := followed(t, blocks[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{"webhook alertmanager@1 registered", `"existing":true`, "reacting to Disk is almost full on db1:9100", "mismatch"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestHooksTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	file := filepath.Join(dir, "hooks.yaml")
	for name, text := range map[string]string{
		secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
		file: "kind: webhook\nname: pay\nverify: {scheme: standard, secret_file: " + secret + "}\ntrigger: pay.${{ body.type }}\nkeep_headers: [x-a]\nmax_body: 50\n" +
			"---\nkind: webhook\nname: chat\nverify: {scheme: slack, secret_env: PAWL_TEST_NOWHERE}\ntrigger: chat\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vector := []string{"hooks", "test", file, "--hook", "pay", "--body", `{"test": 2432232314}`, "--header", "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek",
		"--header", "webhook-timestamp=1614265330", "--header", "webhook-signature=v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
	env := environment(t)
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"hooks", "test", file, "--hook", "pay", "--body", `{"type":"done"}`, "--sign", "--header", "X-A=1"}, 0, "pay.done"},
		{[]string{"hooks", "test", file, "--hook", "pay", "--body", `{"type":"done"}`, "--sign", "--id", "evt_7", "-o", "json"}, 0, `"key": "pay/evt_7"`},
		{append(vector, "--at", "2021-02-25T15:02:10Z"), 1, "refused (422)"}, // its body has no type
		{vector, 1, "refused (401, stale)"},
		{[]string{"hooks", "test", file, "--hook", "pay", "--body", "{}"}, 1, "refused (401, missing)"},
		{[]string{"hooks", "test", file, "--hook", "pay", "--body", strings.Repeat("x", 51), "--sign"}, 1, "refused (413)"},
		{[]string{"hooks", "test", file, "--hook", "chat"}, 1, "PAWL_TEST_NOWHERE"},
		{[]string{"hooks", "test", file}, 2, "say which with --hook"},
		{[]string{"hooks", "test", file, "--hook", "other"}, 2, `no webhook "other"`},
		{[]string{"hooks", "test", file, "--hook", "pay", "--header", "x"}, 2, "NAME=VALUE"},
		{[]string{"hooks", "test", file, "--hook", "pay", "--at", "noon"}, 2, "--at"},
		{[]string{"hooks", "test", "nobody"}, 1, "there is no webhook"},
		{[]string{"describe", "webhook:nobody"}, 1, "there is no webhook"},
	} {
		if out, stderr, code := pawl(t, env, c.args...); code != c.code || !strings.Contains(out+stderr, c.say) {
			t.Errorf("%v: %d %s%s, want %d and %q", c.args, code, out, stderr, c.code, c.say)
		}
	}
}
