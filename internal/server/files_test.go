package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.code(t, "hello")
	h.await(t, id, "ended", terminal)
	large := bytes.Repeat([]byte("0123456789"), 30_000)
	if _, err := h.engine.Blobs().Put(t.Context(), "files/"+id+"/1/0", bytes.NewReader(large)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Blobs().Put(t.Context(), "files/other/1/0", strings.NewReader("private")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{"out/said.txt": []byte("hello"), "raw": {0, 255}, `ünïcode "x".bin`: large} {
		f, err := h.client.File(t.Context(), id, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got, err := io.ReadAll(f)
		if f.Close(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
	res, _ := h.do(t, "GET", "/api/v1/executions/"+id+"/files/"+url.PathEscape(`ünïcode "x".bin`), "")
	if cd := res.Header.Get("Content-Disposition"); cd != "attachment; filename*=UTF-8''%C3%BCn%C3%AFcode%20%22x%22.bin" ||
		res.Header.Get("Content-Type") != "application/octet-stream" || res.Header.Get("X-Content-Type-Options") != "nosniff" || res.ContentLength != int64(len(large)) {
		t.Errorf("%v", res.Header)
	}
	noop, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", Input: []byte(`{"files":[{"path":"x","blob":"files/other/1/0"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	h.await(t, noop.ID, "ended", terminal)
	for _, c := range []struct {
		id, path, say string
		status        int
	}{
		{id, "nope", `left no file "nope": it left "out/said.txt", "raw", `, 404},
		{id, "gone", "no longer kept", 404},
		{id, "stolen", "no longer kept", 404},
		{noop.ID, "x", "no longer kept", 404},
		{noop.ID, "y", `it left "x"`, 404},
		{h.code(t, "hang"), "x", "collected when it ends", 409},
		{"ex_00000000000000000000000010", "x", "", 404},
	} {
		_, err := h.client.File(t.Context(), c.id, c.path)
		var p *api.Problem
		if !errors.As(err, &p) || p.Status != c.status || !strings.Contains(p.Detail, c.say) {
			t.Errorf("%s %q: %v", c.id, c.path, err)
		}
	}
	for _, path := range []string{"", "../said.txt", "..%2fsaid.txt"} { // which the client refuses
		if res, body := h.do(t, "GET", "/api/v1/executions/"+id+"/files/"+path, ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("%q: %s %s", path, res.Status, body)
		}
	}
	if _, err := h.client.File(t.Context(), id, "nope"); !client.IsNotFound(err) {
		t.Errorf("%v", err)
	}
	if res, _ := h.do(t, "POST", "/api/v1/executions/"+id+"/files/raw", ""); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%s", res.Status)
	}
}

// Untrusted bytes are inert in a browser: no script in them runs, no type is guessed, and no other site can embed them.
func TestBytesOfOthersAreInert(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	up, err := h.client.Upload(t.Context(), strings.NewReader("<script>alert(1)</script>"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := h.client.Evaluate(t.Context(), api.Evaluation{Code: api.Code{Language: "bash", Source: "<script>alert(1)</script>", Files: map[string]api.Content{"a": {Blob: up.Blob}}}})
	if err != nil {
		t.Fatal(err)
	}
	h.await(t, x.ID, "ended", terminal)
	typed := h.interactive(t)
	one := "/api/v1/executions/" + x.ID
	for _, path := range []string{one + "/files/out/said.txt", one + "/logs?stream=stdout&offset=0", one + "/given/" + up.Blob, "/api/v1/executions/" + typed + "/stdin/bytes", "/api/v1/executions:export?id=" + x.ID} {
		res, _ := h.do(t, "GET", path, "")
		for name, want := range map[string]string{"Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := res.Header.Get(name); res.StatusCode != 200 || got != want {
				t.Errorf("%s: %s, %s: %q, want %q", path, res.Status, name, got, want)
			}
		}
	}
}
