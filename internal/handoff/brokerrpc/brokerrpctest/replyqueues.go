package brokerrpctest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

func openReplyQueue(t *testing.T, o brokerrpc.Transport) brokerrpc.ReplyQueue {
	t.Helper()
	b, err := o.ReplyQueue(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func next(t *testing.T, b brokerrpc.ReplyQueue) string {
	t.Helper()
	m, err := b.Next(within(t))
	if err != nil {
		t.Fatalf("next: %v", err)
	}
	return string(m)
}

// Messages arrive in order, in the reply queue that they are for.
func replyQueue(t *testing.T, r *Rig) {
	o := r.Transport(t)
	one, two := openReplyQueue(t, r.Transport(t)), openReplyQueue(t, r.Transport(t))
	if one.Name() == two.Name() || one.Name() == "" {
		t.Fatalf("reply queues %q and %q", one.Name(), two.Name())
	}
	for i := range 300 {
		if err := o.Put(within(t), one.Name(), fmt.Append(nil, "one ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Put(within(t), two.Name(), []byte("two\x00\xff")); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if got := next(t, one); got != fmt.Sprint("one ", i) {
			t.Fatalf("message %d is %q", i, got)
		}
	}
	if got := next(t, two); got != "two\x00\xff" {
		t.Errorf("%q", got)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if m, err := one.Next(short); err == nil {
		t.Errorf("an empty reply queue has %q", m)
	}
}

func noReplyQueue(t *testing.T, r *Rig) {
	o := r.Transport(t)
	if err := o.Put(within(t), "0123456789abcdef", []byte("x")); !errors.Is(err, brokerrpc.ErrNoReplyQueue) {
		t.Errorf("a reply queue that was never there: %v", err)
	}
	b := openReplyQueue(t, o)
	b.Close()
	if err := o.Put(within(t), b.Name(), []byte("x")); !errors.Is(err, brokerrpc.ErrNoReplyQueue) {
		t.Errorf("a reply queue that was closed: %v", err)
	}
}

func largeAnswer(t *testing.T, r *Rig) {
	o := r.Transport(t)
	b := openReplyQueue(t, o)
	m := bytes.Repeat([]byte{0, 'x', 0xff, '\n'}, brokerrpc.MaxMessage/4)
	if err := o.Put(within(t), b.Name(), m); err != nil {
		t.Fatal(err)
	}
	if got := next(t, b); got != string(m) {
		t.Errorf("%d bytes of %d", len(got), len(m))
	}
}

func rehearsed(t *testing.T, r *Rig) {
	if err := brokerrpc.Rehearse(within(t), r.Transport(t)); err != nil {
		t.Error(err)
	}
}
