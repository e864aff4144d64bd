package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/loop"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/schedule"
	"github.com/pawl-run/pawl/internal/store"
)

type firing struct {
	was    store.Schedule // the schedule as it was when this was planned
	d      *definition.Definition
	plan   schedule.Plan
	starts []*plannedStart
	rest   []schedule.Fire // ticks beyond starts, left to another transaction: their inputs do not fit into this one
	work   int             // operations that making starts has computed
	pause  string          // why the schedule pauses itself instead
	bad    error           // why nothing can be planned
	done   bool            // carried out; was is the schedule as it is since then
}

func (f *firing) bytes() (n int) {
	for _, s := range f.starts {
		n += s.request.PayloadSize()
	}
	return n
}

// plan decides, outside the transaction, about the past nominal times of a schedule. d is its document; nil: it must be read. If that takes
// long without a turn, the error is errCostly.
func (e *Engine) plan(ctx context.Context, k store.Schedule, d *definition.Definition, now time.Time, turn bool) (f *firing, err error) {
	if f = (&firing{was: k, d: d}); d == nil {
		f.d, f.bad = e.schedule(ctx, k.Name, k.Version)
	}
	if f.bad != nil {
		if !fault.OfBatch(f.bad) {
			return nil, f.bad
		}
		return f, nil
	}
	if f.pause, err = e.failing(ctx, f.d, &k); err != nil || f.pause != "" {
		return f, err
	}
	f.plan = f.d.Schedule.Tick(k.Name, k.Next, now)
	f.rest = f.plan.Fire
	return f, e.nextStarts(ctx, f, turn)
}

// nextStarts makes the requests of the next ticks of a plan, as many as fit into one transaction. If one of them takes long without a turn,
// the error is errCostly. A schedule that has ended the process repeatedly pauses itself.
func (e *Engine) nextStarts(ctx context.Context, f *firing, turn bool) error {
	key := loop.Key(f.d.Name, f.was.Version)
	if !turn && e.schedules.costly.Has(key) {
		return errCostly
	}
	done, err := e.opts.Crashes.Begin("schedule", key, f.d.Name)
	if err != nil {
		f.starts, f.rest, f.pause = nil, nil, err.Error()
		return nil
	}
	defer done()
	last, budget := f.was.Last, e.budget.WithRows(startsAtOnce)
	for f.starts, f.work = nil, 0; len(f.rest) > 0 && !budget.Spent(); f.rest = f.rest[1:] {
		w := definition.WorkWithin(definition.QuickWork)
		if turn {
			w = definition.WorkWithin(definition.SharedWork)
		}
		s := e.planStart(ctx, f.d, f.rest[0], last, w)
		if !turn && w.Exceeded() {
			e.schedules.costly.Add(key)
			return errCostly
		}
		f.work += w.Done
		budget.Compute(w.Done)
		var refused *fault.Invalid
		if s.err != nil && !errors.As(s.err, &refused) && !fault.OfBatch(s.err) {
			return s.err
		}
		f.starts, last = append(f.starts, s), f.rest[0].Nominal
		budget.Spend(1, s.request.PayloadSize())
	}
	return nil
}

// planStart makes the request of the execution that a tick starts. w counts and bounds the work.
func (e *Engine) planStart(ctx context.Context, d *definition.Definition, fire schedule.Fire, previous time.Time, w *definition.Work) *plannedStart {
	s := &plannedStart{fire: fire, id: e.opts.NewID()}
	run := &d.Schedule.Run
	input, err := d.Schedule.InputFor(d.Name, d.Schedule.TickOf(fire.Nominal, previous, fire.Why), w)
	if err != nil {
		s.err = fault.New("run.input", "", err.Error(), "")
		return s
	}
	settings := &run.Settings
	sub := &Submission{Action: run.ActionText(), Input: input, Queue: settings.Queue, Priority: settings.Priority,
		Settings: settings.Settings, Retry: settings.Retry,
		Labels: requests.Merged(map[string]string{ScheduleLabel: d.Name}, settings.Labels), work: w}
	if s.err = e.request(ctx, sub, s.id, &s.request); s.err != nil {
		return s
	}
	if line := scheduleKey(d); line != "" {
		if s.request.Key != "" {
			s.err = fault.New("overlap", string(d.Schedule.Overlap), fmt.Sprintf("%s has a concurrency key of its own, which decides what waits", run.Action), "write overlap: allow or skip")
			return s
		}
		s.request.Key, s.request.KeyLimit, s.request.WhenFull = line, 1, flow.WhenFullQueue
		if d.Schedule.Overlap == schedule.OverlapCancel {
			s.request.WhenFull = flow.WhenFullCancelOldest
		}
	}
	s.sums = uploads.SumsIn(s.request.Input, s.request.With)
	return s
}
