// Package redis lets a program that serves handlers reach its servers through Redis instead of HTTP. The servers use the same broker: pawl
// server --broker.
package redis

import (
	"context"
	"log/slog"

	"github.com/pawl-run/pawl/handler"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/redis"
)

// Broker is the Redis at a URL, redis://user:password@host:6379?namespace=NAME, or rediss:// for TLS. The namespace must be that of the
// servers, which is "default" unless their URL names another. If url is empty, it is $PAWL_BROKER. Set it as [handler.Options].Broker.
func Broker(url string) handler.Broker { return broker(url) }

type broker string

func (b broker) Connect(ctx context.Context, token string, log *slog.Logger) (handoff.Handoff, func(), error) {
	return brokerrpc.Connect(string(b), token, func(url string) (*redis.Broker, error) {
		return redis.Open(ctx, redis.Options{URL: url, Log: log})
	})
}
