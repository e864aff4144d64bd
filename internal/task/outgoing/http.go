package outgoing

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/html/charset"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/strictjson"
	"github.com/pawl-run/pawl/internal/task"
)

// HTTP makes one HTTP request. All attempts of an execution send the same idempotency key, so a service that supports the
// header does the work once.
type HTTP struct{ Egress *Egress }

// responseTimeout bounds a request, unless the payload or the attempt has a timeout.
const responseTimeout = time.Minute

type response struct {
	Status  int               `json:"status" doc:"The HTTP status"`
	Headers map[string]string `json:"headers" doc:"Names in lower case; repeated headers are joined by commas, cookies by newlines"`
	// Body is a JSON value or a string. BodyBase64 has the bytes of a body that is not text.
	Body       any    `json:"body" doc:"JSON value if the answer is JSON, else text; response: json or text overrides this"`
	BodyBase64 []byte `json:"body_base64,omitempty" doc:"Bytes in base64, if the body is not UTF-8"`
}

func (h HTTP) Run(ctx context.Context, t *task.Task) (json.RawMessage, error) {
	r, err := payload.HTTP(t.Payload)
	if err != nil {
		return nil, task.Errorf(flow.CodeInvalidInput, "%s", err)
	}
	ctx, cancel := deadline(ctx, time.Duration(r.Timeout), t.Timeout, responseTimeout)
	defer cancel()
	req, err := build(ctx, r, t)
	if err != nil {
		return nil, err
	}
	client := *h.Egress.client
	if r.Redirects != nil && !*r.Redirects {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(t.Log("log"), "%s %s → %s (%d ms)\n", r.Method, req.URL.Redacted(), fmt.Sprintf(format, args...), time.Since(began).Milliseconds())
	}
	res, err := client.Do(req)
	if err != nil {
		err = callError(ctx, err)
		say("%s", err)
		return nil, err
	}
	defer res.Body.Close()
	body, err := readAtMost(res.Body, int64(r.MaxBytes))
	if err != nil {
		err = callError(ctx, err)
		say("%s, %s", res.Status, err)
		return nil, err
	}
	say("%s, %d bytes", res.Status, len(body))
	out, parseErr := read(r, res, body)
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write output: %w", err)
	}
	if !r.Expect.Has(res.StatusCode) {
		e := statusError(res, body)
		e.Output = raw
		return nil, e
	}
	if parseErr != nil {
		parseErr.Output = raw
		return nil, parseErr
	}
	return raw, nil
}

// deadline bounds a call by the requested time, else by the attempt's timeout, else by the default.
func deadline(ctx context.Context, asked, attempt, otherwise time.Duration) (context.Context, context.CancelFunc) {
	d := cmp.Or(asked, attempt, otherwise)
	return context.WithTimeoutCause(ctx, d, &task.Error{As: flow.TimedOut, Code: flow.CodeTimeout, Message: fmt.Sprintf("no complete answer within %s", d)})
}

func build(ctx context.Context, r *payload.Request, t *task.Task) (*http.Request, error) {
	var body io.Reader
	kind := ""
	if r.Body != nil {
		var text string
		if err := json.Unmarshal(r.Body, &text); err == nil {
			body, kind = strings.NewReader(text), "text/plain; charset=utf-8"
		} else {
			body, kind = bytes.NewReader(r.Body), "application/json"
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, task.Errorf(flow.CodeInvalidInput, "%v (check method and url)", err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("User-Agent", "pawl")
	req.Header.Set("Idempotency-Key", t.IdempotencyKey())
	if t.Traceparent != "" {
		req.Header.Set("Traceparent", t.Traceparent)
	}
	t.SetChain(req.Header)
	for k, v := range r.Headers {
		if strings.EqualFold(k, "host") {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	return req, nil
}

// read makes the output from the response, in the form that the request selects. The error says that the response has another form.
func read(r *payload.Request, res *http.Response, body []byte) (*response, *task.Error) {
	out := &response{Status: res.StatusCode, Headers: make(map[string]string, len(res.Header))}
	for k, vs := range res.Header {
		between := ", "
		if k == "Set-Cookie" {
			between = "\n" // a cookie may contain a comma
		}
		out.Headers[strings.ToLower(k)] = strings.ToValidUTF8(strings.Join(vs, between), "\uFFFD")
	}
	asJSON := r.Response == "json"
	media, parameters, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	body, exact := decoded(body, parameters["charset"])
	if r.Response == "auto" {
		asJSON = err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
	}
	var notJSON error
	if asJSON {
		if notJSON = jsonValue(body); notJSON == nil {
			out.Body = json.RawMessage(body)
			return out, nil
		}
	}
	// A body that is not text must not look empty: body has U+FFFD for the invalid bytes, and body_base64 has the bytes.
	out.Body = strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")
	if out.Body != string(body) {
		out.BodyBase64 = exact
	}
	if r.Response == "json" && r.Expect.Has(res.StatusCode) {
		return out, task.Errorf("invalid_response", "the response is not one JSON value: %v; it begins with %.60q", notJSON, body)
	}
	return out, nil
}

// jsonValue says why a text cannot be stored as a JSON value.
func jsonValue(text []byte) error {
	if strictjson.DeeperThan(text, task.ResultDepth) >= 0 {
		return fmt.Errorf("it is nested deeper than %d levels", task.ResultDepth)
	}
	return strictjson.Value(text)
}

// decoded is the text of a body in UTF-8, converted from the charset that its Content-Type declares, and the
// original bytes. A byte order mark is removed.
func decoded(body []byte, declared string) (text, exact []byte) {
	text = body
	if e, name := charset.Lookup(declared); e != nil && name != "utf-8" {
		if utf, err := e.NewDecoder().Bytes(body); err == nil {
			text = utf
		}
	}
	return bytes.TrimPrefix(text, []byte("\uFEFF")), body
}

// errTooLarge means that a response is larger than allowed.
var errTooLarge = errors.New("the response is too large")

func readAtMost(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%w: more than %s (raise max_bytes)", errTooLarge, api.Size(most))
	}
	return b, err
}

// statusError is the failure for an unexpected status, with a code such as http_429.
func statusError(res *http.Response, body []byte) *task.Error {
	e := task.Errorf(fmt.Sprintf("http_%d", res.StatusCode), "%s %s answered %s", res.Request.Method, res.Request.URL.Redacted(), res.Status)
	if first := strings.TrimSpace(string(body[:min(len(body), 300)])); first != "" && api.IsText([]byte(first)) {
		e.Message += ": " + first
	}
	details := map[string]any{"status": res.StatusCode}
	if after := res.Header.Get("Retry-After"); after != "" {
		details["retry_after"] = after
		if in, ok := retryIn(after, time.Now()); ok && (res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable) {
			details["retry_in"] = in
		}
	}
	if b, err := json.Marshal(details); err == nil {
		e.Details = b
	}
	return e
}

// retryIn parses Retry-After, which is a number of seconds or a date, and returns seconds.
func retryIn(after string, now time.Time) (seconds int64, ok bool) {
	if n, err := strconv.ParseUint(after, 10, 31); err == nil {
		return int64(n), true
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(0, int64(math.Ceil(at.Sub(now).Seconds()))), true
	}
	return 0, false
}

// callError explains why a call failed without a response.
func callError(ctx context.Context, err error) error {
	if te, ok := errors.AsType[*task.Error](err); ok {
		return te
	}
	if s, ok := errors.AsType[*task.Stop](context.Cause(ctx)); ok {
		return s
	}
	if te, ok := errors.AsType[*task.Error](context.Cause(ctx)); ok {
		return te
	}
	// The URL in a *url.Error may contain a password, so only the inner error is used.
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	switch {
	case errors.Is(err, errRefusedAddress):
		return task.Errorf("address_refused", "%v", err)
	case errors.Is(err, errTooLarge):
		return task.Errorf("response_too_large", "%v", err)
	}
	code := transportCode(err)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() && code == flow.CodeConnectionFailed {
		return &task.Error{As: flow.TimedOut, Code: flow.CodeTimeout, Message: err.Error()}
	}
	return task.Errorf(code, "%v", err)
}

// transportCode is the code for a connection error. The order matters: a refusal by the resolver's server is a DNS error.
func transportCode(err error) string {
	var (
		dns       *net.DNSError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		unchecked *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, errRedirects):
		return flow.CodeTooManyRedirects
	case errors.As(err, &dns):
		return flow.CodeDNSFailed
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &unchecked):
		return flow.CodeTLSFailed
	case errors.Is(err, syscall.ECONNREFUSED):
		return flow.CodeConnectionRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return flow.CodeUnreachable
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return flow.CodeConnectionLost
	}
	return flow.CodeConnectionFailed
}
