package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
)

// The page's files are public even if there are tokens; the data that it shows is not.
func TestThePageIsOpenAndTheAPIIsNot(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page "+r.URL.Path) })
	h := start(t, Options{Page: page, Tokens: []string{"0123456789abcdef0123"}})
	for _, path := range []string{"/", "/ui", "/ui/", "/ui/executions/ex_1/logs"} {
		if res, body := h.do(t, "GET", path, "", "Authorization", ""); res.StatusCode != 200 || string(body) != "page "+path {
			t.Errorf("%s: %s %s", path, res.Status, body)
		}
	}
	for _, path := range []string{"/api/v1/executions", "/metrics", "/uix"} {
		if res, body := h.do(t, "GET", path, "", "Authorization", ""); res.StatusCode != 401 {
			t.Errorf("%s: %s %s", path, res.Status, body)
		}
	}
	if res, body := h.do(t, "POST", "/ui/", "{}", "Authorization", ""); res.StatusCode != 401 {
		t.Errorf("POST /ui/: %s %s", res.Status, body)
	}
}

// A host name of another site that resolves to this machine gets no page: the page's scripts would have that site's origin.
func TestThePageAnswersToItsOwnNameOnly(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	h := start(t, Options{Page: page})
	if res, body := h.do(t, "GET", "/ui/", "", "Host", "evil.example"); res.StatusCode != 403 {
		t.Errorf("%s %s", res.Status, body)
	}
}

func TestNoPage(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for _, path := range []string{"/", "/ui/"} {
		if p := h.problem(t, 404, api.ProblemNotFound, "GET", path, ""); !strings.Contains(p.Detail, "openapi.json") {
			t.Errorf("%s: %+v", path, p)
		}
	}
}
