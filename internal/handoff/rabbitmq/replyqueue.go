package rabbitmq

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// mostUnread is how many messages the broker pushes before their reader has taken the first.
const mostUnread = 100

// replyQueue is a reply queue: a queue that outlives its owner's connection. The owner reads it exclusively, since otherwise the reader of
// a lost connection, which the broker does not know to be lost, would get some of the messages.
type replyQueue struct {
	f          *Broker
	name       string
	c          *connection
	ch         *amqp.Channel
	deliveries <-chan amqp.Delivery // nil: not being read
}

func (f *Broker) ReplyQueue(ctx context.Context) (brokerrpc.ReplyQueue, error) {
	b := &replyQueue{f: f, name: f.replyQueues + newID()}
	c, err := f.reading.at(ctx)
	if err != nil {
		return nil, err
	}
	err = f.declare(ctx, c, f.replyQueue(b.name), amqp.Table{"x-queue-type": "classic", "x-expires": replyQueueLife.Milliseconds(),
		"x-message-ttl":      messageLife.Milliseconds(),
		"x-max-length-bytes": int64(maxReplyQueue), "x-overflow": "reject-publish"})
	if err == nil {
		err = b.subscribe(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("make a reply queue: %w", err)
	}
	return b, nil
}

func (b *replyQueue) Name() string { return b.name }

func (b *replyQueue) subscribe(ctx context.Context) error {
	c, err := b.f.reading.at(ctx)
	if err != nil {
		return err
	}
	ch, err := c.channel(ctx)
	if err != nil {
		return err
	}
	var deliveries <-chan amqp.Delivery
	err = c.do(ctx, "read the reply queue", func() error {
		if err := ch.Qos(mostUnread, 0, false); err != nil {
			return err
		}
		deliveries, err = ch.Consume(b.f.replyQueue(b.name), "owner", false, true, false, false, nil)
		return err
	})
	if err != nil {
		c.shut(ch)
		return err
	}
	b.c, b.ch, b.deliveries = c, ch, deliveries
	return nil
}

func (b *replyQueue) Next(ctx context.Context) ([]byte, error) {
	for {
		if b.deliveries == nil {
			err := b.subscribe(ctx)
			// The queue does not exist any more, or the broker still takes an earlier connection of this process
			// for its reader.
			if code(err) == amqp.NotFound || code(err) == amqp.AccessRefused {
				return nil, brokerrpc.ErrNoReplyQueue
			}
			if err != nil {
				return nil, err
			}
		}
		select {
		case d, ok := <-b.deliveries:
			if ok {
				_ = d.Ack(false) // if this fails the message comes again, which does no harm
				return d.Body, nil
			}
			b.c.shut(b.ch) // the connection or the queue is lost
			b.deliveries = nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close implements brokerrpc.ReplyQueue. Without a connection the broker deletes the reply queue when its life is over.
func (b *replyQueue) Close() {
	if b.deliveries == nil || b.ch.IsClosed() {
		return
	}
	_ = b.c.do(context.Background(), "delete a reply queue", func() error {
		_, err := b.ch.QueueDelete(b.f.replyQueue(b.name), false, false, false)
		return err
	})
	b.c.shut(b.ch)
}
