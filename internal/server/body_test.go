package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
)

// A client that sends its whole body before it reads the answer gets the reason of the refusal, not a broken connection.
func TestTooLargeABodyIsAnswered(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	h := start(t, Options{BodyLimit: limit})
	body := strings.Repeat(" ", 12*limit) // more than a connection's buffers hold
	for name, head := range map[string]string{
		"length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := h.raw(t, "POST /api/v1/executions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+head)
			said, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != 413 || !strings.Contains(string(said), api.ProblemTooLarge) || !res.Close {
				t.Errorf("%s %s, %v", res.Status, said, err)
			}
		})
	}
	t.Run("asked for first", func(t *testing.T) {
		t.Parallel()
		// A client that sends "Expect: 100-continue" gets its answer at once.
		res := h.raw(t, fmt.Sprintf("POST /api/v1/executions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)))
		if res.StatusCode != 413 {
			t.Error(res.Status)
		}
	})
	t.Run("endless", func(t *testing.T) {
		t.Parallel()
		// A body that is too long to be read to its end is refused at once, for clients that read while they send.
		res := h.raw(t, "POST /api/v1/executions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000000\r\n\r\n")
		if res.StatusCode != 413 {
			t.Error(res.Status)
		}
	})
}

// raw sends a request unchanged as a whole, and then reads the answer.
func (h *house) raw(t *testing.T, request string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatalf("send: %v", err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}
