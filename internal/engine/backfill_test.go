package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// backfill backfills a span and returns how many executions were started and passed over.
func (r *rig) backfill(b Backfill) (fired, skipped int) {
	r.Helper()
	for {
		out, err := r.e.BackfillSchedule(r.ctx, "s", b)
		if err != nil {
			r.Fatal(err)
		}
		fired, skipped = fired+len(out.Ticks), skipped+len(out.PassedOver)
		if out.Next.IsZero() {
			return fired, skipped
		}
		b.From = out.Next
	}
}

// Each nominal time of a span has one execution, with any number of requests and with times that the clock has fired.
func TestBackfill(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("kind: schedule\nname: s\nevery: 1h\nrun: {action: noop, input: {at: '${{ tick.nominal }}', why: '${{ tick.why }}'}}\n")
		to := time.Now().UTC().Truncate(time.Hour)
		from := to.Add(-250 * time.Hour)
		fired := store.Tick{Schedule: "s", Nominal: from.Add(5 * time.Hour), Last: from.Add(5 * time.Hour), Count: 1, Execution: r.submit(Submission{Action: "noop"}), At: to, Why: "on_time"}
		missed := store.Tick{Schedule: "s", Nominal: from, Last: from.Add(4 * time.Hour), Count: 5, At: to, Why: "catch_up"}
		if err := r.store.Update(r.ctx, func(ctx context.Context, tx store.Tx) error {
			return tx.Apply(ctx, store.Delta{Schedules: store.ScheduleRows{Ticks: []store.Tick{fired, missed}}})
		}); err != nil {
			r.Fatal(err)
		}
		if n, skipped := r.backfill(Backfill{From: from, To: to, Dry: true}); n != 249 || skipped != 1 || len(r.ticks("s")) != 2 {
			r.Errorf("a dry run would start %d and pass over %d; there are %d ticks", n, skipped, len(r.ticks("s")))
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { r.backfill(Backfill{From: from, To: to, AtOnce: 2}) })
		}
		wg.Wait()
		if n, skipped := r.backfill(Backfill{From: from, To: to}); n != 0 || skipped != 250 {
			r.Errorf("again: %d were started, %d passed over", n, skipped)
		}
		rows, err := r.store.Ticks(r.ctx, "s", time.Time{}, 1000)
		if err != nil || len(rows) != 251 {
			r.Fatalf("%d ticks, %v", len(rows), err)
		}
		x := r.get(rows[0].Execution)
		if rows[0].Tag != backfillTag || rows[0].Why != "backfill" || x.Key != "schedule:s:backfill" || x.KeyLimit != 2 || x.Labels[ScheduleLabel] != "s" || x.Labels[backfillLabel] != backfillTag ||
			!strings.Contains(string(x.Input), `"why":"backfill"`) || !strings.Contains(string(x.Input), rows[0].Nominal.Format(time.RFC3339)) {
			r.Errorf("%+v of %+v", x.Request, rows[0])
		}
		if n, _ := r.backfill(Backfill{From: from, To: from.Add(10 * time.Hour), Again: "fixed"}); n != 10 {
			r.Errorf("%d were started again", n)
		}
		if n, skipped := r.backfill(Backfill{From: from, To: from.Add(12 * time.Hour), Again: "fixed"}); n != 2 || skipped != 10 {
			r.Errorf("again under the same tag: %d were started, %d passed over", n, skipped)
		}
		if k := r.schedule("s"); !k.Execution.IsZero() || !k.Last.IsZero() {
			r.Errorf("the schedule has moved: %+v", k)
		}
		r.verify()
	})
}

// The answer names executions that a backfill passes over, with their ends, and those that end at once because the key of their action is
// full.
func TestBackfillSaysWhatHasNoResult(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define("name: one\nconcurrency: {key: k, limit: 1, when_full: cancel_new}\naction: code\ninput: {language: python, source: ''}\n---\n" +
			"kind: schedule\nname: s\nevery: 1h\nrun: {action: one}\n")
		to := time.Now().UTC().Truncate(time.Hour)
		span := Backfill{From: to.Add(-3 * time.Hour), To: to, AtOnce: 2, Dry: true}
		look := func(b Backfill) Backfilled {
			r.Helper()
			out, err := r.e.BackfillSchedule(r.ctx, "s", b)
			if err != nil {
				r.Fatal(err)
			}
			return out
		}
		if dry := look(span); len(dry.Ticks) != 3 || dry.WhenFull != flow.WhenFullCancelNew || !dry.Ticks[0].Execution.IsZero() || len(dry.Executions) > 0 {
			r.Errorf("a dry run: %+v", dry)
		}
		span.Dry = false
		done := look(span)
		again := look(span)
		if len(done.Ticks) != 3 || done.WhenFull != flow.WhenFullCancelNew || len(again.Ticks) != 0 || len(again.PassedOver) != 3 {
			r.Fatalf("%+v, and again %+v", done, again)
		}
		for i := range 3 {
			x, y := done.Executions[done.Ticks[i].Execution], again.Executions[again.PassedOver[i].Execution]
			if x == nil || y == nil || x.ID != y.ID || x.Stage != y.Stage || again.PassedOver[i].Tag != backfillTag {
				r.Fatalf("time %d: %+v, passed over as %+v", i, x, y)
			}
			if full := x.Stage == flow.Cancelled && x.Outcome.Error.Code == flow.CodeKeyFull; full != (i > 0) {
				r.Errorf("time %d: %s %+v", i, x.Stage, x.Outcome)
			}
		}
	})
}

// unsearchable is a store whose search fails for a while.
type unsearchable struct {
	store.Store
	on atomic.Bool
}

func (s *unsearchable) Search(ctx context.Context, f store.Filter) (store.Found, error) {
	if s.on.Load() {
		return store.Found{}, store.ErrUnavailable
	}
	return s.Store.Search(ctx, f)
}

// A committed backfill is answered even if its executions cannot be read: after an error the caller would ask again.
func TestBackfillIsAnsweredOnceItIsCommitted(t *testing.T) {
	t.Parallel()
	s := &unsearchable{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	r.define("kind: schedule\nname: s\nevery: 1h\nrun: {action: noop}\n")
	to := r.clock.now().Truncate(time.Hour)
	s.on.Store(true)
	out, err := r.e.BackfillSchedule(r.ctx, "s", Backfill{From: to.Add(-3 * time.Hour), To: to, AtOnce: 1})
	if err != nil || len(out.Ticks) != 3 || len(out.Executions) != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := r.e.BackfillSchedule(r.ctx, "s", Backfill{From: to.Add(-3 * time.Hour), To: to, AtOnce: 1, Dry: true}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a dry run: %v", err)
	}
	s.on.Store(false)
	for _, k := range out.Ticks {
		r.get(k.Execution)
	}
}

func TestBackfillRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.define("name: strict\ninput: {type: object, required: [a]}\naction: noop\n" +
		"---\nkind: schedule\nname: s\nevery: 1h\nrun: {action: noop}\n" +
		"---\nkind: schedule\nname: bad\nevery: 1h\nrun: {action: strict, input: {b: '${{ tick.zone }}'}}\n")
	now := r.clock.now()
	from := now.Add(-10 * time.Hour)
	for what, b := range map[string]Backfill{
		"to:":      {From: now, To: from},
		"future":   {From: from, To: now.Add(time.Hour)},
		"again:":   {From: from, To: now, Again: "a b"},
		"at_once:": {From: from, To: now, AtOnce: -1},
	} {
		var refused *fault.Invalid
		if _, err := r.e.BackfillSchedule(r.ctx, "s", b); !errors.As(err, &refused) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := r.e.BackfillSchedule(r.ctx, "nobody", Backfill{From: from, To: now}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a schedule that there is not: %v", err)
	}
	if _, err := r.e.BackfillSchedule(r.ctx, "bad", Backfill{From: from, To: now}); err == nil || len(r.ticks("bad")) > 0 {
		t.Errorf("refused input: %v, ticks %q", err, r.ticks("bad"))
	}
	if _, err := r.e.BackfillSchedule(r.ctx, "bad", Backfill{From: from, To: now, Dry: true}); err == nil {
		t.Error("a dry run of a refused input would start it")
	}
	if _, err := r.e.PauseSchedule(r.ctx, "s", ""); err != nil {
		t.Fatal(err)
	}
	r.clock.move(5*time.Hour, 5*time.Hour, 0)
	if _, err := r.e.BackfillSchedule(r.ctx, "s", Backfill{From: from, To: r.clock.now()}); err == nil || !strings.Contains(err.Error(), "not decided about yet") {
		t.Errorf("times that passed while it is paused: %v", err)
	}
}
