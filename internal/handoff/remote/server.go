package remote

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// Handler serves workers in other processes with h; mount it at Prefix, behind the check of the caller's token. It is safe for concurrent
// use. The secrets of sessions are made from key, so that only the worker that has opened a session can make calls for it. Servers with the
// same key serve each other's sessions. An empty key is replaced by a random one: then sessions end with the Handler.
func Handler(h handoff.Handoff, key []byte) http.Handler {
	s := &server{wire.NewServer(h, key, holds)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Prefix+wire.Open, s.open)
	mux.HandleFunc("POST "+Prefix+wire.Resume, s.call(func(ctx context.Context, before flow.ID, in *wire.Asked) (any, error) {
		return s.Resume(ctx, before, in)
	}))
	mux.HandleFunc("POST "+Prefix+wire.Take, s.take)
	for _, call := range wire.Calls() {
		mux.HandleFunc("POST "+Prefix+call, s.call(func(ctx context.Context, session flow.ID, in *wire.Asked) (any, error) {
			return s.Do(ctx, call, session, in)
		}))
	}
	mux.HandleFunc("PUT "+blobPath, s.putBlob)
	mux.HandleFunc("GET "+blobPath, s.getBlob)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(versionHeader, Protocol)
		waits(w) // an earlier call on the connection may have left a deadline
		if v := r.Header.Get(versionHeader); v != Protocol {
			refuse(w, http.StatusUpgradeRequired, fmt.Sprintf("this server speaks worker protocol %s and the worker speaks %q: run the same version of Pawl on both sides", Protocol, v))
			return
		}
		if r.URL.Path != blobPath {
			r.Body = http.MaxBytesReader(w, r.Body, wire.MostBody)
		}
		mux.ServeHTTP(w, r)
	})
}

type server struct{ *wire.Server }

func (s *server) open(w http.ResponseWriter, r *http.Request) {
	var session handoff.Session
	if !read(w, r, &session) {
		return
	}
	out, err := s.Open(r.Context(), session)
	answer(w, out, err)
}

func (s *server) take(w http.ResponseWriter, r *http.Request) {
	var in wire.Asked
	id, ok := s.begin(w, r, &in)
	if !ok {
		return
	}
	err := s.Take(r.Context(), id, &in, func(_ context.Context, a wire.Answer) error {
		if err := r.Context().Err(); err != nil { // the caller's connection is closed
			return err
		}
		return write(w, http.StatusOK, a)
	})
	if err != nil {
		fail(w, err)
	}
}

// call returns the handler of a call by a session whose secret the caller must know.
func (s *server) call(do func(context.Context, flow.ID, *wire.Asked) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in wire.Asked
		id, ok := s.begin(w, r, &in)
		if !ok {
			return
		}
		out, err := do(r.Context(), id, &in)
		answer(w, out, err)
	}
}

func answer(w http.ResponseWriter, out any, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	_ = write(w, http.StatusOK, out) // a caller that gets no answer asks again; a session whose opener gets none expires
}

// begin reads a call of a session and makes the checks that all calls need.
func (s *server) begin(w http.ResponseWriter, r *http.Request, in *wire.Asked) (flow.ID, bool) {
	if !read(w, r, in) {
		return flow.ID{}, false
	}
	id, ok := s.session(w, r, in.Session)
	if !ok {
		return flow.ID{}, false
	}
	waits(w) // reading the body may have taken a while
	return id, true
}

// waits removes the server's write deadline, which is for answers that do not wait. Some writers have no deadline.
func waits(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(pollFor + answerWithin))
}

// session is the session with that name, if the caller is the worker that opened it.
func (s *server) session(w http.ResponseWriter, r *http.Request, name string) (flow.ID, bool) {
	id, err := flow.ParseID(flow.SessionPrefix, name)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return flow.ID{}, false
	}
	if !hmac.Equal([]byte(r.Header.Get(secretHeader)), []byte(s.Secret(id))) {
		fail(w, handoff.ErrSessionLost)
		return flow.ID{}, false
	}
	return id, true
}

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); media != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "send application/json")
		return false
	}
	err := json.NewDecoder(r.Body).Decode(into)
	if err == nil {
		return true
	}
	status := http.StatusBadRequest
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		status = http.StatusRequestEntityTooLarge
	}
	refuse(w, status, fmt.Sprintf("read the call: %v", err))
	return false
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, handoff.ErrSessionLost):
		status = http.StatusGone
	case errors.Is(err, handoff.ErrNotHeld):
		status = http.StatusConflict
	case errors.Is(err, handoff.ErrNoBlob):
		status = http.StatusNotFound
	case errors.Is(err, handoff.ErrBlobRefused):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, handoff.ErrBadCall):
		status = http.StatusBadRequest
	case errors.Is(err, handoff.ErrUnavailable), errors.Is(err, context.Canceled):
		status = http.StatusServiceUnavailable
	}
	refuse(w, status, err.Error())
}

func refuse(w http.ResponseWriter, status int, say string) {
	_ = write(w, status, wire.Answer{Error: say}) // a caller that is gone needs no reason
}

func write(w http.ResponseWriter, status int, body any) error {
	b, err := wire.Encode(body)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"the answer has no JSON form"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	failpoint.Hit(failpoint.BeforeAnswer)
	_, err = w.Write(b)
	failpoint.Hit(failpoint.AfterAnswer)
	return err
}
