package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

// A server that shows an archive refuses every request, on each route, that could change something, and says that it is an archive. It
// answers all other requests.
func TestAnOpenedArchiveIsReadOnly(t *testing.T) {
	t.Parallel()
	shown := api.Archive{From: "there", At: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Executions: 1}
	h := start(t, Options{Archive: &shown})
	d, _ := readDocument(t, h)
	refused := 0
	for path, operations := range d.Paths {
		target := strings.NewReplacer("{id}", "ex_00000000000000000000000000", "{name}", "n", "{alias}", "a", "{signal}", "sg_00000000000000000000000000", "{rule}", "r",
			"{attempt}", "1", "{task}", "t", "{file}", "f", "{blob}", "b", "{token}", "t").Replace(path)
		for method := range operations {
			if method == "get" || method == "head" {
				continue
			}
			refused++
			res, body := h.do(t, strings.ToUpper(method), target, `{}`)
			if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" || !strings.Contains(string(body), "this is an opened archive") {
				t.Errorf("%s %s: %s\n%s", method, target, res.Status, body)
			}
		}
	}
	if refused < 50 {
		t.Errorf("%d operations were refused", refused)
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "MKCOL"} {
		for _, target := range []string{"/", "/ui/", "/nothing", workersPath + "open", "/api/v1/executions"} {
			if res, _ := h.do(t, method, target, ""); res.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %s", method, target, res.Status)
			}
		}
	}
	for _, method := range []string{"GET", "HEAD"} {
		if res, _ := h.do(t, method, "/api/v1/executions", ""); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", method, res.Status)
		}
	}
	var session api.Session
	if _, body := h.do(t, "GET", sessionPath, ""); json.Unmarshal(body, &session) != nil || session.Archive == nil || *session.Archive != shown {
		t.Errorf("the session says %s", body)
	}
}
