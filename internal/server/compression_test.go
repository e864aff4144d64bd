package server

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"testing"
)

// A long answer is compressed for clients that accept gzip, and has the same content.
func TestCompression(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	for i := range 60 {
		if res, body := h.do(t, "POST", "/api/v1/executions?wait=10s", fmt.Sprintf(`{"action":"noop","labels":{"long":"%060d"}}`, i)); res.StatusCode != 200 {
			t.Fatalf("%s %s", res.Status, body)
		}
	}
	const path = "/api/v1/executions?limit=60&top_level=true"
	_, plain := h.do(t, "GET", path, "", "Accept-Encoding", "identity")
	for accept, want := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "identity": false, "*": false} {
		res, body := h.do(t, "GET", path, "", "Accept-Encoding", accept)
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: compressed %t, want %t", accept, got, want)
		}
		if !want {
			continue
		}
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) > len(plain)/3 || len(read) != len(plain) {
			t.Errorf("%d bytes became %d, and %d again", len(plain), len(body), len(read))
		}
	}
	if res, _ := h.do(t, "GET", "/api/v1/session", "", "Accept-Encoding", "gzip"); res.Header.Get("Content-Encoding") != "" {
		t.Error("a short answer was compressed")
	}
}
