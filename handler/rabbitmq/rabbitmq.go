// Package rabbitmq lets a program that serves handlers reach its servers through RabbitMQ instead of HTTP. The servers use the same broker:
// pawl server --broker.
package rabbitmq

import (
	"context"
	"log/slog"

	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq"
)

// Broker is the RabbitMQ at a URL, amqp://user:password@host:5672/vhost?namespace=NAME, or amqps:// for TLS. The namespace must be that of
// the servers, which is "default" unless their URL names another. If url is empty, it is $PAWL_BROKER. Set it as [handler.Options].Broker.
func Broker(url string) handler.Broker { return broker(url) }

type broker string

func (b broker) Connect(ctx context.Context, token string, log *slog.Logger) (handoff.Handoff, func(), error) {
	return brokerrpc.Connect(string(b), token, func(url string) (*rabbitmq.Broker, error) {
		return rabbitmq.Open(ctx, rabbitmq.Options{URL: url, Log: log})
	})
}
