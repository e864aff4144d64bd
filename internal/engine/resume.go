package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// Resume implements handoff.Handoff. The kept attempts get the new session as their owner in the transaction that opens it and ends the
// lease of the old one: a request of the dead process comes before that and is seen, or after it and is fenced.
func (e *Engine) Resume(ctx context.Context, s handoff.Session, before flow.ID, keep []flow.AttemptID) (flow.ID, []handoff.Assignment, error) {
	old, err := e.sessionOf(ctx, before)
	if errors.Is(err, handoff.ErrSessionLost) {
		id, err := e.Open(ctx, s)
		return id, nil, err
	}
	if err != nil {
		return flow.ID{}, nil, err
	}
	ids := make([]flow.ID, len(keep))
	for i, k := range keep {
		ids[i] = k.Execution
	}
	session, kept, err := e.open(ctx, s, func(ctx context.Context, t *transaction, next flow.ID) (kept []flow.AttemptID, err error) {
		alive, err := t.tx.EndLeases(ctx, []flow.ID{before})
		if err != nil {
			return nil, fmt.Errorf("end the lease: %w", err)
		}
		if len(alive) == 0 {
			return nil, nil
		}
		if err := t.Load(ctx, ids); err != nil {
			return nil, err
		}
		for _, k := range keep {
			if d := t.Draft(k.Execution); d != nil && d.Attempt == k.Attempt && d.Inherit(before, next) == nil {
				t.Changed(d)
				kept = append(kept, k)
			}
		}
		return kept, nil
	})
	if err != nil {
		return flow.ID{}, nil, err
	}
	old.awaitLogs() // logs that are being stored count
	e.sessions.drop(before)
	e.opts.Log.Info("worker session resumed", telemetry.Session, session.Text(flow.SessionPrefix), telemetry.Worker, s.Name, "before", before.Text(flow.SessionPrefix), "kept", len(kept))
	crashed := old.session.Embedded && e.opts.Crashes.Died() // otherwise a running task may have ended the process
	_, err = e.recoverSession(ctx, before, e.losing(old.session.Name, " was restarted", crashed, map[flow.ID]struct{}{}))
	if err != nil {
		e.opts.Log.Warn("recovery of what a restarted worker held goes on later", telemetry.Session, before.Text(flow.SessionPrefix), telemetry.Err, err)
	}
	work, err := e.inheritedWork(ctx, session, kept)
	if err != nil {
		_ = e.Close(context.WithoutCancel(ctx), session) // otherwise its lease expires
		return flow.ID{}, nil, sessionError(err)
	}
	return session, work, nil
}

// awaitLogs waits until no log of the session is being stored.
func (s *sessionState) awaitLogs() {
	s.logging.Lock()
	defer s.logging.Unlock()
}

// inheritedWork are the attempts that a session has inherited, with their progress.
func (e *Engine) inheritedWork(ctx context.Context, session flow.ID, kept []flow.AttemptID) ([]handoff.Assignment, error) {
	if len(kept) == 0 {
		return nil, nil
	}
	now, err := e.now(ctx)
	if err != nil {
		return nil, err
	}
	var work []handoff.Assignment
	for _, k := range kept {
		x, err := e.opts.Store.Get(ctx, k.Execution)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", k.Execution, err)
		}
		if x.Owner != session || x.Attempt != k.Attempt {
			continue // it has been taken back already
		}
		a := e.assignments([]*flow.Execution{x})[0]
		a.Resumed = &handoff.Resumed{Running: x.Stage == flow.Running, Elapsed: max(0, now.Sub(x.ClaimedAt)), Logs: map[string]int64{}}
		if err := e.recordedLogs(ctx, k, a.Resumed); err != nil {
			return nil, err
		}
		work = append(work, a)
	}
	return work, nil
}

const (
	// logsAtOnce is how many bytes of a log are read in one call.
	logsAtOnce = 1 << 20
	// logGap separates the numbers of new log chunks from those of the dead process that may still arrive at another
	// replica: one call has fewer chunks of an attempt.
	logGap = 1000
)

// recordedLogs sets in r how much of an attempt's log is stored.
func (e *Engine) recordedLogs(ctx context.Context, k flow.AttemptID, r *handoff.Resumed) error {
	q := store.LogQuery{Execution: k.Execution, Attempt: k.Attempt, AfterAttempt: k.Attempt, Limit: logsAtOnce}
	for {
		chunks, err := e.opts.Store.ReadLogs(ctx, q)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", k.Execution, err)
		}
		if len(chunks) == 0 {
			r.LogSeq = q.AfterSeq + logGap
			return nil
		}
		for _, c := range chunks {
			r.Logs[c.Stream] = max(r.Logs[c.Stream], c.Offset+c.Size)
			q.AfterSeq = c.Seq
		}
	}
}
