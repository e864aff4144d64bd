package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// ownDatabase returns the DSN of a database for this test, whose counters no other test changes.
func ownDatabase(t *testing.T) string {
	t.Helper()
	dsn, name := server(t), fmt.Sprintf("test_%016x", rand.Uint64())
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, dsn, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, dsn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", c.User, c.Password, c.Host, c.Port, name)
}

// deadlocks returns how many deadlocks PostgreSQL has found in a database after all its other connections have ended.
func deadlocks(t *testing.T, dsn string) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for others := 1; others > 0; <-tick.C { // the counters of a connection are added when it ends
		err := c.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
			AND backend_type = 'client backend'`).Scan(&others)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := c.QueryRow(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// meeting makes two transactions wait for each other in the middle, once: their repetitions do not wait.
type meeting struct {
	once [2]sync.Once
	here sync.WaitGroup
}

func newMeeting() *meeting {
	m := &meeting{}
	m.here.Add(2)
	return m
}

func (m *meeting) come(i int) {
	m.once[i].Do(func() {
		m.here.Done()
		m.here.Wait()
	})
}

// step is a part of a decision.
type step func(context.Context, store.Tx) error

// counted returns an error unless as many were found as expected.
func counted(what string, got, want int, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("%s: got %d, want %d", what, got, want)
	}
	return err
}

func lockThese(ids ...flow.ID) step {
	return func(ctx context.Context, tx store.Tx) error {
		xs, err := tx.Lock(ctx, ids, store.WithoutPayload)
		return counted("lock", len(xs), len(ids), err)
	}
}

func lockKey(name string) step {
	return func(ctx context.Context, tx store.Tx) error {
		use, err := tx.LockKeys(ctx, []string{name})
		return counted("keys", len(use), 1, err)
	}
}

func lockLine(key string) step {
	return func(ctx context.Context, tx store.Tx) error {
		xs, err := tx.WaitList(ctx, key, 10)
		return counted("line", len(xs), 1, err)
	}
}

func lockSeat(session flow.ID) step {
	return func(ctx context.Context, tx store.Tx) error {
		_, _, err := tx.LockSession(ctx, session)
		return err
	}
}

func lockOwned(session flow.ID) step {
	return func(ctx context.Context, tx store.Tx) error {
		xs, err := tx.OwnedBy(ctx, session, flow.ID{}, 10)
		return counted("owned", len(xs), 1, err)
	}
}

func renew(session flow.ID) step {
	return func(ctx context.Context, tx store.Tx) error {
		renewed, err := tx.RenewSessions(ctx, []flow.ID{session}, time.Hour)
		return counted("sessions", len(renewed), 1, err)
	}
}

func endLease(session flow.ID) step {
	return func(ctx context.Context, tx store.Tx) error {
		_, err := tx.EndLeases(ctx, []flow.ID{session})
		return err
	}
}

func drop(session flow.ID) step {
	return func(ctx context.Context, tx store.Tx) error { return tx.DropSession(ctx, session) }
}

// lockSeatIfThere is lockSeat for a session that the other transaction may have dropped.
func lockSeatIfThere(session flow.ID) step {
	return func(ctx context.Context, tx store.Tx) error {
		if err := lockSeat(session)(ctx, tx); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return nil
	}
}

func lockSchedule(name string) step {
	return func(ctx context.Context, tx store.Tx) error {
		all, err := tx.LockSchedules(ctx, []string{name}, false)
		return counted("schedules", len(all), 1, err)
	}
}

// passSchedule locks a schedule unless another transaction has locked it.
func passSchedule(name string) step {
	return func(ctx context.Context, tx store.Tx) error {
		_, err := tx.LockSchedules(ctx, []string{name}, true)
		return err
	}
}

// switchNext puts the next version of a rule into force.
func switchNext(name string) step {
	return func(ctx context.Context, tx store.Tx) error {
		_, last, err := tx.LatestSwitches(ctx, []string{name})
		if err != nil {
			return err
		}
		return tx.Apply(ctx, store.Delta{Rules: store.RuleRows{Switches: []store.Switch{{Generation: last + 1, Name: name, Version: int(last) + 1, At: time.Now()}}}})
	}
}

func define(name string) step {
	return func(ctx context.Context, tx store.Tx) error {
		_, _, err := tx.Define(ctx, store.Definition{Name: name, Kind: "rule", Hash: [32]byte{byte(time.Now().UnixNano()), 1}, Document: []byte(`{}`), CreatedAt: time.Now()})
		return err
	}
}

// Two transactions that lock the same rows in opposite orders both commit, and PostgreSQL never has to end one of them because of a
// deadlock.
func TestLockOrder(t *testing.T) {
	t.Parallel()
	dsn := ownDatabase(t)
	var stores [2]*Store
	for i := range stores {
		s, err := Open(t.Context(), dsn, Options{})
		if err != nil {
			t.Fatal(err)
		}
		stores[i] = s
	}
	update := func(do step) {
		t.Helper()
		if err := stores[0].Update(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	made := byte(0)
	id := func() flow.ID { made++; return flow.ID{1: 7, 15: made} }
	session := func() flow.ID {
		s := store.Session{ID: id(), Name: "w"}
		update(func(ctx context.Context, tx store.Tx) error { return tx.OpenSession(ctx, s, time.Hour) })
		return s.ID
	}
	// execution stores an execution that a session holds, or that waits for a key.
	execution := func(key string, owner flow.ID) flow.ID {
		d := flow.Submit(id(), flow.Request{Action: "noop", Kind: flow.KindNoop, Queue: "default", Key: key, KeyLimit: 1, CreatedAt: now})
		var err error
		if owner.IsZero() {
			err = d.Wait(1, now)
		} else if err = d.Schedule(1, now); err == nil {
			err = d.Claim(owner, "w", now)
		}
		if err != nil {
			t.Fatal(err)
		}
		update(func(ctx context.Context, tx store.Tx) error {
			return tx.Apply(ctx, store.Delta{Drafts: []*flow.Draft{d}})
		})
		return d.ID
	}
	s1, s2, s3, s4 := session(), session(), session(), session()
	s5, s6, s7 := session(), session(), session()
	a, b, waits := execution("", s1), execution("", s2), execution("line", flow.ID{})
	for _, key := range []string{"line", "old 1", "old 2"} {
		update(lockKey(key))
	}
	for _, name := range []string{"x", "y"} {
		update(func(ctx context.Context, tx store.Tx) error {
			return tx.Apply(ctx, store.Delta{Schedules: store.ScheduleRows{Written: []store.Schedule{{Name: name, Version: 1}}}})
		})
	}
	crossed := func(x, y step) [2][2]step { return [2][2]step{{x, y}, {y, x}} }
	for name, ways := range map[string][2][2]step{
		"executions":            crossed(lockThese(a), lockThese(b)),
		"keys":                  crossed(lockKey("old 1"), lockKey("old 2")),
		"new keys":              crossed(lockKey("new 1"), lockKey("new 2")),
		"a new and an old key":  crossed(lockKey("new 3"), lockKey("old 1")),
		"key and execution":     crossed(lockKey("old 1"), lockThese(a)),
		"sessions":              crossed(renew(s1), renew(s2)),
		"a claim and a renewal": crossed(lockSeat(s1), renew(s2)),
		"session and execution": crossed(lockSeat(s1), lockThese(b)),
		"recovery and report":   {{renew(s1), lockOwned(s1)}, {lockThese(a), lockSeat(s1)}},
		"line and cancel":       {{lockKey("line"), lockLine("line")}, {lockThese(waits), lockKey("line")}},
		"two changes of a seat": {{lockSeat(s1), renew(s1)}, {lockSeat(s1), renew(s1)}},
		"a claim and an end":    crossed(lockSeat(s1), endLease(s3)),
		"two ends":              crossed(endLease(s3), endLease(s4)),
		"a claim and a drop":    {{lockKey("old 1"), drop(s5)}, {lockSeatIfThere(s5), lockKey("old 1")}},
		"two drops":             crossed(drop(s6), drop(s7)),
		"schedules":             crossed(lockSchedule("x"), lockSchedule("y")),
		"schedule and key":      crossed(lockSchedule("x"), lockKey("old 1")),
		"schedule, execution":   crossed(lockSchedule("x"), lockThese(a)),
		"a tick and a key":      {{passSchedule("x"), lockKey("old 1")}, {lockKey("old 1"), lockSchedule("x")}},
		"a tick, an execution":  {{passSchedule("x"), lockThese(a)}, {lockThese(a), lockSchedule("x")}},
		"switch and key":        crossed(switchNext("rule:s"), lockKey("old 1")),
		"switch and execution":  crossed(switchNext("rule:s"), lockThese(a)),
		"switch and schedule":   crossed(switchNext("rule:s"), lockSchedule("x")),
		"switch and definition": crossed(switchNext("rule:s"), define("rule:s")),
		"definition and key":    crossed(define("rule:t"), lockKey("old 2")),
	} {
		m := newMeeting()
		var both sync.WaitGroup
		for i, s := range stores {
			both.Go(func() {
				var err error
				for range 3 { // one of two that write the same version, or the same generation, is decided again
					err = s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
						if err := ways[i][0](ctx, tx); err != nil {
							return err
						}
						m.come(i)
						return ways[i][1](ctx, tx)
					})
					if !errors.Is(err, store.ErrConflict) {
						break
					}
				}
				if err != nil {
					t.Errorf("%s, way %d: %v", name, i+1, err)
				}
			})
		}
		both.Wait()
	}
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := deadlocks(t, dsn); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// Transactions that claim for a session while it is renewed run concurrently again afterwards: if each waited for the previous one, the
// next would come meanwhile, and they would stay serialized.
func TestClaimsBesideARenewal(t *testing.T) {
	t.Parallel()
	s := open(t, server(t), emptySchema(t))
	seat := store.Session{ID: flow.ID{1}, Name: "w"}
	if err := s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error { return tx.OpenSession(ctx, seat, time.Hour) }); err != nil {
		t.Fatal(err)
	}
	var claims sync.WaitGroup
	var tried, here [2]sync.Once
	all, together := make(chan struct{}, 2), make(chan struct{}, 2)
	claim := func(i int) {
		err := s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, _, err := tx.LockSession(ctx, seat.ID)
			tried[i].Do(func() { all <- struct{}{} })
			if err != nil {
				return err
			}
			here[i].Do(func() { together <- struct{}{} })
			for deadline := time.After(30 * time.Second); len(together) < 2; {
				select {
				case <-deadline:
					return fmt.Errorf("claim %d has the session, and the other waits for it", i)
				case <-time.After(time.Millisecond):
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	err := s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := renew(seat.ID)(ctx, tx); err != nil {
			return err
		}
		for i := range 2 {
			claims.Go(func() { claim(i) })
		}
		<-all
		<-all
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	claims.Wait()
}

// A renewal does not wait for the claims of its session: PostgreSQL lets further claims share the lock while the renewal waits, so under a
// flood of claims it would come after the lease has expired. The end of a lease does wait, because a claim relies on the lease.
func TestRenewalBesideClaims(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	s := open(t, server(t), schema)
	do := func(steps ...step) error {
		return s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			for _, one := range steps {
				if err := one(ctx, tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	sessions := byte(0)
	session := func() flow.ID {
		sessions++
		seat := store.Session{ID: flow.ID{sessions}, Name: "w"}
		if err := do(func(ctx context.Context, tx store.Tx) error { return tx.OpenSession(ctx, seat, time.Hour) }); err != nil {
			t.Fatal(err)
		}
		return seat.ID
	}
	one := session()
	beside := func(other step) step { return func(context.Context, store.Tx) error { return do(other) } }
	if err := do(lockSeat(one), beside(renew(one)), beside(lockSeat(one))); err != nil {
		t.Errorf("a renewal and a claim beside a claim: %v", err)
	}
	if err := do(renew(one), beside(lockSeat(one))); err != nil {
		t.Errorf("a claim beside a renewal: %v", err)
	}
	for name, change := range map[string]func(flow.ID) step{"the end of a lease": endLease, "a drop": drop} {
		for holds, hold := range map[string]func(flow.ID) step{"a claim": lockSeat, "a renewal": renew} {
			session, done := session(), make(chan error, 1)
			err := do(hold(session), func(context.Context, store.Tx) error {
				go func() { done <- do(change(session)) }()
				return waitsForSessions(t, schema, done)
			})
			if err != nil {
				t.Errorf("%s beside %s: %v", name, holds, err)
			} else if err := <-done; err != nil {
				t.Errorf("%s after %s: %v", name, holds, err)
			}
		}
	}
}

// waitsForSessions waits until a transaction waits for the sessions of a schema, and fails if the transaction ends instead.
func waitsForSessions(t *testing.T, schema string, ended <-chan error) error {
	c, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for waiting := 0; waiting == 0; {
		select {
		case err := <-ended:
			return fmt.Errorf("it went through (%v)", err)
		case <-tick.C:
		}
		err := c.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%sessions%'`, schema).Scan(&waiting)
		if err != nil {
			return err
		}
	}
	return nil
}
