package pawl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/direct"
	"github.com/pawl-run/pawl/internal/handoff/rabbitmq"
	"github.com/pawl-run/pawl/internal/handoff/redis"
	"github.com/pawl-run/pawl/internal/handoff/remote"

	"github.com/pawl-run/pawl/bench/trial"
)

// carrier is a connection between workers and a server.
type carrier interface {
	// dial returns the hand-off for another worker; close ends it.
	dial(ctx context.Context) (h handoff.Handoff, hangUp func(), err error)
	close()
}

// carriers create the server's side, by the name of the peer.
var carriers = map[string]func(ctx context.Context, s trial.Spec, h handoff.Handoff) (carrier, error){
	"pawl":          func(_ context.Context, _ trial.Spec, h handoff.Handoff) (carrier, error) { return inside{h}, nil },
	"pawl-http":     overHTTP,
	"pawl-redis":    overRedis,
	"pawl-rabbitmq": overRabbitMQ,
}

// serversKey signs the secrets of sessions.
var serversKey = []byte("the key of all servers")

// inside is for workers in the server's process.
type inside struct{ handoff.Handoff }

func (i inside) dial(context.Context) (handoff.Handoff, func(), error) {
	return i.Handoff, func() {}, nil
}
func (inside) close() {}

// listening serves workers over HTTP.
type listening struct {
	url    string
	server *http.Server
}

func overHTTP(ctx context.Context, _ trial.Spec, h handoff.Handoff) (carrier, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	c := &listening{"http://" + l.Addr().String(), &http.Server{Handler: remote.Handler(h, serversKey)}}
	go func() {
		if err := c.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // a trial without its server would report wrong figures
		}
	}()
	return c, nil
}

func (c *listening) dial(context.Context) (handoff.Handoff, func(), error) {
	w, err := remote.Dial(c.url, "")
	return w, func() {}, err
}

func (c *listening) close() { _ = c.server.Close() }

// posted serves workers behind a broker.
type posted struct {
	open func(ctx context.Context) (brokerrpc.Transport, func(), error) // a worker's connection
	stop []func()
}

func overRedis(ctx context.Context, s trial.Spec, h handoff.Handoff) (carrier, error) {
	open := func(ctx context.Context) (brokerrpc.Transport, func(), error) { return redisTransport(ctx, s.Redis) }
	return overBroker(ctx, h, open, open)
}

func redisTransport(ctx context.Context, url string) (brokerrpc.Transport, func(), error) {
	f, err := redis.Open(ctx, redis.Options{URL: url})
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

func overRabbitMQ(ctx context.Context, s trial.Spec, h handoff.Handoff) (carrier, error) {
	as := func(installation string) func(context.Context) (brokerrpc.Transport, func(), error) {
		return func(ctx context.Context) (brokerrpc.Transport, func(), error) {
			f, err := rabbitmq.Open(ctx, rabbitmq.Options{URL: s.RabbitMQ, Installation: installation})
			if err != nil {
				return nil, nil, err
			}
			return f, f.Close, nil
		}
	}
	return overBroker(ctx, h, as("bench"), as(""))
}

// overBroker serves workers through the server's transport; workers open their own.
func overBroker(ctx context.Context, h handoff.Handoff, server, worker func(context.Context) (brokerrpc.Transport, func(),
	error)) (carrier, error) {
	transport, hangUp, err := server(ctx)
	if err != nil {
		return nil, err
	}
	s := brokerrpc.NewServer(brokerrpc.ServerOptions{Transport: transport, Handoff: h, Key: serversKey})
	return &posted{worker, []func(){hangUp, background(s.Run)}}, nil
}

func (c *posted) dial(ctx context.Context) (handoff.Handoff, func(), error) {
	transport, hangUp, err := c.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	w := brokerrpc.NewClient(transport, "")
	return w, func() {
		w.Stop()
		hangUp()
	}, nil
}

func (c *posted) close() {
	for i := len(c.stop) - 1; i >= 0; i-- {
		c.stop[i]()
	}
}

// carry creates the carrier between the server and its workers.
func carry(ctx context.Context, s trial.Spec, h handoff.Handoff) (carrier, error) {
	if s.Peer == "pawl" {
		h = direct.New(h)
	}
	return carriers[s.Peer](ctx, s, h)
}
