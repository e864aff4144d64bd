package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// errNoQueue means that the queue does not exist.
var errNoQueue = errors.New("no such queue")

// channelLife is how long publications use one channel. RabbitMQ 3.10 keeps in a channel its position in each queue, by the
// queue's name. If a queue is deleted and made again at once, it confirms messages that come over that channel but does not
// deliver them.
const channelLife = 10 * time.Second

// publisher publishes over a channel and passes the broker's answer to each publication: confirmed, refused because the queue is full, or
// returned because there is no such queue. The library passes confirmations on in the order of the publications, so reports and logs have
// publishers of their own: if one of their queues does not answer, it does not delay renewals of leases.
type publisher struct {
	c     *connection
	own   bool // it publishes to one line, and the connection has another one for urgent messages
	ch    *amqp.Channel
	until time.Time // then another publisher replaces it

	mu      sync.Mutex
	waiting map[uint64]*publication // by their numbers on the channel
	stale   bool                    // another publisher must replace it: a queue did not exist, and is being made, or does not answer
	retired bool                    // another publisher has replaced it; it is closed when all its publications are confirmed
	over    bool                    // the channel is closed
	why     error
}

type publication struct {
	said     chan error // capacity 1
	returned bool
	late     *time.Timer // ends the wait, even if no caller waits any more
}

func newPublisher(ctx context.Context, c *connection, own bool) (*publisher, error) {
	p := &publisher{c: c, own: own, until: time.Now().Add(channelLife), waiting: map[uint64]*publication{}}
	var err error
	if p.ch, err = c.channel(ctx); err != nil {
		return nil, err
	}
	if err := c.do(ctx, "ask for confirmations", func() error { return p.ch.Confirm(false) }); err != nil {
		return nil, err
	}
	closed := p.ch.NotifyClose(make(chan *amqp.Error, 1))
	returns, confirms := p.ch.NotifyReturn(make(chan amqp.Return, 256)), p.ch.NotifyPublish(make(chan amqp.Confirmation, 256))
	go p.listen(closed, returns, confirms)
	return p, nil
}

// listen takes the broker's answers until the channel is closed. For a returned publication the broker sends that before its confirmation.
func (p *publisher) listen(closed <-chan *amqp.Error, returns <-chan amqp.Return, confirms <-chan amqp.Confirmation) {
	for confirms != nil {
		select {
		case r, ok := <-returns:
			if !ok {
				returns = nil
				continue
			}
			p.returned(r)
		case c, ok := <-confirms:
			if !ok {
				confirms = nil
				continue
			}
			for len(returns) > 0 {
				p.returned(<-returns)
			}
			p.confirmed(c)
		}
	}
	var why error = amqp.ErrClosed
	if err, ok := <-closed; ok && err != nil {
		why = err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.why = true, why
	for seq, w := range p.waiting {
		delete(p.waiting, seq)
		w.late.Stop()
		w.said <- failed(context.Background(), "publish", why)
	}
	if !p.retired { // A channel alone is closed when the user may not publish. Without a publisher the connection is useless.
		p.c.drop()
	}
}

func (p *publisher) returned(r amqp.Return) {
	seq, err := strconv.ParseUint(r.CorrelationId, 10, 64)
	if err != nil {
		return // publish has written it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waiting[seq]; w != nil {
		w.returned, p.stale = true, true
	}
}

func (p *publisher) forget(seq uint64) *publication {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[seq]
	if w != nil {
		w.late.Stop()
		delete(p.waiting, seq)
	}
	if p.retired && len(p.waiting) == 0 {
		go p.c.shut(p.ch) // shut waits for an answer, which only listen can read
	}
	return w
}

func (p *publisher) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	if len(p.waiting) == 0 {
		go p.c.shut(p.ch)
	}
}

// aged reports whether the channel has been used for long enough.
func (p *publisher) aged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stale || time.Now().After(p.until)
}

func (p *publisher) confirmed(c amqp.Confirmation) {
	w := p.forget(c.DeliveryTag)
	switch {
	case w == nil:
	case w.returned:
		w.said <- errNoQueue
	case !c.Ack:
		w.said <- fmt.Errorf("%w: %w", brokerrpc.ErrUnavailable, brokerrpc.ErrBusy)
	default:
		w.said <- nil
	}
}

// publish puts a message into a queue. Its error is errNoQueue, brokerrpc.ErrBusy or brokerrpc.ErrUnavailable.
func (f *Broker) publish(ctx context.Context, queue string, m amqp.Publishing) error {
	c, err := f.sending.at(ctx)
	if err != nil {
		return err
	}
	if c.blocked.Load() {
		return fmt.Errorf("%w: it accepts no messages: it is short of memory or disk", brokerrpc.ErrUnavailable)
	}
	w, err := c.write(ctx, queue, m)
	if err != nil {
		return err
	}
	select {
	case err := <-w.said:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notConfirmed gives up a publication. If the broker has blocked the connection, it has reported that and confirms nothing; otherwise the
// connection, or the queue, is stuck. A publisher of one line is replaced: if the connection is stuck, the broker does not answer the
// replacement either.
func (p *publisher) notConfirmed(seq uint64) {
	w := p.forget(seq)
	if w == nil {
		return
	}
	w.said <- fmt.Errorf("%w: it has not confirmed a publication for %s", brokerrpc.ErrUnavailable, answerWithin)
	switch {
	case p.c.blocked.Load():
	case p.own:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stale = true
	default:
		p.c.drop()
	}
}

// write writes a publication, one at a time.
func (c *connection) write(ctx context.Context, queue string, m amqp.Publishing) (*publication, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-c.gone:
		return nil, fmt.Errorf("%w: %w", brokerrpc.ErrUnavailable, amqp.ErrClosed)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	own := queue
	if !c.l.f.hasPublisher(queue) {
		own = ""
	}
	p := c.publishers[own]
	if p == nil || p.aged() {
		next, err := newPublisher(ctx, c, own != "")
		if err != nil {
			return nil, err
		}
		if p != nil {
			p.retire()
		}
		p, c.publishers[own] = next, next
	}
	return p.write(ctx, queue, m)
}

func (f *Broker) hasPublisher(queue string) bool {
	return queue == f.line(brokerrpc.Tells) || queue == f.line(brokerrpc.Logs)
}

func (p *publisher) write(ctx context.Context, queue string, m amqp.Publishing) (*publication, error) {
	seq := p.ch.GetNextPublishSeqNo()
	w := &publication{said: make(chan error, 1)}
	p.mu.Lock()
	if p.over {
		defer p.mu.Unlock()
		return nil, failed(ctx, "publish", p.why)
	}
	w.late = time.AfterFunc(answerWithin, func() { p.notConfirmed(seq) })
	p.waiting[seq] = w
	p.mu.Unlock()
	m.CorrelationId = strconv.FormatUint(seq, 10)
	if err := p.ch.Publish("", queue, true, false, m); err != nil {
		p.forget(seq)
		return nil, failed(ctx, "publish", err)
	}
	return w, nil
}
