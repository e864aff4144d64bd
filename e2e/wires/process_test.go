// Package wires tests the protocols of other evaluators with whole programs: recorded requests and their answers, the real clients of these
// protocols, and processes that break in the middle.
package wires

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/programtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

const every = "run_code,test_program,piston,judge0"

// process is one process of `pawl server` or `pawl worker`.
type process struct {
	*programtest.Process
	url    string // of a server
	client *client.Client
}

var serving = regexp.MustCompile(`serving on (http://\S+)`)

// start starts pawl, and waits until it has printed that it is ready.
func start(t *testing.T, announced *regexp.Regexp, args ...string) (*process, string) {
	t.Helper()
	path, err := programtest.Pawl()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "PAWL_CONFIG=", "PAWL_SERVER=", "PAWL_TOKEN=", "PAWL_ALLOW_DEGRADED=true", "XDG_CONFIG_HOME="+t.TempDir())
	p, text := programtest.Announced(t, cmd, announced)
	return &process{Process: p}, text
}

// serve starts a server that speaks all wires.
func serve(t *testing.T, state string, args ...string) *process {
	t.Helper()
	p, url := start(t, serving, append([]string{"server", "--listen", "127.0.0.1:0", "--state-dir", state, "--compat", every, "--max-memory", "2GiB"}, args...)...)
	p.url = url
	var err error
	if p.client, err = client.New(url, client.WithToken(token)); err != nil {
		t.Fatal(err)
	}
	return p
}

const token = "a token that is long enough"

var working = regexp.MustCompile(`pawl: (work\S*)`)

// work starts a worker of a server.
func work(t *testing.T, server *process) *process {
	t.Helper()
	p, _ := start(t, working, "worker", "--server", server.url, "--state-dir", filepath.Join(t.TempDir(), "worker"), "--max-memory", "2GiB")
	return p
}

// reply is the result of a request.
type reply struct {
	status int
	body   string
	err    error
}

// post sends JSON to a wire.
func (p *process) post(path, body string) reply {
	req, err := http.NewRequest(http.MethodPost, p.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	return p.send(req)
}

func (p *process) send(req *http.Request) reply {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, string(b), err}
}

// later is post without waiting for the answer.
func (p *process) later(path, body string) <-chan reply {
	answer := make(chan reply, 1)
	go func() { answer <- p.post(path, body) }()
	return answer
}

// running waits until an evaluation of a wire runs in at least the given attempt, and returns it.
func (p *process) running(t *testing.T, wire string, attempt int) api.Execution {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		page, err := p.client.List(t.Context(), client.Filter{Labels: map[string]string{"wire": wire}, Status: []api.Status{api.Running}})
		if err == nil && len(page.Executions) > 0 && page.Executions[0].Attempt >= attempt {
			return page.Executions[0]
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // there is no event of another process to wait for
	}
	t.Fatal("no evaluation runs")
	return api.Execution{}
}

// waiting waits until n evaluations wait for a worker.
func (p *process) waiting(t *testing.T, n int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if page, err := p.client.List(t.Context(), client.Filter{Status: []api.Status{api.Requested, api.Scheduled}}); err == nil && len(page.Executions) == n {
			return
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // there is no event of another process to wait for
	}
	t.Fatalf("there are not %d evaluations waiting", n)
}

// counted checks a metric of the server.
func (p *process) counted(t *testing.T, wire, outcome string, want int) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("\npawl_compat_evaluations_total{outcome=%q,wire=%q} %d\n", outcome, wire, want)
	if got := p.send(req); got.err != nil || !strings.Contains(got.body, line) {
		t.Errorf("the metrics lack %q: %v", line, got.err)
	}
}
