package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// recoverBatch and recoverBreathe bound the cost for other requests when a session with very many executions is recovered: a transaction
	// of a millisecond, every few milliseconds, which is 1,500 executions a second.
	recoverBatch   = 10
	recoverBreathe = 5 * time.Millisecond
	// expiredPage bounds the lost sessions that are found at once. Sessions that could not be finished are added to it, so that they do not
	// displace new ones.
	expiredPage = 100
	// unstartedPage is how many executions that have not begun are read at once. Most of them are left unchanged.
	unstartedPage = 200
	// After a scan for them that took d, the next one starts unstartedPauseFactor·d later, at most unstartedPauseMost later. If an old
	// transaction keeps the database from removing dead rows, a scan reads every row that was held since.
	unstartedPauseFactor = 20
	unstartedPauseMost   = 5 * time.Minute
)

// sweepSessions recovers the executions of expired sessions, and hand-offs that never arrived, once after each read of watchPending.
//
// After a failed commit, or while the store does not answer, a round only checks that the store answers. Recovery begins in the round after
// a successful check. While the store was away, leases expired, and live workers hold reports of finished attempts: they must deliver these
// first, or the work would be done again.
func (e *Engine) sweepSessions(ctx context.Context) {
	down := false           // the store did not answer in the last round
	checked := false        // the last round has only checked the store, successfully
	var failures int64      // commits that had failed before the last round
	var nextScan time.Time  // when the next scan for undelivered hand-offs may start
	var lateUntil time.Time // awaitLate does not wait for late reports before this time
	for {
		var f found
		select {
		case f = <-e.found:
		case <-ctx.Done():
			return
		}
		e.tellUnreadable()
		if failed := e.health.failures.Load(); down || failed != failures && !checked {
			_, err := e.now(ctx)
			down, checked, failures = err != nil, err == nil, e.health.failures.Load()
			continue
		}
		checked, failures = false, e.health.failures.Load()
		if e.awaitLate(ctx, &lateUntil); ctx.Err() != nil {
			return
		}
		if down = e.storeDown(ctx, "recovery of lost sessions", e.recoverLost(ctx, &f)); !down && !time.Now().Before(nextScan) {
			began := time.Now()
			err := e.recoverUnstarted(ctx, f.at)
			if down = e.storeDown(ctx, "recovery of undelivered hand-offs", err); err == nil {
				nextScan = time.Now().Add(min(unstartedPauseFactor*time.Since(began), unstartedPauseMost))
			}
		}
	}
}

// recoverLost recovers the executions of sessions with expired leases, if the read of the store has found any, or its clock has jumped.
// Afterwards f has a reading of the clock in any case.
func (e *Engine) recoverLost(ctx context.Context, f *found) (err error) {
	if f.unknown {
		if f.at, err = inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (clockReading, error) { return t.readClock(ctx) }); err != nil {
			return err
		}
	}
	if !f.unknown && !f.Expired && !e.clocks.jumped(f.at) {
		e.clocks.keep(f.at)
		e.unrecovered.Store(0)
		return nil
	}
	return e.recoverExpired(ctx)
}

// awaitLate waits, before a recovery, for reports that are still in the broker. If they have not come within a lease,
// the recoveries of the next lease do not wait.
func (e *Engine) awaitLate(ctx context.Context, until *time.Time) {
	if e.opts.DrainBroker == nil || time.Now().Before(*until) {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, e.opts.Lease)
	defer cancel()
	err := e.opts.DrainBroker(waiting)
	switch {
	case err == nil || ctx.Err() != nil:
	case waiting.Err() != nil:
		*until = time.Now().Add(e.opts.Lease)
		e.opts.Log.Warn("reports are late: recovery goes on without them", "waited", e.opts.Lease)
	default:
		e.opts.Log.Debug("recovery goes on without looking for late reports", telemetry.Err, err)
	}
}

// tellUnreadable logs if the store skips more rows than in the last round.
func (e *Engine) tellUnreadable() {
	before := e.unreadable
	if e.unreadable = e.opts.Store.Unreadable(); e.unreadable > before {
		e.opts.Log.Error("rows of live executions cannot be decoded and are passed over: `pawl doctor --verify` names the first", "rows", e.unreadable)
	}
}

// storeDown logs why something failed, and reports whether the store does not answer.
func (e *Engine) storeDown(ctx context.Context, what string, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	e.opts.Log.Error(what+" failed; it will be tried again", telemetry.Err, err)
	return !fault.OfBatch(err)
}

// recoverExpired recovers the executions of sessions with expired leases.
func (e *Engine) recoverExpired(ctx context.Context) error {
	for {
		more, err := e.recoverExpiredPage(ctx)
		if !more || err != nil {
			return err
		}
		if !loop.Sleep(ctx, e.jittered(recoverBreathe), nil) { // for fresh work
			return ctx.Err()
		}
	}
}

// recoverExpiredPage recovers the executions of some of these sessions, and reports whether there may be more. The
// transaction that finds them ends their leases, so that a late worker cannot renew one before its recovery begins.
func (e *Engine) recoverExpiredPage(ctx context.Context) (more bool, err error) {
	page := expiredPage + int(e.unrecovered.Load())
	found, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) (expired, error) { return t.endExpired(ctx, page) })
	if err != nil {
		return false, err
	}
	if found.jumped {
		return false, e.restartLeases(ctx, found.at)
	}
	e.clocks.keep(found.at)
	e.unrecovered.Store(0)
	recovered := 0
	for _, s := range found.sessions {
		if !s.ExpiresAt.IsZero() { // otherwise its lease had been ended, and its recovery was interrupted
			e.counters.lostSessions.Add(1)
			e.opts.Log.Warn("worker session lost: recovering what it held", telemetry.Session, s.ID.Text(flow.SessionPrefix), telemetry.Worker, s.Name)
		}
		e.sessions.drop(s.ID)
		taken := map[flow.ID]struct{}{}
		remaining, err := e.recoverSession(ctx, s.ID, e.losing(s.Name, " was lost", e.crashed[s.ID], taken))
		if err == nil {
			e.lostSessions.note(s, len(taken), time.Now())
		}
		switch {
		case err != nil && fault.Lasting(err): // the session's own row, or its end, is refused
			e.opts.Log.Error("a lost session cannot be forgotten; it will be tried again", telemetry.Session, s.ID.Text(flow.SessionPrefix), telemetry.Err, err)
			e.unrecovered.Add(1)
		case err != nil:
			return false, err
		case remaining > 0:
			e.unrecovered.Add(1)
		default:
			recovered++
		}
	}
	return len(found.sessions) == page && recovered > 0, nil
}

type expired struct {
	sessions []store.Session
	at       clockReading
	jumped   bool // at shows a jump of the database's clock, a possible cause: no lease was ended
}

// endExpired finds up to n sessions with expired leases, and ends these leases for good.
func (t *transaction) endExpired(ctx context.Context, n int) (x expired, err error) {
	if x.sessions, err = t.tx.Expired(ctx, n); err != nil {
		return x, err
	}
	if x.at, err = t.readClock(ctx); err != nil {
		return x, err
	}
	if x.jumped = t.e.clocks.jumped(x.at); x.jumped || len(x.sessions) == 0 {
		return x, nil
	}
	ids := make([]flow.ID, len(x.sessions))
	for i := range x.sessions {
		ids[i] = x.sessions[i].ID
	}
	_, err = t.tx.EndLeases(ctx, ids)
	return x, err
}

// recoverUnstarted takes back attempts that were claimed and not begun within a lease: the answer to a Take was lost. at is a reading of
// the database's clock.
func (e *Engine) recoverUnstarted(ctx context.Context, at clockReading) error {
	began := time.Now()
	if !e.clocks.durationsValid(at) {
		return nil // a claim from just before a jump could look an hour old
	}
	live, err := e.opts.Store.LiveSessions(ctx)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	alive := make(map[flow.ID]bool, len(live))
	for _, s := range live {
		alive[s.ID] = true
	}
	e.sessions.forgetDead(alive, began)
	// Also sessions of this process: a claim whose commit was not confirmed was not given to its worker.
	for owner, id := (flow.ID{}), (flow.ID{}); ; {
		xs, err := e.opts.Store.Provisioning(ctx, owner, id, unstartedPage)
		if err != nil {
			return fmt.Errorf("find hand-offs: %w", err)
		}
		var late []flow.ID
		for _, x := range xs {
			if owner, id = x.Owner, x.ID; at.database.Sub(x.ClaimedAt) >= e.opts.Lease {
				late = append(late, x.ID)
			}
		}
		if len(late) > 0 {
			if err := e.recoverLate(ctx, late); err != nil {
				return err
			}
		}
		if len(xs) < unstartedPage {
			return nil
		}
	}
}

// recoverLate takes back those attempts that have still not begun: all in one transaction, or one at a time if that is refused.
func (e *Engine) recoverLate(ctx context.Context, ids []flow.ID) error {
	err := e.recoverLateTogether(ctx, ids)
	if err == nil || !fault.Lasting(err) {
		return err
	}
	for _, id := range ids {
		err := e.recoverLateTogether(ctx, []flow.ID{id})
		if err != nil && fault.Lasting(err) {
			e.passOver(id, "a hand-off that never arrived cannot be taken back; it will be tried again", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) recoverLateTogether(ctx context.Context, ids []flow.ID) error {
	from := e.opts.Uptime()
	return e.do(ctx, ids, func(_ context.Context, t *transaction) error {
		if !e.clocks.durationsValid(clockReading{t.now, from, e.opts.Uptime()}) {
			return nil
		}
		for _, id := range ids {
			d := t.Draft(id)
			if d == nil || d.Place != flow.Held || d.Stage != flow.Provisioning || t.now.Sub(d.ClaimedAt) < e.opts.Lease {
				continue
			}
			if err := d.Lose("the hand-off never arrived", t.now, e.opts.Random()); err != nil {
				return err
			}
			t.Changed(d)
		}
		return nil
	})
}

// recoverSession takes back the executions of a session, in batches, and then deletes the session. It ends the lease first, so that it sees
// a concurrent claim on another replica, and none comes later. Otherwise the session could be deleted while it holds a claim that no
// recovery would find.
//
// If a batch is refused, its executions are taken back one at a time. An execution that is refused alone is counted and left. The session
// is not deleted then, and the next round of sweepSessions finds it again. remaining is how many were left, plus the rows that the store
// cannot read: some of them may belong to the session.
func (e *Engine) recoverSession(ctx context.Context, session flow.ID,
	decide func(*flow.Draft, time.Time) error) (remaining int, err error) {
	for after := (flow.ID{}); ; {
		unreadable := e.opts.Store.Unreadable()
		ids, err := e.recoverPage(ctx, session, after, remaining+unreadable == 0, decide)
		if err != nil && fault.Lasting(err) {
			var n int
			ids, n, err = e.recoverEach(ctx, session, after, decide)
			remaining += n
		}
		if err != nil || len(ids) < recoverBatch {
			return remaining + unreadable, err
		}
		after = ids[len(ids)-1]
		if !loop.Sleep(ctx, e.jittered(recoverBreathe), nil) { // for fresh work
			return remaining, ctx.Err()
		}
	}
}

// recoverPage takes back the next executions of a session in one transaction, and returns their ids. After the last ones it deletes the
// session if forget is set.
func (e *Engine) recoverPage(ctx context.Context, session, after flow.ID, forget bool, decide func(*flow.Draft, time.Time) error) ([]flow.ID, error) {
	ids, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) ([]flow.ID, error) {
		all, err := t.owned(ctx, session, after)
		if err != nil {
			return nil, err
		}
		for _, d := range all {
			if err := t.reclaim(d, session, decide); err != nil {
				return nil, err
			}
		}
		if forget && len(all) < recoverBatch {
			err = t.tx.DropSession(ctx, session)
		}
		return draftIDs(all), err
	})
	if err == nil && forget {
		e.watch.wakeAll()
	}
	return ids, err
}

// recoverEach does the work of recoverPage one execution at a time, and skips those that are refused.
func (e *Engine) recoverEach(ctx context.Context, session, after flow.ID, decide func(*flow.Draft, time.Time) error) ([]flow.ID, int, error) {
	ids, err := inBatch(ctx, e, nil, func(ctx context.Context, t *transaction) ([]flow.ID, error) {
		all, err := t.owned(ctx, session, after)
		return draftIDs(all), err
	})
	if err != nil {
		return nil, 0, err
	}
	remaining := 0
	for _, id := range ids {
		err := e.do(ctx, []flow.ID{id}, func(_ context.Context, t *transaction) error {
			if d := t.Draft(id); d != nil {
				return t.reclaim(d, session, decide)
			}
			return nil
		})
		if err != nil && fault.Lasting(err) {
			e.passOver(id, "what a lost session held cannot be taken back; it will be tried again", err)
			remaining++
		} else if err != nil {
			return nil, remaining, err
		}
	}
	return ids, remaining, nil
}

func draftIDs(all []*flow.Draft) []flow.ID {
	ids := make([]flow.ID, len(all))
	for i, d := range all {
		ids[i] = d.ID
	}
	return ids
}

// owned ends a session's lease and loads its next executions.
func (t *transaction) owned(ctx context.Context, session, after flow.ID) ([]*flow.Draft, error) {
	if _, err := t.tx.EndLeases(ctx, []flow.ID{session}); err != nil {
		return nil, fmt.Errorf("end the lease: %w", err)
	}
	xs, err := t.tx.OwnedBy(ctx, session, after, recoverBatch)
	if err != nil {
		return nil, fmt.Errorf("find the session's executions: %w", err)
	}
	return t.adopt(xs), nil
}

// reclaim takes an execution back from its session; decide is Lose or HandBack of flow.Draft.
func (t *transaction) reclaim(d *flow.Draft, session flow.ID, decide func(*flow.Draft, time.Time) error) error {
	if d.Place != flow.Held || d.Owner != session {
		return nil
	}
	if err := decide(d, t.now); err != nil {
		return err
	}
	t.Changed(d)
	return nil
}

// passOver counts and logs an execution that a loop could not handle; the loop continues with others.
func (e *Engine) passOver(id flow.ID, message string, err error) {
	e.counters.skipped.Add(1)
	e.opts.Log.Error(message, telemetry.Execution, id, telemetry.Err, err)
}
