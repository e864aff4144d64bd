package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/debug.md work as documented, with the documented output.
func TestDebugDocument(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "python3")
	blocks := documented(t, "debug.md", "", 1)
	out := followed(t, blocks[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{
		"recorded: failed, nonzero_exit: exit code 1: ValueError: ", " - the same end\n", "stderr:   ", "the attempt's own command: ", "b;nine\n", "attempts of it: 1\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// A request is sent again only on demand, and with this process's secret.
func TestDebugSends(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var keys []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("Idempotency-Key")+r.Header.Get("Webhook-Id"))
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer receiver.Close()
	host := strings.TrimPrefix(receiver.URL, "http://")
	env := append(environment(t), "PAWL_ALLOW_HOSTS=127.0.0.1")
	withSecret := append(env, "PAWL_WEBHOOK_SECRETS=HOOK_KEY@"+host, "HOOK_KEY=whsec_"+strings.Repeat("QUFB", 8))
	sent := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(keys)
	}
	for _, c := range []struct{ action, input string }{
		{"http", `{"url":"` + receiver.URL + `"}`},
		{"webhook", `{"url":"` + receiver.URL + `","event":"a.b","secret_env":"HOOK_KEY"}`},
	} {
		file := filepath.Join(t.TempDir(), "w.yaml")
		document := "name: " + c.action + "-once\naction: " + c.action + "\nretry: {max_attempts: 1}\nwith: " + c.input + "\n"
		if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := pawl(t, withSecret, "run", file); code != exit.Failed {
			t.Fatalf("%s: exit code %d: %s", c.action, code, errs)
		}
		names, _, _ := pawl(t, env, "get", "executions", "--limit", "1", "-o", "name")
		id, before := strings.TrimSpace(names), sent()
		if _, errs, code := pawl(t, withSecret, "debug", id); code != exit.Misuse || !strings.Contains(errs, "--send sends it again") || sent() != before {
			t.Errorf("%s without --send: exit code %d, %d requests: %s", c.action, code, sent()-before, errs)
		}
		if _, errs, code := pawl(t, withSecret, "debug", id, "--shell"); code != exit.Misuse || !strings.Contains(errs, "no program is run") {
			t.Errorf("%s --shell: exit code %d: %s", c.action, code, errs)
		}
		if c.action == "webhook" {
			_, errs, code := pawl(t, env, "debug", id, "--send")
			if code != exit.Misuse || sent() != before || !strings.Contains(errs, "the attempt needs the secret HOOK_KEY, which is not recorded and is missing here") || !strings.Contains(errs, "--webhook-secrets HOOK_KEY@"+host) {
				t.Errorf("without its secret: exit code %d, %d requests: %s", code, sent()-before, errs)
			}
		}
		if _, errs, code := pawl(t, withSecret, "debug", id, "--send"); code != exit.Failed || !strings.Contains(errs, "http_418") || !strings.Contains(errs, " - the same end") || sent() != before+1 {
			t.Errorf("%s --send: exit code %d, %d requests: %s", c.action, code, sent()-before, errs)
		}
		if mu.Lock(); keys[before] != keys[before-1] {
			t.Errorf("%s: the request has the key %q, the one before had %q", c.action, keys[before], keys[before-1])
		}
		mu.Unlock()
	}
}

// The same works through a server, and an attempt that still runs is refused. Ctrl-C leaves nothing.
func TestDebugThroughServer(t *testing.T) {
	t.Parallel()
	env := environment(t)
	port := programtest.FreePort(t)
	start(t, append(env, "PAWL_LISTEN=127.0.0.1:"+port), "server")
	env = append(environment(t), "PAWL_SERVER=http://127.0.0.1:"+port)
	var id string
	within(t, 60*time.Second, "an evaluation is accepted", func() bool {
		out, _, code := pawl(t, env, "eval", "-i", writeFile(t, "wait.sh", "echo started; read x; echo \"got $x\""), "--detach")
		id = strings.TrimSpace(out)
		return code == exit.OK
	})
	within(t, 60*time.Second, "it runs", func() bool {
		out, _, _ := pawl(t, env, "logs", id)
		return out == "started\n"
	})
	if _, errs, code := pawl(t, env, "debug", id); code != exit.Misuse || !strings.Contains(errs, "is running, and how it ends is not recorded yet") {
		t.Errorf("while it runs: exit code %d: %s", code, errs)
	}
	if _, errs, code := pawl(t, env, "kill", id, "--wait", "60s"); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	again, _ := typing(t, env, "debug", id)
	again.sees(t, "started\n")
	if !strings.Contains(again.err.String(), "no end of file was given: behind them it waits until its limits, or Ctrl-C") {
		t.Errorf("it says %s", again.err.String())
	}
	if err := again.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := again.code(); code != exit.Interrupted {
		t.Errorf("exit code %d: %s", code, again.err.String())
	}
	out, _, _ := pawl(t, env, "describe", id)
	if !strings.Contains(out, "cancelled") {
		t.Errorf("described as %s", out)
	}
}

// A container runs again in one, and a shell opens in it.
func TestDebugContainer(t *testing.T) {
	t.Parallel()
	env := withEngine(t)
	file := writeFile(t, "c.yaml", `name: c
action: container
with:
  image: debian:bookworm-slim
  command: [sh, -c, 'cat words; echo "$COLOUR"; exit 4']
  env: {COLOUR: red}
  files: {words: "some words\n"}
`)
	if _, errs, code := pawl(t, env, "run", "--runtime", "sandbox,docker", file); code != exit.Failed {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	names, _, _ := pawl(t, env, "get", "executions", "-o", "name")
	id := strings.TrimSpace(names)
	if out, errs, code := pawl(t, env, "debug", id); code != exit.Failed || out != "some words\nred\n" || !strings.Contains(errs, "in runtime docker") || !strings.Contains(errs, " - the same end") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code := pawl(t, env, "debug", id, "--runtime", "sandbox"); code != exit.Misuse || !strings.Contains(errs, "it runs no containers") {
		t.Errorf("in the sandbox: exit code %d\n%s", code, errs)
	}
	shell, keyboard := typing(t, env, "debug", id, "--shell")
	write(t, keyboard, "cat words; echo $COLOUR\n")
	shell.sees(t, "some words\nred\n")
	write(t, keyboard, "exit\n")
	if code := shell.code(); code != exit.OK || !strings.Contains(shell.err.String(), "the attempt's own command: (the entrypoint of the image) sh -c ") {
		t.Errorf("exit code %d\n%s", code, shell.err.String())
	}
}
