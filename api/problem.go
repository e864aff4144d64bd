package api

import (
	"net/http"
	"strings"

	"github.com/pawl-run/pawl/internal/problem"
)

// Problem is an error in the form of RFC 9457 (application/problem+json). Type is stable and meant for machines, Detail for people.
type Problem struct {
	Type      string       `json:"type" doc:"Stable URN, for programs (docs/api.md)"`
	Title     string       `json:"title" doc:"Meaning of the type"`
	Status    int          `json:"status" doc:"HTTP status; in a batch, the one this item would have had alone"`
	Detail    string       `json:"detail,omitempty" doc:"Error of this request, for people"`
	Instance  string       `json:"instance,omitempty" doc:"Path of the request; in a batch, the item"`
	RequestID string       `json:"request_id,omitempty" doc:"ID of the request in the server's log"`
	Errors    []FieldError `json:"errors,omitempty" doc:"All errors, each with its place"`
}

// FieldError is one error in a request or a document.
type FieldError struct {
	Path    string `json:"path,omitempty" doc:"Place of the error, for example labels.team, executions[3].timeout or ?limit"`
	Value   string `json:"value,omitempty" doc:"Value that is wrong, shortened"`
	Message string `json:"message" doc:"Description of the error"`
	Fix     string `json:"fix,omitempty" doc:"How to fix it"`
	File    string `json:"file,omitempty" doc:"body, or the name of the document"`
	Line    int    `json:"line,omitempty" doc:"Line, from 1"`
	Column  int    `json:"column,omitempty" doc:"Column in characters, from 1"`
}

// String writes the error on one line: file:line:column, path, message and fix, as far as they are known.
func (e FieldError) String() string { return problem.Problem(e).String() }

// The types of problems.
const (
	ProblemInvalid             = "urn:pawl:problem:invalid"              // 400 or 422: the request is invalid, see Errors
	ProblemIdempotencyMismatch = "urn:pawl:problem:idempotency-mismatch" // 422: the key was used for another submission
	ProblemUnauthorized        = "urn:pawl:problem:unauthorized"         // 401
	ProblemForbidden           = "urn:pawl:problem:forbidden"            // 403: wrong Host or Origin
	ProblemNotFound            = "urn:pawl:problem:not-found"            // 404
	ProblemMethodNotAllowed    = "urn:pawl:problem:method-not-allowed"   // 405
	ProblemFinished            = "urn:pawl:problem:finished"             // 409: the execution has ended already
	ProblemNotFinished         = "urn:pawl:problem:not-finished"         // 409: the execution has not ended yet
	ProblemNotInteractive      = "urn:pawl:problem:not-interactive"      // 409: the execution does not read stdin while it runs
	ProblemNotAsked            = "urn:pawl:problem:not-asked"            // 403: the question is assigned to other people
	ProblemAnswered            = "urn:pawl:problem:answered"             // 409: the question already has another answer
	ProblemExpired             = "urn:pawl:problem:expired"              // 409: the question has expired, or was withdrawn
	ProblemStdinOffset         = "urn:pawl:problem:stdin-offset"         // 409: the offset is not the end of the stdin, see its offset
	ProblemStdinClosed         = "urn:pawl:problem:stdin-closed"         // 409
	ProblemTooLarge            = "urn:pawl:problem:too-large"            // 413
	ProblemUnsupportedMedia    = "urn:pawl:problem:unsupported-media"    // 415
	ProblemTooManyLogins       = "urn:pawl:problem:too-many-logins"      // 429: wrong tokens from this address, try again after Retry-After
	ProblemOverloaded          = "urn:pawl:problem:overloaded"           // 429: try again after Retry-After
	ProblemInternal            = "urn:pawl:problem:internal"             // 500
	ProblemUnavailable         = "urn:pawl:problem:unavailable"          // 503: try again after Retry-After
)

// Error writes the problem with all its errors, one per line and none twice: the server's detail may repeat the first one.
func (p *Problem) Error() string {
	if len(p.Errors) == 1 && p.Detail == p.Errors[0].String() {
		return p.Detail
	}
	var b strings.Builder
	switch {
	case p.Detail != "" && len(p.Errors) > 0:
		b.WriteString(strings.TrimSuffix(p.Detail, ", the first: "+p.Errors[0].String()))
	case p.Detail != "":
		b.WriteString(p.Detail)
	case p.Title != "":
		b.WriteString(p.Title)
	default:
		b.WriteString(http.StatusText(p.Status))
	}
	for _, e := range p.Errors {
		b.WriteString("\n  " + e.String())
	}
	return b.String()
}
