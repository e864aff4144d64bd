package outgoing_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/task/outgoing"
)

// The code of a call without a response says what was wrong with the connection.
func TestTransportCodes(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate is signed by no known authority
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			if r.URL.Path == "/half" {
				_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"))
			}
			_ = c.Close()
		}
	}))
	t.Cleanup(plain.Close)
	h := outgoing.HTTP{Egress: egress(t, outgoing.EgressOptions{AllowPrivate: true})}
	for url, code := range map[string]string{
		"http://two..dots/":                   flow.CodeDNSFailed,
		"http://127.0.0.1:1":                  flow.CodeConnectionRefused,
		secure.URL:                            flow.CodeTLSFailed,
		"https" + withoutTLS(t)[len("http"):]: flow.CodeTLSFailed,
		plain.URL:                             flow.CodeConnectionLost,
		plain.URL + "/half":                   flow.CodeConnectionLost,
	} {
		_, _, err := call(t.Context(), h, obj{"url": url, "method": "POST"})
		if te, ok := errors.AsType[*task.Error](err); !ok || te.Code != code {
			t.Errorf("%s: %v, want %s", url, err, code)
		}
	}
}

// withoutTLS is the address of a server without TLS.
func withoutTLS(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.URL
}
