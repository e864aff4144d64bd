package brokerrpctest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

// Lines, dead letters and reply queues that another program has replaced are made again.
func replaced(t *testing.T, r *Rig) {
	if r.Replace == nil {
		return
	}
	o, server := r.Transport(t), r.Transport(t)
	got := map[brokerrpc.Line]<-chan brokerrpc.Message{}
	for _, line := range []brokerrpc.Line{brokerrpc.Asks, brokerrpc.Tells} {
		got[line] = collect(t, server, line)
		send(t, o, line, "before")
		receive(t, got[line])
	}
	serve(t, server, brokerrpc.Logs, 10, func(context.Context, brokerrpc.Message) error {
		return &brokerrpc.Unreadable{Reason: "it is not a message"}
	})
	b := openReplyQueue(t, o)
	r.Replace(t, b.Name())
	if err := o.Put(within(t), b.Name(), []byte("x")); !errors.Is(err, brokerrpc.ErrNoReplyQueue) {
		t.Errorf("a message to a reply queue that was replaced: %v", err)
	}
	if _, err := b.Next(within(t)); !errors.Is(err, brokerrpc.ErrNoReplyQueue) {
		t.Errorf("the owner of a reply queue that was replaced: %v", err)
	}
	for line, got := range got {
		for ctx, came := within(t), false; !came; {
			sendAgain(t, o, line, "after")
			select {
			case l := <-got:
				if came = true; string(l.Body) != "after" {
					t.Errorf("%q", l.Body)
				}
			case <-time.After(time.Second): // a message that a broker has lost is sent again by its sender
			case <-ctx.Done():
				t.Fatalf("no message has come through %s", line)
			}
		}
	}
	sendAgain(t, o, brokerrpc.Logs, "unreadable")
	for ctx := within(t); ; {
		if dead, err := server.Dead(ctx, brokerrpc.ListDead); err == nil && len(dead) == 1 && dead[0].Line == brokerrpc.Logs {
			break
		} else if ctx.Err() != nil {
			t.Fatalf("dead letters: %+v, %v", dead, err)
		}
		brokerrpc.Pause(ctx, 20*time.Millisecond)
	}
	eventually(t, o, "the lines are empty", func(lines map[brokerrpc.Line]brokerrpc.Depth) bool {
		return empty(brokerrpc.Asks)(lines) && empty(brokerrpc.Tells)(lines) && empty(brokerrpc.Logs)(lines)
	})
}
