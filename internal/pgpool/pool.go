// Package pgpool opens connections to PostgreSQL whose uses all end, even if the server's host is gone and no packet reports it: after a
// fail-over, or when a firewall or a NAT has dropped a connection.
//
// Three mechanisms find a connection whose server no longer answers. An idle connection is pinged before it is used. Linux ends a
// connection whose packets are not acknowledged. And if another component acknowledges instead of the server, such as a load balancer, each
// round trip has a deadline longer than the server's limit for a statement. The first connection that is found silent empties the pool,
// because the other idle ones were opened to the same server.
package pgpool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// StatementTimeout is the server's time limit for one statement. It is much longer than any statement here takes.
const StatementTimeout = 30 * time.Second

// Limits are durations. A zero field has the value for production. With those, everything works again within 45 s after the server becomes
// reachable: a round trip on a silent connection ends after 35 s, the place of a connection whose caller gave up at the last moment is free
// 3 s later, and opening another one takes at most 5 s.
type Limits struct {
	// Connect is the limit for looking up a host and for opening a connection, each and for every host; 0 means 5 s.
	Connect time.Duration
	// Idle is how long a connection may be idle and still be used without a ping; 0 means 1 s.
	Idle time.Duration
	// Ping is the limit for operations without work for the server: answering a ping and closing a connection; 0 means 3 s.
	Ping time.Duration
	// Answer is the limit for waiting for a connection, and for one round trip; 0 means 35 s: the server ends a statement after
	// StatementTimeout, and its answer must arrive.
	Answer time.Duration
	// Unacknowledged is how long sent bytes may be unacknowledged by the peer's TCP, if the system can end a connection for it (Linux); 0
	// means 15 s.
	Unacknowledged time.Duration
	// Quiet is how long a listening connection may receive nothing before it is pinged; 0 means 20 s.
	Quiet time.Duration
}

// Filled returns the limits with the values for production in zero fields.
func (l Limits) Filled() Limits {
	fill := func(field *time.Duration, usual time.Duration) {
		if *field == 0 {
			*field = usual
		}
	}
	fill(&l.Connect, 5*time.Second)
	fill(&l.Idle, time.Second)
	fill(&l.Ping, 3*time.Second)
	fill(&l.Answer, StatementTimeout+5*time.Second)
	fill(&l.Unacknowledged, 15*time.Second)
	fill(&l.Quiet, 20*time.Second)
	return l
}

// ErrNoAnswer means that the server did not answer in time, or that no connection became free.
var ErrNoAnswer = errors.New("no answer from PostgreSQL in time")

// Pool is a pool of connections to one database. It is safe for concurrent use.
type Pool struct {
	pool   *pgxpool.Pool
	limits Limits
	resets atomic.Int64
}

type mark struct {
	resets int64 // resets of the pool when the connection was opened
	idled  bool  // idle for longer than the limit before its current use
}

const markKey = "pgpool"

func markOf(c *pgx.Conn) *mark { return c.PgConn().CustomData()[markKey].(*mark) }

// Open opens a pool of up to size connections and checks that the server answers. The config must be from Parse.
func Open(ctx context.Context, cfg *pgxpool.Config, size int, limits Limits) (*Pool, error) {
	p := &Pool{limits: limits.Filled()}
	cfg = cfg.Copy()
	cfg.MinConns, cfg.MaxConns = 0, int32(size)
	cfg.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		c.PgConn().CustomData()[markKey] = &mark{resets: p.resets.Load()}
		return nil
	}
	// Acquire pings instead of pgxpool, which would replace a silent connection without reporting it.
	cfg.ShouldPing = func(_ context.Context, a pgxpool.ShouldPingParams) bool {
		markOf(a.Conn).idled = a.IdleDuration > p.limits.Idle
		return false
	}
	var err error
	if p.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	if err := p.Use(ctx, func(ctx context.Context, c *Conn) error { return c.Ping(ctx) }); err != nil {
		p.pool.Close()
		return nil, err
	}
	return p, nil
}

func (p *Pool) Limits() Limits { return p.limits }

// Close closes the connections after their uses have ended.
func (p *Pool) Close() { p.pool.Close() }

type Conn struct {
	*pgxpool.Conn
	pool   *Pool
	silent bool
}

// Use runs f with a connection. Waiting for the connection and f together have the time limit of one round trip, which is the deadline of
// f's context.
func (p *Pool) Use(ctx context.Context, f func(context.Context, *Conn) error) error {
	bounded, cancel := context.WithTimeout(ctx, p.limits.Answer)
	defer cancel()
	c, err := p.acquire(ctx, bounded)
	if err != nil {
		return err
	}
	defer c.Release()
	return c.judge(ctx, bounded, f(bounded, c))
}

// Acquire returns a connection that answers, or ErrNoAnswer if there is none within the time limit of a round trip. It must be released.
func (p *Pool) Acquire(ctx context.Context) (*Conn, error) {
	bounded, cancel := context.WithTimeout(ctx, p.limits.Answer)
	defer cancel()
	return p.acquire(ctx, bounded)
}

func (p *Pool) acquire(ctx, bounded context.Context) (*Conn, error) {
	for {
		pc, err := p.pool.Acquire(bounded)
		if err != nil {
			if bounded.Err() != nil && ctx.Err() == nil {
				return nil, fmt.Errorf("%w: no connection within %s: all are in use, or none can be opened", ErrNoAnswer, p.limits.Answer)
			}
			return nil, err
		}
		c := &Conn{Conn: pc, pool: p}
		if !markOf(pc.Conn()).idled {
			return c, nil
		}
		switch alive, err := c.alive(bounded); {
		case err != nil && ctx.Err() == nil:
			return nil, fmt.Errorf("%w: no connection has answered within %s", ErrNoAnswer, p.limits.Answer)
		case err != nil:
			return nil, err
		case alive:
			return c, nil
		}
	}
}

// alive pings a connection, and releases it if it does not answer. The ping continues when the caller gives up, and shows whether the
// connection is good for the next one.
func (c *Conn) alive(ctx context.Context) (bool, error) {
	over := make(chan error, 1)
	go func() {
		over <- c.Within(context.WithoutCancel(ctx), c.pool.limits.Ping, c.Ping)
	}()
	select {
	case err := <-over:
		if err != nil {
			c.Release()
		}
		return err == nil, nil
	case <-ctx.Done():
		go func() {
			<-over
			c.Release()
		}()
		return false, ctx.Err()
	}
}

// Within runs f, whose context ends after d. If f ends because of that, or because of TCP's own timeout, the error is ErrNoAnswer.
func (c *Conn) Within(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return c.judge(ctx, bounded, f(bounded))
}

// judge decides whether an error means that the server is silent, and then makes the pool open new connections. The end of the caller's
// context is no evidence. The error hides the expired deadline, because it is not the caller's.
func (c *Conn) judge(caller, bounded context.Context, err error) error {
	if err == nil || caller.Err() != nil || !c.Conn.Conn().IsClosed() || bounded.Err() == nil && !pgconn.Timeout(err) {
		return err
	}
	c.silent = true
	if n := markOf(c.Conn.Conn()).resets; c.pool.resets.CompareAndSwap(n, n+1) {
		c.pool.pool.Reset()
	}
	return fmt.Errorf("%w: %v", ErrNoAnswer, err) //nolint:errorlint // the deadline is not one of the caller's
}

// Release returns the connection to the pool. A broken one is closed by asking the server, over a new connection, to cancel what the old
// one runs, which takes up to 15 s if the server does not answer. The place of a silent one in the pool is free at once, because four of
// these would leave none to work with. Otherwise it is free when the connection is closed, so that callers who give up do not make the pool
// grow, but at most after the time limit of a ping.
func (c *Conn) Release() {
	pg := c.Conn.Conn().PgConn()
	switch {
	case !pg.IsClosed():
		c.Conn.Release()
	case c.silent:
		c.Hijack()
	default:
		go func() {
			select {
			case <-pg.CleanupDone():
			case <-time.After(c.pool.limits.Ping):
			}
			c.Hijack()
		}()
	}
}
