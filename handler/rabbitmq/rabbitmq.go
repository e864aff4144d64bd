// Package rabbitmq lets a program that serves handlers reach its servers through RabbitMQ, where it reaches no server
// itself. The servers run with the same broker: pawl server --broker.
package rabbitmq

import (
	"context"
	"log/slog"

	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq"
)

// Broker is the RabbitMQ at a URL, amqp://user:password@host:5672/vhost?namespace=NAME, or amqps:// for TLS; the
// servers' namespace is "default" unless their URL names another. An empty URL is that in $PAWL_BROKER. Pass the broker
// on as [handler.Options].Broker.
func Broker(url string) handler.Broker { return broker(url) }

type broker string

// Connect implements handler.Broker.
func (b broker) Connect(ctx context.Context, token string, log *slog.Logger) (handoff.Handoff, func(), error) {
	return brokerrpc.Connect(string(b), token, func(url string) (*rabbitmq.Broker, error) {
		return rabbitmq.Open(ctx, rabbitmq.Options{URL: url, Log: log})
	})
}
