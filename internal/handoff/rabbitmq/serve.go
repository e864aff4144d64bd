package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

const (
	// mostPrefetch is how many asks the broker pushes before it waits for acknowledgements, which are sent on receipt.
	mostPrefetch = 512
	// againAfter is the pause before a message that a take could not handle is given back, because the broker delivers it
	// again at once.
	againAfter = 100 * time.Millisecond
	// mostWait is the longest pause before a line is read again.
	mostWait = time.Second
	// mostSilent is how often in a row a queue may fail to answer a reader before it is deleted and made again: 4 times are
	// 20 s. Before the last time each server waits another while, up to remakeApart, so that only one of them does it.
	mostSilent  = 4
	remakeApart = 10 * time.Second
)

// settleWithin is how long a channel stays open, after reading over it has ended, so that takes can settle their messages. Then
// it is closed, and the messages are delivered again over another channel. That counts as one of mostTries, so reports may wait
// for a database that is away for an hour. Tests shorten it.
var settleWithin = 5 * time.Minute

// message is a message that a take is handling. If the connection is lost meanwhile the broker delivers the message again; the
// take goes on, and its result settles the latest delivery.
type message struct {
	latest amqp.Delivery
	size   int
	came   time.Time
}

// counter is one call of Serve.
type counter struct {
	f    *Broker
	ctx  context.Context
	line brokerrpc.Line
	most int
	room chan struct{} // one element for each running take
	take func(context.Context, brokerrpc.Message) error
	hand sync.WaitGroup
}

func (f *Broker) Serve(ctx context.Context, line brokerrpc.Line, most int, take func(context.Context, brokerrpc.Message) error) {
	c := &counter{f: f, ctx: ctx, line: line, most: most, room: make(chan struct{}, most), take: take}
	for failures, silent := 0, 0; ctx.Err() == nil; {
		read, err := c.read()
		if ctx.Err() != nil {
			break
		}
		if read {
			failures = 0
		}
		silent = c.heal(err, silent)
		if failures++; failures == 3 {
			f.log.Warn("a line of the broker cannot be read; trying again until it can", "line", line, "err", err)
		}
		brokerrpc.Pause(ctx, min(mostWait, time.Duration(failures-1)*100*time.Millisecond))
	}
	c.hand.Wait()
}

// heal counts how often in a row the queue has not answered, and makes the queue anew if that continues.
func (c *counter) heal(err error, silent int) int {
	if !errors.Is(err, errNoAnswer) || !c.f.server() {
		return 0
	}
	switch silent++; silent {
	case mostSilent - 1:
		brokerrpc.Pause(c.ctx, rand.N(remakeApart))
	case mostSilent:
		c.f.log.Warn("a line of the broker does not answer: deleting it and making it again; its messages will be sent again", "line", c.line)
		if err := c.f.remake(c.ctx, c.line); err != nil && c.ctx.Err() == nil {
			c.f.log.Warn("a line of the broker cannot be made again; trying again", "line", c.line, "err", err)
			return mostSilent - 1
		}
		return 0
	}
	return silent
}

// read reads the line until ctx ends, or until the connection, the queue or the life of its channel has ended. It reports whether it could
// subscribe. If a queue is deleted and made again at once, RabbitMQ 3.10 subscribes the reader to the new queue by itself. It then mistakes
// the new queue's messages, numbered from 0 again, for old ones of the reader, and keeps them back until the channel is closed.
func (c *counter) read() (bool, error) {
	conn, ch, deliveries, err := c.subscribe()
	if err != nil {
		return false, err
	}
	ctx := context.WithoutCancel(c.ctx)
	cancel := func() {
		_ = conn.do(ctx, "end a subscription", func() error { return ch.Cancel(consumer, false) }) // an error means that the channel is closed
	}
	life := time.After(channelLife)
	var hand sync.WaitGroup // takes of messages that came over this channel
	for ended := false; ; {
		select {
		case d, ok := <-deliveries:
			switch {
			case ok:
				c.deliver(d, &hand)
				continue
			case !ended:
				conn.shut(ch) // the broker delivers unsettled messages again
				return true, amqp.ErrClosed
			}
			c.hand.Go(func() {
				settled := make(chan struct{})
				go func() {
					hand.Wait()
					close(settled)
				}()
				select {
				case <-settled:
				case <-time.After(settleWithin):
				}
				conn.shut(ch)
			})
			return true, nil
		case <-life:
			cancel() // messages delivered until then come before deliveries is closed
			ended = true
		case <-c.ctx.Done():
			// Messages after the last one given to a take are returned with the channel, once the takes have settled theirs.
			cancel()
			c.hand.Wait()
			conn.shut(ch)
			return true, nil
		}
	}
}

const consumer = "server"

// subscribe begins to read the line, and makes it if it does not exist.
func (c *counter) subscribe() (conn *connection, ch *amqp.Channel, deliveries <-chan amqp.Delivery, err error) {
	f, ctx := c.f, c.ctx
	if f.server() {
		if err := f.declareLine(ctx, c.line); err != nil {
			return nil, nil, nil, err
		}
	}
	if conn, err = f.reading.at(ctx); err != nil {
		return nil, nil, nil, err
	}
	if ch, err = conn.channel(ctx); err != nil {
		return nil, nil, nil, err
	}
	err = conn.do(ctx, "read the line "+string(c.line), func() error {
		if err := ch.Qos(min(c.most, mostPrefetch), 0, false); err != nil {
			return err
		}
		deliveries, err = ch.Consume(f.line(c.line), consumer, false, false, false, false, nil)
		return err
	})
	if err != nil {
		conn.shut(ch)
	}
	return conn, ch, deliveries, err
}

// deliver starts a take. If too many are running it waits.
func (c *counter) deliver(d amqp.Delivery, hand *sync.WaitGroup) {
	if c.line == brokerrpc.Asks {
		_ = d.Ack(false) // it may be delivered again, and is recognised then
		if d.Redelivered {
			return
		}
	} else if c.f.rejoin(c.line, d) {
		return
	}
	select {
	case c.room <- struct{}{}:
	case <-c.ctx.Done():
		return
	}
	l := c.f.grasp(c.line, d)
	hand.Add(1)
	c.hand.Go(func() {
		defer hand.Done()
		defer func() { <-c.room }()
		taken := c.take(c.ctx, brokerrpc.Message{ID: d.MessageId, Body: d.Body, Tries: tries(d)})
		c.settle(l, taken)
	})
}

// tries is how often a message has been delivered, including this time.
func tries(d amqp.Delivery) int {
	n, _ := d.Headers["x-delivery-count"].(int64) // the first delivery has no such header
	return int(n) + 1
}

// rejoin reports whether a take is already handling a message that is delivered again.
func (f *Broker) rejoin(line brokerrpc.Line, d amqp.Delivery) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.hand[line][d.MessageId]
	if l == nil || d.MessageId == "" {
		return false
	}
	l.latest = d
	return true
}

func (f *Broker) grasp(line brokerrpc.Line, d amqp.Delivery) *message {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &message{latest: d, size: len(d.Body), came: time.Now()}
	f.hand[line][d.MessageId] = l
	return l
}

// release ends the take of a message, and returns its latest delivery.
func (f *Broker) release(line brokerrpc.Line, l *message) amqp.Delivery {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.hand[line], l.latest.MessageId)
	return l.latest
}

// settle acknowledges a message, dead-letters it or gives it back, as its take has decided. If that fails the message is delivered again.
func (c *counter) settle(l *message, taken error) {
	if unreadable, dead := errors.AsType[*brokerrpc.Unreadable](taken); dead {
		if taken = c.deadLetter(l, unreadable.Reason); taken != nil {
			c.f.log.Debug("an unreadable message will be delivered again: the broker does not answer", "line", c.line, "err", taken)
		}
	}
	if taken != nil && c.line != brokerrpc.Asks {
		brokerrpc.Pause(c.ctx, againAfter)
	}
	d := c.f.release(c.line, l)
	switch { // an error means that the channel is closed, and then the message is delivered again
	case c.line == brokerrpc.Asks:
	case taken == nil:
		_ = d.Ack(false)
	default:
		_ = d.Nack(false, true)
	}
}

// deadLetter puts a message among the dead letters. The text of an ask is not kept, because asks are never sent again.
func (c *counter) deadLetter(l *message, reason string) error {
	c.f.mu.Lock()
	d := l.latest
	c.f.mu.Unlock()
	c.f.log.Warn("a message that cannot be read is put among the dead letters: see pawl broker dead", "line", c.line, "id", d.MessageId,
		"why", reason)
	m := amqp.Publishing{MessageId: d.MessageId, DeliveryMode: amqp.Persistent, Timestamp: time.Now(), Body: d.Body,
		Headers: amqp.Table{"line": string(c.line), "why": reason, "tries": int64(tries(d)), "size": int64(l.size)}}
	if c.line == brokerrpc.Asks {
		m.Body = nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), answerWithin)
	defer cancel()
	if err := c.f.publishOrMake(ctx, c.line, c.f.queue("dead"), m); err != nil {
		return fmt.Errorf("dead-letter a message: %w", err)
	}
	return nil
}
