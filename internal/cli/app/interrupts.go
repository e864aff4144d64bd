package app

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"errors"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// interrupts handles Ctrl-C and SIGTERM: they end the context, unless a command counts them.
type interrupts struct {
	Pressed chan struct{}
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	counted bool
}

type interruptsKey struct{}

// Interruptible returns a context that ends at Ctrl-C and SIGTERM, and a function that undoes that.
func Interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	i := &interrupts{Pressed: make(chan struct{}, 8), cancel: cancel}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				i.Press()
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

func (i *interrupts) Press() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.counted {
		i.cancel(&exit.Error{Code: exit.Interrupted})
		return
	}
	select {
	case i.Pressed <- struct{}{}:
	default: // no command counts more than eight
	}
}

// Interruptions delivers interruptions to the caller; they no longer end the context that Interruptible returned. If one has
// just ended the context, it is the first to be delivered.
func Interruptions(ctx context.Context) *interrupts {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		i = &interrupts{Pressed: make(chan struct{}, 8)}
	}
	i.mu.Lock()
	i.counted = true
	i.mu.Unlock()
	if ok && ctx.Err() != nil {
		i.Press()
	}
	return i
}

// ErrInterrupted is the error of a command that a second Ctrl-C ends.
var ErrInterrupted = &exit.Error{Code: exit.Interrupted,
	Err: errors.New("killed; running work is gone, and the next pawl run or pawl server on the same state directory goes on with the rest")}
