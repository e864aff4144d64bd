package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/strictjson"
)

var rules strictjson.Rules

// Read reads the JSON body of a request into a struct. It refuses unknown fields, because a wire that ignored one would not do what was
// asked. The error is a [*Refused], or [ErrLate] if the server has no memory for the body now.
func (s *Shell) Read(r *http.Request, out any) error { return s.Counted(read(r, out)) }

func read(r *http.Request, out any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &Refused{http.StatusUnsupportedMediaType, []api.FieldError{{Path: "Content-Type", Value: problem.Clip(r.Header.Get("Content-Type"), 60),
			Message: "it is not JSON", Fix: "send Content-Type: application/json"}}}
	}
	body, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &Refused{http.StatusRequestEntityTooLarge, []api.FieldError{{Message: fmt.Sprintf("the body has more than %d bytes", large.Limit), Fix: "send less"}}}
	case err != nil:
		return ErrLate
	}
	return Decode(body, out)
}

// Decode reads a JSON text as [Shell.Read] does.
func Decode(body []byte, out any) error {
	var wrong *strictjson.Error
	if err := rules.Decode(body, "body", out); errors.As(err, &wrong) {
		r := &Refused{Status: http.StatusUnprocessableEntity}
		if wrong.Syntax {
			r.Status = http.StatusBadRequest
		}
		for _, p := range wrong.Problems {
			r.Errors = append(r.Errors, api.FieldError(p))
		}
		return r
	}
	return nil
}

// refused maps the errors of an evaluation to places in the wire's request.
func (s *Shell) refused(p *api.Problem) *Refused {
	r := &Refused{Status: p.Status}
	for _, e := range p.Errors {
		for from, to := range s.Places {
			if rest, ok := strings.CutPrefix(e.Path, from); ok && (rest == "" || strings.ContainsRune(".[", rune(rest[0]))) {
				e.Path = to + rest
				break
			}
		}
		r.Errors = append(r.Errors, e)
	}
	if len(r.Errors) == 0 {
		r.Errors = []api.FieldError{{Message: p.Detail}}
	}
	return r
}

// patience is how long a client may take to read an answer, plus perMegabyte for each megabyte.
const (
	patience    = 15 * time.Second
	perMegabyte = 4 * time.Second
)

// Answer writes v as JSON. The connection is closed if the client does not read it in time.
func Answer(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // answers consist of texts, numbers and lists of them
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// A writer without deadlines has no connection that a slow client could hold.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience + perMegabyte*time.Duration(b.Len()>>20)))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the client has disconnected
}
