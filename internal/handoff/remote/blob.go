package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

var _ handoff.BlobCarrier = (*Client)(nil)

// blobs begins a call about a blob; false if it has refused the call.
func (s *server) blobs(w http.ResponseWriter, r *http.Request) (carrier handoff.BlobCarrier, session flow.ID, q handoff.BlobQuery, ok bool) {
	query := r.URL.Query()
	if session, ok = s.session(w, r, query.Get("session")); !ok {
		return nil, session, q, false
	}
	if carrier = s.Carrier(); carrier == nil {
		refuse(w, http.StatusUnprocessableEntity, "this server carries no blobs")
		return nil, session, q, false
	}
	var bad error
	q.Name = query.Get("name")
	if q.Execution, bad = flow.ParseID(flow.ExecutionPrefix, query.Get("execution")); bad == nil {
		q.Attempt, bad = strconv.Atoi(query.Get("attempt"))
	}
	if from := query.Get("from"); bad == nil && from != "" {
		q.From, bad = strconv.ParseInt(from, 10, 64)
	}
	if bad != nil {
		refuse(w, http.StatusBadRequest, bad.Error())
		return nil, session, q, false
	}
	return carrier, session, q, true
}

func (s *server) putBlob(w http.ResponseWriter, r *http.Request) {
	carrier, session, q, ok := s.blobs(w, r)
	if !ok {
		return
	}
	deadline := http.NewResponseController(w) // some writers have no deadline
	defer func() { _ = deadline.SetReadDeadline(time.Time{}) }()
	n, err := carrier.PutBlob(r.Context(), session, q, readPieces(r.Body, func() {
		_ = deadline.SetReadDeadline(time.Now().Add(blobStall))
	}))
	_ = deadline.SetWriteDeadline(time.Now().Add(answerWithin))
	answer(w, wire.Stored{Size: n}, err)
}

func (s *server) getBlob(w http.ResponseWriter, r *http.Request) {
	carrier, session, q, ok := s.blobs(w, r)
	if !ok {
		return
	}
	from, err := carrier.GetBlob(r.Context(), session, q)
	if err != nil {
		fail(w, err)
		return
	}
	defer func() { _ = from.Close() }() // it was only read
	deadline := http.NewResponseController(w)
	later := func() { _ = deadline.SetWriteDeadline(time.Now().Add(blobStall)) }
	later()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if err := sendPieces(w, from, later); err != nil {
		panic(http.ErrAbortHandler) // the caller notices the broken transfer, and asks for the rest
	}
}

func (c *Client) PutBlob(ctx context.Context, session flow.ID, q handoff.BlobQuery, r io.Reader) (int64, error) {
	calling, w := watch(ctx)
	defer w.stop()
	body, pipe := io.Pipe()
	sent := make(chan error, 1)
	fault := &wire.Source{Reader: r}
	go func() {
		err := sendPieces(pipe, fault, w.moved)
		_ = pipe.CloseWithError(err) // never fails
		sent <- err
	}()
	res, err := c.askBlob(calling, http.MethodPut, session, q, body)
	_ = body.Close() // ends the sender, if it has not ended
	<-sent
	if err == nil {
		defer res.Body.Close()
		var out wire.Stored
		if err = json.NewDecoder(io.LimitReader(res.Body, wire.MostBody)).Decode(&out); err == nil {
			return out.Size, nil
		}
	}
	if fault.Err != nil {
		return 0, fault.Err
	}
	return 0, fmt.Errorf("put blob %s: %w", q.Name, lost(ctx, err))
}

func (c *Client) GetBlob(ctx context.Context, session flow.ID, q handoff.BlobQuery) (io.ReadCloser, error) {
	calling, w := watch(ctx)
	res, err := c.askBlob(calling, http.MethodGet, session, q, http.NoBody)
	if err != nil {
		w.stop()
		return nil, fmt.Errorf("get blob %s: %w", q.Name, lost(ctx, err))
	}
	return &arriving{ctx: ctx, pieces: readPieces(res.Body, w.moved), body: res.Body, stop: w.stop}, nil
}

// askBlob makes one call. Any status but 200 is an error.
func (c *Client) askBlob(ctx context.Context, method string, session flow.ID, q handoff.BlobQuery, body io.Reader) (*http.Response, error) {
	query := url.Values{"session": {session.Text(flow.SessionPrefix)}, "execution": {q.Execution.String()}, "attempt": {strconv.Itoa(q.Attempt)}, "name": {q.Name}}
	if q.From != 0 {
		query.Set("from", strconv.FormatInt(q.From, 10))
	}
	at := strings.TrimSuffix(c.base, Prefix) + blobPath + "?" + query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return nil, err
	}
	if method == http.MethodPut {
		req.Header.Set("Content-Type", "application/octet-stream")
		req.Header.Set("Expect", "100-continue") // so that a refusal comes before the bytes are sent
	}
	c.introduce(req, c.Secret(session))
	res, err := c.http.Do(req)
	if err != nil || res.StatusCode == http.StatusOK && res.Header.Get(versionHeader) == Protocol {
		return res, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	return nil, blobRefusal(res, raw)
}

// blobRefusal is the reason why a call about a blob was refused.
func blobRefusal(res *http.Response, raw []byte) error {
	var a wire.Answer
	said := json.Unmarshal(raw, &a) == nil && a.Error != ""
	if res.Header.Get(versionHeader) != "" {
		switch {
		case res.StatusCode == http.StatusNotFound && said:
			return fmt.Errorf("%w: %s", handoff.ErrNoBlob, a.Error)
		case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusMethodNotAllowed:
			return fmt.Errorf("%w: %s is of an older version than this worker and carries no blobs: upgrade it", handoff.ErrUnavailable, res.Request.URL.Host)
		case res.StatusCode == http.StatusUnprocessableEntity:
			return fmt.Errorf("%w: %s", handoff.ErrBlobRefused, a.Error)
		}
	}
	if res.StatusCode == http.StatusRequestEntityTooLarge {
		return fmt.Errorf("%w: %s answered %s: let the proxy before it pass larger bodies (nginx: client_max_body_size 0)", handoff.ErrBlobRefused, res.Request.URL.Host, res.Status)
	}
	return refusal(res, raw)
}

// lost turns an error without a meaning of its own into ErrUnavailable.
func lost(ctx context.Context, err error) error {
	for _, known := range []error{handoff.ErrSessionLost, handoff.ErrNotHeld, handoff.ErrNoBlob, handoff.ErrBlobRefused, handoff.ErrUnavailable} {
		if errors.Is(err, known) {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
}

// watcher ends a call on which no byte has moved for too long.
type watcher struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

var errStalled = fmt.Errorf("nothing has moved for %s", blobStall)

func watch(ctx context.Context) (context.Context, *watcher) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watcher{time.AfterFunc(blobStall, func() { cancel(errStalled) }), cancel}
}

func (w *watcher) moved() { w.timer.Reset(blobStall) }

func (w *watcher) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// arriving is a blob that is being received.
type arriving struct {
	ctx context.Context
	*pieces
	body io.Closer
	stop func()
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.pieces.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && a.ctx.Err() != nil {
		err = a.ctx.Err()
	}
	return n, err
}

func (a *arriving) Close() error {
	a.stop()
	return a.body.Close()
}
