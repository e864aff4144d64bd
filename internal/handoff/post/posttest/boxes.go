package posttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/handoff/post"
)

func box(t *testing.T, o post.Office) post.Box {
	t.Helper()
	b, err := o.Box(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func next(t *testing.T, b post.Box) string {
	t.Helper()
	m, err := b.Next(within(t))
	if err != nil {
		t.Fatalf("next: %v", err)
	}
	return string(m)
}

// Messages come in their order, to the mailbox that they are for.
func mailbox(t *testing.T, r *Rig) {
	o := r.Office(t)
	one, two := box(t, r.Office(t)), box(t, r.Office(t))
	if one.Name() == two.Name() || one.Name() == "" {
		t.Fatalf("mailboxes %q and %q", one.Name(), two.Name())
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
		t.Errorf("an empty mailbox has %q", m)
	}
}

func noMailbox(t *testing.T, r *Rig) {
	o := r.Office(t)
	if err := o.Put(within(t), "0123456789abcdef", []byte("x")); !errors.Is(err, post.ErrNoBox) {
		t.Errorf("a mailbox that was never there: %v", err)
	}
	b := box(t, o)
	b.Close()
	if err := o.Put(within(t), b.Name(), []byte("x")); !errors.Is(err, post.ErrNoBox) {
		t.Errorf("a mailbox that was closed: %v", err)
	}
}

func largeMessage(t *testing.T, r *Rig) {
	o := r.Office(t)
	b := box(t, o)
	m := bytes.Repeat([]byte{0, 'x', 0xff, '\n'}, post.MostLetter/4)
	if err := o.Put(within(t), b.Name(), m); err != nil {
		t.Fatal(err)
	}
	if got := next(t, b); got != string(m) {
		t.Errorf("%d bytes of %d", len(got), len(m))
	}
}

func rehearsed(t *testing.T, r *Rig) {
	if err := post.Rehearse(within(t), r.Office(t)); err != nil {
		t.Error(err)
	}
}
