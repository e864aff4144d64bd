package cli

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq/rabbitmqtest"
	"github.com/pawl-run/pawl/internal/handoff/redis/redistest"
	"github.com/pawl-run/pawl/internal/programtest"
)

// The commands of docs/brokers.md work as documented.
func TestBrokerCommands(t *testing.T) {
	t.Parallel()
	need(t, "bash", "python3", "redis-server")
	blocks := documented(t, "brokers.md", "", 4) // the others configure permissions in Redis and RabbitMQ, and are tested with these
	for name, block := range map[string]string{"redis": blocks[0], "amqp": blocks[1]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "amqp" {
				block = strings.ReplaceAll(block, "amqp://127.0.0.1:5672", rabbitmqtest.URL(t))
			}
			out := followed(t, block, t.TempDir(), programtest.FreePort(t))
			for _, want := range []string{"working for " + name + "://127.0.0.1", "\n42\n", "There are no dead letters.", "ok   broker: " + name + "://127.0.0.1"} {
				if !strings.Contains("\n"+out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

// Over TLS the same commands work. An untrusted certificate is refused, with the fix.
func TestBrokerOverTLS(t *testing.T) {
	t.Parallel()
	need(t, "bash", "python3", "redis-server")
	commands := documented(t, "brokers.md", "", 4)[1]
	for name, start := range map[string]func(t *testing.T, port string, c brokerrpctest.Certificates) (url string){
		"rediss": func(t *testing.T, port string, c brokerrpctest.Certificates) string {
			redistest.Start(t, "--tls-port", port, "--tls-cert-file", c.Cert, "--tls-key-file", c.Key, "--tls-ca-cert-file", c.CA, "--tls-auth-clients", "no")
			return "rediss://127.0.0.1:" + port
		},
		"amqps": func(t *testing.T, port string, c brokerrpctest.Certificates) string {
			rabbitmqtest.Start(t, "listeners.ssl.default = 127.0.0.1:"+port, "ssl_options.cacertfile = "+c.CA, "ssl_options.certfile = "+c.Cert, "ssl_options.keyfile = "+c.Key, "")
			return "amqps://127.0.0.1:" + port
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scratch := t.TempDir()
			url := start(t, programtest.FreePort(t), brokerrpctest.NewCertificates(t, scratch))
			out := followed(t, "export SSL_CERT_FILE=/tmp/ca.pem\n"+strings.ReplaceAll(commands, "amqp://127.0.0.1:5672", url), scratch, programtest.FreePort(t))
			for _, want := range []string{"working for " + url, "\n42\n", "ok   broker: " + url} {
				if !strings.Contains("\n"+out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			_, stderr, code := pawl(t, environment(t), "worker", "--broker", url)
			if code != 1 || !strings.Contains(stderr, "SSL_CERT_FILE") {
				t.Errorf("without the authority: %d %s", code, stderr)
			}
		})
	}
}

// Wrong settings of the broker are reported at the start, with the fix.
func TestBrokerSettings(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "sesame")
	nowhere := "redis://127.0.0.1:" + programtest.FreePort(t)
	rabbit, _, _ := strings.Cut(strings.TrimPrefix(rabbitmqtest.URL(t), "amqp://"), "?")
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
		{[]string{"worker", "--broker", "amqp://" + strings.TrimPrefix(nowhere, "redis://")}, 1, "connection refused"},
		{[]string{"server", "--listen", "127.0.0.1:0", "--broker", "amqp://guest:wrong@" + rabbit}, 1, "refuses the user or password"},
		{[]string{"server", "--listen", "127.0.0.1:0", "--broker", "amqp://" + rabbit + "/elsewhere"}, 1, "the vhost of the broker's URL"},
		{[]string{"doctor", "--broker", "amqp://" + rabbit + "/elsewhere"}, 1, "FAIL broker"},
		{[]string{"config", "print", "--broker", "amqps://u:secret@h/v"}, 0, "amqps://u:xxxxx@h/v"},
		{[]string{"worker", "--broker", "kafka://127.0.0.1"}, 2, "is not a broker: write redis://"},
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
	for name, url := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deadLetters(t, url(t))
		})
	}
}

// brokers gives, for each broker, the URL of a namespace for the test.
var brokers = map[string]func(*testing.T) string{"redis": redistest.URL, "rabbitmq": rabbitmqtest.URL}

func deadLetters(t *testing.T, url string) {
	env := append(environment(t), "PAWL_BROKER="+url)
	transport, err := instance.OpenBroker(t.Context(), url, "one", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	bury := func() {
		if err := transport.Send(t.Context(), brokerrpc.Tells, []byte("no letter"), 0); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		transport.Serve(ctx, brokerrpc.Tells, 1, func(context.Context, brokerrpc.Message) error {
			defer stop()
			return &brokerrpc.Unreadable{Reason: "it has 9 bytes"}
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
	if _, stderr, code := pawl(t, env, "broker", "dead", "--redrive"); code != 0 || !strings.Contains(stderr, "1 message sent again") {
		t.Errorf("%d %s", code, stderr)
	}
	within(t, patience, "it is back", func() bool {
		lines, err := transport.Backlog(t.Context())
		return err == nil && lines[brokerrpc.Tells].Messages == 1
	})
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
	for name, url := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokerToken(t, url(t))
		})
	}
}

func brokerToken(t *testing.T, url string) {
	env := append(environment(t), "PAWL_BROKER="+url)
	server := start(t, append(env, "PAWL_TOKEN=a-token-that-is-long-enough-for-pawl"), "server", "--listen", "127.0.0.1:0", "--no-worker")
	within(t, patience, "the server serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	out, stderr, code := pawl(t, append(environment(t), "PAWL_BROKER="+url, "PAWL_TOKEN=another-token-that-is-long-enough-too"), "worker")
	if code != 1 || !strings.Contains(stderr, "another token") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
}

// While the broker is away, metrics and pawl why report it; once it is back, even without its data, running work continues.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) mortal{
		"redis":    func(t *testing.T) mortal { return redistest.Start(t) },
		"rabbitmq": func(t *testing.T) mortal { return rabbitmqtest.Start(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokerAway(t, start(t))
		})
	}
}

// mortal is a broker that can be killed and restarted.
type mortal interface {
	URL() string
	Kill()
	Again()
}

func brokerAway(t *testing.T, broker mortal) {
	env := append(environment(t), "PAWL_BROKER="+broker.URL())
	addr := "127.0.0.1:" + programtest.FreePort(t)
	server := start(t, env, "server", "--listen", addr, "--lease", "3m")
	within(t, patience, "the server serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	work := start(t, append(env, "PAWL_STATE_DIR="+t.TempDir(), "PAWL_RUNTIME=process"), "worker", "--labels", "site=plant")
	within(t, patience, "the worker works", func() bool { return strings.Contains(work.err.String(), "working for "+broker.URL()) })
	mark := filepath.Join(t.TempDir(), "go on")
	program := writeFile(t, "program.py", "import os, time\nprint('started', flush=True)\nwhile not os.path.exists("+strconv.Quote(mark)+"): time.sleep(0.05)\nprint('ended')\n")
	eval := start(t, env, "eval", "--worker-label", "site=plant", "--limit", "wall=5m", program)
	within(t, patience, "the program runs", func() bool { return strings.Contains(eval.out.String(), "started") })
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
	within(t, patience, "the broker is up in the metrics", up("1"))
	broker.Kill()
	within(t, patience, "the broker is down in the metrics", up("0"))
	if out, stderr, _ := pawl(t, env, "why", id); !strings.Contains(out, "behind a broker that does not answer") {
		t.Errorf("%s%s", out, stderr)
	}
	broker.Again() // an empty Redis: it stores nothing on disk
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	within(t, 2*time.Minute, "the program has ended", func() bool { return strings.Contains(eval.out.String(), "ended") })
	if err := eval.Wait(); err != nil {
		t.Errorf("%v\n%s", err, eval.err.String())
	}
	if x := executions(t, env)[0]; x.Attempt != 1 || x.Status != api.Completed {
		t.Errorf("%s in attempt %d", x.Status, x.Attempt)
	}
	within(t, patience, "the broker is up in the metrics", up("1"))
}
