package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/pawl-run/pawl/internal/cli/exit"
)

// interrupts are what Ctrl-C and SIGTERM do: end the context, unless a command counts them.
type interrupts struct {
	pressed chan struct{}
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	counted bool
}

type interruptsKey struct{}

// interruptible gives a context that ends with Ctrl-C or SIGTERM, and what takes that back.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	i := &interrupts{pressed: make(chan struct{}, 8), cancel: cancel}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				i.press()
			case <-over:
				return
			}
		}
	}()
	return context.WithValue(ctx, interruptsKey{}, i), func() {
		signal.Stop(signals)
		close(over)
		cancel(nil)
	}
}

// press is one interruption.
func (i *interrupts) press() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.counted {
		i.cancel(&exit.Error{Code: exit.Interrupted})
		return
	}
	select {
	case i.pressed <- struct{}{}:
	default: // nobody needs to know of a ninth
	}
}

// interruptions takes over the counting: from now on they no longer end the context that interruptible gave. One that has
// ended it just before is the first.
func interruptions(ctx context.Context) *interrupts {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		i = &interrupts{pressed: make(chan struct{}, 8)}
	}
	i.mu.Lock()
	i.counted = true
	i.mu.Unlock()
	if ok && ctx.Err() != nil {
		i.press()
	}
	return i
}
