package compat

import (
	"errors"
	"net/http"

	"github.com/pawl-run/pawl/api"
)

// Detail is the body of an error of servers that are written with FastAPI: a text, or a list of what is wrong with the request.
type Detail struct {
	Detail any `json:"detail"`
}

// Fault is an item of such a list.
type Fault struct {
	Type  string   `json:"type"`
	Loc   []string `json:"loc"`
	Msg   string   `json:"msg"`
	Input string   `json:"input,omitempty"`
}

// FastAPI answers with an error as FastAPI does: 422 with the faults of a request, 504 where the client's time is up, 500 for what was
// lost.
func FastAPI(w http.ResponseWriter, err error) {
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		status := refused.Status
		if status == http.StatusBadRequest {
			status = http.StatusUnprocessableEntity
		}
		faults := make([]Fault, len(refused.Errors))
		for i, e := range refused.Errors {
			loc := []string{"body"}
			if e.Path != "" {
				loc = append(loc, e.Path)
			}
			faults[i] = Fault{"value_error", loc, api.FieldError{Message: e.Message, Fix: e.Fix}.String(), e.Value}
		}
		Answer(w, status, Detail{faults})
	case errors.Is(err, ErrLate):
		Answer(w, http.StatusGatewayTimeout, Detail{err.Error()})
	default:
		Answer(w, http.StatusInternalServerError, Detail{err.Error()})
	}
}

// NoSuch answers requests to paths that a wire of FastAPI's kind does not have.
func NoSuch(w http.ResponseWriter, r *http.Request) {
	Answer(w, http.StatusNotFound, Detail{"there is no " + r.Method + " " + r.URL.Path + " on this wire"})
}
