package rabbitmq

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// Backlog implements brokerrpc.Transport. Over AMQP RabbitMQ reports only how many messages of a queue it has given to no reader: not how
// many other servers are handling, nor bytes, nor ages. The oldest undelivered message is at most as old as the last read that found none.
func (f *Broker) Backlog(ctx context.Context) (map[brokerrpc.Line]brokerrpc.Depth, error) {
	all := map[brokerrpc.Line]brokerrpc.Depth{}
	for _, line := range brokerrpc.Lines() {
		unread, _, err := f.unread(ctx, f.line(line))
		if err != nil {
			return nil, err
		}
		all[line] = f.depth(line, unread)
	}
	return all, nil
}

func (f *Broker) depth(line brokerrpc.Line, unread int64) brokerrpc.Depth {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	d := brokerrpc.Depth{Messages: unread, Unread: unread}
	if unread == 0 {
		f.filled[line] = now
	} else {
		d.Bytes, d.Oldest = -1, now.Sub(f.filled[line])
	}
	if line == brokerrpc.Asks {
		return d // asks are settled when they are received
	}
	for _, l := range f.hand[line] {
		d.Messages++
		d.Oldest = max(d.Oldest, now.Sub(l.came))
		if d.Bytes >= 0 {
			d.Bytes += int64(l.size)
		}
	}
	return d
}

// unread is how many messages of a queue have not been delivered, and whether the queue exists.
func (f *Broker) unread(ctx context.Context, queue string) (int64, bool, error) {
	c, err := f.reading.at(ctx)
	if err != nil {
		return 0, false, err
	}
	ch, err := c.channel(ctx)
	if err != nil {
		return 0, false, err
	}
	defer c.shut(ch)
	var q amqp.Queue
	err = c.do(ctx, "look at the queue "+queue, func() (err error) {
		q, err = ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		return err
	})
	if code(err) == amqp.NotFound {
		return 0, false, nil
	}
	return int64(q.Messages), err == nil, err
}

func (f *Broker) Health(ctx context.Context) (h brokerrpc.Health, err error) {
	c, err := f.reading.at(ctx)
	if err != nil {
		return h, err
	}
	h.Product = fmt.Sprintf("RabbitMQ %v", c.Properties["version"])
	if h.Lines, err = f.Backlog(ctx); err != nil {
		return h, err
	}
	there := false
	if h.Dead, there, err = f.unread(ctx, f.queue("dead")); err == nil && !there {
		h.Concern = "there is no queue " + f.queue("dead")
		h.Remedy = "start a server with this broker and namespace: it makes the queues"
	}
	return h, err
}
