package worker

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/task"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// SessionStore keeps the session of a worker for the worker's next process.
type SessionStore interface {
	// Earlier is the session of the previous process, which must be dead, and the end of its lease without a renewal. Both
	// are zero if there is none.
	Earlier() (session flow.ID, until time.Time)
	// Keep replaces the remembered session by this one, with the end of its lease.
	Keep(session flow.ID, until time.Time) error
	// Forget records that there is no session to resume any more.
	Forget() error
}

// previousSession is the state that the previous process may have left.
type previousSession struct {
	session flow.ID // zero: no session
	until   time.Time
}

// open begins a session. The first session takes over the attempts of the previous process.
func (w *Worker) open(ctx context.Context) (flow.ID, []handoff.Assignment, error) {
	asked := time.Now()
	ctx, stop := outlasting(ctx, openWithin)
	defer stop()
	s := handoff.Session{Name: w.Name, Queues: w.Queues, Kinds: w.kinds, Slots: w.Slots, Instant: w.instant}
	id, work, err := w.reopen(ctx, s)
	if err != nil {
		return flow.ID{}, nil, err
	}
	w.remember(id, asked.Add(handoff.Lease)) // before any attempt is started; the first renewal knows the lease
	w.settleResumed(work)
	return id, work, nil
}

// openWithin is how long a session that is being opened may take after the worker was told to stop. The worker waits for its id to close
// it, because an open session looks like that of a dead worker until its lease expires.
const openWithin = 2 * time.Second

// outlasting returns a context that ends some time after ctx.
func outlasting(ctx context.Context, after time.Duration) (context.Context, func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(after, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

func (w *Worker) reopen(ctx context.Context, s handoff.Session) (flow.ID, []handoff.Assignment, error) {
	if p := w.previous; p != nil && !p.session.IsZero() {
		id, work, err := w.Handoff.Resume(ctx, s, p.session, w.outlived(ctx))
		over := errors.Is(err, handoff.ErrSessionLost) || time.Now().After(p.until)
		if err == nil || !over {
			return id, work, err
		}
		p.session = flow.ID{}
		w.settleResumed(nil) // now, and not when there is a session again, which may be late
	}
	id, err := w.Handoff.Open(ctx, s)
	return id, nil, err
}

// lookWithin bounds the search for programs that outlived their worker, because their lease runs meanwhile.
const lookWithin = 5 * time.Second

// outlived are the attempts that can be resumed.
func (w *Worker) outlived(ctx context.Context) []flow.AttemptID {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	var all []flow.AttemptID
	for kind, h := range w.Handlers {
		lasting, ok := h.(task.Lasting)
		if !ok {
			continue
		}
		found, err := lasting.Outlived(ctx)
		if err != nil {
			w.Log.Warn("look for runs of the previous process: its attempts are given up", telemetry.Kind, kind, telemetry.Err, err)
		}
		all = append(all, found...)
	}
	return all
}

// settleResumed tells the handlers, once, which attempts are resumed.
func (w *Worker) settleResumed(work []handoff.Assignment) {
	if w.previous == nil {
		return
	}
	resumed := !w.previous.session.IsZero()
	w.previous = nil
	kept := make(map[flow.Kind][]flow.AttemptID)
	for _, a := range work {
		kept[a.Kind] = append(kept[a.Kind], flow.AttemptID{Execution: a.Execution, Attempt: a.Attempt})
	}
	for kind, h := range w.Handlers {
		if lasting, ok := h.(task.Lasting); ok {
			lasting.Settle(kept[kind])
		}
	}
	if resumed {
		w.Log.Info("resumed the session of the previous process", telemetry.Worker, w.Name, "kept", len(work))
	}
}

func (w *Worker) remember(session flow.ID, until time.Time) {
	if w.Memory == nil {
		return
	}
	if err := w.Memory.Keep(session, until); err != nil {
		w.Log.Warn("remember the session: if this process dies, its attempts are recovered only when the lease runs out", telemetry.Err, err)
	}
}

func (w *Worker) forget() {
	if w.Memory == nil {
		return
	}
	if err := w.Memory.Forget(); err != nil {
		w.Log.Warn("forget the session", telemetry.Err, err)
	}
}

// resume continues an attempt that the previous process began. An attempt whose program still runs is resumed even if it must end.
func (a *attempt) resume(order *handoff.Order) {
	if !a.resumed.Running {
		a.begin()
	}
	a.session.w.occupy()
	if order != nil {
		a.stop(ordered(*order))
	}
	go a.run()
}
