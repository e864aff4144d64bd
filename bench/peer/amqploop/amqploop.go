// Package amqploop runs the workloads on a bare queue of RabbitMQ, with publish, consume and acknowledge of amqp091-go only. The queue is a
// quorum queue, like Pawl's; every publication is persistent and confirmed, and every job is acknowledged separately.
package amqploop

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/bench/trial"
)

const (
	// window bounds the publications that wait for a confirmation, and the jobs that wait for an acknowledgement.
	window     = 1000
	publishers = 4
	patience   = time.Minute
)

type peer struct {
	url     string
	queue   string
	sending *amqp.Connection
	ended   atomic.Int64
	end     chan struct{} // capacity 1: a job has ended
}

// Open makes the queue.
func Open(_ context.Context, s trial.Spec) (trial.Peer, error) {
	u, err := url.Parse(s.RabbitMQ)
	if err != nil {
		return nil, errors.New("-rabbitmq is not a URL")
	}
	p := &peer{queue: "bench." + u.Query().Get("namespace"), end: make(chan struct{}, 1)}
	u.RawQuery = ""
	p.url = u.String()
	if p.sending, err = amqp.Dial(p.url); err != nil {
		return nil, fmt.Errorf("-rabbitmq: %w", err)
	}
	ch, err := p.sending.Channel()
	if err == nil {
		_, err = ch.QueueDeclare(p.queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	}
	if err == nil {
		err = ch.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the queue: %w", err), p.sending.Close())
	}
	return p, nil
}

// Close implements trial.Peer.
func (p *peer) Close() {
	if ch, err := p.sending.Channel(); err == nil {
		_, _ = ch.QueueDelete(p.queue, false, false, false) // the next trial has its own queue
	}
	_ = p.sending.Close()
}

// sender publishes over its own channel.
type sender struct {
	ch      *amqp.Channel
	queue   string
	waiting []*amqp.DeferredConfirmation
}

func (p *peer) sender() (*sender, error) {
	ch, err := p.sending.Channel()
	if err != nil {
		return nil, err
	}
	return &sender{ch: ch, queue: p.queue}, ch.Confirm(false)
}

// send publishes a job, and waits until at most most publications of this sender are unconfirmed.
func (s *sender) send(ctx context.Context, most int) error {
	c, err := s.ch.PublishWithDeferredConfirmWithContext(ctx, "", s.queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("{}")})
	if err != nil {
		return err
	}
	s.waiting = append(s.waiting, c)
	return s.confirmed(ctx, most)
}

func (s *sender) confirmed(ctx context.Context, most int) error {
	for len(s.waiting) > most {
		ok, err := s.waiting[0].WaitContext(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("the broker refuses a job")
		}
		s.waiting = s.waiting[1:]
	}
	return nil
}

// work consumes over its own connection until stop.
func (p *peer) work() (stop func(), err error) {
	conn, err := amqp.Dial(p.url)
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Qos(window, 0, false)
	}
	var jobs <-chan amqp.Delivery
	if err == nil {
		jobs, err = ch.Consume(p.queue, "", false, false, false, false, nil)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for d := range jobs {
			if err := d.Ack(false); err != nil {
				return
			}
			p.ended.Add(1)
			select {
			case p.end <- struct{}{}:
			default: // no client waits for this job
			}
		}
	}()
	return func() {
		_ = conn.Close()
		<-over
	}, nil
}

// drain waits until n jobs have ended.
func (p *peer) drain(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for p.ended.Load() < n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d have ended after %s", p.ended.Load(), n, patience)
		}
	}
	return nil
}

// Run implements trial.Peer.
func (p *peer) Run(ctx context.Context, w trial.Workload) (trial.Result, error) {
	switch w.Name {
	case trial.Noop:
		return p.noop(ctx, w)
	case trial.Steady, trial.Alone:
	default:
		return nil, trial.ErrUnsupported
	}
	stop, err := p.work()
	if err != nil {
		return nil, err
	}
	defer stop()
	if w.Name == trial.Alone {
		return p.alone(ctx, w)
	}
	return p.steady(ctx, w)
}

func (p *peer) alone(ctx context.Context, w trial.Workload) (trial.Result, error) {
	s, err := p.sender()
	if err != nil {
		return nil, err
	}
	return trial.Loop(ctx, "", w, func(ctx context.Context) error {
		select { // from earlier jobs
		case <-p.end:
		default:
		}
		if err := s.send(ctx, 0); err != nil {
			return err
		}
		select {
		case <-p.end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

func (p *peer) steady(ctx context.Context, w trial.Workload) (trial.Result, error) {
	senders := make(chan *sender, w.Clients)
	for range w.Clients {
		s, err := p.sender()
		if err != nil {
			return nil, err
		}
		senders <- s
	}
	already := p.ended.Load()
	return trial.Stream(ctx, "", w, func(ctx context.Context) error {
		s := <-senders
		defer func() { senders <- s }()
		return s.send(ctx, 0)
	}, func(n int64) error { return p.drain(ctx, already+n) })
}

func (p *peer) noop(ctx context.Context, w trial.Workload) (trial.Result, error) {
	already := p.ended.Load()
	fill := func() error {
		var next atomic.Int64
		g, gctx := errgroup.WithContext(ctx)
		for range publishers {
			g.Go(func() error {
				s, err := p.sender()
				if err != nil {
					return err
				}
				for next.Add(1) <= int64(w.Count) {
					if err := s.send(gctx, window/publishers); err != nil {
						return err
					}
				}
				return s.confirmed(gctx, 0)
			})
		}
		return g.Wait()
	}
	return trial.Backlog("", w.Count, fill, p.work, func() error { return p.drain(ctx, already+int64(w.Count)) })
}
