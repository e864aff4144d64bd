package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/pgpool"
	"github.com/pawl-run/pawl/internal/pgpool/pgpooltest"
	"github.com/pawl-run/pawl/internal/store"
)

// brief returns a tenth of the limits in production. Connections are pinged before each use, as after a quiet time, or never.
func brief(quiet bool) pgpool.Limits {
	l := pgpool.Limits{Connect: time.Second, Ping: 300 * time.Millisecond, Answer: 3500 * time.Millisecond,
		Unacknowledged: 1500 * time.Millisecond, Quiet: 2 * time.Second, Idle: time.Hour}
	if quiet {
		l.Idle = time.Nanosecond
	}
	return l
}

// within is a tenth of the 45 s that production guarantees, with some tolerance for a busy machine.
const within = 10 * time.Second

// tenths are the multiples of a tenth of production's limits that tests try one after the other, until the machine is fast enough, for
// example to open a connection in a second.
var tenths = []time.Duration{1, 3, 10}

// overSilence opens a store through a proxy and uses all its connections once.
func overSilence(t *testing.T, quiet bool) (*Store, *pgpooltest.Proxy) {
	t.Helper()
	var err error
	for _, n := range tenths {
		s, proxy, failed := openOverSilence(t, times(brief(quiet), n))
		if failed == nil {
			return s, proxy
		}
		err = failed
	}
	t.Fatal(err)
	return nil, nil
}

// times multiplies limits.
func times(limits pgpool.Limits, n time.Duration) pgpool.Limits {
	for _, limit := range []*time.Duration{&limits.Connect, &limits.Ping, &limits.Answer, &limits.Unacknowledged, &limits.Quiet} {
		*limit *= n
	}
	return limits
}

func openOverSilence(t *testing.T, limits pgpool.Limits) (*Store, *pgpooltest.Proxy, error) {
	t.Helper()
	schema := emptySchema(t) // dropped after the proxy has ended the silent transactions
	proxy, dsn := pgpooltest.New(t, server(t))
	s, err := Open(t.Context(), dsn, Options{Schema: schema, Limits: limits})
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, pool := range []*pgpool.Pool{s.readers, s.writers} {
		var all []*pgpool.Conn
		for len(all) < defaultConnections && err == nil {
			var c *pgpool.Conn
			if c, err = pool.Acquire(t.Context()); err == nil {
				all = append(all, c)
			}
		}
		for _, c := range all {
			c.Release()
		}
	}
	return s, proxy, err
}

// sampleCalls returns calls of every kind.
func (s *Store) sampleCalls() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Update": func(ctx context.Context) error {
			return s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Now(ctx)
				return err
			})
		},
		"LiveSessions": func(ctx context.Context) error { _, err := s.LiveSessions(ctx); return err },
		"Provisioning": func(ctx context.Context) error { _, err := s.Provisioning(ctx, flow.ID{}, flow.ID{}, 10); return err },
		"Survey":       func(ctx context.Context) error { _, err := s.Survey(ctx); return err },
		"Definitions":  func(ctx context.Context) error { _, err := s.Definitions(ctx, "", 10); return err },
		"AppendLogs": func(ctx context.Context) error {
			return s.AppendLogs(ctx, []flow.LogChunk{{Execution: flow.ID{1}, Attempt: 1, Stream: "stdout", Data: []byte("x"), Size: 1}})
		},
		"Check": func(ctx context.Context) error { _, err := s.Check(ctx); return err },
		"Ready": s.Ready,
	}
}

// Connections that stop responding, as when the primary's host dies and a standby takes over, cost a quiet store only a short wait, and a
// busy one an error for the calls in progress. Afterwards everything works again. If the machine is too busy for a tenth of production's
// limits, for example to open a connection in a second, three tenths are tried, and then the whole limits.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, how := range pgpooltest.Silences() {
		for name, quiet := range map[string]bool{"quiet": true, "busy": false} {
			t.Run(name+" and "+string(how), func(t *testing.T) {
				t.Parallel()
				for _, tenths := range tenths {
					late := silence(t, how, quiet, tenths)
					if len(late) == 0 {
						return
					}
					say := t.Logf
					if tenths == 10 {
						say = t.Errorf
					}
					for _, what := range late {
						say("at %d tenths: %s", tenths, what)
					}
				}
			})
		}
	}
}

// silence makes the connections of a store stop responding, and returns what took longer than the given tenths of production's limits
// allow.
func silence(t *testing.T, how pgpooltest.Silence, quiet bool, tenths time.Duration) (late []string) {
	t.Helper()
	limits := times(brief(quiet), tenths)
	s, proxy, err := openOverSilence(t, limits)
	if err != nil {
		return []string{err.Error()}
	}
	proxy.Silence(t, how)
	began := time.Now()
	var mu sync.Mutex
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		late = append(late, fmt.Sprintf(format, args...))
	}
	var all sync.WaitGroup
	for what, call := range s.sampleCalls() {
		all.Go(func() {
			err := call(context.Background())                 // like the committer's, whose context does not end
			took, ready := time.Since(began), what == "Ready" // Ready has less time than the others
			switch {
			case err != nil && (!errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)):
				t.Errorf("%s: %v, want %v", what, err, store.ErrUnavailable)
			case took > within*tenths, ready && took > limits.Answer:
				note("%s took %s: %v", what, took, err)
			case err != nil && quiet && !ready:
				note("%s: %v", what, err)
			}
		})
	}
	all.Wait()
	for what, call := range s.sampleCalls() {
		err := call(t.Context())
		switch {
		case err != nil && !errors.Is(err, store.ErrUnavailable):
			t.Errorf("%s, afterwards: %v", what, err)
		case err != nil:
			note("%s, afterwards: %v", what, err)
		}
	}
	return late
}

// A transaction that finds no free connection ends like one whose server does not answer.
func TestNoFreeConnection(t *testing.T) {
	t.Parallel()
	s, _ := overSilence(t, false)
	for range defaultConnections {
		c, err := s.writers.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	err := s.Update(context.Background(), func(context.Context, store.Tx) error {
		t.Error("it has begun")
		return nil
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("update: %v, want %v", err, store.ErrUnavailable)
	}
}

// A commit that is sent on a connection that has stopped responding may have been executed.
func TestSilenceAtCommit(t *testing.T) {
	t.Parallel()
	s, proxy := overSilence(t, false)
	d := draft(1)
	err := s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.Now(ctx); err != nil {
			return err
		}
		proxy.Silence(t, pgpooltest.Swallowed)
		return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
	})
	if !errors.Is(err, store.ErrUnknown) {
		t.Errorf("the commit: %v, want %v", err, store.ErrUnknown)
	}
}

// A decision that fails while its connection does not respond does not wait a round trip for the ROLLBACK.
func TestSilenceAtRollback(t *testing.T) {
	t.Parallel()
	s, proxy := overSilence(t, false)
	wrong := errors.New("decided otherwise")
	var began time.Time
	err := s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.Now(ctx); err != nil {
			return err
		}
		proxy.Silence(t, pgpooltest.Swallowed)
		began = time.Now()
		return wrong
	})
	if took := time.Since(began); !errors.Is(err, wrong) || took > brief(false).Answer {
		t.Errorf("after %s: %v, want %v", took, err, wrong)
	}
}

// Servers receive each other's notifications again after their connections for notifications stopped responding, on the sender's side as
// well as on the receiver's.
func TestSilenceOfNotifications(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"sender", "receiver"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			s, proxy := overSilence(t, true)
			direct := open(t, server(t), s.name)
			sender, receiver := direct, s
			if which == "sender" {
				sender, receiver = s, direct
			}
			heard, err := receiver.Notifications(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sent, since := byte(0), byte(0)
			send := func() bool { // returns whether the receiver gets it, or one that was sent since the silence before it
				sent++
				d := draft(sent)
				if err := sender.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
					return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
				}); err != nil {
					t.Fatal(err)
				}
				for late := time.After(200 * time.Millisecond); ; {
					select {
					case n := <-heard:
						for one := since + 1; one <= sent; one++ {
							if slices.Contains(n.Executions, draft(one).ID) {
								return true
							}
						}
					case <-late:
						return false
					}
				}
			}
			until(t, send)
			proxy.Silence(t, pgpooltest.Swallowed)
			began := time.Now()
			since = sent
			until(t, send)
			if took := time.Since(began); took > within {
				t.Errorf("it took %s", took)
			}
		})
	}
}
