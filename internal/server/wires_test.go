package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// echo is a wire that answers with the path and body of the request, or with the error of reading the body.
func echo(seen chan<- error) Wire {
	return Wire{Name: "echo", TokenHeader: "X-Auth-Token", Outcomes: []string{"answered"}, Handler: func(count func(string)) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/held" {
				seen <- nil
				<-r.Context().Done()
				seen <- r.Context().Err()
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				seen <- err
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			count("answered")
			_, _ = io.WriteString(w, r.URL.Path+" "+string(body))
		})
	}}
}

// A wire is behind the server's guard, and may have the token in its own header, which is not accepted elsewhere.
func TestWireIsGuarded(t *testing.T) {
	t.Parallel()
	h := start(t, Options{Tokens: []string{token}, Wires: []Wire{echo(nil)}})
	for _, tt := range []struct {
		path, header, value string
		want                int
	}{
		{"/compat/echo/a/b", "Authorization", "Bearer " + token, 200},
		{"/compat/echo/a/b", "X-Auth-Token", token, 200},
		{"/compat/echo/a/b", "X-Auth-Token", "another token of some length", 401},
		{"/compat/echo/a/b", "X-Other", token, 401},
		{"/api/v1/stats", "X-Auth-Token", token, 401},
		{"/compat/other/a", "Authorization", "Bearer " + token, 404},
	} {
		req, err := http.NewRequest(http.MethodGet, h.url+tt.path, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(tt.header, tt.value)
		res, err := h.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != tt.want || tt.want == 200 && string(body) != "/a/b x" {
			t.Errorf("%s with %s: %s %q, want %d", tt.path, tt.header, res.Status, body, tt.want)
		}
	}
}

// The body of a request to a wire is limited, and its context ends when the server begins to stop.
func TestWireIsBounded(t *testing.T) {
	t.Parallel()
	seen := make(chan error, 2)
	h := start(t, Options{BodyLimit: 10, Wires: []Wire{echo(seen)}})
	res, err := h.http.Post(h.url+"/compat/echo/", "text/plain", strings.NewReader(strings.Repeat("x", 11)))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	var large *http.MaxBytesError
	if err := <-seen; !errors.As(err, &large) {
		t.Errorf("a large body: %v", err)
	}
	held := make(chan error)
	go func() {
		res, err := h.http.Get(h.url + "/compat/echo/held")
		if err == nil {
			_ = res.Body.Close()
		}
		held <- err
	}()
	<-seen
	h.Drain()
	if err := <-seen; err == nil {
		t.Error("a request goes on though the server stops")
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// All bodies together have a memory limit, above which another body cannot be read; the memory is released afterwards.
func TestWireSharesTheBudget(t *testing.T) {
	t.Parallel()
	seen := make(chan error, 1)
	h := start(t, Options{Wires: []Wire{echo(seen)}})
	large := strings.Repeat("x", 1<<20)
	h.bodies.used.Store(h.bodies.limit)
	res, err := h.http.Post(h.url+"/compat/echo/", "text/plain", strings.NewReader(large))
	if err == nil {
		_ = res.Body.Close()
	}
	if err := <-seen; err == nil {
		t.Error("a body is read though there is no memory for it")
	}
	h.bodies.used.Store(0)
	if res, err = h.http.Post(h.url+"/compat/echo/", "text/plain", strings.NewReader(large)); err != nil || res.StatusCode != 200 {
		t.Fatalf("%v, %v", res, err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || len(body) != len("/ ")+len(large) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	_ = res.Body.Close()
	h.stop()
	<-h.served
	h.served <- nil
	if used := h.bodies.used.Load(); used != 0 {
		t.Errorf("%d bytes are counted when no body is under way", used)
	}
}
