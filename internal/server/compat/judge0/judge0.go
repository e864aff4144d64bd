// Package judge0 serves the API of Judge0 1.13.1: POST and GET /submissions, the same in batches, /languages, /statuses and others. A token
// is the id of an execution, so it stays valid when the server restarts. docs/leave-judge0.md lists what is supported and what is not.
package judge0

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/server/compat"
)

// Name is the wire's name in settings, paths and metrics.
const Name = "judge0"

// TokenHeader is the header in which Judge0's clients send the server's token.
const TokenHeader = "X-Auth-Token" //nolint:gosec // the name of a header

// version is the answer of /about. The SDK judge0 chooses the ids of languages by it.
const version = "1.13.1"

const (
	// held is how long a request with wait=true is held, as in Judge0.
	held = 600 * time.Second
	// prompt is how long any other request waits for the store.
	prompt     = 9 * time.Second
	batchLimit = 20
	// batchText is the largest total size of the texts in the answer for a batch of tokens: with the default limits 20 programs write 20 MiB,
	// but with the largest max_file_size 1.3 GB, which would all be in memory.
	batchText = 64 << 20
)

func New(o compat.Options) http.Handler {
	s := &wire{o.Shell(Name, map[string]string{
		"source": "source_code", "language": "language_id", "flags": "compiler_options", "std": "compiler_options", "args": "command_line_arguments",
		"files": "additional_files", "stdin": "stdin", "limits.cpu": "cpu_time_limit", "limits.wall": "wall_time_limit", "limits.memory": "memory_limit",
		"limits.stack": "stack_limit", "limits.pids": "max_processes_and_or_threads", "limits.output": "max_file_size", "input.url": "callback_url",
	}), offered(o.Languages)}
	mux := http.NewServeMux()
	// Clients send paths with or without a slash at the end.
	handle := func(method, path string, h http.HandlerFunc) {
		mux.HandleFunc(method+" "+path, h)
		mux.HandleFunc(method+" "+path+"/{$}", h)
	}
	fixed := func(path string, v any) {
		handle("GET", path, func(w http.ResponseWriter, _ *http.Request) { compat.Answer(w, http.StatusOK, v) })
	}
	handle("POST", "/submissions", s.create)
	handle("POST", "/submissions/batch", s.createBatch)
	handle("GET", "/submissions/batch", s.showBatch)
	handle("GET", "/submissions/{token}", s.show)
	handle("GET", "/languages/{id}", s.language)
	fixed("/languages", s.languages)
	fixed("/languages/all", s.languages)
	fixed("/statuses", statuses)
	fixed("/about", map[string]string{"version": version, "homepage": "https://judge0.com", "maintainer": "this is Pawl, which speaks Judge0's API"})
	fixed("/config_info", config)
	// The guard has already checked the token. Lists and deletion need another token in Judge0, which this wire does not have.
	handle("POST", "/authenticate", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	forbidden := func(w http.ResponseWriter, r *http.Request) {
		compat.Answer(w, http.StatusForbidden, failure{r.Method + " " + r.URL.Path + " is not allowed on this wire: use Pawl's own API"})
	}
	handle("POST", "/authorize", forbidden)
	handle("GET", "/submissions", forbidden)
	handle("DELETE", "/submissions/{token}", forbidden)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		compat.Answer(w, http.StatusNotFound, failure{"there is no " + r.Method + " " + r.URL.Path + " on this wire"})
	})
	return mux
}

type wire struct {
	compat.Shell
	languages []named
}

// failure is the body of an error that does not concern a field.
type failure struct {
	Error string `json:"error"`
}

// token is the body of a submission's answer.
type token struct {
	Token string `json:"token"`
}

// refuse answers with an error: for a wrong submission with the errors by field.
func refuse(w http.ResponseWriter, err error) {
	var refused *compat.Refused
	switch {
	case errors.As(err, &refused) && refused.Status != http.StatusUnprocessableEntity:
		compat.Answer(w, refused.Status, failure{err.Error()})
	case refused != nil:
		compat.Answer(w, http.StatusUnprocessableEntity, byField(refused))
	case errors.Is(err, compat.ErrLate):
		compat.Answer(w, http.StatusServiceUnavailable, failure{err.Error()})
	default:
		compat.Answer(w, http.StatusInternalServerError, failure{err.Error()})
	}
}

// byField lists the errors by the names of fields.
func byField(refused *compat.Refused) map[string][]string {
	out := map[string][]string{}
	for _, e := range refused.Errors {
		field := "base"
		if cut := strings.IndexAny(e.Path+".", ".["); cut > 0 {
			field = e.Path[:cut]
		}
		out[field] = append(out[field], api.FieldError{Message: e.Message, Fix: e.Fix}.String())
	}
	return out
}

// parameters are those of a query.
var parameters = []string{"base64_encoded", "wait", "fields", "tokens"}

type query struct {
	base64 *bool // nil: not given
	wait   bool
	fields []string
}

func queried(r *http.Request) (q query, err error) {
	q.fields = defaultFields
	values := r.URL.Query()
	boolean := func(name string) *bool {
		text := values.Get(name)
		if text == "" {
			return nil
		}
		b, wrong := strconv.ParseBool(strings.ToLower(text))
		if wrong != nil && err == nil {
			err = &compat.Refused{Status: http.StatusBadRequest, Errors: []api.FieldError{{Path: name, Value: text, Message: "it is not a boolean", Fix: "write true or false"}}}
		}
		return &b
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var wrong *api.FieldError
		if !slices.Contains(parameters, name) {
			wrong = &api.FieldError{Path: name, Message: fmt.Sprintf("there is no such parameter: %.60q", name), Fix: problem.NearestOr(name, parameters, "one of")}
		} else if len(values[name]) > 1 {
			wrong = &api.FieldError{Path: name, Message: "it is given twice", Fix: "give it once"}
		}
		if wrong != nil && err == nil {
			err = &compat.Refused{Status: http.StatusBadRequest, Errors: []api.FieldError{*wrong}}
		}
	}
	q.base64 = boolean("base64_encoded")
	if wait := boolean("wait"); wait != nil {
		q.wait = *wait
	}
	if text := values.Get("fields"); text != "" {
		q.fields = strings.Split(text, ",")
	}
	var unknown []string
	for _, f := range q.fields {
		if f != "*" && !slices.Contains(allFields, f) {
			unknown = append(unknown, f)
		}
	}
	if len(unknown) > 0 && err == nil {
		err = &compat.Refused{Status: http.StatusBadRequest, Errors: []api.FieldError{{Message: "invalid fields: [" + strings.Join(unknown, ", ") + "]",
			Fix: "name some of " + strings.Join(allFields, ", ") + ", or *"}}}
	}
	if slices.Contains(q.fields, "*") {
		q.fields = allFields
	}
	return q, err
}

func (s *wire) create(w http.ResponseWriter, r *http.Request) {
	q, err := queried(r)
	var raw json.RawMessage
	if s.Counted(err) == nil {
		err = s.Read(r, &raw)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	sub, err := s.submission(raw, q.base64)
	if s.Counted(err) != nil {
		refuse(w, err)
		return
	}
	within := prompt
	if q.wait {
		within = held
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	x, _, err := s.submit(ctx, sub)
	if s.Counted(err) != nil {
		refuse(w, err)
		return
	}
	if !q.wait {
		s.Count(compat.Accepted)
		compat.Answer(w, http.StatusCreated, token{x.ID})
		return
	}
	count := s.Count
	if !x.Status.Terminal() {
		ended, err := s.Wait(ctx, x.ID)
		switch {
		case err == nil:
			x = ended
		case compat.Left(r.Context()):
			s.Count(compat.Gone)
			if sub.callback == "" {
				s.Abandon(r.Context(), x.ID)
			}
			return
		default:
			// The submission continues: the answer has its token and says that it has not ended.
			s.Count(compat.Late)
			count = func(string) {}
		}
	}
	ctx, cancel = context.WithTimeout(r.Context(), prompt)
	defer cancel()
	s.answer(ctx, w, x, sub.encoded, q.fields, http.StatusCreated, count)
}

// answer writes one submission and counts its outcome. If its texts cannot be written, the answer to a new submission still has its token.
func (s *wire) answer(ctx context.Context, w http.ResponseWriter, x *api.Execution, encoded bool, fields []string, status int, count func(string)) {
	out, outcome, err := s.serialized(ctx, x, encoded, fields)
	count(outcome)
	switch {
	case errors.Is(err, errNotText):
		if status == http.StatusOK {
			status = http.StatusBadRequest
		}
		compat.Answer(w, status, map[string]string{"error": err.Error(), "token": x.ID})
	case err != nil:
		refuse(w, err)
	default:
		compat.Answer(w, status, out)
	}
}

// createBatch accepts up to batchLimit submissions, each independently.
func (s *wire) createBatch(w http.ResponseWriter, r *http.Request) {
	q, err := queried(r)
	var in struct {
		Submissions []json.RawMessage `json:"submissions"`
	}
	if s.Counted(err) == nil {
		err = s.Read(r, &in)
	}
	if err == nil {
		err = s.Counted(sized(len(in.Submissions)))
	}
	if err != nil {
		refuse(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), prompt)
	defer cancel()
	out, status := make([]any, len(in.Submissions)), http.StatusUnprocessableEntity
	made := make([][]string, len(in.Submissions))
	for i, raw := range in.Submissions {
		sub, err := s.submission(raw, q.base64)
		var x *api.Execution
		if err == nil {
			x, made[i], err = s.submit(ctx, sub)
		}
		var refused *compat.Refused
		switch {
		case errors.As(err, &refused):
			out[i] = byField(refused)
			_ = s.Counted(err)
		case err != nil:
			// The client is told to send the whole batch again, so the tokens made so far are of no use to it. The answer comes after 5 s at the
			// latest, even if the store does not respond: all are killed concurrently.
			_ = s.Counted(err)
			var kills sync.WaitGroup
			for _, ids := range made[:i] {
				kills.Go(func() {
					for _, id := range ids {
						s.Abandon(r.Context(), id)
					}
				})
			}
			kills.Wait()
			refuse(w, err)
			return
		default:
			out[i], status = token{x.ID}, http.StatusCreated
			s.Count(compat.Accepted)
		}
	}
	compat.Answer(w, status, out)
}

func sized(n int) error {
	switch {
	case n == 0:
		return &compat.Refused{Status: http.StatusBadRequest, Errors: []api.FieldError{{Message: "there should be at least one submission in a batch"}}}
	case n > batchLimit:
		return &compat.Refused{Status: http.StatusBadRequest,
			Errors: []api.FieldError{{Message: fmt.Sprintf("number of submissions in a batch should be less than or equal to %d", batchLimit)}}}
	}
	return nil
}

// find loads the execution of a token, or nil if there is none that came over this wire.
func (s *wire) find(ctx context.Context, token string) (*api.Execution, error) {
	x, err := s.Get(ctx, token)
	var p *api.Problem
	switch {
	case errors.As(err, &p) && (p.Status == http.StatusNotFound || p.Status == http.StatusBadRequest):
		return nil, nil
	case err != nil:
		return nil, s.Failure(token, err)
	case x.Labels["wire"] != Name:
		return nil, nil
	}
	return x, nil
}

func (s *wire) show(w http.ResponseWriter, r *http.Request) {
	q, err := queried(r)
	if err != nil {
		refuse(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), prompt)
	defer cancel()
	x, err := s.find(ctx, r.PathValue("token"))
	switch {
	case err != nil:
		refuse(w, err)
	case x == nil:
		compat.Answer(w, http.StatusNotFound, failure{"there is no submission with this token"})
	default:
		s.answer(ctx, w, x, q.base64 != nil && *q.base64, q.fields, http.StatusOK, func(string) {})
	}
}

// showBatch answers with up to batchLimit submissions, and null for each that does not exist.
func (s *wire) showBatch(w http.ResponseWriter, r *http.Request) {
	q, err := queried(r)
	given := cmp.Or(r.Header.Get("tokens"), r.URL.Query().Get("tokens"))
	tokens := strings.FieldsFunc(given, func(c rune) bool { return c == ',' || c == ' ' })
	if err == nil {
		err = sized(len(tokens))
	}
	if err != nil {
		refuse(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), prompt)
	defer cancel()
	out, size := make([]map[string]any, len(tokens)), 0
	for i, token := range tokens {
		x, err := s.find(ctx, token)
		if err == nil && x != nil {
			out[i], _, err = s.serialized(ctx, x, q.base64 != nil && *q.base64, q.fields)
		}
		if errors.Is(err, errNotText) {
			compat.Answer(w, http.StatusBadRequest, failure{token + ": " + err.Error()})
			return
		}
		if err != nil {
			refuse(w, err)
			return
		}
		for _, v := range out[i] {
			if text, ok := v.(string); ok {
				size += len(text)
			}
		}
		if size > batchText {
			compat.Answer(w, http.StatusBadRequest, failure{fmt.Sprintf("the submissions have more than %d bytes of texts: ask for fewer tokens, or for fewer fields", batchText)})
			return
		}
	}
	compat.Answer(w, http.StatusOK, map[string]any{"submissions": out})
}

func (s *wire) language(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if l, ok := s.known(id); ok {
		compat.Answer(w, http.StatusOK, described{named: l})
		return
	}
	compat.Answer(w, http.StatusNotFound, failure{"there is no language with id " + r.PathValue("id")})
}
