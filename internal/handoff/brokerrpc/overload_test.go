package brokerrpc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc/brokerrpctest"
)

// single is an engine that opens and closes sessions one at a time.
type single struct {
	engine
	turn   chan struct{} // capacity 1
	each   time.Duration
	closed atomic.Int64
}

func (s *single) inTurn(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	<-time.After(s.each)
	return nil
}

func (s *single) Open(ctx context.Context, o handoff.Session) (flow.ID, error) {
	if err := s.inTurn(ctx); err != nil {
		return flow.ID{}, err
	}
	return s.engine.Open(ctx, o)
}

func (s *single) Close(ctx context.Context, _ flow.ID) error {
	s.closed.Add(1)
	return s.inTurn(ctx)
}

// Twice as many workers as can be opened before the first ones ask again come at once: all get sessions, hardly any session is opened in
// vain, and workers with sessions renew them meanwhile.
func TestAllWorkersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const workers = 500
		m, e := &brokerrpctest.Model{}, &single{turn: make(chan struct{}, 1), each: 50 * time.Millisecond}
		_, stop := server(t, m, e)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		var with atomic.Int64
		for range workers {
			all.Go(func() {
				c := brokerrpc.NewClient(m, "sesame")
				defer c.Stop()
				id, err := c.Open(ctx, session)
				for pause := 50 * time.Millisecond; err != nil && ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
					<-time.After(rand.N(pause)) // as a worker does
					id, err = c.Open(ctx, session)
				}
				if err == nil && with.Add(1) == workers {
					cancel()
				}
				for err == nil && ctx.Err() == nil {
					if _, err := c.Renew(ctx, id); err != nil && ctx.Err() == nil {
						t.Errorf("renew: %v", err)
					}
					<-time.After(10 * time.Second)
				}
			})
		}
		all.Wait()
		stop()
		if n := with.Load(); n < workers || e.opened > workers*12/10 {
			t.Errorf("of %d workers %d have a session; %d sessions were opened, %d closed again", workers, n, e.opened, e.closed.Load())
		}
	})
}

// unread is a broker that accepts no messages for reply queues, like RabbitMQ with a memory alarm.
type unread struct {
	tapped
	full atomic.Bool
}

func (o *unread) Put(ctx context.Context, replyQueue string, message []byte) error {
	if o.full.Load() {
		return brokerrpc.ErrUnavailable
	}
	return o.tapped.Put(ctx, replyQueue, message)
}

// Reports are recorded and taken out of their line even if no answer can be put.
func TestReportsWithoutAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, e := &unread{tapped: tapped{Model: &brokerrpctest.Model{}}}, &engine{}
		_, stop := server(t, o, e)
		c := brokerrpc.NewClient(o, "sesame")
		if _, err := c.Report(t.Context(), open(t, c), []flow.Report{{Execution: flow.ID{1}, Attempt: 1}}); err != nil {
			t.Fatal(err)
		}
		o.mu.Lock()
		report := o.messages[len(o.messages)-1]
		o.mu.Unlock()
		o.full.Store(true)
		for range 1000 {
			if err := o.Model.Send(t.Context(), brokerrpc.Tells, report, 0); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(10 * time.Second)
		if lines, err := o.Backlog(t.Context()); err != nil || lines[brokerrpc.Tells].Messages > 0 {
			t.Errorf("%d reports wait, %v", lines[brokerrpc.Tells].Messages, err)
		}
		c.Stop()
		stop()
	})
}

// unconfirmed is a broker that delivers messages and confirms none.
type unconfirmed struct{ *brokerrpctest.Model }

func (o unconfirmed) Send(ctx context.Context, line brokerrpc.Line, body []byte, valid time.Duration) error {
	if err := o.Model.Send(ctx, line, body, valid); err != nil {
		return err
	}
	select {
	case <-time.After(5 * time.Second):
		return fmt.Errorf("%w: it has confirmed nothing", brokerrpc.ErrUnavailable)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// An answered call has succeeded, whether or not the broker has confirmed its message.
func TestAnswerBeforeConfirmation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, e := &brokerrpctest.Model{}, &engine{}
		_, stop := server(t, m, e)
		c := brokerrpc.NewClient(unconfirmed{m}, "sesame")
		id, err := c.Open(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Renew(t.Context(), id); err != nil {
			t.Error(err)
		}
		c.Stop()
		stop()
	})
}

// slowly is an engine whose renewals take two seconds, and that has no work.
type slowly struct{ engine }

func (s *slowly) Renew(ctx context.Context, id flow.ID) (handoff.Renewal, error) {
	<-time.After(2 * time.Second)
	return s.engine.Renew(ctx, id)
}

// counted is a broker that counts the reply queues that were made.
type counted struct {
	*brokerrpctest.Model
	made atomic.Int64
}

func (o *counted) ReplyQueue(ctx context.Context) (brokerrpc.ReplyQueue, error) {
	o.made.Add(1)
	return o.Model.ReplyQueue(ctx)
}

// The reply queue of an idle worker is kept if answers take a little too long.
func TestSlowAnswersKeepTheReplyQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, e := &counted{Model: &brokerrpctest.Model{}}, &slowly{engine{came: make(chan struct{})}}
		_, stop := server(t, o.Model, e)
		c := brokerrpc.NewClient(o, "sesame")
		id := open(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var idle sync.WaitGroup
		idle.Go(func() { _, _ = c.Take(ctx, id, 1) }) // there is no work
		for ctx.Err() == nil {
			if _, err := c.Renew(ctx, id); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			<-time.After(7 * time.Second) // at another moment of a call of Take each time
		}
		idle.Wait()
		if n := o.made.Load(); n != 1 {
			t.Errorf("%d reply queues were made", n)
		}
		c.Stop()
		stop()
	})
}

// unreadable is a broker whose reply queues may not be read.
type unreadable struct{ *brokerrpctest.Model }

type unreadableQueue struct{ brokerrpc.ReplyQueue }

func (o unreadable) ReplyQueue(ctx context.Context) (brokerrpc.ReplyQueue, error) {
	b, err := o.Model.ReplyQueue(ctx)
	return unreadableQueue{b}, err
}

func (unreadableQueue) Next(context.Context) ([]byte, error) {
	return nil, fmt.Errorf("%w: no permission to read it", brokerrpc.ErrUnavailable)
}

// The error of a worker that cannot read its reply queue has the reason.
func TestReplyQueueUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &brokerrpctest.Model{}
		_, stop := server(t, m, &engine{})
		c := brokerrpc.NewClient(unreadable{m}, "sesame")
		_, err := c.Open(t.Context(), session)
		if !errors.Is(err, handoff.ErrUnavailable) || !strings.Contains(err.Error(), "no answer for 15s") || !strings.Contains(err.Error(), "no permission to read it") {
			t.Error(err)
		}
		c.Stop()
		stop()
	})
}
