package worker

import (
	"context"
	"testing"

	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
)

// While there is more work than slots, the first goroutine requests all free slots, because one large call is cheapest, and the others
// none; until less than a share is free, or was returned.
func TestAskInAFlood(t *testing.T) {
	const slots, share = 10, 5
	w, err := New(Options{Handoff: struct{ handoff.Handoff }{}, Handlers: task.Passes(nil), Slots: slots})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(first bool, want int) {
		t.Helper()
		ctx := t.Context()
		if want == 0 { // it would wait
			ended, cancel := context.WithCancel(ctx)
			defer context.AfterFunc(ended, w.wakeWaiting)()
			go cancel()
			ctx = ended
		}
		if n := w.awaitSlots(ctx, first, share, func() bool { return true }); n != want {
			t.Errorf("asks for %d, not %d; first: %t", n, want, first)
		}
	}
	ask(true, 5)
	w.takeReturned(5, 5, share)
	ask(true, 10)
	ask(false, 0)
	w.takeReturned(10, 10, share)
	ask(false, 0)
	for range 9 {
		w.occupy()
	}
	ask(true, 1)
	w.release()
	ask(false, 1)
	w.takeReturned(1, 1, share)
	w.takeReturned(1, 1, share)
	for range 8 {
		w.release()
	}
	ask(true, 5)
	ask(false, 5)
	w.takeReturned(5, 4, share)
	w.takeReturned(5, 5, share)
	ask(true, 10)
	w.takeReturned(10, 9, share)
	ask(true, 5)
	ask(false, 5)
}
