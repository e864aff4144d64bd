package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
)

func TestAttempt(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	if _, err := h.client.Define(t.Context(), []byte("name: greet\naction: noop\ninput: {type: object}\nwith: {text: 'hello ${{ input.name }}'}\n"), ""); err != nil {
		t.Fatal(err)
	}
	x, err := h.client.Submit(t.Context(), api.Submission{Action: "greet", Input: []byte(`{"name":"ada"}`), Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	h.await(t, x.ID, "ended", terminal)
	a, err := h.client.Attempt(t.Context(), x.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	if a.Execution != x.ID || a.Attempt != 1 || a.Action != "greet" || a.Version != 1 || a.Kind != "noop" || string(a.Payload) != `{"text":"hello ada"}` || a.Labels["a"] != "b" ||
		!a.Began || a.Lost || a.Status != api.Completed || string(a.Output) != `{"text":"hello ada"}` || a.Error != nil {
		t.Errorf("%+v", a)
	}
	for path, want := range map[string]string{"2": "has had 1", "0": "numbered from 1", "x": "numbered from 1", "-1": "numbered from 1"} {
		if res, body := h.do(t, "GET", "/api/v1/executions/"+x.ID+"/attempts/"+path, ""); res.StatusCode != http.StatusNotFound || !strings.Contains(string(body), want) {
			t.Errorf("attempt %s: %s %s", path, res.Status, body)
		}
	}
}

// Only blobs that the input names are served, from any byte on.
func TestGiven(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	up, err := h.client.Upload(t.Context(), strings.NewReader("0123456789"))
	if err != nil {
		t.Fatal(err)
	}
	left, gone := "files/"+h.code(t, "x")+"/1/0", "files/"+h.code(t, "y")+"/1/0"
	if _, err := h.engine.Blobs().Put(t.Context(), left, strings.NewReader("left")); err != nil {
		t.Fatal(err)
	}
	e := api.Evaluation{Code: api.Code{Language: "bash", Source: "x", Files: map[string]api.Content{"a": {Blob: up.Blob}, "b": {Blob: left}, "c": {Blob: gone}}}}
	x, err := h.client.Evaluate(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		offset int64
		want   string
	}{{up.Blob, 0, "0123456789"}, {up.Blob, 7, "789"}, {left, 0, "left"}} {
		r, err := h.client.Given(t.Context(), x.ID, c.name, c.offset)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil || string(b) != c.want {
			t.Errorf("%s from %d on: %q, %v", c.name, c.offset, b, err)
		}
	}
	if _, err := h.engine.Blobs().Put(t.Context(), "files/"+x.ID+"/1/0", strings.NewReader("its own")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{gone: "is not here", "files/" + x.ID + "/1/0": "names no blob"} {
		if _, err := h.client.Given(t.Context(), x.ID, name, 0); !client.IsNotFound(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestStdinBytes(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	id := h.interactive(t)
	read := func() string {
		t.Helper()
		r, err := h.client.StdinBytes(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := read(); got != "" {
		t.Errorf("before anything was typed: %q", got)
	}
	w := h.client.WriteStdin(t.Context(), id, 0)
	large := strings.Repeat("0123456789", 60_000)
	if _, err := w.Write([]byte(large)); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != large {
		t.Errorf("%d bytes were typed, and %d are read", len(large), len(got))
	}
}
