// Package browser drives the web page in Chromium against a real server, on SQLite and, in part, on PostgreSQL. It is a module of its own,
// so that the browser driver is not a dependency of Pawl.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pawl-run/pawl/internal/programtest"
)

var (
	chromium string          // its path; empty without Chromium
	pawl     string          // the binary under test
	browser  context.Context // one browser for all tests, each with a tab of its own
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		if os.Getenv("PAWL_TEST_STRICT") != "" {
			return 1, fmt.Errorf("chromium is needed and not here: apt-get install chromium")
		}
		fmt.Println("NOT TESTED: the web page in a browser: chromium is not here (Debian's package chromium has it)")
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "pawl-browser-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if pawl, err = programtest.Pawl(); err != nil {
		return 1, err
	}
	defer programtest.Remove()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.WSURLReadTimeout(time.Minute))
	all, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	b, stop := chromedp.NewContext(all)
	defer stop()
	if err := chromedp.Do(b); err != nil {
		return 1, fmt.Errorf("start %s: %w", chromium, err)
	}
	browser = b
	return m.Run(), nil
}

// server is a pawl server in a process of its own.
type server struct {
	url   string // without a slash at its end
	token string
	state string // its state directory
	store string // sqlite, or the DSN of a database
	pid   int
	kill  func() // ends the process at once, as kill -9 does
}

var address = regexp.MustCompile(`the web page is at (http://\S+)/ui/`)

// serve starts a server on a state directory of its own.
func serve(t *testing.T, token string) *server {
	t.Helper()
	return serveOn(t, token, "sqlite")
}

// serveOn starts a server on a store, with a state directory of its own.
func serveOn(t *testing.T, token, store string) *server {
	t.Helper()
	return serveAt(t, token, store, filepath.Join(t.TempDir(), "state"), "127.0.0.1:"+programtest.FreePort(t))
}

// serveAt starts a server on a store, a state directory and an address.
func serveAt(t *testing.T, token, store, state, listen string) *server {
	t.Helper()
	cmd := exec.Command(pawl, "server", "--listen", listen, "--state-dir", state, "--store", store, "--runtime", "process", "--slots", "4")
	cmd.Env = append(os.Environ(), "PAWL_TOKEN="+token, "PAWL_SERVER=", "PAWL_CONFIG=", "XDG_CONFIG_HOME="+programtest.ConfigHome(t))
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := programtest.Start(cmd); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	found := make(chan string, 1)
	go func() {
		defer close(found)
		lines := bufio.NewScanner(errs)
		for lines.Scan() {
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
				break
			}
			t.Log(lines.Text())
		}
		_, _ = io.Copy(io.Discard, errs)
	}()
	select {
	case url, ok := <-found:
		if ok {
			return &server{url: url, token: token, state: state, store: store, pid: cmd.Process.Pid, kill: kill}
		}
	case <-time.After(time.Minute):
	}
	t.Fatal("the server did not say where its page is")
	return nil
}

// proxied returns the URL of a proxy in front of a server: answer handles each request and may forward it.
func proxied(t *testing.T, s *server, answer func(w http.ResponseWriter, r *http.Request, forward http.Handler)) string {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, forward) }))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// await waits until a channel is closed, or the client has given up the request. Without the second, a failed test would wait for its proxy
// for ever.
func await(r *http.Request, c <-chan struct{}) {
	select {
	case <-c:
	case <-r.Context().Done():
	}
}

// cpu returns how many seconds of processor time the server has used.
func (s *server) cpu(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third field on: the second is the program's name in brackets
	var ticks [2]float64
	for i := range ticks { // utime and stime, proc(5)
		if ticks[i], err = strconv.ParseFloat(fields[11+i], 64); err != nil {
			t.Fatal(err)
		}
	}
	return (ticks[0] + ticks[1]) / 100 // USER_HZ is 100 on x86 and arm64
}

// call sends a request to the API and decodes its answer.
func (s *server) call(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	b := s.text(t, method, path, body)
	var out map[string]any
	if err := json.Unmarshal([]byte(b), &out); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return out
}

// text sends a request to the API and returns the body of its answer.
func (s *server) text(t *testing.T, method, path string, body any) string {
	t.Helper()
	var sent io.Reader
	if text, ok := body.(string); ok {
		sent = strings.NewReader(text)
	} else if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		sent = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, sent)
	if err != nil {
		t.Fatal(err)
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %v\n%.2000s", method, path, res.Status, err, b)
	}
	return string(b)
}

// end waits for the end of an execution, however long a busy machine takes: one request waits for at most a minute.
func (s *server) end(t *testing.T, id string) {
	t.Helper()
	for s.call(t, http.MethodGet, "/api/v1/executions/"+id+"?wait=60s", nil)["finished_at"] == nil {
	}
}

// endAll waits for the end of all executions with a label, which is escaped as in a query: run%3D1.
func (s *server) endAll(t *testing.T, label string) {
	t.Helper()
	for s.call(t, http.MethodGet, "/api/v1/executions?limit=1&wait=60s&label="+label, nil)["unfinished"] != 0.0 {
	}
}

// submit returns the id of a new execution. When path or body makes the answer wait, the execution has ended, however long a busy machine
// takes.
func (s *server) submit(t *testing.T, path string, body any) string {
	t.Helper()
	x := s.call(t, http.MethodPost, path, body)
	waits := strings.Contains(path, "wait=")
	switch b := body.(type) {
	case string:
		waits = waits || strings.Contains(b, `"wait": "`)
	case map[string]any:
		waits = waits || b["wait"] != nil
	}
	id := x["id"].(string)
	if waits && x["finished_at"] == nil {
		s.end(t, id)
	}
	return id
}
