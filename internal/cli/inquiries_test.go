package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/programtest"
)

// served is the environment of commands that use a new server.
func served(t *testing.T) []string {
	t.Helper()
	env := environment(t)
	server := start(t, env, "server", "--no-worker", "--listen", "127.0.0.1:0")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	_, url, _ := strings.Cut(server.err.String(), "serving on ")
	url, _, _ = strings.Cut(url, " ")
	return append(env, "PAWL_SERVER="+strings.TrimSpace(url))
}

// The commands of docs/inquiries.md work as documented.
func TestInquiryCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl")
	out := followed(t, documented(t, "inquiries.md", "", 1)[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{"Release v1.2?", "is unanswered, for anybody", "bob cannot approve what he asked for", "Answer as ada", "is answered by ada", "shipped v1.2 tonight, approved by ada"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// The commands of docs/waits.md work as documented.
func TestWaitCommands(t *testing.T) {
	t.Parallel()
	need(t, "python3", "bash", "curl")
	out := followed(t, documented(t, "waits.md", "", 1)[0], t.TempDir(), programtest.FreePort(t))
	for _, want := range []string{"trigger payment.settled@1 registered", "differs in signal.data.amount >= vars.amount"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestAnswerCommand(t *testing.T) {
	t.Parallel()
	env := served(t)
	doc := filepath.Join(t.TempDir(), "approve.yaml")
	if err := os.WriteFile(doc, []byte(`
name: approve
action: ask
with:
  title: "Ship ${{ input.what }}?"
  form: {type: object, required: [ok], properties: {ok: {type: boolean}, when: {enum: [now, tonight], default: now}, why: {type: string}, n: {type: integer}}}
  exclude: [bob]
  accept: answer.ok
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := pawl(t, env, "apply", doc); code != 0 {
		t.Fatal(stderr)
	}
	asked := func() (execution, inquiry string) {
		t.Helper()
		out, stderr, code := pawl(t, env, "run", "approve", "--detach", "--input", `{"what":"it"}`)
		if code != 0 {
			t.Fatalf("run: %s %s", out, stderr)
		}
		execution = strings.TrimSpace(out)
		if out, stderr, code = pawl(t, env, "get", "inquiries", "-o", "name"); code != 0 {
			t.Fatalf("get: %s %s", out, stderr)
		}
		return execution, strings.Fields(out)[0]
	}
	x, i := asked()
	if out, stderr, code := pawl(t, env, "why", x); code != 0 || !strings.Contains(out, i+" is unanswered, for anybody") || !strings.Contains(out, "pawl answer "+i) {
		t.Errorf("why: %d %s %s", code, out, stderr)
	}
	if out, stderr, code := pawl(t, env, "get", "executions"); code != 0 || !strings.Contains(out, "running, needs an answer") {
		t.Errorf("get executions: %d %s %s", code, out, stderr)
	}
	if out, stderr, code := pawl(t, env, "describe", x); code != 0 || !strings.Contains(out, "Waits:") || !strings.Contains(out, i+" is unanswered") {
		t.Errorf("describe of what waits: %d %s %s", code, out, stderr)
	}
	if out, stderr, code := pawl(t, env, "describe", i); code != 0 || !strings.Contains(out, "Ship it?") || !strings.Contains(out, "when (now, tonight) [now]") {
		t.Errorf("describe: %d %s %s", code, out, stderr)
	}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"answer", i, "ok=maybe"}, 2, "ok: answer yes or no"},
		{[]string{"answer", i, "ok"}, 2, `"ok" is not FIELD=VALUE`},
		{[]string{"answer", i, "ok=yes", "-i"}, 2, "give one of"},
		{[]string{"answer", i, "--as", "ada"}, 2, "no answer is given"},
		{[]string{"answer", i, "ok=yes", "--as", "bob"}, 1, "bob must not answer"},
		{[]string{"answer", i, "why=x", "--as", "ada"}, 1, "missing propert"},
		{[]string{"answer", "iq_00000000000000000000000001", "ok=yes"}, 1, "there is no inquiry"},
		{[]string{"get", "inquiries", "--state", "opne"}, 1, "open"},
		{[]string{"describe", "iq_x"}, 1, "there is no inquiry"},
	} {
		if _, stderr, code := pawl(t, env, c.args...); code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: %d %s, want %d and %q", c.args, code, stderr, c.code, c.say)
		}
	}
	if out, stderr, code := pawl(t, env, "answer", i, "--link", "ada"); code != 0 || !strings.HasPrefix(out, "http://127.0.0.1:") || !strings.Contains(out, "/answer/") {
		t.Errorf("link: %d %s %s", code, out, stderr)
	}
	if out, stderr, code := pawl(t, env, "answer", i, "ok=yes", "why=5", "n=7", "--as", "ada", "--note", "go"); code != 0 || !strings.HasPrefix(out, i+" is answered by ada: ") || !strings.Contains(out, `"why":"5"`) || !strings.Contains(out, `"n":7`) {
		t.Errorf("answer: %d %s %s", code, out, stderr)
	}
	if out, _, code := pawl(t, env, "get", "inquiries", "--state", "answered", "-o", "wide"); code != 0 || !strings.Contains(out, i) || !strings.Contains(out, "ada") {
		t.Errorf("get: %d %s", code, out)
	}
	if out, stderr, code := pawl(t, env, "describe", x); code != 0 || !strings.Contains(out, "completed") {
		t.Errorf("describe: %d %s %s", code, out, stderr)
	}
}

func TestAnswerFieldByField(t *testing.T) {
	t.Parallel()
	env := served(t)
	const question = `{"title":"Go?","form":{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"},"when":{"enum":["now","late"],"default":"now"},"why":{"type":"string"}}}}`
	if out, stderr, code := pawl(t, env, "run", "ask", "--detach", "--input", question); code != 0 {
		t.Fatalf("run: %s %s", out, stderr)
	}
	out, _, _ := pawl(t, env, "get", "inquiries", "-o", "name")
	id := strings.TrimSpace(out)
	if _, stderr, code := pawlWith(t, env, "perhaps\n", "answer", id, "-i", "--as", "ada"); code != 2 || !strings.Contains(stderr, "nothing was sent") {
		t.Errorf("input that ends early: %d %s", code, stderr)
	}
	out, stderr, code := pawlWith(t, env, "perhaps\n\ny\n\nbecause\n", "answer", id, "-i", "--as", "ada")
	if code != 0 || !strings.Contains(out, `"when":"now"`) || !strings.Contains(out, `"why":"because"`) || !strings.Contains(stderr, "answer yes or no") || !strings.Contains(stderr, "when (now, late) [now]: ") {
		t.Errorf("%d %s %s", code, out, stderr)
	}
}
