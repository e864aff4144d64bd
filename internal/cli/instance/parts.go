package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/internal/cli/exit"
)

// Parts are the services that a process runs side by side: an engine, listeners, a worker. A part that ends before it is
// stopped ends the process. Without that part the process would run on and do no work, and no supervisor would restart it.
type Parts struct {
	group *errgroup.Group
	ended context.Context // ends with the first part that ends by itself; its cause names the part and the reason
	log   *slog.Logger
}

func NewParts(log *slog.Logger) *Parts {
	group, ended := errgroup.WithContext(context.Background())
	return &Parts{group, ended, log}
}

// Start runs a part. stop ends its context and waits until it has returned. Parts are stopped one after another, the worker
// before the engine that records its reports, and so do not share a context.
func (p *Parts) Start(name string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	p.group.Go(func() error {
		defer close(done)
		err := run(ctx)
		switch {
		case ctx.Err() != nil && err != nil:
			p.log.Error("a part of the process did not end well", "part", name, "err", err)
		case ctx.Err() == nil && err == nil:
			err = errors.New("it gives no reason")
		}
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%s has ended: %w", name, err)
	})
	return func() {
		cancel()
		<-done
	}
}

// Within returns a context that also ends with the first part that ends by itself.
func (p *Parts) Within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ended, func() { cancel(p.Failure()) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Failure is the error with which the process must end because a part has ended by itself; nil if none has.
func (p *Parts) Failure() error {
	if p.ended.Err() == nil {
		return nil
	}
	return &exit.Error{Code: exit.General, Err: context.Cause(p.ended)}
}
