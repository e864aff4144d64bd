package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"

	"github.com/pawl-run/pawl/api"
)

// Pauses between attempts: a random time between 0 and a bound that doubles (full jitter).
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
	// maxWait is the longest time for which the server delays an answer.
	maxWait = 60 * time.Second
)

type request struct {
	method string
	path   string // below /api/v1, or absolute if it begins with "//"
	query  url.Values
	body   any           // []byte is sent as it is, anything else as JSON; nil: no body
	stream io.ReadSeeker // instead of body: size bytes, sent as they are read
	size   int64
	header http.Header
	// repeatable means that the call may be sent again even if an earlier one may have taken effect.
	repeatable bool
}

// get makes a GET request.
func get(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query, repeatable: true}
}

// post makes a POST request that may be repeated.
func post(path string, body any) request {
	return request{method: http.MethodPost, path: path, body: body, repeatable: true}
}

// fetch sends a request and returns the decoded answer.
func fetch[T any](ctx context.Context, c *Client, r request) (*T, error) {
	out := new(T)
	if err := c.call(ctx, r, out); err != nil {
		return nil, err
	}
	return out, nil
}

// entries walks through the items of a list, starting at the cursor in query. of returns the items of a page and the cursor of the next
// page.
func entries[P, T any](ctx context.Context, c *Client, path string, query url.Values, of func(*P) ([]T, string)) iter.Seq2[T, error] {
	return walk(query.Get("cursor"), func(cursor string) ([]T, string, error) {
		q := url.Values{}
		maps.Copy(q, query)
		q.Del("cursor")
		set(q, "cursor", cursor)
		var p P
		err := c.call(ctx, get(path, q), &p)
		all, next := of(&p)
		return all, next, err
	})
}

// walk yields the items of page after page. list gets a page's cursor and returns its items and the next cursor, "" after the last page. An
// error ends the walk.
func walk[T any](cursor string, list func(cursor string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for next := cursor; ; {
			items, after, err := list(next)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, x := range items {
				if !yield(x, nil) {
					return
				}
			}
			if next = after; next == "" {
				return
			}
		}
	}
}

// call sends the request, repeating it while that is safe and may help, and decodes the answer into out unless out is nil.
func (c *Client) call(ctx context.Context, r request, out any) error {
	res, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // so that the connection can be reused
		_ = res.Body.Close()
	}()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("read the answer of %s %s: %w", r.method, r.path, err)
	}
	return nil
}

// open sends the request and returns a successful answer, which the caller closes.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	for part := range strings.SplitSeq(strings.TrimLeft(r.path, "/"), "/") {
		if part == "" || part == "." || part == ".." { // the server would take it for another path
			return nil, fmt.Errorf("%q is neither a name nor an id", part)
		}
	}
	body, err := encode(r.body)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	for attempt := 1; ; attempt++ {
		res, err := c.once(ctx, r, body)
		if err == nil || !worthRepeating(r, err) {
			return res, err
		}
		next := pauseAfter(attempt, retryAfter(err))
		if time.Since(begun)+next > c.patience {
			return nil, err
		}
		c.onRetry(err, begun, begun.Add(c.patience))
		if err := pause(ctx, next); err != nil {
			return nil, err
		}
	}
}

func (c *Client) once(ctx context.Context, r request, body []byte) (*http.Response, error) {
	target := c.base + "/api/v1" + r.path
	if len(r.path) > 1 && r.path[:2] == "//" {
		target = c.base + r.path[1:]
	}
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	if r.stream != nil {
		if _, err := r.stream.Seek(0, io.SeekStart); err != nil {
			return nil, fmt.Errorf("make request: %w", err)
		}
		reader = io.NopCloser(io.LimitReader(r.stream, r.size)) // the caller closes it
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, reader)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if r.stream != nil {
		req.ContentLength = r.size
	}
	maps.Copy(req.Header, r.header)
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	return c.send(ctx, req)
}

// send sets the headers of this client, sends the request and returns a successful answer.
func (c *Client) send(ctx context.Context, req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", c.userAgent)
	if c.chain != "" && req.Method == http.MethodPost {
		req.Header.Set("Pawl-Chain", c.chain)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("reach the server: %w", err)
	}
	if res.StatusCode >= 300 {
		defer func() { _ = res.Body.Close() }()
		return nil, refusal(res)
	}
	return res, nil
}

// inUTF8 encodes as encoding/json does, except that a string that is not UTF-8 gives an *api.Problem: encoding/json would replace its bytes
// by U+FFFD. A caller's json.RawMessage is sent unchanged, and the server checks it.
var inUTF8 = strict.JoinOptions(v1.DefaultOptionsV1(), strict.WithMarshalers(strict.MarshalToFunc(func(e *jsontext.Encoder, text string) error {
	if utf8.ValidString(text) {
		return errors.ErrUnsupported
	}
	path := strings.ReplaceAll(strings.TrimPrefix(string(e.StackPointer()), "/"), "/", ".")
	fault := api.FieldError{Path: path, Message: "the text is not UTF-8", Fix: "encode text as UTF-8; where bytes are allowed send them as base64"}
	return &api.Problem{Type: api.ProblemInvalid, Title: "The request is invalid", Status: http.StatusUnprocessableEntity, Detail: fault.String(), Errors: []api.FieldError{fault}}
})))

func encode(body any) ([]byte, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return b, nil
	}
	b, err := strict.Marshal(body, inUTF8)
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return nil, p
	}
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return b, nil
}

// refused is a Problem with the pause that the server asked for.
type refused struct {
	*api.Problem
	after time.Duration
}

func (r *refused) Unwrap() error { return r.Problem }

func refusal(res *http.Response) error {
	p := &api.Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode)}
	body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err == nil && json.Unmarshal(body, p) != nil {
		p.Detail = fmt.Sprintf("the server answered %s: %.200s", res.Status, body)
	}
	p.Status = res.StatusCode
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	return &refused{Problem: p, after: time.Duration(min(max(seconds, 0), 60)) * time.Second}
}

func retryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*refused](err); ok {
		return r.after
	}
	return 0
}

// worthRepeating reports whether the failed call may be sent again: the server accepted nothing, or a repetition does no harm. 502 and 504
// come from a proxy whose server is starting.
func worthRepeating(r request, err error) bool {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		switch p.Status {
		case http.StatusTooManyRequests:
			return true
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return r.repeatable
		}
		return false
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return r.repeatable || errors.Is(err, syscall.ECONNREFUSED)
}

// pauseAfter returns a random time between 0 and a bound that doubles with every attempt, plus the pause that the server asked for.
func pauseAfter(attempt int, least time.Duration) time.Duration {
	return least + rand.N(min(firstPause<<min(attempt-1, 10), mostPause))
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
