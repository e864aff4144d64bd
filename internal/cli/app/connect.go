package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
)

// mode is the purpose for which a command needs an engine.
type mode int

const (
	Reading mode = iota // to read and change executions: no workers are needed
	Working             // to run work
)

// Session is a connection to an engine: in this process, in another one on the same state directory, or at a server.
type Session struct {
	*client.Client
	Embedded bool // the engine is in this process
	joined   bool // the engine is in another process on the same state directory, and may end with it

	// Key is the idempotency key for submissions through another process. That process may end before it answers; the submission is then
	// repeated with the next engine on the same database, and must not be made twice. It is empty for other connections.
	Key string

	mu    sync.Mutex
	here  *instance.Instance
	using *os.File // an open file whose lock keeps the other process's engine running; nil without such a process

	lost context.Context // ends when the engine in this process has ended by itself; its cause is the reason
	lose context.CancelCauseFunc
}

// newSession makes a connection from a client. r is the instance if the engine is in this process, else nil.
func newSession(c *client.Client, r *instance.Instance) *Session {
	s := &Session{Client: c, Embedded: r != nil, here: r}
	s.lost, s.lose = context.WithCancelCause(context.Background())
	if r != nil {
		r.OnEnd(s.lose)
	}
	return s
}

// Within returns a context that also ends when the engine in this process has ended, because no call would be answered after that.
func (s *Session) Within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.lost, func() { cancel(context.Cause(s.lost)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Close ends the connection, and the engine if it is in this process.
func (s *Session) Close() {
	s.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here != nil {
		s.here.Close()
	}
}

// take replaces the connection with next.
func (s *Session) take(next *Session) {
	s.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Client, s.Embedded, s.joined, s.here, s.using = next.Client, next.Embedded, next.joined, next.here, next.using
	context.AfterFunc(next.lost, func() { s.lose(context.Cause(next.lost)) })
}

// connect finds the engine to use: that of the named server, that of the process that works on the state directory, or one
// in this process.
func (a *App) connect(ctx context.Context, m mode) (*Session, error) {
	if url := a.Config.Text("server"); url != "" {
		c, err := client.New(url, client.WithToken(a.Config.Text("token")), client.WithUserAgent("pawl/"+Version()), client.WithOnRetry(a.sayRetries()))
		if err != nil {
			return nil, exit.Usagef("%v", err)
		}
		if err := reached(ctx, c); err != nil {
			return nil, err
		}
		return newSession(c, nil), nil
	}
	dir := a.Config.Text("state_dir")
	var waits instance.Owner
	var deadline time.Time
	for {
		lock, err := instance.LockState(dir)
		if err == nil {
			r, err := instance.Open(ctx, lock, a.Hosting(instance.Options{Works: m == Working, Drains: time.Second}))
			if err != nil {
				return nil, err
			}
			return newSession(r.Client(), r), nil
		}
		if !errors.Is(err, instance.ErrHeld) {
			return nil, err
		}
		if s, err := join(ctx, dir, m); s != nil || err != nil {
			return s, err
		}
		switch o := instance.ReadOwner(dir); {
		case deadline.IsZero() || o.PID != waits.PID:
			waits, deadline = o, time.Now().Add(patience)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("the state directory %s is held by %s, which does not answer: stop it, or use another with --state-dir", dir, o)
		}
		if err := instance.WaitFor(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// patience is how long a command waits for a process that holds the state directory and cannot be joined, because it is
// starting or ending, or is a command that only reads.
const patience = 30 * time.Second

// sayRetries reports to the user that the server is away, or cannot work, for longer than a restart takes: once per outage.
func (a *App) sayRetries() func(err error, since, until time.Time) {
	const moment = 2 * time.Second
	var mu sync.Mutex
	var said time.Time // until when the reported retries last
	return func(err error, since, until time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(since) < moment || now.Before(said) {
			return
		}
		said = until
		fmt.Fprintf(&a.logTo, "pawl: %v; trying again for another %s\n", err, time.Until(until).Round(time.Second))
	}
}

// reached checks that a server answers. A user who named a wrong server learns that at once, and not after the client has
// retried for as long as a restart may take.
func reached(ctx context.Context, c *client.Client) error {
	const within = time.Second
	for begun := time.Now(); ; {
		err := c.Ready(ctx)
		var answer *api.Problem
		if err == nil || errors.As(err, &answer) {
			return nil
		}
		if time.Since(begun) > within {
			return err
		}
		if err := instance.WaitFor(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// Following runs do. If the process with the engine ends, it runs do again on a new connection, possibly with an engine in this
// process.
func (a *App) Following(ctx context.Context, s *Session, do func() error) error {
	for {
		err := do()
		var refused *api.Problem
		if err == nil || !s.joined || ctx.Err() != nil || errors.As(err, &refused) && refused.Status != http.StatusServiceUnavailable {
			return err
		}
		a.Logger().Debug("the engine's process is gone", "err", err)
		next, err := a.connect(ctx, Working)
		if err != nil {
			return err
		}
		s.take(next)
	}
}

// Hosting completes the options of an instance in this process.
func (a *App) Hosting(o instance.Options) instance.Options {
	o.Config, o.Log, o.Say, o.Getenv, o.Version = &a.Config, a.Logger(), a.Say, a.Getenv, Version()
	return o
}

// WithClient connects, calls do, and closes the connection. If the engine in this process ends by itself, that is the error.
func (a *App) WithClient(ctx context.Context, m mode, do func(context.Context, *Session) error) error {
	ctx, stop := Interruptible(ctx)
	defer stop()
	s, err := a.connect(ctx, m)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, release := s.Within(ctx)
	defer release()
	err = do(ctx, s)
	if err != nil && s.lost.Err() != nil {
		return context.Cause(s.lost)
	}
	if !errors.Is(err, ErrInterrupted) { // after a second Ctrl-C the command waits for nothing
		a.stayForOthers(ctx, s)
	}
	return err
}

func (s *Session) Current() *client.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Client
}
