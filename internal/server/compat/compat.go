// Package compat has the code that the wires of other evaluators share: clients of SandboxFusion, open-instruct, Piston and Judge0 can use
// Pawl instead of those servers. A wire is a package below this one. It translates a request into an evaluation, and the evaluation's
// result into an answer of its protocol. Evaluations are submitted as by POST /api/v1/evaluations, with the same checks and limits.
//
// These protocols cannot express "nothing is known about the program", or their clients take that for a failed program. So a wire waits for
// the end of an evaluation, even when workers are lost or the store is unreachable, as long as the client waits ([Shell.Run]). If there is
// no result ([ErrLate], [Lost]), it answers in the way that makes its clients retry or report an error.
package compat

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/language"
)

// Pawl is the part of the API that a wire uses. A *client.Client implements it; it must retry temporary refusals as long as its context
// lasts.
type Pawl interface {
	Evaluate(ctx context.Context, e api.Evaluation) (*api.Execution, error)
	Submit(ctx context.Context, s api.Submission) (*api.Execution, error)
	Get(ctx context.Context, id string) (*api.Execution, error)
	Wait(ctx context.Context, id string) (*api.Execution, error)
	Kill(ctx context.Context, id, reason string, wait time.Duration) (*api.Execution, error)
	RawLog(ctx context.Context, id, stream string, attempt int, offset int64) (io.ReadCloser, error)
	File(ctx context.Context, id, path string) (io.ReadCloser, error)
}

// The outcomes of a wire's evaluations, for metrics.
const (
	Answered = "answered" // the client got the program's result
	Accepted = "accepted" // the client got a token, to ask for the result later
	Declined = "refused"  // the request was wrong
	Late     = "late"     // there was no result when the client's time was up
	Broken   = "lost"     // the evaluation ended without a result for the program
	Gone     = "gone"     // the client disconnected before the end
)

func Outcomes() []string { return []string{Answered, Accepted, Declined, Late, Broken, Gone} }

// ErrLate means that the client's time is up, or that the server is stopping, and there is no result yet.
var ErrLate = errors.New("there was no worker, or no answer from the store, while the client waits: send the request again")

// Lost means that an evaluation ended without a result for the program, for example because its workers were lost five times.
type Lost struct {
	Execution string
	Reason    string
}

func (l *Lost) Error() string { return fmt.Sprintf("execution %s: %s", l.Execution, l.Reason) }

// Refused means that a request cannot be carried out. The paths of its errors are places in the client's request.
type Refused struct {
	Status int // 400, 413, 415 or 422
	Errors []api.FieldError
}

func (r *Refused) Error() string {
	if len(r.Errors) == 0 {
		return http.StatusText(r.Status)
	}
	return r.Errors[0].String()
}

func Refuse(path, value, message, fix string) *Refused {
	return &Refused{http.StatusUnprocessableEntity, []api.FieldError{{Path: path, Value: value, Message: message, Fix: fix}}}
}

// Shell runs the evaluations of one wire.
type Shell struct {
	Pawl
	Wire  string               // its name, the value of the evaluations' label "wire"
	Count func(outcome string) // called once for each evaluation
	// Places maps paths of an evaluation to the request fields that they come from, for example "limits.wall" to "run_timeout".
	Places map[string]string
}

type Options struct {
	Pawl
	Count     func(outcome string)
	Languages []language.Name // languages that the server knows; workers may have others
}

func (o Options) Shell(wire string, places map[string]string) Shell {
	return Shell{Pawl: o.Pawl, Wire: wire, Count: o.Count, Places: places}
}

// Grace is how much longer a request is held than both of its time limits. Several clients wait 10 s longer than their limits; the answer
// leaves a second before that.
const Grace = 9 * time.Second

// The attempts of one evaluation. Only lost attempts are repeated: a program that fails has one attempt.
const (
	attempts = 5
	between  = 200 * time.Millisecond // delay before the second attempt; it doubles, so all five take 3 s more
)

// Done is the result of an evaluation whose program was judged.
type Done struct {
	api.CodeResult
	ID             string
	Stdout, Stderr []byte // everything that the program wrote
	// CompileStdout and CompileStderr are everything that the compiler wrote.
	CompileStdout, CompileStderr []byte
}

// Run evaluates e and waits up to within for its end. An attempt that is lost with its worker or machine is repeated within that time. The
// error is a [*Refused], [ErrLate] or a [*Lost]. The evaluation is killed when its client no longer waits for it.
func (s *Shell) Run(ctx context.Context, e api.Evaluation, within time.Duration) (*Done, error) {
	done, err := s.run(ctx, e, within)
	switch {
	case err == nil:
		s.Count(Answered)
	case errors.Is(err, ErrLate) && Left(ctx):
		s.Count(Gone)
	default:
		s.Counted(err)
	}
	return done, err
}

// Counted counts the outcome that belongs to an error of this package, and returns the error.
func (s *Shell) Counted(err error) error {
	var refused *Refused
	var lost *Lost
	switch {
	case errors.As(err, &refused):
		s.Count(Declined)
	case errors.As(err, &lost):
		s.Count(Broken)
	case err != nil:
		s.Count(Late)
	}
	return err
}

func (s *Shell) run(ctx context.Context, e api.Evaluation, within time.Duration) (*Done, error) {
	e.TotalTimeout = api.Duration(within)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	x, err := s.Submit(ctx, e)
	if err != nil {
		return nil, err
	}
	id := x.ID
	if !x.Status.Terminal() {
		if x, err = s.Wait(ctx, id); err != nil {
			s.Abandon(ctx, id)
			return nil, s.Failure(id, err)
		}
	}
	return s.Done(ctx, x)
}

// Submit submits an evaluation whose attempts are repeated if they are lost with their worker or machine. It does not count an outcome. The
// error is a [*Refused], [ErrLate] or a [*Lost].
func (s *Shell) Submit(ctx context.Context, e api.Evaluation) (*api.Execution, error) {
	labels := map[string]string{"wire": s.Wire}
	maps.Copy(labels, e.Labels)
	e.Labels, e.IdempotencyKey = labels, rand.Text()
	e.Retry = &api.Retry{MaxAttempts: attempts, Delay: api.Duration(between), On: []string{"infra_error", "worker_lost"}}
	x, err := s.Evaluate(ctx, e)
	if err != nil {
		return nil, s.Failure("", err)
	}
	return x, nil
}

// Left reports whether the client of a request has disconnected.
func Left(ctx context.Context) bool {
	return context.Cause(ctx) == context.Canceled //nolint:errorlint // the cause of a client that left is Canceled itself
}

// Abandon kills an evaluation for which no client waits. If the store does not answer, the evaluation goes on until its total timeout or
// its limits end it.
func (s *Shell) Abandon(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = s.Kill(ctx, id, "the client of the wire "+s.Wire+" does not wait for it any more", 0)
}

// Failure turns an error of the client into a [*Refused], [ErrLate] or [*Lost].
func (s *Shell) Failure(id string, err error) error {
	var p *api.Problem
	switch {
	case errors.As(err, &p) && p.Status < 500 && p.Status != http.StatusTooManyRequests:
		return s.refused(p)
	case errors.As(err, &p) && p.Status == http.StatusInternalServerError:
		return &Lost{id, p.Error()}
	}
	return ErrLate
}

// Done returns the result of an evaluation with all output. The error is [ErrLate] or a [*Lost].
func (s *Shell) Done(ctx context.Context, x *api.Execution) (*Done, error) {
	d, err := Judged(x)
	if err == nil {
		err = s.output(ctx, x, d)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Judged returns the result of an evaluation without the full output. The error is [ErrLate] or a [*Lost].
func Judged(x *api.Execution) (*Done, error) {
	d := &Done{ID: x.ID}
	code, reason := "", "it ended without a result"
	if x.Error != nil {
		code, reason = x.Error.Code, x.Error.Code+": "+x.Error.Message
	}
	switch {
	case code == "total_timeout" || code == "queue_timeout":
		return nil, ErrLate
	case x.Status == api.Cancelled || code == "infra_error" || json.Unmarshal(x.Output, &d.CodeResult) != nil || d.Verdict == "" || d.Verdict == "killed":
		return nil, &Lost{x.ID, reason}
	}
	return d, nil
}

// output reads everything that the compiler and the program wrote. The error is [ErrLate] or a [*Lost].
func (s *Shell) output(ctx context.Context, x *api.Execution, d *Done) error {
	c := cmp.Or(d.Compile, &api.CodeResult{})
	// The log of a stream has what the compiler wrote, and then what the program wrote.
	for _, part := range []struct {
		into       *[]byte
		inline     []byte
		cut        bool
		stream     string
		from, size int64
	}{
		{&d.CompileStdout, c.Out(), c.StdoutTruncated, "stdout", 0, c.StdoutBytes},
		{&d.CompileStderr, c.Err(), c.StderrTruncated, "stderr", 0, c.StderrBytes},
		{&d.Stdout, d.Out(), d.StdoutTruncated, "stdout", c.StdoutBytes, d.StdoutBytes},
		{&d.Stderr, d.Err(), d.StderrTruncated, "stderr", c.StderrBytes, d.StderrBytes},
	} {
		if *part.into = part.inline; !part.cut {
			continue
		}
		body, err := s.RawLog(ctx, x.ID, part.stream, x.Attempt, part.from)
		if err != nil {
			return s.Failure(x.ID, err)
		}
		*part.into, err = io.ReadAll(io.LimitReader(body, part.size))
		_ = body.Close()
		switch {
		case err != nil:
			return ErrLate
		case int64(len(*part.into)) < part.size:
			return &Lost{x.ID, fmt.Sprintf("its log of %s has %d of %d bytes", part.stream, len(*part.into), part.size)}
		}
	}
	return nil
}

func (s *Shell) Contents(ctx context.Context, id string, f api.ResultFile) ([]byte, error) {
	switch {
	case f.Content != nil:
		return []byte(*f.Content), nil
	case f.Blob == "":
		return f.Base64, nil
	}
	body, err := s.File(ctx, id, f.Path)
	if err != nil {
		return nil, s.Failure(id, err)
	}
	defer func() { _ = body.Close() }()
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, ErrLate
	}
	return b, nil
}

// Text returns b as a JSON string. If b is not UTF-8, the string has U+FFFD at the invalid bytes, and note says where the first one is.
func Text(name string, b []byte) (text, note string) {
	if utf8.Valid(b) {
		return string(b), ""
	}
	at := 0
	for r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(b[at:]) {
		at += n
	}
	return string([]rune(string(b))), fmt.Sprintf("%s is not UTF-8, from byte %d on: what is not is shown as U+FFFD", name, at)
}

// Signal returns the number of a signal, for example 11 for SIGSEGV, or 0 for an unknown name.
func Signal(name string) int { return int(unix.SignalNum(name)) }

// Seconds returns a number of seconds as a duration, and whether a wire may request it: it must be more than 0 and at most a day.
func Seconds(s float64) (api.Duration, bool) {
	d := api.Duration(s * float64(time.Second))
	return d, s > 0 && s <= time.Duration(api.MaxWall).Seconds() && d > 0
}

// Visible returns a program that is not empty. Other evaluators let an interpreter run an empty program, and a model may write one.
func Visible(language, source string) string {
	if strings.TrimSpace(source) != "" {
		return source
	}
	if slices.Contains([]string{"c", "c++", "go", "java", "javascript", "rust", "typescript"}, proper(language)) {
		return "//" + source
	}
	return "#" + source
}

func proper(language string) string {
	name, _ := api.LanguageName(language)
	return name
}
