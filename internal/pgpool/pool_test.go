package pgpool_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/pgpool"
	"github.com/pawl-run/pawl/internal/pgpool/pgpooltest"
)

func server(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("PAWL_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("NOT TESTED: PAWL_TEST_POSTGRES names no PostgreSQL. Run `eval \"$(scripts/services up)\"` first.")
	}
	return dsn
}

const size = 4

// open opens a pool of four through a proxy.
func open(t *testing.T, limits pgpool.Limits) (*pgpool.Pool, *pgpooltest.Proxy) {
	t.Helper()
	proxy, dsn := pgpooltest.New(t, server(t))
	cfg, err := pgpool.Parse(dsn, limits)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pgpool.Open(t.Context(), cfg, size, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, proxy
}

// useAll uses all connections of the pool concurrently, and returns the error of each use.
func useAll(t *testing.T, p *pgpool.Pool) (all [size]error) {
	t.Helper()
	var have, done sync.WaitGroup
	have.Add(size)
	for i := range all {
		done.Go(func() {
			first := sync.OnceFunc(have.Done)
			defer first()
			all[i] = p.Use(t.Context(), func(ctx context.Context, c *pgpool.Conn) error {
				first()
				have.Wait()
				_, err := c.Exec(ctx, `SELECT 1`)
				return err
			})
		})
	}
	done.Wait()
	return all
}

// brief returns limits for tests, of a pool that pings each connection before its use, or none.
func brief(pings bool) pgpool.Limits {
	l := pgpool.Limits{Ping: 700 * time.Millisecond, Answer: 3 * time.Second, Unacknowledged: time.Minute, Idle: time.Hour}
	if pings {
		l.Idle = time.Nanosecond
	}
	return l
}

// A pool whose connections have all become silent works again as soon as one use has found it out.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	for _, how := range pgpooltest.Silences() {
		t.Run("idle and "+string(how), func(t *testing.T) {
			t.Parallel()
			limits := brief(true)
			limits.Ping, limits.Answer = 10*time.Second, time.Minute // longer than a busy machine takes for the rest
			p, proxy := open(t, limits)
			for _, err := range useAll(t, p) {
				if err != nil {
					t.Fatal(err)
				}
			}
			proxy.Silence(t, how)
			began := time.Now()
			if err := p.Use(t.Context(), func(ctx context.Context, c *pgpool.Conn) error { return c.Ping(ctx) }); err != nil {
				t.Errorf("the first use: %v", err)
			}
			for _, err := range useAll(t, p) { // without pinging each dead connection one after another
				if err != nil {
					t.Errorf("the next uses: %v", err)
				}
			}
			if took := time.Since(began); took > (size-1)*limits.Ping {
				t.Errorf("it took %s: nearly a ping of each of the %d connections", took, size)
			}
		})
		t.Run("busy and "+string(how), func(t *testing.T) {
			t.Parallel()
			p, proxy := open(t, brief(false))
			for _, err := range useAll(t, p) {
				if err != nil {
					t.Fatal(err)
				}
			}
			proxy.Silence(t, how)
			began := time.Now()
			for _, err := range useAll(t, p) {
				if !errors.Is(err, pgpool.ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("use of a silent connection: %v, want %v", err, pgpool.ErrNoAnswer)
				}
			}
			if took := time.Since(began); took < 2*time.Second || took > 45*time.Second {
				t.Errorf("the uses took %s, want about 3 s, and not the minute after which bytes count as unacknowledged", took)
			}
			for _, err := range useAll(t, p) {
				if err != nil {
					t.Errorf("after that: %v", err)
				}
			}
		})
	}
}

// If sent bytes are not acknowledged, the kernel reports it long before an answer is late.
func TestUnacknowledged(t *testing.T) {
	t.Parallel()
	all := pgpooltest.Silences()
	if all[len(all)-1] != pgpooltest.Unacknowledged {
		t.Skip("NOT TESTED: packets cannot be dropped on this system")
	}
	p, proxy := open(t, pgpool.Limits{Answer: time.Minute, Unacknowledged: 500 * time.Millisecond, Idle: time.Hour})
	proxy.Silence(t, pgpooltest.Unacknowledged)
	began := time.Now()
	err := p.Use(t.Context(), func(ctx context.Context, c *pgpool.Conn) error { return c.Ping(ctx) })
	if took := time.Since(began); !errors.Is(err, pgpool.ErrNoAnswer) || took > 45*time.Second {
		t.Errorf("after %s: %v, want %v", took, err, pgpool.ErrNoAnswer)
	}
}

// A caller who gives up gets its own error, and the connections of others stay.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	p, _ := open(t, pgpool.Limits{Idle: time.Hour})
	beside, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := beside.Conn.Conn().PgConn().PID()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = p.Use(ctx, func(ctx context.Context, c *pgpool.Conn) error {
		_, err := c.Exec(ctx, `SELECT pg_sleep(60)`)
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, pgpool.ErrNoAnswer) {
		t.Errorf("use: %v, want the caller's deadline", err)
	}
	beside.Release()
	again, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Release()
	if now := again.Conn.Conn().PgConn().PID(); now != pid {
		t.Errorf("connection %d was replaced by %d", pid, now)
	}
}

// Waiting for a connection ends, and if the caller gives up in the meantime, with the caller's error.
func TestAllInUse(t *testing.T) {
	t.Parallel()
	p, _ := open(t, brief(false))
	for range size {
		c, err := p.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	if _, err := p.Acquire(t.Context()); !errors.Is(err, pgpool.ErrNoAnswer) {
		t.Errorf("acquire: %v, want %v", err, pgpool.ErrNoAnswer)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("acquire: %v, want %v", err, context.Canceled)
	}
}

// If a caller gives up while a connection is pinged, the next caller gets the result.
func TestGivenUpPing(t *testing.T) {
	t.Parallel()
	p, proxy := open(t, brief(true))
	for _, err := range useAll(t, p) {
		if err != nil {
			t.Fatal(err)
		}
	}
	proxy.Silence(t, pgpooltest.Swallowed)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire: %v, want the caller's deadline", err)
	}
	for _, err := range useAll(t, p) {
		if err != nil {
			t.Errorf("after that: %v", err)
		}
	}
}
