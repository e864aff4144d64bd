package brokerrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pawl-run/pawl/internal/failpoint"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/wire"
)

type call struct {
	line    Line
	kind    string
	session flow.ID
	body    []byte
	key     []byte
	public  []byte // public key, in calls that open a session
	content io.Reader
	// again: if there is no answer, the call is sent again under the same id for as long as the caller waits. Otherwise the
	// call ends after patience.
	again    bool
	patience time.Duration
}

// how returns the options for a call of a session.
func (c *Client) how(kind string) *call {
	switch kind {
	case wire.Take, wire.Input:
		return &call{line: Asks, patience: c.held()}
	case wire.Orders:
		return &call{line: Asks, patience: holdOrders + slack}
	case wire.Report:
		return &call{line: Tells, again: true}
	case wire.Log:
		return &call{line: Logs, again: true}
	}
	return &call{line: Asks, again: true}
}

func (c *Client) call(ctx context.Context, session flow.ID, kind string, in wire.Asked) (wire.Answer, error) {
	var out wire.Answer
	how := c.how(kind)
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
	if out.Lease > 0 { // of a renewal
		c.mu.Lock()
		c.lease = out.Lease
		c.mu.Unlock()
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

// exchange sends a call and waits for an answer that reports success. Its error is ErrSessionLost, ErrNotHeld, ErrUnavailable
// (which may be ErrRefused as well) or another of package handoff, or ctx's own.
func (c *Client) exchange(ctx context.Context, k *call) (*frame, error) {
	id := newID()
	w := c.correlator.await(id, mostAnswers, func(f *frame) bool {
		// A server that cannot read a call that opens a session has no key to sign its answer with.
		return f.Kind == kindAnswer && (f.by(k.key, byServer) || k.kind == wire.Open && f.Code == codeRefused)
	})
	var answer *frame // nil: none has come
	defer func() {
		if k.kind == wire.Take {
			c.leave(id, k.session, answer)
		}
		c.correlator.forget(id)
		for {
			select {
			case f := <-w.frames: // it came just before that
				c.strayed(f)
			default:
				return
			}
		}
	}()
	pause := c.overdue()
	if !k.again {
		pause = k.patience
	}
	for {
		m, err := c.correlator.at(ctx)
		if err != nil {
			return nil, unavailable(ctx, err)
		}
		h := head{ID: id, Kind: k.kind, To: m.Name(), Key: k.public}
		if !k.session.IsZero() {
			h.Session = k.session.Text(flow.SessionPrefix)
		}
		f, err := c.send(ctx, k, h, w)
		if k.again && k.content == nil && errors.Is(err, errStalled) {
			continue // the message was lost, or the server that read the body after it
		}
		if err != nil {
			return nil, unavailable(ctx, err)
		}
		if f != nil {
			answer = f
			return c.finish(ctx, k, f)
		}
		select {
		case f := <-w.frames:
			answer = f
			return c.finish(ctx, k, f)
		case <-m.dead:
			if !k.again {
				return nil, m.with(fmt.Errorf("%w: the reply queue of this process is gone", handoff.ErrUnavailable))
			}
			c.rest(ctx)
		case <-time.After(pause):
			c.correlator.silent(m, c.silence())
			if !k.again {
				return nil, m.with(fmt.Errorf("%w: there was no answer for %s", handoff.ErrUnavailable, k.patience))
			}
			pause = min(2*pause, mostPause)
			pause += time.Duration(c.random() * float64(pause/8))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				c.correlator.silent(m, c.silence())
			}
			return nil, ctx.Err()
		}
	}
}

const mostRest = 200 * time.Millisecond

// rest waits for a random time, because workers that have lost their reply queues at the same moment, for example when a broker restarts,
// should not all return at once.
func (c *Client) rest(ctx context.Context) {
	Pause(ctx, time.Duration(c.random()*float64(mostRest)))
}

// send gives a call to the broker. A body that is too large for a message, and the content of a blob, follow as a transfer. The call may be
// answered before its transfer ends, and even before the broker has confirmed its message: RabbitMQ confirms messages in order, so a
// message of another line whose queue does not answer delays the confirmation.
func (c *Client) send(ctx context.Context, k *call, h head, w *waiter) (*frame, error) {
	line, body, content := k.line, k.body, k.content
	if content == nil && len(body) > MaxMessage {
		content, body, line = bytes.NewReader(k.body), nil, Asks // other lines keep messages, and would keep a call whose body is gone
	}
	var acks *waiter
	if content != nil {
		h.Pipe = newID()
		acks = c.correlator.awaitAcks(h.Pipe, k.key, byServer)
		defer c.correlator.forget(h.Pipe)
	}
	message := pack(h, body, k.key, byWorker)
	f, err := beside(ctx, w, func(ctx context.Context) error { return c.transport.Send(ctx, line, message, validFor(line, k.kind)) })
	failpoint.Hit(failpoint.AfterSend)
	if f != nil || err != nil || content == nil {
		return f, err
	}
	f, err = beside(ctx, w, func(ctx context.Context) error {
		return c.correlator.transmit(ctx, acks, h.Pipe, k.key, byWorker, content)
	})
	if errors.Is(err, errStopped) { // the answer says why the receiver stopped
		err = nil
	}
	return f, err
}

// beside runs do until it returns or an answer comes, and returns when do has returned.
func beside(ctx context.Context, w *waiter, do func(context.Context) error) (*frame, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		select {
		case f := <-w.frames:
			return f, nil
		default:
			return nil, err
		}
	case f := <-w.frames:
		stop()
		<-done // a transfer reads the caller's content until then
		return f, nil
	}
}

// finish reads an answer, and the transfer behind it if the answer is too large for a message.
func (c *Client) finish(ctx context.Context, k *call, f *frame) (*frame, error) {
	if f.Code != "" {
		return nil, errorOf(f.Code, f.Say)
	}
	if f.Pipe == "" || k.kind == kindGet {
		return f, nil
	}
	from := c.correlator.receive(ctx, f.Pipe, f.To, k.key, byWorker, byServer)
	defer from.Close()
	body, err := io.ReadAll(io.LimitReader(from, wire.MostAnswer))
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	f.body = body
	return f, nil
}

// unavailable turns an error without a meaning of its own into ErrUnavailable.
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
