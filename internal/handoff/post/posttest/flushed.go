package posttest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/post"
)

// A broker that is emptied goes on: lines are made again, and owners of mailboxes learn that theirs are gone.
func flushed(t *testing.T, r *Rig) {
	o, server := r.Office(t), r.Office(t)
	got := collect(t, server, post.Tells)
	asks := collect(t, server, post.Asks)
	b := box(t, o)
	send(t, o, post.Tells, "before")
	receive(t, got)
	r.Flush(t)
	if _, err := b.Next(within(t)); err == nil || t.Context().Err() != nil {
		t.Errorf("the owner of a lost mailbox: %v", err)
	}
	if err := o.Put(within(t), b.Name(), []byte("x")); !errors.Is(err, post.ErrNoBox) {
		t.Errorf("a lost mailbox: %v", err)
	}
	sendAgain(t, o, post.Tells, "after")
	if l := receive(t, got); string(l.Body) != "after" {
		t.Errorf("%q", l.Body)
	}
	for ctx, came := within(t), false; !came; {
		sendAgain(t, o, post.Asks, "after")
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
	again := box(t, o)
	if err := o.Put(within(t), again.Name(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got := next(t, again); got != "hello" {
		t.Errorf("%q", got)
	}
	eventually(t, o, "the lines are empty", func(lines map[post.Line]post.Depth) bool { return empty(post.Tells)(lines) && empty(post.Asks)(lines) })
}

// What was in hand when the broker was emptied counts no more when it is settled.
func flushedInHand(t *testing.T, r *Rig) {
	o := r.Office(t)
	entered, goOn := make(chan struct{}, 10), make(chan struct{})
	serve(t, r.Office(t), post.Tells, 10, func(context.Context, post.Letter) error {
		entered <- struct{}{}
		<-goOn
		return nil
	})
	settle := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(settle) // the server, which is stopped after this, waits for what it has in hand
	send(t, o, post.Tells, "lost")
	<-entered
	r.Flush(t)
	sendAgain(t, o, post.Tells, "fresh letter")
	<-entered
	eventually(t, o, "one letter", func(lines map[post.Line]post.Depth) bool { return lines[post.Tells].Letters == 1 || r.Blind })
	settle()
	eventually(t, o, "the line is empty", empty(post.Tells))
}
