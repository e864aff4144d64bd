package compat

import (
	"errors"
	"net/http"

	"github.com/pawl-run/pawl/api"
)

// Detail is the error body of servers written with FastAPI: a text, or a list of the request's errors.
type Detail struct {
	Detail any `json:"detail"`
}

// Fault is an item of that list.
type Fault struct {
	Type  string   `json:"type"`
	Loc   []string `json:"loc"`
	Msg   string   `json:"msg"`
	Input string   `json:"input,omitempty"`
}

// FastAPI answers with an error as FastAPI does: 422 with the errors of a request, 504 for ErrLate, 500 for Lost.
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

// NoSuch answers requests for paths that a FastAPI wire does not have.
func NoSuch(w http.ResponseWriter, r *http.Request) {
	Answer(w, http.StatusNotFound, Detail{"there is no " + r.Method + " " + r.URL.Path + " on this wire"})
}
