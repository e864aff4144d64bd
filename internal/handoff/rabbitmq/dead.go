package rabbitmq

import (
	"context"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// mostListed is how many dead letters are listed.
const mostListed = 1000

// Dead implements brokerrpc.Transport. It fetches the messages and gives back those that must stay. Meanwhile other readers do not see
// them.
func (f *Broker) Dead(ctx context.Context, do brokerrpc.DeadAction) (all []brokerrpc.DeadLetter, err error) {
	c, err := f.reading.at(ctx)
	if err != nil {
		return nil, err
	}
	ch, err := c.channel(ctx)
	if err != nil {
		return nil, err
	}
	defer c.shut(ch) // gives back the messages that were fetched
	// only those counted at first, because a message that is sent again may be dead-lettered again at once
	for most := mostListed; len(all) < most; {
		var d amqp.Delivery
		there := false
		err := c.do(ctx, "list dead letters", func() (err error) {
			d, there, err = ch.Get(f.queue("dead"), false)
			return err
		})
		if code(err) == amqp.NotFound {
			return nil, nil // no message was ever dead-lettered in this namespace
		}
		if err != nil || !there {
			return all, err
		}
		if len(all) == 0 {
			most = min(most, 1+int(d.MessageCount))
		}
		l := f.readDeadLetter(d)
		if err := f.dealWithDead(ctx, do, l, d); err != nil {
			return all, err
		}
		all = append(all, l)
	}
	return all, nil
}

// readDeadLetter reads a message that a server has dead-lettered, or that the broker has dead-lettered after too many deliveries.
func (f *Broker) readDeadLetter(d amqp.Delivery) brokerrpc.DeadLetter {
	l := brokerrpc.DeadLetter{ID: d.MessageId, Size: len(d.Body)}
	deadAt := d.Timestamp
	if line, ok := d.Headers["line"].(string); ok {
		l.Line = brokerrpc.Line(line)
		l.Reason, _ = d.Headers["why"].(string) // deadLetter has written these headers
		n, _ := d.Headers["tries"].(int64)
		size, _ := d.Headers["size"].(int64)
		l.Tries, l.Size = int(n), int(size)
	} else if deaths, ok := d.Headers["x-death"].([]any); ok && len(deaths) > 0 {
		if death, ok := deaths[0].(amqp.Table); ok {
			queue, _ := death["queue"].(string) // the broker has written this
			l.Line = brokerrpc.Line(strings.TrimPrefix(queue, f.prefix))
			deadAt, _ = death["time"].(time.Time)
		}
		l.Tries = mostTries
		l.Reason = fmt.Sprintf("delivered %d times and never settled", l.Tries)
	}
	if !deadAt.IsZero() {
		l.Age = max(0, time.Since(deadAt))
	}
	return l
}

func (f *Broker) dealWithDead(ctx context.Context, do brokerrpc.DeadAction, l brokerrpc.DeadLetter, d amqp.Delivery) error {
	if do == brokerrpc.ListDead {
		return nil
	}
	if do == brokerrpc.RedriveDead && (l.Line == brokerrpc.Tells || l.Line == brokerrpc.Logs) {
		again := amqp.Publishing{MessageId: newID(), Body: d.Body, DeliveryMode: amqp.Persistent}
		if err := f.send(ctx, l.Line, again); err != nil {
			return fmt.Errorf("put a dead letter back: %w", err)
		}
	}
	if err := d.Ack(false); err != nil {
		return failed(ctx, "delete a dead letter", err)
	}
	return nil
}
