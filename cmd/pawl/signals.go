package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// interrupts are what Ctrl-C and SIGTERM do: end the context, unless somebody counts them.
type interrupts struct {
	pressed chan struct{}
	counted atomic.Bool
	cancel  context.CancelCauseFunc
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
	if !i.counted.Load() {
		i.cancel(&exit{code: exitInterrupted})
		return
	}
	select {
	case i.pressed <- struct{}{}:
	default: // nobody needs to know of a ninth
	}
}

// interruptions takes over the counting: from now on they no longer end the context that interruptible gave.
func interruptions(ctx context.Context) *interrupts {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		i = &interrupts{pressed: make(chan struct{}, 8)}
	}
	i.counted.Store(true)
	return i
}
