package brokerrpctest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// An emptied broker continues to work: lines are made again, and owners of reply queues learn that these are gone.
func flushed(t *testing.T, r *Rig) {
	o, server := r.Transport(t), r.Transport(t)
	got := collect(t, server, brokerrpc.Tells)
	asks := collect(t, server, brokerrpc.Asks)
	b := openReplyQueue(t, o)
	send(t, o, brokerrpc.Tells, "before")
	receive(t, got)
	r.Flush(t)
	if _, err := b.Next(within(t)); err == nil || t.Context().Err() != nil {
		t.Errorf("the owner of a lost reply queue: %v", err)
	}
	if err := o.Put(within(t), b.Name(), []byte("x")); !errors.Is(err, brokerrpc.ErrNoReplyQueue) {
		t.Errorf("a lost reply queue: %v", err)
	}
	sendAgain(t, o, brokerrpc.Tells, "after")
	if l := receive(t, got); string(l.Body) != "after" {
		t.Errorf("%q", l.Body)
	}
	for ctx, came := within(t), false; !came; {
		sendAgain(t, o, brokerrpc.Asks, "after")
		select {
		case l := <-asks:
			if came = true; string(l.Body) != "after" {
				t.Errorf("%q", l.Body)
			}
		case <-time.After(time.Second): // a call that a broker has lost is made again by its caller
		case <-ctx.Done():
			t.Fatal("no call has come")
		}
	}
	again := openReplyQueue(t, o)
	if err := o.Put(within(t), again.Name(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got := next(t, again); got != "hello" {
		t.Errorf("%q", got)
	}
	eventually(t, o, "the lines are empty", func(lines map[brokerrpc.Line]brokerrpc.Depth) bool {
		return empty(brokerrpc.Tells)(lines) && empty(brokerrpc.Asks)(lines)
	})
}

// Messages in hand when the broker was emptied are not counted when they are settled.
func flushedInHand(t *testing.T, r *Rig) {
	o := r.Transport(t)
	entered, goOn := make(chan struct{}, 10), make(chan struct{})
	serve(t, r.Transport(t), brokerrpc.Tells, 10, func(context.Context, brokerrpc.Message) error {
		entered <- struct{}{}
		<-goOn
		return nil
	})
	settle := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(settle) // the server, which is stopped after this, waits for its messages in hand
	send(t, o, brokerrpc.Tells, "lost")
	<-entered
	r.Flush(t)
	sendAgain(t, o, brokerrpc.Tells, "fresh message")
	<-entered
	eventually(t, o, "one message", func(lines map[brokerrpc.Line]brokerrpc.Depth) bool {
		return lines[brokerrpc.Tells].Messages == 1 || r.Blind
	})
	settle()
	eventually(t, o, "the line is empty", empty(brokerrpc.Tells))
}
