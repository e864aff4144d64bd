package post

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// Client is the hand-off of a worker behind a broker. It is safe for concurrent use. What cannot be delivered just now is
// ErrUnavailable: the worker tries again, at its own pace and with jitter.
type Client struct {
	office Office
	token  []byte
	desk   *desk
	strays chan handoff.Stray

	mu      sync.Mutex
	secrets map[flow.ID]string
	left    map[string]leftCall // calls of Take that ended without an answer, by their ids
	lease   time.Duration       // as the last renewal said
	seats   [mostCalls]bool
}

var (
	_ handoff.Concurrent  = (*Client)(nil)
	_ handoff.Straying    = (*Client)(nil)
	_ handoff.BlobCarrier = (*Client)(nil)
)

// mostCalls is how many calls of Take, and of Report, a worker has under way: the way through a broker is longer than a call over
// HTTP, and while one is under way the other is answered.
const mostCalls = 2

const (
	// mostHold is how long a server holds Take and Input at the most, and holdOrders is how long it holds Orders, before it answers
	// "nothing yet".
	mostHold   = 10 * time.Second
	holdOrders = time.Minute
	// slack is how long an answer may take beyond that.
	slack = 5 * time.Second
	// mostPause is the longest pause before a call is sent again.
	mostPause = 40 * time.Second
)

// NewClient gives the worker's side of an office. token is the one that servers ask for, or empty. Nothing is sent yet.
func NewClient(office Office, token string) *Client {
	c := &Client{office: office, token: []byte(token), strays: make(chan handoff.Stray, 16), secrets: map[flow.ID]string{}, left: map[string]leftCall{}, lease: handoff.Lease}
	c.desk = newDesk(office, c.strayed)
	return c
}

// Stop ends the client; its mailbox is deleted.
func (c *Client) Stop() { c.desk.stop() }

// Calls implements handoff.Concurrent.
func (c *Client) Calls() int { return mostCalls }

// Strays implements handoff.Straying.
func (c *Client) Strays() <-chan handoff.Stray { return c.strays }

// leftCall is a call of Take that ended without an answer. The answer may still come, once and soon: later the work that it hands over
// is another's, and what comes is a repetition by a process that has read the broker.
type leftCall struct {
	session flow.ID
	until   time.Time
}

// leave remembers a call that ended without an answer.
func (c *Client) leave(id string, session flow.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.left, func(_ string, l leftCall) bool { return now.After(l.until) })
	c.left[id] = leftCall{session, now.Add(c.lease / 2)}
}

// strayed takes the answer to a call that was left, when it hands work over.
func (c *Client) strayed(f *frame) {
	c.mu.Lock()
	l, known := c.left[f.ID]
	c.mu.Unlock()
	secret := c.Secret(l.session)
	if !known || secret == "" || time.Now().After(l.until) || f.Code != "" || f.Pipe != "" || !f.by([]byte(secret), byServer) {
		return
	}
	var a wire.Answer
	if json.Unmarshal(f.body, &a) != nil || len(a.Work) == 0 {
		return
	}
	c.mu.Lock()
	delete(c.left, f.ID)
	c.mu.Unlock()
	select {
	case c.strays <- handoff.Stray{Session: l.session, Work: a.Work}:
	default: // it is missed
	}
}

// Secret is what proves that calls come from whoever opened the session; a process that is to resume it must know it.
func (c *Client) Secret(session flow.ID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.secrets[session]
}

// Recall makes the client know the secret of a session that another process has opened.
func (c *Client) Recall(session flow.ID, secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secrets[session] = secret
}

// holdFor is how long a server holds Take and Input: for a fifth of a lease, so that work that was claimed for a call whose answer
// is lost is missed while the engine still waits for it to begin.
func holdFor(lease time.Duration) time.Duration { return min(mostHold, lease/5) }

// held is how long a call that a server holds may take.
func (c *Client) held() time.Duration { return holdFor(c.leased()) + min(slack, c.leased()/10) }

// overdue is after how long without an answer a call that is not held is sent again: soon, for a worker stops whose renewals, or the
// answers to them, are lost for two thirds of a lease.
func (c *Client) overdue() time.Duration { return min(slack, c.leased()/20) }

// silence is for how long nothing comes into a mailbox that is given up when an answer is overdue.
func (c *Client) silence() time.Duration { return min(slack, c.leased()/6) }

func (c *Client) leased() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lease
}

// Open implements handoff.Handoff.
func (c *Client) Open(ctx context.Context, s handoff.Session) (flow.ID, error) {
	body, err := wire.Encode(s)
	if err != nil {
		return flow.ID{}, fmt.Errorf("open session: %w", err)
	}
	own := newKey()
	f, err := c.exchange(ctx, &call{line: Asks, kind: wire.Open, body: body, key: c.signingToken(), public: own.PublicKey().Bytes(), patience: c.held()})
	if err != nil {
		return flow.ID{}, fmt.Errorf("open session: %w", err)
	}
	sealed, err := sealer(own, f.Key, f.ID)
	if err == nil {
		f.body, err = unsealOnce(sealed, f.body)
	}
	if err != nil {
		return flow.ID{}, fmt.Errorf("open session: %w: read the answer: %w", handoff.ErrUnavailable, err)
	}
	id, _, err := c.opened(f.body)
	return id, err
}

// signingToken is the key of calls that open a session: never nil, for that would mean no code.
func (c *Client) signingToken() []byte { return tokenKey(c.token) }

func tokenKey(token []byte) []byte { return append([]byte("token\n"), token...) }

func (c *Client) opened(body []byte) (flow.ID, []handoff.Assignment, error) {
	var out wire.Opened
	err := json.Unmarshal(body, &out)
	var id flow.ID
	if err == nil {
		id, err = flow.ParseID(flow.SessionPrefix, out.Session)
	}
	if err != nil {
		return flow.ID{}, nil, fmt.Errorf("open session: %w: read the answer: %w", handoff.ErrUnavailable, err)
	}
	c.Recall(id, out.Secret)
	return id, out.Work, nil
}

// Resume implements handoff.Handoff. The secret of the session before must be known; see Recall. The answer has the new session's
// secret: it is encrypted as that of Open is.
func (c *Client) Resume(ctx context.Context, s handoff.Session, before flow.ID, keep []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	secret := c.Secret(before)
	if secret == "" {
		return flow.ID{}, nil, fmt.Errorf("resume session: %w: its secret is not known", handoff.ErrSessionLost)
	}
	body, err := wire.Encode(wire.Asked{Session: before.Text(flow.SessionPrefix), Next: &s, Keep: keep})
	if err != nil {
		return flow.ID{}, nil, fmt.Errorf("resume session: %w", err)
	}
	own := newKey()
	f, err := c.exchange(ctx, &call{line: Asks, kind: wire.Resume, session: before, body: body, key: []byte(secret), public: own.PublicKey().Bytes(), patience: c.held()})
	if err != nil {
		return flow.ID{}, nil, fmt.Errorf("resume session: %w", err)
	}
	sealed, err := sealer(own, f.Key, f.ID)
	if err == nil {
		f.body, err = unsealOnce(sealed, f.body)
	}
	if err != nil {
		return flow.ID{}, nil, fmt.Errorf("resume session: %w: read the answer: %w", handoff.ErrUnavailable, err)
	}
	id, work, err := c.opened(f.body)
	if err == nil {
		c.mu.Lock()
		delete(c.secrets, before)
		c.mu.Unlock()
	}
	return id, work, err
}

// Take implements handoff.Handoff. Without an answer in time its error is ErrUnavailable: what was claimed meanwhile comes as a stray,
// or is missed.
func (c *Client) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	seat := c.sit()
	defer c.rise(seat)
	for {
		out, err := c.call(ctx, session, wire.Take, wire.Asked{N: n, Seat: seat}, &call{line: Asks, patience: c.held()})
		if err != nil || len(out.Work) > 0 {
			return out.Work, err
		}
	}
}

// sit finds a seat at which no other call of Take waits; a call too many shares the last one.
func (c *Client) sit() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.seats {
		if !c.seats[i] {
			c.seats[i] = true
			return i
		}
	}
	return len(c.seats) - 1
}

func (c *Client) rise(seat int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seats[seat] = false
}

// Missed implements handoff.Handoff.
func (c *Client) Missed(ctx context.Context, session flow.ID, have []flow.AttemptID) ([]handoff.Assignment, error) {
	out, err := c.call(ctx, session, wire.Missed, wire.Asked{Attempts: have}, &call{line: Asks, again: true})
	return out.Work, err
}

// Report implements handoff.Handoff.
func (c *Client) Report(ctx context.Context, session flow.ID, reports []flow.Report) ([]flow.Receipt, error) {
	out, err := c.call(ctx, session, wire.Report, wire.Asked{Reports: reports}, &call{line: Tells, again: true})
	return out.Receipts, err
}

// Decline implements handoff.Handoff.
func (c *Client) Decline(ctx context.Context, session flow.ID, attempts []flow.AttemptID) error {
	_, err := c.call(ctx, session, wire.Decline, wire.Asked{Attempts: attempts}, &call{line: Asks, again: true})
	return err
}

// Log implements handoff.Handoff.
func (c *Client) Log(ctx context.Context, session flow.ID, chunks []flow.LogChunk) error {
	_, err := c.call(ctx, session, wire.Log, wire.Asked{Chunks: chunks}, &call{line: Logs, again: true})
	return err
}

// Input implements handoff.Handoff.
func (c *Client) Input(ctx context.Context, session flow.ID, q handoff.InputQuery) (handoff.Input, error) {
	for {
		out, err := c.call(ctx, session, wire.Input, wire.Asked{Input: &q}, &call{line: Asks, patience: c.held()})
		if err != nil {
			return handoff.Input{}, err
		}
		if out.Input != nil {
			return *out.Input, nil
		}
	}
}

// Renew implements handoff.Handoff.
func (c *Client) Renew(ctx context.Context, session flow.ID) (handoff.Renewal, error) {
	out, err := c.call(ctx, session, wire.Renew, wire.Asked{}, &call{line: Asks, again: true})
	if err == nil && out.Lease > 0 {
		c.mu.Lock()
		c.lease = out.Lease
		c.mu.Unlock()
	}
	return handoff.Renewal{Orders: out.Orders, Lease: out.Lease}, err
}

// Orders implements handoff.Handoff.
func (c *Client) Orders(ctx context.Context, session flow.ID) ([]handoff.Order, error) {
	for {
		out, err := c.call(ctx, session, wire.Orders, wire.Asked{}, &call{line: Asks, patience: holdOrders + slack})
		if err != nil || len(out.Orders) > 0 {
			return out.Orders, err
		}
	}
}

// Close implements handoff.Handoff.
func (c *Client) Close(ctx context.Context, session flow.ID) error {
	_, err := c.call(ctx, session, wire.Close, wire.Asked{}, &call{line: Asks, again: true})
	if err == nil || errors.Is(err, handoff.ErrSessionLost) {
		c.mu.Lock()
		delete(c.secrets, session)
		c.mu.Unlock()
	}
	return err
}

// call is one call, under way.
type call struct {
	line    Line
	kind    string
	session flow.ID
	body    []byte
	key     []byte
	public  []byte // goes with calls that open a session
	content io.Reader
	// again: without an answer it is sent again, under the same id, for as long as the caller waits. Otherwise the call ends without
	// an answer after patience.
	again    bool
	patience time.Duration
}

func (c *Client) call(ctx context.Context, session flow.ID, kind string, in wire.Asked, how *call) (wire.Answer, error) {
	var out wire.Answer
	in.Session = session.Text(flow.SessionPrefix)
	body, err := wire.Encode(in)
	if err != nil {
		return out, fmt.Errorf("%s: %w: write the call: %w", kind, handoff.ErrUnavailable, err)
	}
	how.body = body
	f, err := c.ask(ctx, session, kind, how)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(f.body, &out); err != nil {
		return out, fmt.Errorf("%s: %w: read the answer: %w", kind, handoff.ErrUnavailable, err)
	}
	return out, nil
}

// ask is exchange for a call of a session.
func (c *Client) ask(ctx context.Context, session flow.ID, kind string, how *call) (*frame, error) {
	secret := c.Secret(session)
	if secret == "" {
		return nil, fmt.Errorf("%s: %w: there is none", kind, handoff.ErrSessionLost)
	}
	how.kind, how.session, how.key = kind, session, []byte(secret)
	f, err := c.exchange(ctx, how)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return f, nil
}

// exchange sends a call and waits for its answer, whose code says that all went well. Its error is ErrSessionLost, ErrNotHeld,
// ErrUnavailable (which may be ErrRefused as well) or the like, or ctx's own.
func (c *Client) exchange(ctx context.Context, k *call) (*frame, error) {
	id := newID()
	w := c.desk.await(id, 1, func(f *frame) bool {
		// A server that cannot read a call that opens a session cannot sign its answer either.
		return f.Kind == kindAnswer && (f.by(k.key, byServer) || k.kind == wire.Open && f.Code == codeRefused)
	})
	answered := false
	defer func() {
		if answered || k.kind != wire.Take {
			c.desk.forget(id)
			return
		}
		c.leave(id, k.session)
		c.desk.forget(id)
		select {
		case f := <-w.frames: // it came in between
			c.strayed(f)
		default:
		}
	}()
	pause := c.overdue()
	if !k.again {
		pause = k.patience
	}
	for {
		m, err := c.desk.at(ctx)
		if err != nil {
			return nil, unavailable(ctx, err)
		}
		h := head{ID: id, Kind: k.kind, To: m.Name(), Key: k.public}
		if !k.session.IsZero() {
			h.Session = k.session.Text(flow.SessionPrefix)
		}
		f, err := c.send(ctx, k, h, w)
		if err != nil {
			return nil, unavailable(ctx, err)
		}
		if f != nil {
			answered = true
			return c.finish(ctx, k, f)
		}
		timer := time.NewTimer(pause)
		select {
		case f := <-w.frames:
			timer.Stop()
			answered = true
			return c.finish(ctx, k, f)
		case <-m.dead:
			timer.Stop()
			if !k.again {
				return nil, fmt.Errorf("%w: the mailbox of this process is gone", handoff.ErrUnavailable)
			}
			c.rest(ctx)
		case <-timer.C:
			c.desk.silent(m, c.silence())
			if !k.again {
				return nil, fmt.Errorf("%w: there was no answer for %s", handoff.ErrUnavailable, k.patience)
			}
			pause = min(2*pause, mostPause)
			pause += time.Duration(rand.Int64N(int64(pause/8) + 1))
		case <-ctx.Done():
			timer.Stop()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				c.desk.silent(m, c.silence())
			}
			return nil, ctx.Err()
		}
	}
}

// rest lets the workers that have lost their mailboxes together come back one after another.
func (c *Client) rest(ctx context.Context) {
	t := time.NewTimer(time.Duration(rand.Int64N(int64(200 * time.Millisecond))))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// send gives a call to the broker. What is too large for a letter, and the content of a blob, follows as a transfer, whose call may be
// answered before it ends.
func (c *Client) send(ctx context.Context, k *call, h head, w *waiter) (*frame, error) {
	line, body, content := k.line, k.body, k.content
	if content == nil && len(body) > MostLetter {
		content, body, line = bytes.NewReader(k.body), nil, Asks // a line that keeps it would keep a call without its body
	}
	if content != nil {
		h.Pipe = newID()
	}
	err := c.office.Send(ctx, line, pack(h, body, k.key, byWorker))
	failpoint.Hit(failpoint.AfterSend)
	if err != nil || content == nil {
		return nil, err
	}
	pouring, stop := context.WithCancel(ctx)
	poured := make(chan error, 1)
	go func() { poured <- c.desk.pour(pouring, h.Pipe, k.key, byWorker, byServer, content) }()
	select {
	case err := <-poured:
		stop()
		if errors.Is(err, errStopped) { // the answer says why
			err = nil
		}
		return nil, err
	case f := <-w.frames:
		stop()
		<-poured // it reads the content
		return f, nil
	}
}

// finish reads an answer, and what of it follows as a transfer.
func (c *Client) finish(ctx context.Context, k *call, f *frame) (*frame, error) {
	if f.Code != "" {
		return nil, errorOf(f.Code, f.Say)
	}
	if f.Pipe == "" || k.kind == kindGet {
		return f, nil
	}
	from := c.desk.draw(ctx, f.Pipe, f.To, k.key, byWorker, byServer)
	defer from.Close()
	body, err := io.ReadAll(io.LimitReader(from, wire.MostAnswer))
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	f.body = body
	return f, nil
}

// unavailable makes ErrUnavailable of an error that says nothing else.
func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, known := range codes {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", handoff.ErrUnavailable, err)
}
