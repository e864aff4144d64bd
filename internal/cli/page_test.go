package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cli/exit"
)

// The server prints the address of its page, pawl ui prints the same, and the page is there.
func TestThePageHasAnAddress(t *testing.T) {
	t.Parallel()
	env := environment(t)
	if out, errs, code := pawl(t, env, "ui", "--print"); code != exit.General || !strings.Contains(errs, "pawl server") {
		t.Errorf("without a server: exit code %d\n%s%s", code, out, errs)
	}
	server := start(t, env, "server", "--no-worker", "--listen", "127.0.0.1:0")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "the web page is at ") })
	_, url, _ := strings.Cut(server.err.String(), "the web page is at ")
	url, _, _ = strings.Cut(url, "\n")
	if out, errs, _ := pawl(t, env, "ui", "--print"); out != url+"\n" {
		t.Errorf("pawl ui says %q, the server says %q\n%s", out, url, errs)
	}
	if out, errs, _ := pawl(t, env, "ui", "--server", "https://pawl.example/sub/"); out != "https://pawl.example/sub/ui/\n" {
		t.Errorf("with --server: %q\n%s", out, errs)
	}
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || !strings.Contains(string(body), "<title>Pawl</title>") {
		t.Errorf("%s %v\n%s", res.Status, err, body)
	}
}

func TestThePageCanBeLeftOut(t *testing.T) {
	t.Parallel()
	env := environment(t)
	server := start(t, env, "server", "--no-worker", "--listen", "127.0.0.1:0", "--ui", "off")
	within(t, patience, "it serves", func() bool { return strings.Contains(server.err.String(), "serving on") })
	_, url, _ := strings.Cut(server.err.String(), "serving on ")
	url, _, _ = strings.Cut(url, " ")
	res, err := http.Get(url + "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNotFound || strings.Contains(server.err.String(), "web page") {
		t.Errorf("%s\n%s", res.Status, server.err.String())
	}
	if out, errs, code := pawl(t, env, "ui", "--print"); code != exit.General || !strings.Contains(errs, "serves no page") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}
