package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// oldest is the first version whose quorum queues let messages expire and dead-letter them without loss.
var oldest = [2]int{3, 10}

// checkVersion reports whether the broker can be used.
func checkVersion(properties amqp.Table) error {
	product, _ := properties["product"].(string)
	version, _ := properties["version"].(string)
	if product != "RabbitMQ" {
		return fmt.Errorf("the broker is %.40q: RabbitMQ is needed, or Redis", product)
	}
	var got [2]int
	for i, part := range strings.SplitN(version, ".", 3) {
		if i < len(got) {
			got[i], _ = strconv.Atoi(part) // something that is not a number counts as old
		}
	}
	if got[0] < oldest[0] || got[0] == oldest[0] && got[1] < oldest[1] {
		return fmt.Errorf("the broker is RabbitMQ %.40s: version %d.%d or later is needed", version, oldest[0], oldest[1])
	}
	return nil
}

func (f *Broker) arguments(line brokerrpc.Line) amqp.Table {
	args := amqp.Table{"x-queue-type": "quorum", "x-overflow": "reject-publish", "x-queue-leader-locator": "balanced"}
	if line == brokerrpc.Asks {
		args["x-max-length-bytes"] = int64(mostAskBytes)
		return args
	}
	args["x-max-length-bytes"] = f.o.MostBytes
	args["x-delivery-limit"] = int64(mostTries - 1) // deliveries after the first
	args["x-dead-letter-exchange"] = ""
	args["x-dead-letter-routing-key"] = f.queue("dead")
	args["x-dead-letter-strategy"] = "at-least-once"
	return args
}

// declareAll makes the lines and registers the installation as their owner.
func (f *Broker) declareAll(ctx context.Context) error {
	for _, line := range brokerrpc.Lines() {
		if err := f.declareLine(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

// declareLine makes a line, and the queues that it needs, unless they exist.
func (f *Broker) declareLine(ctx context.Context, line brokerrpc.Line) error {
	c, err := f.reading.at(ctx)
	if err != nil {
		return err
	}
	// The broker compares the arguments of an existing queue with those of a declaration. The second of two installations is therefore
	// refused. The queue is always empty, so no message ever goes to the key that its argument names.
	err = f.declare(ctx, c, f.queue("owner"), amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f.o.Installation})
	if unequal(err) {
		return brokerrpc.OtherInstallation(f.namespace, "delete the queue "+f.queue("owner"))
	}
	if err == nil {
		// Listing dead letters counts as a delivery, and RabbitMQ deletes messages beyond a limit: 20 from version 4.0
		// on, unless one is set.
		err = f.declare(ctx, c, f.queue("dead"), amqp.Table{"x-queue-type": "quorum", "x-overflow": "drop-head", "x-max-length": int64(mostDead),
			"x-max-length-bytes": int64(mostDeadBytes), "x-message-ttl": keepDead.Milliseconds(), "x-delivery-limit": int64(1_000_000)})
	}
	if err == nil {
		err = f.declare(ctx, c, f.line(line), f.arguments(line))
	}
	return err
}

// remakeWithin is how long deleting a queue that does not answer may take: RabbitMQ itself waits 5 s for the queue.
const remakeWithin = 20 * time.Second

// remake deletes a line and makes it again. A RabbitMQ that was killed may leave a quorum queue without a leader for good: the
// queue accepts and delivers no messages until it is deleted. Its messages are sent again, since each has a sender that waits
// for an answer.
func (f *Broker) remake(ctx context.Context, line brokerrpc.Line) error {
	c, err := f.reading.at(ctx)
	if err != nil {
		return err
	}
	ch, err := c.channel(ctx)
	if err != nil {
		return err
	}
	defer c.shut(ch)
	if err := c.doWithin(ctx, remakeWithin, "delete the queue "+f.line(line), func() error {
		_, err := ch.QueueDelete(f.line(line), false, false, false)
		return err
	}); err != nil {
		return err
	}
	return f.declareLine(ctx, line)
}

func (f *Broker) declare(ctx context.Context, c *connection, queue string, args amqp.Table) error {
	ch, err := c.channel(ctx) // of its own, because a refusal closes it
	if err != nil {
		return err
	}
	defer c.shut(ch)
	err = c.do(ctx, "declare the queue "+queue, func() error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, args)
		return err
	})
	if unequal(err) && queue != f.queue("owner") {
		return fmt.Errorf("the broker's queue %s is there with other arguments, or the broker's policies forbid those that it needs; delete it (nothing is lost that is not sent again) and start again: %w", queue, err)
	}
	return err
}

func unequal(err error) bool { return code(err) == amqp.PreconditionFailed }

// code is the code with which the broker refuses a command; 0 for other errors.
func code(err error) int {
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		return e.Code
	}
	return 0
}

// failed turns an error of the broker, or of the connection to it, into ErrUnavailable.
func failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %s: %w", brokerrpc.ErrUnavailable, what, brokerrpc.Explained(err, nil, []string{"ACCESS_REFUSED"}))
}

// refused explains why the broker refuses a connection.
func refused(err error) error {
	if code(err) == amqp.NotAllowed {
		return fmt.Errorf("the vhost of the broker's URL, which is what follows the host and a slash, is not there, or its user may not use it: %w", err)
	}
	return brokerrpc.Explained(err, []string{"ACCESS_REFUSED", amqp.ErrCredentials.Reason}, nil)
}
