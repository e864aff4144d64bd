package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/handoff/post"
	"github.com/pawl-run/pawl/internal/handoff/redis"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
)

// The commands of docs/brokers.md work as they stand there.
func TestBrokerCommands(t *testing.T) {
	t.Parallel()
	need(t, "bash", "python3", "redis-server")
	out := followed(t, documented(t, "brokers.md", "", 1)[0], t.TempDir(), freePort(t))
	for _, want := range []string{"working for redis://127.0.0.1", "\n42\n", "There are no dead letters.", "ok   broker: redis://127.0.0.1"} {
		if !strings.Contains("\n"+out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Wrong settings of the broker are said at the start, with what to do.
func TestBrokerSettings(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "sesame")
	nowhere := "redis://127.0.0.1:" + freePort(t)
	env := environment(t)
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"server", "--listen", "127.0.0.1:0", "--broker", nowhere}, 1, "connection refused"},
		{[]string{"server", "--listen", "127.0.0.1:0", "--broker", "redis://:wrong@" + locked.Addr()}, 1, "refuses the user or password"},
		{[]string{"worker", "--broker", nowhere}, 1, "connection refused"},
		{[]string{"worker", "--broker", locked.URL()}, 1, "refuses the user or password"},
		{[]string{"worker", "--broker", "amqp://127.0.0.1"}, 2, "is not a broker: write redis://"},
		{[]string{"worker", "--broker", nowhere, "--server", "http://127.0.0.1:1"}, 2, "leave one empty"},
		{[]string{"worker"}, 2, "a worker needs a server or a broker"},
		{[]string{"broker", "dead"}, 2, "no broker is named"},
		{[]string{"broker", "dead", "--broker", nowhere, "--drop", "--redrive"}, 2, "give one of the two"},
		{[]string{"doctor", "--broker", nowhere}, 1, "FAIL broker"},
		{[]string{"config", "print", "--broker", "redis://u:secret@h:1"}, 0, "redis://u:xxxxx@h:1"},
	} {
		out, stderr, code := pawl(t, env, c.args...)
		if code != c.code || !strings.Contains(out+stderr, c.say) || strings.Contains(out+stderr, "wrong@") {
			t.Errorf("%v: %d %s%s, want %d and %q", c.args, code, out, stderr, c.code, c.say)
		}
	}
}

// Dead letters are shown, sent again and dropped.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	url := redistest.URL(t)
	env := append(environment(t), "PAWL_BROKER="+url)
	office, err := redis.Open(t.Context(), redis.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer office.Close()
	bury := func() {
		if err := office.Send(t.Context(), post.Tells, []byte("no letter")); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		office.Serve(ctx, post.Tells, 1, func(context.Context, post.Letter) error {
			defer stop()
			return &post.Buried{Reason: "it has 9 bytes"}
		})
	}
	bury()
	if out, stderr, code := pawl(t, env, "broker", "dead"); code != 0 || !strings.Contains(out, "tell") || !strings.Contains(out, "it has 9 bytes") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	if out, stderr, _ := pawl(t, env, "doctor"); !strings.Contains(out, "1 dead letter") {
		t.Errorf("%s%s", out, stderr)
	}
	var shown []struct {
		Line  string
		Tries int
		Bytes int
	}
	out, _, _ := pawl(t, env, "broker", "dead", "-o", "json")
	if err := json.Unmarshal([]byte(out), &shown); err != nil || len(shown) != 1 || shown[0].Line != "tell" || shown[0].Bytes != 9 || shown[0].Tries != 1 {
		t.Errorf("%s: %v", out, err)
	}
	if _, stderr, code := pawl(t, env, "broker", "dead", "--redrive"); code != 0 || !strings.Contains(stderr, "1 letter sent again") {
		t.Errorf("%d %s", code, stderr)
	}
	if lines, err := office.Backlog(t.Context()); err != nil || lines[post.Tells].Letters != 1 {
		t.Errorf("%+v, %v", lines, err)
	}
	bury()
	for _, want := range []string{"dropped", "There are no dead letters."} {
		if _, stderr, code := pawl(t, env, "broker", "dead", "--drop"); code != 0 || !strings.Contains(stderr, want) {
			t.Errorf("%d %s", code, stderr)
		}
	}
}

// A worker with another token is refused and ends.
func TestBrokerToken(t *testing.T) {
	t.Parallel()
	url := redistest.URL(t)
	env := append(environment(t), "PAWL_BROKER="+url)
	server := start(t, append(env, "PAWL_TOKEN=a-token-that-is-long-enough-for-pawl"), "server", "--listen", "127.0.0.1:0", "--no-worker")
	within(t, 30*time.Second, "the server serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	out, stderr, code := pawl(t, append(environment(t), "PAWL_BROKER="+url, "PAWL_TOKEN=another-token-that-is-long-enough-too"), "worker")
	if code != 1 || !strings.Contains(stderr, "another token") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
}

// While the broker is away, metrics and pawl why say so; once it is back, also without anything, the work that runs goes on.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	broker := redistest.Start(t)
	env := append(environment(t), "PAWL_BROKER="+broker.URL())
	addr := "127.0.0.1:" + freePort(t)
	server := start(t, env, "server", "--listen", addr, "--lease", "60s")
	within(t, 30*time.Second, "the server serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	work := start(t, append(env, "PAWL_STATE_DIR="+t.TempDir(), "PAWL_RUNTIME=process"), "worker", "--labels", "site=plant")
	within(t, 30*time.Second, "the worker works", func() bool { return strings.Contains(work.err.String(), "working for redis://") })
	mark := filepath.Join(t.TempDir(), "go on")
	program := writeFile(t, "program.py", "import os, time\nprint('started', flush=True)\nwhile not os.path.exists("+strconv.Quote(mark)+"): time.sleep(0.05)\nprint('ended')\n")
	eval := start(t, env, "eval", "--worker-label", "site=plant", "--limit", "wall=5m", program)
	within(t, 30*time.Second, "the program runs", func() bool { return strings.Contains(eval.out.String(), "started") })
	id := executions(t, env)[0].ID
	up := func(want string) func() bool {
		return func() bool {
			res, err := http.Get("http://" + addr + "/metrics")
			if err != nil {
				return false
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			return err == nil && strings.Contains(string(text), "\npawl_broker_up "+want+"\n") && strings.Contains(string(text), `pawl_broker_letters_total{line="tell"} `)
		}
	}
	within(t, 20*time.Second, "the broker is up in the metrics", up("1"))
	broker.Kill()
	within(t, 20*time.Second, "the broker is down in the metrics", up("0"))
	if out, stderr, _ := pawl(t, env, "why", id); !strings.Contains(out, "behind a broker that does not answer") {
		t.Errorf("%s%s", out, stderr)
	}
	broker.Again() // with nothing: it keeps nothing on its disk
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	within(t, 40*time.Second, "the program has ended", func() bool { return strings.Contains(eval.out.String(), "ended") })
	if err := eval.Wait(); err != nil {
		t.Errorf("%v\n%s", err, eval.err.String())
	}
	if x := executions(t, env)[0]; x.Attempt != 1 || x.Status != api.Completed {
		t.Errorf("%s in attempt %d", x.Status, x.Attempt)
	}
	within(t, 20*time.Second, "the broker is up in the metrics", up("1"))
}
