package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
)

// listener reads an execution's output as it comes.
type listener struct {
	t     *testing.T
	heard chan string
	all   strings.Builder
}

func (h *house) listen(t *testing.T, id string) *listener {
	l := &listener{t: t, heard: make(chan string, 1000)}
	ctx := t.Context()
	go func() {
		defer close(l.heard)
		for c, err := range h.client.FollowLogs(ctx, id, client.LogQuery{}) {
			if err != nil {
				return
			}
			l.heard <- string(c.Bytes())
		}
	}()
	return l
}

// until reads until the whole output is want.
func (l *listener) until(want string) {
	l.t.Helper()
	deadline := time.After(time.Minute)
	for l.all.String() != want {
		select {
		case s, open := <-l.heard:
			if !open && l.all.String() != want {
				l.t.Fatalf("it ended with %.100q (%d bytes), want %.100q (%d)", l.all.String(), l.all.Len(), want, len(want))
			}
			l.all.WriteString(s)
		case <-deadline:
			l.t.Fatalf("heard %.100q (%d bytes), want %.100q (%d)", l.all.String(), l.all.Len(), want, len(want))
		}
	}
}

func TestStdin(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	id := h.interactive(t)
	heard := h.listen(t, id)
	w := h.client.WriteStdin(t.Context(), id, 0)
	want := ""
	for _, s := range []string{"one\n", "\x00\xff not text", strings.Repeat("much\n", 200_000)} {
		if n, err := w.Write([]byte(s)); err != nil || n != len(s) {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(s), err)
		}
		want += s
		heard.until(want)
	}
	at, err := h.client.Stdin(t.Context(), id)
	if err != nil || at.Offset != int64(len(want)) || at.Offset != w.Offset() || at.Closed || at.Status != api.Running || at.ID != id {
		t.Errorf("stdin %+v, %v; want an offset of %d", at, err, len(want))
	}
	// Another client continues where this one stopped.
	w = h.client.WriteStdin(t.Context(), id, at.Offset)
	if _, err := io.WriteString(w, "bye"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	heard.until(want + "bye")
	x, err := h.client.Wait(t.Context(), id)
	if err != nil || x.Status != api.Completed || x.Attempt != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	if at, err = h.client.Stdin(t.Context(), id); err != nil || !at.Closed || at.Status != api.Completed {
		t.Errorf("stdin after the end: %+v, %v", at, err)
	}
}

func TestStdinIsTakenOnce(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	id := h.interactive(t)
	path := "/api/v1/executions/" + id + "/stdin"
	for i, c := range []struct{ query, body, want string }{
		{"?offset=0", "hello ", `"offset":6,"closed":false`},
		{"?offset=0", "hello ", `"offset":6,"closed":false`},
		{"?offset=3", "lo world", `"offset":11,"closed":false`}, // a part of it had arrived
		{"", "!", `"offset":12,"closed":false`},
		{"", "", `"offset":12,"closed":false`},
		{"?offset=11&eof=true", "!", `"offset":12,"closed":true`},
		{"?eof=true", "", `"offset":12,"closed":true`},
	} {
		res, body := h.do(t, "POST", path+c.query, c.body)
		if res.StatusCode != 200 || !bytes.Contains(body, []byte(c.want)) {
			t.Errorf("%d: %s %s, want %s", i, res.Status, body, c.want)
		}
	}
	h.await(t, id, "ended", terminal)
	res, body := h.do(t, "GET", "/api/eval/"+id+"/logs?stream=stdout", "", "Accept", "text/plain")
	if string(body) != "hello world!" {
		t.Errorf("it read %s %q", res.Status, body)
	}
}

func TestStdinRefusals(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	id := h.interactive(t)
	h.await(t, id, "running", running)
	path := "/api/v1/evaluations/" + id + "/stdin"
	if res, body := h.do(t, "POST", path, "hello"); res.StatusCode != 200 {
		t.Fatalf("%s %s", res.Status, body)
	}
	if p := h.problem(t, 409, api.ProblemStdinOffset, "POST", path+"?offset=7", "x"); !strings.Contains(p.Detail, "5 bytes so far") {
		t.Errorf("a gap: %s", p.Detail)
	}
	h.problem(t, 409, api.ProblemStdinOffset, "POST", path+"?offset=0", "jello")
	h.problem(t, 400, api.ProblemInvalid, "POST", path+"?offset=-1", "x")
	h.problem(t, 400, api.ProblemInvalid, "POST", path+"?eof=maybe", "x")
	h.problem(t, 400, api.ProblemInvalid, "POST", path+"?from=0", "x")
	h.problem(t, 415, api.ProblemUnsupportedMedia, "POST", path, "x", "Content-Type", "multipart/form-data; boundary=x")
	h.problem(t, 403, api.ProblemForbidden, "POST", path, "x", "Origin", "https://elsewhere.example", "Sec-Fetch-Site", "cross-site")
	if _, err := h.engine.Feed(t.Context(), mustID(t, id), engine.AtEnd, make([]byte, flow.InputLimit-6), false); err != nil {
		t.Fatal(err)
	}
	if p := h.problem(t, 413, api.ProblemTooLarge, "POST", path, "xx"); !strings.Contains(p.Detail, "may have 16777216") {
		t.Errorf("too much: %s", p.Detail)
	}
	if _, err := h.client.Kill(t.Context(), id, "enough", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	h.problem(t, 409, api.ProblemFinished, "POST", path, "x")

	h.problem(t, 404, api.ProblemNotFound, "POST", "/api/v1/executions/"+flow.ID{1, 2}.String()+"/stdin", "x")
	plain := h.code(t, "hang")
	for _, method := range []string{"GET", "POST"} {
		if p := h.problem(t, 409, api.ProblemNotInteractive, method, "/api/v1/executions/"+plain+"/stdin", ""); !strings.Contains(p.Detail, `"interactive": true`) {
			t.Errorf("%s: %s", method, p.Detail)
		}
	}
	noop, err := h.client.Submit(t.Context(), api.Submission{Action: "noop", Input: []byte(`{"interactive":true}`)})
	if err != nil {
		t.Fatal(err)
	}
	h.problem(t, 409, api.ProblemNotInteractive, "POST", "/api/v1/executions/"+noop.ID+"/stdin", "x")

	both := h.problem(t, 422, api.ProblemInvalid, "POST", "/api/eval", `{"language":"python","source":"echo","interactive":true,"stdin":"x"}`)
	if len(both.Errors) != 1 || both.Errors[0].Path != "stdin" {
		t.Errorf("stdin and interactive: %+v", both)
	}

	closed := h.interactive(t)
	path = "/api/v1/executions/" + closed + "/stdin"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := h.engine.Feed(ctx, mustID(t, closed), 0, []byte("x"), true); err != nil {
		t.Fatal(err)
	}
	res, body := h.do(t, "POST", path, "more") // it may have ended in the meantime
	if res.StatusCode != 409 || !bytes.Contains(body, []byte(api.ProblemStdinClosed)) && !bytes.Contains(body, []byte(api.ProblemFinished)) {
		t.Errorf("after the end of file: %s %s", res.Status, body)
	}
}

func mustID(t *testing.T, text string) flow.ID {
	t.Helper()
	id, err := flow.ParseID(flow.ExecutionPrefix, text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// typing is a request whose body is written piece by piece.
type typing struct {
	*io.PipeWriter
	answer chan *http.Response // nil when there was none
}

func (h *house) typing(t *testing.T, id, query string) *typing {
	t.Helper()
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "POST", h.url+"/api/v1/executions/"+id+"/stdin"+query, r)
	if err != nil {
		t.Fatal(err)
	}
	ty := &typing{w, make(chan *http.Response, 1)}
	go func() {
		res, err := h.http.Do(req)
		if err != nil {
			res = nil
		}
		ty.answer <- res
	}()
	t.Cleanup(func() { _ = w.Close() })
	return ty
}

// Bytes written to the body of one request arrive while the request is running.
func TestTyping(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	id := h.interactive(t)
	heard := h.listen(t, id)
	ty := h.typing(t, id, "?eof=true")
	want := ""
	for _, line := range []string{"a\n", "b\n", "c\n"} {
		if _, err := io.WriteString(ty, line); err != nil {
			t.Fatal(err)
		}
		want += line
		heard.until(want)
	}
	if err := ty.Close(); err != nil {
		t.Fatal(err)
	}
	res := <-ty.answer
	if res == nil || res.StatusCode != 200 {
		t.Fatalf("answer %+v", res)
	}
	_ = res.Body.Close()
	h.await(t, id, "ended", terminal)
}

// A body that breaks off is not an end of file; the next request continues.
func TestTypingBreaksOff(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	id := h.interactive(t)
	heard := h.listen(t, id)
	ty := h.typing(t, id, "?eof=true&offset=0")
	if _, err := io.WriteString(ty, "so far"); err != nil {
		t.Fatal(err)
	}
	heard.until("so far")
	if err := ty.CloseWithError(errors.New("the line is cut")); err != nil {
		t.Fatal(err)
	}
	<-ty.answer
	at, err := h.client.Stdin(t.Context(), id)
	if err != nil || at.Offset != 6 || at.Closed || at.Status.Terminal() {
		t.Fatalf("stdin %+v, %v", at, err)
	}
	w := h.client.WriteStdin(t.Context(), id, at.Offset)
	if _, err := io.WriteString(w, ", so good"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	heard.until("so far, so good")
}

// Reading the body stops when the execution ends.
func TestTypingEndsWithTheExecution(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	id := h.interactive(t)
	heard := h.listen(t, id)
	ty := h.typing(t, id, "")
	if _, err := io.WriteString(ty, "x"); err != nil {
		t.Fatal(err)
	}
	heard.until("x")
	if _, err := h.client.Kill(t.Context(), id, "enough", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case res := <-ty.answer:
		if res == nil || res.StatusCode != http.StatusConflict {
			t.Errorf("answer %+v, want 409", res)
		} else {
			_ = res.Body.Close()
		}
	case <-time.After(10 * time.Second):
		t.Error("the request goes on after the end of its execution")
	}
}

func TestTypingEndsWithTheServer(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	id := h.interactive(t)
	heard := h.listen(t, id)
	ty := h.typing(t, id, "")
	if _, err := io.WriteString(ty, "x"); err != nil {
		t.Fatal(err)
	}
	heard.until("x")
	h.Drain()
	select {
	case res := <-ty.answer:
		if res == nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("answer %+v, want 503", res)
		} else {
			_ = res.Body.Close()
		}
	case <-time.After(10 * time.Second):
		t.Error("the request goes on after draining began")
	}
}
