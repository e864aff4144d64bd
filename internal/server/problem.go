package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/blob"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/strictjson"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const mediaProblem = "application/problem+json"

// retryAfter is how many seconds a client should wait when the server cannot accept its request at the moment.
const retryAfter = 1

var titles = map[string]string{
	api.ProblemInvalid:             "The request is invalid",
	api.ProblemIdempotencyMismatch: "The key was used with other content before",
	api.ProblemUnauthorized:        "A valid token is needed",
	api.ProblemForbidden:           "The request comes from a place that is not allowed",
	api.ProblemNotFound:            "There is no such thing",
	api.ProblemMethodNotAllowed:    "The method is not allowed here",
	api.ProblemFinished:            "The execution has ended already",
	api.ProblemNotFinished:         "The execution has not ended yet",
	api.ProblemNotInteractive:      "The execution reads nothing while it runs",
	api.ProblemNotAsked:            "The question is not for this person",
	api.ProblemAnswered:            "The question has been answered already",
	api.ProblemExpired:             "The question is not open any more",
	api.ProblemStdinOffset:         "This is not where the stdin ends",
	api.ProblemStdinClosed:         "The stdin is closed",
	api.ProblemTooLarge:            "The body is too large",
	api.ProblemUnsupportedMedia:    "The content type is not supported",
	api.ProblemTooManyLogins:       "Too many logins failed",
	api.ProblemOverloaded:          "Too many requests are pending",
	api.ProblemInternal:            "Something went wrong in the server",
	api.ProblemUnavailable:         "The server cannot work just now",
}

func refusal(status int, kind, detail string, errs ...api.FieldError) *api.Problem {
	return &api.Problem{Type: kind, Title: titles[kind], Status: status, Detail: detail, Errors: errs}
}

// unreadable refuses a request that cannot be parsed; invalid refuses one that can be parsed but asks for something impossible.
func unreadable(errs ...api.FieldError) *api.Problem {
	return refusal(http.StatusBadRequest, api.ProblemInvalid, summary(errs), errs...)
}

func invalid(errs ...api.FieldError) *api.Problem {
	return refusal(http.StatusUnprocessableEntity, api.ProblemInvalid, summary(errs), errs...)
}

func summary(errs []api.FieldError) string {
	switch len(errs) {
	case 0:
		return ""
	case 1:
		return errs[0].String()
	}
	return fmt.Sprintf("%d faults, the first: %s", len(errs), errs[0])
}

func notFound(what, name string) *api.Problem {
	return refusal(http.StatusNotFound, api.ProblemNotFound, fmt.Sprintf("there is no %s %.100q", what, name))
}

// missing returns the answer to a failed look-up by name: not found, or another error.
func missing(what, name string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return notFound(what, name)
	}
	return fmt.Errorf("%s %s: %w", what, name, err)
}

// problemOf turns an error into a problem of the API. It is the only place where errors become status codes.
func problemOf(err error) *api.Problem {
	var (
		p        *api.Problem
		refused  *fault.Invalid
		document problem.List
		unread   *strictjson.Error
		differs  *engine.SignalDiffers
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refused):
		return invalid(fieldErrors(refused.Problems)...)
	case errors.As(err, &unread) && unread.Syntax:
		return unreadable(fieldErrors(unread.Problems)...)
	case errors.As(err, &document): // also for a document in the body
		return invalid(fieldErrors(document)...)
	case errors.As(err, &differs):
		return refusal(http.StatusUnprocessableEntity, api.ProblemIdempotencyMismatch, differs.Error()+": send it with another key, or as it was")
	case errors.Is(err, engine.ErrIdempotencyMismatch):
		return refusal(http.StatusUnprocessableEntity, api.ProblemIdempotencyMismatch,
			"the idempotency key was used for another submission before: use a fresh key for every new submission")
	case errors.Is(err, flow.ErrFinished):
		return refusal(http.StatusConflict, api.ProblemFinished, "the execution has ended already")
	case errors.Is(err, flow.ErrNotAsked), errors.Is(err, flow.ErrExcluded):
		return refusal(http.StatusForbidden, api.ProblemNotAsked, reason(err))
	case errors.Is(err, flow.ErrAnswered):
		return refusal(http.StatusConflict, api.ProblemAnswered, reason(err))
	case errors.Is(err, flow.ErrClosed):
		return refusal(http.StatusConflict, api.ProblemExpired, reason(err))
	case errors.Is(err, flow.ErrInputOffset):
		return refusal(http.StatusConflict, api.ProblemStdinOffset, err.Error())
	case errors.Is(err, flow.ErrInputClosed):
		return refusal(http.StatusConflict, api.ProblemStdinClosed, err.Error())
	case errors.Is(err, flow.ErrInputFull):
		return refusal(http.StatusRequestEntityTooLarge, api.ProblemTooLarge, err.Error())
	case errors.Is(err, store.ErrNotFound):
		detail := err.Error()
		if id := executionID.FindString(detail); id != "" {
			detail = "there is no execution " + id + " here: there never was, or retention has removed it"
		}
		return refusal(http.StatusNotFound, api.ProblemNotFound, detail)
	case errors.Is(err, engine.ErrOverloaded):
		return refusal(http.StatusTooManyRequests, api.ProblemOverloaded, "more requests are pending than can be committed soon: try again later")
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, blob.ErrUnavailable), errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrConflict), errors.Is(err, engine.ErrClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refusal(http.StatusServiceUnavailable, api.ProblemUnavailable, err.Error())
	}
	return refusal(http.StatusInternalServerError, api.ProblemInternal, "the server's log has the details under the request's id")
}

// reason returns the message of an error about an inquiry, without the names of the functions that were called.
func reason(err error) string {
	for next := errors.Unwrap(err); next != nil && errors.Unwrap(next) != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err.Error()
}

// executionID finds the id of an execution in errors of the engine and the stores, which have different texts.
var executionID = regexp.MustCompile(`\bex_[0-9a-z]{26}\b`)

func fieldErrors(ps problem.List) []api.FieldError {
	out := make([]api.FieldError, len(ps))
	for i, p := range ps {
		out[i] = api.FieldError(p)
	}
	return out
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := *problemOf(err)
	p.Instance, p.RequestID = r.URL.Path, w.Header().Get("X-Request-Id")
	if p.Status == http.StatusInternalServerError {
		s.log.Error("request failed", telemetry.Method, r.Method, telemetry.Path, loggedPath(r), telemetry.Execution, r.PathValue("id"), telemetry.RequestID, p.RequestID, telemetry.Err, err)
	}
	if (p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests) && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	body, err := encode(p)
	if err != nil { // a problem has only strings and numbers, so there is no error
		s.log.Error("encode problem", telemetry.Err, err)
	}
	w.Header().Set("Content-Type", mediaProblem)
	s.send(w, p.Status, body)
}
