package instance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq"
	"github.com/pawl-run/pawl/internal/handoff/redis"
	"github.com/pawl-run/pawl/internal/server/metrics"
)

// OpenBroker connects to the broker of the setting. installation identifies the servers' database; empty for workers.
func OpenBroker(ctx context.Context, url, installation string, log *slog.Logger) (brokerrpc.Broker, error) {
	var transport brokerrpc.Broker
	var err error
	if strings.HasPrefix(url, "amqp") {
		transport, err = rabbitmq.Open(ctx, rabbitmq.Options{URL: url, Installation: installation, Log: log})
	} else {
		transport, err = redis.Open(ctx, redis.Options{URL: url, Installation: installation, Log: log})
	}
	if err != nil {
		return nil, err
	}
	return transport, nil
}

// brokered serves the workers behind a broker.
type brokered struct {
	transport brokerrpc.Broker
	server    *brokerrpc.Server
	ready     chan struct{} // closed when server is set
}

func (b *brokered) drainBroker(ctx context.Context) error {
	select {
	case <-b.ready:
		return b.server.DrainBroker(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startBroker starts to serve the workers behind the broker, including those whose session another server of the database has opened.
func (r *Instance) startBroker(ctx context.Context) (err error) {
	key, err := r.engine.Catalog().WorkerKey(ctx)
	if err != nil {
		return err
	}
	name := sha256.Sum256(append([]byte("installation\n"), key...))
	b := r.broker
	if b.transport, err = OpenBroker(ctx, r.Config.Text("broker"), hex.EncodeToString(name[:8]), r.Log); err != nil {
		return err
	}
	b.server = brokerrpc.NewServer(brokerrpc.ServerOptions{Transport: b.transport, Handoff: r.engine, Key: key, Tokens: r.Config.Tokens(),
		Log: r.Log})
	r.stopBroker = r.parts.Start("the service of the broker", b.server.Run)
	close(b.ready)
	return nil
}

// unreachable reports whether the broker does not answer and a session's worker is behind it.
func (b *brokered) unreachable(session flow.ID) bool {
	select {
	case <-b.ready:
		return b.server.Unreachable(session)
	default:
		return false
	}
}

// brokerFigures are the broker's figures for the metrics; nil without a broker.
func (r *Instance) brokerFigures() func() metrics.Broker {
	if r.broker == nil {
		return nil
	}
	return func() metrics.Broker {
		f := r.broker.server.Figures()
		out := metrics.Broker{Up: f.Up, Redelivered: f.Redelivered, Dead: f.Dead, Rebuilt: f.Rebuilt, Lines: map[string]metrics.BrokerLine{}}
		for _, line := range brokerrpc.Lines() {
			d := f.Lines[line]
			out.Lines[string(line)] = metrics.BrokerLine{Delivered: f.Messages[line], Waiting: d.Messages, Bytes: d.Bytes, Oldest: d.Oldest}
		}
		return out
	}
}
