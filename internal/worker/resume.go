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

// Memory keeps the name of a worker's session where the next process of the worker finds it.
type Memory interface {
	// Earlier is the session of the process before this one, which is dead, and when its lease ends without a renewal. Both are zero
	// when that process left no session.
	Earlier() (session flow.ID, until time.Time)
	// Keep remembers the session and until when its lease lasts, in place of what was kept.
	Keep(session flow.ID, until time.Time) error
	// Forget says that no session is left to be resumed.
	Forget() error
}

// past is the session that the process before may have left.
type past struct {
	session flow.ID // zero: no session
	until   time.Time
}

// open begins a session. The first one takes over what is left of the process before.
func (w *Worker) open(ctx context.Context) (flow.ID, []handoff.Assignment, error) {
	asked := time.Now()
	ctx, stop := outlasting(ctx, openWithin)
	defer stop()
	s := handoff.Session{Name: w.Name, Queues: w.Queues, Kinds: w.kinds, Slots: w.Slots}
	id, work, err := w.reopen(ctx, s)
	if err != nil {
		return flow.ID{}, nil, err
	}
	w.remember(id, asked.Add(handoff.Lease)) // before anything is begun; the first renewal knows the lease
	w.settle(work)
	return id, work, nil
}

// openWithin is how long a session that is being opened may take after the worker was stopped. The worker needs its id to close it: a
// session that stays open looks like that of a dead worker until its lease has run out.
const openWithin = 2 * time.Second

// outlasting gives a context that ends some time after ctx.
func outlasting(ctx context.Context, after time.Duration) (context.Context, func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(after, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

func (w *Worker) reopen(ctx context.Context, s handoff.Session) (flow.ID, []handoff.Assignment, error) {
	if p := w.past; p != nil && !p.session.IsZero() {
		id, work, err := w.Handoff.Resume(ctx, s, p.session, w.outlived(ctx))
		over := errors.Is(err, handoff.ErrSessionLost) || time.Now().After(p.until)
		if err == nil || !over {
			return id, work, err
		}
		p.session = flow.ID{}
		w.settle(nil) // now, and not only when there is a session again
	}
	id, err := w.Handoff.Open(ctx, s)
	return id, nil, err
}

// lookWithin bounds the search for what goes on without a worker: the lease runs meanwhile.
const lookWithin = 5 * time.Second

// outlived names the attempts that can be taken up again.
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
			w.Log.Warn("look for what the process before has left: its attempts are given up", telemetry.Kind, kind, telemetry.Err, err)
		}
		all = append(all, found...)
	}
	return all
}

// settle tells the handlers what is taken up again, once.
func (w *Worker) settle(work []handoff.Assignment) {
	if w.past == nil {
		return
	}
	resumed := !w.past.session.IsZero()
	w.past = nil
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
		w.Log.Info("resumed the session of the process before", telemetry.Worker, w.Name, "kept", len(work))
	}
}

func (w *Worker) remember(session flow.ID, until time.Time) {
	if w.Memory == nil {
		return
	}
	if err := w.Memory.Keep(session, until); err != nil {
		w.Log.Warn("remember the session: should this process die, what it holds is recovered when its lease runs out", telemetry.Err, err)
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

// resume goes on with an attempt that the process before began. An attempt whose program still runs is taken up even if only to be ended.
func (a *attempt) resume(order *handoff.Order) {
	if !a.resumed.Running {
		a.begin()
	}
	a.life.w.occupy()
	if order != nil {
		a.stop(ordered(*order))
	}
	go a.run()
}
