package rabbitmq

import (
	"context"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/post"
)

// mostListed is how many dead letters are listed.
const mostListed = 1000

// Dead implements post.Office. It fetches the letters and gives back those that are to stay. Meanwhile other readers do not see
// them.
func (f *Office) Dead(ctx context.Context, do post.DeadAction) (all []post.DeadLetter, err error) {
	c, err := f.reading.at(ctx)
	if err != nil {
		return nil, err
	}
	ch, err := c.channel(ctx)
	if err != nil {
		return nil, err
	}
	defer c.shut(ch)                           // gives back the letters that were fetched
	for most := mostListed; len(all) < most; { // only those counted at the first look, because a letter that is sent again may be buried again at once
		var d amqp.Delivery
		there := false
		err := c.do(ctx, "list dead letters", func() (err error) {
			d, there, err = ch.Get(f.queue("dead"), false)
			return err
		})
		if code(err) == amqp.NotFound {
			return nil, nil // no letter was ever buried in this namespace
		}
		if err != nil || !there {
			return all, err
		}
		if len(all) == 0 {
			most = min(most, 1+int(d.MessageCount))
		}
		l := f.deadLetter(d)
		if err := f.dealWithDead(ctx, do, l, d); err != nil {
			return all, err
		}
		all = append(all, l)
	}
	return all, nil
}

// deadLetter reads a letter that a server has buried, or that the broker has buried after too many deliveries.
func (f *Office) deadLetter(d amqp.Delivery) post.DeadLetter {
	l := post.DeadLetter{ID: d.MessageId, Size: len(d.Body)}
	buried := d.Timestamp
	if line, ok := d.Headers["line"].(string); ok {
		l.Line = post.Line(line)
		l.Reason, _ = d.Headers["why"].(string) // bury has written these headers
		n, _ := d.Headers["tries"].(int64)
		size, _ := d.Headers["size"].(int64)
		l.Tries, l.Size = int(n), int(size)
	} else if deaths, ok := d.Headers["x-death"].([]any); ok && len(deaths) > 0 {
		if death, ok := deaths[0].(amqp.Table); ok {
			queue, _ := death["queue"].(string) // the broker has written this
			l.Line = post.Line(strings.TrimPrefix(queue, f.prefix))
			buried, _ = death["time"].(time.Time)
		}
		l.Tries = mostTries
		l.Reason = fmt.Sprintf("delivered %d times and never settled", l.Tries)
	}
	if !buried.IsZero() {
		l.Age = max(0, time.Since(buried))
	}
	return l
}

func (f *Office) dealWithDead(ctx context.Context, do post.DeadAction, l post.DeadLetter, d amqp.Delivery) error {
	if do == post.ListDead {
		return nil
	}
	if do == post.RedriveDead && (l.Line == post.Tells || l.Line == post.Logs) {
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
