package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/schedule"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// backfillTag marks the ticks of backfills; the tags of repeated backfills begin with it.
	backfillTag = "backfill"
	// backfillLabel is the label of executions that a backfill starts; its value is the tag of their ticks.
	backfillLabel = "pawl.backfill"

	backfilledAtOnce = 100  // nominal times per transaction, unless the inputs of fewer fill it
	backfilledDry    = 1000 // times per answer if nothing is started
	backfillMost     = 1000 // executions of a backfill that run at once
)

// Backfill asks for executions at past nominal times of a schedule.
type Backfill struct {
	From, To time.Time // From <= nominal < To
	// Again starts executions also for times that have had one, once per value of Again. "": only for times without one.
	Again  string
	AtOnce int  // how many of its executions run at once; 0: one
	Dry    bool // nothing is started
}

// Backfilled is the result for the first nominal times of a Backfill.
type Backfilled struct {
	Ticks      []store.Tick // fired ticks; without an execution in a dry run
	PassedOver []store.Tick // ticks that have had an execution before
	// Executions are the existing executions of both, without payload, as they are after the commit. It lacks those that could not be read
	// then.
	Executions map[flow.ID]*flow.Execution
	// WhenFull is what the next executions do if the action's own key is full; "" if they wait.
	WhenFull flow.WhenFull
	Next     time.Time // where the next Backfill continues; zero: there is no more

	refused error // why nothing was started
}

var againForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,49}$`)

func (b *Backfill) tag() string {
	if b.Again != "" {
		return backfillTag + ":" + b.Again
	}
	return backfillTag
}

func (b *Backfill) check(k *store.Schedule, now time.Time) error {
	var f fault.List
	if !b.From.Before(b.To) {
		f.Add("to", b.To.Format(time.RFC3339), "is not after from", "give a later time")
	}
	if b.To.After(now) {
		f.Add("to", b.To.Format(time.RFC3339), "is in the future", "give a time that has passed: those that come are fired by themselves")
	} else if !k.Next.IsZero() && b.To.After(k.Next) {
		f.Add("to", b.To.Format(time.RFC3339), fmt.Sprintf("is behind %s, and what comes from then on is not decided about yet", k.Next.Format(time.RFC3339)),
			"resume the schedule if it is paused, or give no later time than that")
	}
	if b.Again != "" && !againForm.MatchString(b.Again) {
		f.Add("again", fault.Short(b.Again), "is not a tag", "use up to 50 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit")
	}
	if b.AtOnce < 0 || b.AtOnce > backfillMost {
		f.Add("at_once", strconv.Itoa(b.AtOnce), "is not a number of executions", fmt.Sprintf("give 1 to %d", backfillMost))
	}
	if len(f) > 0 {
		return &fault.Invalid{Problems: f}
	}
	return nil
}

// BackfillSchedule starts executions for the first nominal times of a span, up to a bound. A time that has had an execution gets no other
// one, however often it is requested, unless Again is new. The executions wait for one another by a concurrency key of the backfill, unless
// their action has one. The schedule itself does not change.
func (e *Engine) BackfillSchedule(ctx context.Context, name string, b Backfill) (out Backfilled, err error) {
	k, d, err := e.Schedule(ctx, name)
	if err != nil {
		return out, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return out, err
	}
	if err := b.check(&k, now); err != nil {
		return out, err
	}
	most := backfilledAtOnce
	if b.Dry {
		most = backfilledDry
	}
	starts, next, err := e.planBackfill(ctx, d, &b, most)
	if err != nil || len(starts) == 0 {
		return out, err
	}
	decide := func(ctx context.Context, t *transaction) (Backfilled, error) {
		return t.backfill(ctx, name, &b, starts)
	}
	if out, err = inBatch(ctx, e, nil, decide); err == nil {
		err = out.refused
	}
	if err != nil {
		return Backfilled{}, err
	}
	out.Next = next
	if f := starts[0].request.WhenFull; f == flow.WhenFullCancelNew || f == flow.WhenFullCancelOldest {
		out.WhenFull = f
	}
	if !b.Dry {
		e.counters.submitted.Add(int64(len(out.Ticks)))
	}
	if err := e.lookAtBackfilled(ctx, &out); err != nil {
		if b.Dry {
			return Backfilled{}, err
		}
		// The executions have started. If the caller got an error, it would ask again, and all times would be passed over.
		e.opts.Log.Warn("a backfill is answered without the states of its executions", telemetry.Schedule, name, telemetry.Err, err)
	}
	return out, nil
}

// lookAtBackfilled loads the executions of a backfill's times.
func (e *Engine) lookAtBackfilled(ctx context.Context, out *Backfilled) error {
	var ids []flow.ID
	for _, k := range slices.Concat(out.Ticks, out.PassedOver) {
		if !k.Execution.IsZero() {
			ids = append(ids, k.Execution)
		}
	}
	out.Executions = make(map[flow.ID]*flow.Execution, len(ids))
	for f := (store.Filter{IDs: ids, Limit: len(ids)}); len(ids) > 0; {
		found, err := e.opts.Store.Search(ctx, f)
		if err != nil {
			return fmt.Errorf("load the executions of a backfill: %w", err)
		}
		for _, x := range found.Executions {
			out.Executions[x.ID], f.Before = x, x.ID
		}
		if !found.Searched.IsZero() {
			f.Before = found.Searched
		} else if len(found.Executions) == 0 || len(out.Executions) == len(ids) {
			break
		}
	}
	return nil
}

// planBackfill makes the requests for the first nominal times of a span, and returns where the next ones begin.
func (e *Engine) planBackfill(ctx context.Context, d *definition.Definition, b *Backfill, most int) (starts []*plannedStart, next time.Time, err error) {
	var previous time.Time
	at, comes := d.Schedule.Next(b.From.Add(-time.Nanosecond))
	budget := e.budget.WithRows(most)
	for ; comes && at.Before(b.To); at, comes = d.Schedule.Next(at) {
		if budget.Spent() {
			return starts, at, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, next, err // the caller has gone
		}
		budget.Spend(1, 0)
		fire := schedule.Fire{Nominal: at, Why: schedule.FiredBackfill}
		if b.Dry && len(starts) > 0 { // the first one shows the refusal and the key of all
			starts = append(starts, &plannedStart{fire: fire})
			continue
		}
		w := definition.WorkWithin(definition.SharedWork)
		s := e.planStart(ctx, d, fire, previous, w)
		budget.Compute(w.Done)
		if s.err != nil {
			return nil, next, s.err // each time has the same action: the others would be refused, too
		}
		if waitList := scheduleKey(d); s.request.Key == "" || s.request.Key == waitList {
			s.request.Key, s.request.KeyLimit, s.request.WhenFull = schedulePrefix+d.Name+":"+backfillTag, max(b.AtOnce, 1), flow.WhenFullQueue
		}
		s.request.Labels = requests.Merged(s.request.Labels, map[string]string{backfillLabel: b.tag()})
		budget.Spend(0, s.request.PayloadSize())
		if b.Dry {
			s.id = flow.ID{}
		}
		starts, previous = append(starts, s), at
	}
	return starts, time.Time{}, nil
}

// backfill executes a backfill. It locks the schedule's row, so that no other transaction decides about its times.
func (t *transaction) backfill(ctx context.Context, name string, b *Backfill, starts []*plannedStart) (out Backfilled, err error) {
	if _, err := t.tx.LockSchedules(ctx, []string{name}, false); err != nil {
		return out, err
	}
	known, err := t.tx.TicksBetween(ctx, name, starts[0].fire.Nominal, starts[len(starts)-1].fire.Nominal)
	if err != nil {
		return out, err
	}
	tag, had := b.tag(), map[time.Time]*store.Tick{}
	for i := range known {
		if k := &known[i]; k.Tag == tag || b.Again == "" && k.Tag == "" && !k.Execution.IsZero() {
			had[k.Nominal] = k
		}
	}
	var unfired []*plannedStart
	for _, s := range starts {
		if k := had[s.fire.Nominal]; k != nil {
			out.PassedOver = append(out.PassedOver, *k)
			continue
		}
		if out.refused, err = t.missingUploads(ctx, s); err != nil || out.refused != nil {
			return out, err // before anything is started
		}
		unfired = append(unfired, s)
	}
	for _, s := range unfired {
		out.Ticks = append(out.Ticks, store.Tick{Schedule: name, Nominal: s.fire.Nominal, Tag: tag, Last: s.fire.Nominal, Count: 1, Execution: s.id, At: t.now, Why: s.fire.Why})
		if b.Dry {
			continue
		}
		if err := t.submitPlanned(ctx, s); err != nil {
			return out, err
		}
	}
	if !b.Dry {
		t.putTicks(out.Ticks...)
	}
	return out, nil
}
