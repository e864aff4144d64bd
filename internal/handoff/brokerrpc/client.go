package brokerrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

// Client is the hand-off of a worker behind a broker. It is safe for concurrent use. A call that cannot be delivered returns
// ErrUnavailable: the worker tries again, at its own pace and with jitter.
type Client struct {
	wire.Asking
	wire.Secrets
	transport  Transport
	token      []byte
	correlator *correlator
	strays     chan handoff.Stray
	random     func() float64 // a number in [0, 1), for pauses

	mu      sync.Mutex
	left    map[string]*leftCall // calls of Take that have ended, by their ids
	swept   int                  // how many there were after the last search for old ones
	takes   int64                // calls of Take that were made
	taken   map[pollerKey]int64  // for each poller the number of its last call whose answer has come
	lease   time.Duration        // from the last renewal
	pollers [mostCalls]bool
}

var (
	_ handoff.Concurrent  = (*Client)(nil)
	_ handoff.Straying    = (*Client)(nil)
	_ handoff.BlobCarrier = (*Client)(nil)
)

// mostCalls is how many calls of Take, and of Report, a worker has under way. A call takes longer through a broker than over
// HTTP; with two, one is answered while the other is under way.
const mostCalls = 2

const (
	// mostHold is how long a server waits at most before it answers Take and Input with "nothing yet"; holdOrders is the
	// same for Orders.
	mostHold   = 10 * time.Second
	holdOrders = time.Minute
	// slack is how long an answer may take beyond the time that the server waits.
	slack = 5 * time.Second
	// openWithin is how long a call that opens a session may take.
	openWithin = 15 * time.Second
	// mostPause is the longest pause before a call is sent again.
	mostPause = 40 * time.Second
)

// NewClient makes the worker's side of a transport. token is the token of the servers, or empty. Nothing is sent yet.
func NewClient(transport Transport, token string) *Client {
	c := &Client{transport: transport, token: []byte(token), strays: make(chan handoff.Stray, 16), random: rand.Float64,
		left: map[string]*leftCall{}, taken: map[pollerKey]int64{}, lease: handoff.Lease}
	c.correlator = newCorrelator(transport, c.strayed)
	c.Do = c.call
	return c
}

// Random sets the source of numbers in [0, 1) for pauses. It must be called before the first call.
func (c *Client) Random(source func() float64) { c.random = source }

// Stop ends the client and deletes its reply queue.
func (c *Client) Stop() { c.correlator.stop() }

func (c *Client) Calls() int { return mostCalls }

func (c *Client) Strays() <-chan handoff.Stray { return c.strays }

// leftCall is a call of Take that has ended. An answer to it may still come: the call ended without one, or two servers got its
// message and have both claimed work for it. Such an answer comes soon. After that its work belongs to another session, and an
// answer can only be a repetition by a process that has read the broker.
type leftCall struct {
	session flow.ID
	until   time.Time
	answers [][]byte // codes of the answers that have come
}

// mostAnswers is how many answers to one call are read, since two servers may have got its message and claimed work for it.
const mostAnswers = 4

// leave remembers a call that has ended, and its answer, or nil if there was none.
func (c *Client) leave(id string, session flow.ID, answer *frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if len(c.left) >= 2*c.swept+64 {
		maps.DeleteFunc(c.left, func(_ string, l *leftCall) bool { return now.After(l.until) })
		c.swept = len(c.left)
	}
	l := &leftCall{session: session, until: now.Add(c.lease / 2)}
	if answer != nil {
		l.answers = append(l.answers, answer.code)
	}
	c.left[id] = l
}

// strayed takes an answer to a call that has ended, if the answer hands over work and has not come before.
func (c *Client) strayed(f *frame) {
	c.mu.Lock()
	l := c.left[f.ID]
	var session flow.ID
	if l != nil {
		session = l.session
	}
	c.mu.Unlock()
	secret := c.Secret(session)
	if l == nil || secret == "" || time.Now().After(l.until) || f.Code != "" || f.Pipe != "" || !f.by([]byte(secret), byServer) {
		return
	}
	var a wire.Answer
	if json.Unmarshal(f.body, &a) != nil || len(a.Work) == 0 {
		return
	}
	c.mu.Lock()
	fresh := len(l.answers) < mostAnswers && !slices.ContainsFunc(l.answers, func(code []byte) bool { return bytes.Equal(code, f.code) })
	if fresh {
		l.answers = append(l.answers, f.code)
	}
	c.mu.Unlock()
	if !fresh {
		return
	}
	select {
	case c.strays <- handoff.Stray{Session: session, Work: a.Work}:
	default: // not taken: the engine's Missed returns the work
	}
}

// holdFor is how long a server holds Take and Input: a fifth of a lease. If the answer is lost, the worker can then still ask
// for the claimed work before the engine recovers it.
func holdFor(lease time.Duration) time.Duration { return min(mostHold, lease/5) }

// held is how long a call that a server holds may take.
func (c *Client) held() time.Duration { return holdFor(c.leased()) + min(slack, c.leased()/10) }

// overdue is the time after which a call that the server does not hold is sent again. It is short, because a worker stops when
// its renewals, or their answers, have been lost for two thirds of a lease.
func (c *Client) overdue() time.Duration { return min(slack, c.leased()/20) }

// silence is how long nothing may have come into a reply queue before it is given up when an answer is overdue. It is longer than
// servers hold calls, since nothing comes into the reply queue of an idle worker for as long.
func (c *Client) silence() time.Duration { return c.held() }

func (c *Client) leased() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lease
}

func (c *Client) Open(ctx context.Context, s handoff.Session) (flow.ID, error) {
	body, err := wire.Encode(s)
	if err != nil {
		return flow.ID{}, fmt.Errorf("open session: %w", err)
	}
	id, _, err := c.begin(ctx, "open session", &call{kind: wire.Open, body: body, key: c.signingToken()})
	return id, err
}

// signingToken is the key of calls that open a session. It is never nil, since that would mean an unsigned call.
func (c *Client) signingToken() []byte { return tokenKey(c.token) }

func tokenKey(token []byte) []byte { return append([]byte("token\n"), token...) }

// begin makes a call that opens a session. The answer holds the session's secret and is encrypted for this call.
func (c *Client) begin(ctx context.Context, what string, k *call) (flow.ID, []handoff.Assignment, error) {
	own := newKey()
	k.line, k.public, k.patience = Asks, own.PublicKey().Bytes(), openWithin
	f, err := c.exchange(ctx, k)
	if err != nil {
		return flow.ID{}, nil, fmt.Errorf("%s: %w", what, err)
	}
	var out wire.Opened
	var id flow.ID
	sealed, err := sealer(own, f.Key, f.ID)
	if err == nil {
		f.body, err = unsealOnce(sealed, f.body)
	}
	if err == nil {
		err = json.Unmarshal(f.body, &out)
	}
	if err == nil {
		id, err = flow.ParseID(flow.SessionPrefix, out.Session)
	}
	if err != nil {
		return flow.ID{}, nil, fmt.Errorf("%s: %w: read the answer: %w", what, handoff.ErrUnavailable, err)
	}
	c.Recall(id, out.Secret)
	return id, out.Work, nil
}

// Resume implements handoff.Handoff. The secret of the previous session must be known; see Recall.
func (c *Client) Resume(ctx context.Context, s handoff.Session, before flow.ID, keep []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	secret := c.Secret(before)
	if secret == "" {
		return flow.ID{}, nil, fmt.Errorf("resume session: %w: its secret is not known", handoff.ErrSessionLost)
	}
	body, err := wire.Encode(wire.Asked{Session: before.Text(flow.SessionPrefix), Next: &s, Keep: keep})
	if err != nil {
		return flow.ID{}, nil, fmt.Errorf("resume session: %w", err)
	}
	id, work, err := c.begin(ctx, "resume session", &call{kind: wire.Resume, session: before, body: body, key: []byte(secret)})
	if err == nil {
		c.forget(before)
	}
	return id, work, err
}

// Take implements handoff.Handoff. If no answer comes in time its error is ErrUnavailable; work that was claimed meanwhile
// comes as a stray or through Missed.
func (c *Client) Take(ctx context.Context, session flow.ID, n int) ([]handoff.Assignment, error) {
	poller := c.acquirePoller()
	defer c.releasePoller(poller)
	k := pollerKey{session, poller}
	for {
		number, answered := c.number(k)
		out, err := c.call(ctx, session, wire.Take, wire.Asked{N: n, Poller: poller, Number: number, Answered: answered})
		if err == nil {
			c.answered(k, number)
		}
		if err != nil || len(out.Work) > 0 {
			return out.Work, err
		}
	}
}

// pollerKey names one of the calls of Take that a session may have under way at once, by its number.
type pollerKey struct {
	session flow.ID
	poller  int
}

// number returns the numbers of the next call of Take and of the poller's last call whose answer has come; 0: none has.
func (c *Client) number(k pollerKey) (next, answered int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takes++
	return c.takes, c.taken[k]
}

// answered notes that the answer to a call of Take has come, if its session is still open.
func (c *Client) answered(k pollerKey, number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Secret(k.session) != "" {
		c.taken[k] = number
	}
}

// forget drops a session's secret, and then the numbers of its calls: answered adds none without the secret.
func (c *Client) forget(session flow.ID) {
	c.Forget(session)
	c.mu.Lock()
	defer c.mu.Unlock()
	for poller := range c.pollers {
		delete(c.taken, pollerKey{session, poller})
	}
}

// acquirePoller finds a poller that no other call of Take uses. If there is none it returns the last one, which two calls then
// share.
func (c *Client) acquirePoller() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.pollers {
		if !c.pollers[i] {
			c.pollers[i] = true
			return i
		}
	}
	return len(c.pollers) - 1
}

func (c *Client) releasePoller(poller int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollers[poller] = false
}

func (c *Client) Close(ctx context.Context, session flow.ID) error {
	_, err := c.call(ctx, session, wire.Close, wire.Asked{})
	if err == nil || errors.Is(err, handoff.ErrSessionLost) {
		c.forget(session)
	}
	return err
}
