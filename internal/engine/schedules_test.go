package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/schedule"
	"github.com/pawl-run/pawl/internal/store"
)

// tick advances the clock until schedules have been decided about.
func (r *rig) tick(d time.Duration) {
	r.Helper()
	r.clock.move(d, d, 0)
	for {
		pause, err := r.e.fireDue(r.ctx, &tickClock{})
		if err != nil {
			r.Fatalf("fire: %v", err)
		}
		if pause > 50*time.Millisecond { // less: the engine's own loop is deciding
			return
		}
	}
}

// ticks lists the results of a schedule's times, the earliest first, with the count of several.
func (r *rig) ticks(name string) (all []string) {
	r.Helper()
	rows, err := r.store.Ticks(r.ctx, name, time.Time{}, 1000)
	if err != nil {
		r.Fatal(err)
	}
	for i := len(rows) - 1; i >= 0; i-- {
		k := rows[i]
		say := k.Why
		if k.Count > 1 {
			say += fmt.Sprintf(" %d", k.Count)
		}
		if k.Execution.IsZero() {
			say = "missed " + say
		}
		all = append(all, say)
	}
	return all
}

func (r *rig) wantTicks(name string, want ...string) {
	r.Helper()
	if got := r.ticks(name); strings.Join(got, ", ") != strings.Join(want, ", ") {
		r.Errorf("ticks of %s: %q, want %q", name, got, want)
	}
}

func (r *rig) schedule(name string) store.Schedule {
	r.Helper()
	k, err := r.store.Schedule(r.ctx, name)
	if err != nil {
		r.Fatal(err)
	}
	return k
}

// toTheHour moves the clock to shortly before the next full hour.
func (r *rig) toTheHour() {
	now := r.clock.now()
	d := now.Truncate(time.Hour).Add(time.Hour - time.Minute).Sub(now)
	if d < 0 {
		d += time.Hour
	}
	r.clock.move(d, d, 0)
}

const hourly = "kind: schedule\nname: s\nevery: 1h\nrun: {action: noop, input: {at: '${{ tick.nominal }}', why: '${{ tick.why }}'}, labels: {team: ops}}\n"

func TestScheduleFires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.toTheHour()
	r.define(hourly)
	r.tick(time.Second)
	r.wantTicks("s")
	r.tick(time.Minute)
	r.wantTicks("s", "on_time")
	k := r.schedule("s")
	x := r.get(k.Execution)
	if want := fmt.Sprintf(`{"at":"%s","why":"on_time"}`, k.Last.Format(time.RFC3339)); string(x.Input) != want {
		t.Errorf("input %s, want %s", x.Input, want)
	}
	if x.Labels[ScheduleLabel] != "s" || x.Labels["team"] != "ops" {
		t.Errorf("labels %v", x.Labels)
	}
	if k.Next.Sub(k.Last) != time.Hour || k.Last.Minute() != 0 {
		t.Errorf("last %s, next %s", k.Last, k.Next)
	}
}

// reading counts the definitions that an engine reads one at a time.
type reading struct {
	store.Store
	single atomic.Int64
}

func (s *reading) Definition(ctx context.Context, name string, version int) (store.Definition, error) {
	s.single.Add(1)
	return s.Store.Definition(ctx, name, version)
}

// Schedules that are due together fire once each, over several parts, and their documents are read together.
func TestSchedulesDueTogether(t *testing.T) {
	t.Parallel()
	const schedules = schedulesInPart + 10
	s := &reading{}
	r := newRig(t, func(o *Options) { s.Store, o.Store = o.Store, s })
	r.toTheHour()
	var doc strings.Builder
	for i := range schedules {
		fmt.Fprintf(&doc, "---\nkind: schedule\nname: s%d\nevery: 1h\nrun: {action: noop}\n", i)
	}
	r.define(strings.TrimPrefix(doc.String(), "---\n"))
	r.tick(time.Minute)
	for i := range schedules {
		r.wantTicks(fmt.Sprintf("s%d", i), "on_time")
	}
	if n := s.single.Load(); n > 0 {
		t.Errorf("%d documents were read one by one", n)
	}
}

func TestScheduleOverlap(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[string][]string{
		"skip": {"on_time", "missed overlap", "missed overlap"}, "allow": {"on_time", "on_time", "on_time"},
		"queue_one": {"on_time", "on_time", "missed overlap"}, "queue": {"on_time", "on_time", "on_time"},
		"cancel_running": {"on_time", "on_time", "on_time"},
	} {
		t.Run(overlap, func(t *testing.T) {
			r := newRig(t)
			r.toTheHour()
			r.define(hourly + "overlap: " + overlap)
			r.tick(time.Minute)
			w := r.worker()
			work := w.take(10)
			if len(work) != 1 {
				t.Fatalf("%d executions", len(work))
			}
			// It runs: an attempt that was claimed an hour ago and has not begun would be taken back.
			w.report(work[0], ev(&work[0], 0, flow.EvRunning, nil))
			r.tick(time.Hour)
			r.tick(time.Hour)
			r.wantTicks("s", want...)
			if overlap != "skip" {
				return
			}
			w.report(work[0], ev(&work[0], 1, flow.EvCompleted, &flow.Outcome{Output: json.RawMessage("{}")}))
			r.tick(time.Hour)
			r.wantTicks("s", append(want, "on_time")...)
		})
	}
}

func TestScheduleCatchUp(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string][]string{
		"none": {"missed catch_up 3"}, "last": {"missed catch_up 2", "catch_up"}, "all": {"catch_up", "catch_up", "catch_up"},
	} {
		t.Run(policy, func(t *testing.T) {
			r := newRig(t)
			r.toTheHour()
			r.define(hourly + "overlap: allow\ncatch_up: " + policy)
			r.tick(3*time.Hour - 20*time.Minute)
			r.wantTicks("s", want...)
		})
	}
}

func TestSchedulePause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.toTheHour()
	r.define(hourly + "overlap: allow")
	if _, err := r.e.PauseSchedule(r.ctx, "s", "for the weekend"); err != nil {
		t.Fatal(err)
	}
	r.tick(2 * time.Hour)
	r.wantTicks("s")
	if k := r.schedule("s"); k.Reason != "for the weekend" || !k.Due.IsZero() {
		t.Errorf("paused: %+v", k)
	}
	if _, err := r.e.ResumeSchedule(r.ctx, "s", false); err != nil {
		t.Fatal(err)
	}
	r.wantTicks("s", "missed paused 2")
	r.tick(time.Minute)
	r.wantTicks("s", "missed paused 2", "on_time")
	if _, err := r.e.PauseSchedule(r.ctx, "s", ""); err != nil {
		t.Fatal(err)
	}
	r.tick(150 * time.Minute)
	if _, err := r.e.ResumeSchedule(r.ctx, "s", true); err != nil {
		t.Fatal(err)
	}
	r.tick(0)
	r.wantTicks("s", "missed paused 2", "on_time", "missed catch_up", "catch_up")
	if _, err := r.e.PauseSchedule(r.ctx, "nobody", ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("pausing what is not there: %v", err)
	}
	r.define(strings.Replace(hourly, "1h", "2h", 1) + "paused: true")
	if k := r.schedule("s"); k.PausedAt.IsZero() || k.Version != 2 {
		t.Errorf("applied with paused: true: %+v", k)
	}
}

// TestScheduleEdited checks that past decisions stay when a document changes, and that undecided times of the old version are not lost.
func TestScheduleEdited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.toTheHour()
	r.define(hourly)
	before := r.schedule("s")
	r.define(hourly)
	if r.schedule("s") != before {
		t.Error("the same document again changed the schedule")
	}
	r.tick(time.Minute)
	r.clock.move(70*time.Minute, 70*time.Minute, 0)
	r.define(strings.Replace(hourly, "every: 1h", "every: 30m", 1) + "overlap: allow")
	if got := r.ticks("s"); len(got) < 2 { // the engine's own loop may have been faster
		t.Errorf("ticks: %q", got)
	}
	k := r.schedule("s")
	if k.Version != 2 || k.Next.Sub(r.clock.now()) > 30*time.Minute || !k.Next.After(r.clock.now()) {
		t.Errorf("edited: %+v at %s", k, r.clock.now())
	}
}

// TestScheduleRefused checks that a tick whose execution is refused is missed, and the schedule continues.
func TestScheduleRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.toTheHour()
	r.define("name: strict\naction: noop\n---\nname: keyed\naction: noop\n")
	r.define("kind: schedule\nname: s\nevery: 1h\nrun: {action: strict}\n---\nkind: schedule\nname: e\nevery: 1h\nrun: {action: noop, input: '${{ tick.none.such }}'}\n" +
		"---\nkind: schedule\nname: k\nevery: 1h\noverlap: queue\nrun: {action: keyed}\n---\nkind: schedule\nname: good\nevery: 1h\nrun: {action: keyed}\n")
	r.define("name: strict\naction: noop\ninput: {type: object, required: [day]}\n" +
		"---\nname: keyed\naction: noop\nconcurrency: {key: k, limit: 1}\n")
	r.tick(time.Minute)
	r.tick(time.Hour)
	for _, name := range []string{"s", "e", "k"} {
		r.wantTicks(name, "missed refused", "missed refused")
	}
	r.wantTicks("good", "on_time", "missed overlap")
	rows, err := r.store.Ticks(r.ctx, "s", time.Time{}, 1)
	if err != nil || !strings.Contains(rows[0].Message, "day") {
		t.Errorf("the tick says %q (%v)", rows[0].Message, err)
	}
	var ps definition.Problems
	defs, err := definition.Parse("s.yaml", []byte("kind: schedule\nname: s\nevery: 1h\nrun: {action: nowhere, queue: nowhere}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.e.Check(r.ctx, defs); !errors.As(err, &ps) || len(ps) != 2 || ps[0].Path != "run.action" || ps[1].Path != "run.queue" {
		t.Errorf("check: %v", err)
	}
	var refused *fault.Invalid
	if out, err := r.e.Submit(r.ctx, []Submission{{Action: "schedule:s"}}); err != nil || !errors.As(out[0].Err, &refused) {
		t.Errorf("submitting a schedule: %v, %+v", err, out)
	}
}

// The rest of a plan with a refused part waits for the time to which the schedule is put off.
func TestRestOfARefusedPlan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := &firing{was: store.Schedule{Name: "s"}, bad: errPlanted, done: true, rest: make([]schedule.Fire, 3)}
	r.e.schedules.turns.Add("s", f)
	if r.e.schedules.goOn(f); r.e.schedules.turns.Len() != 0 || len(f.rest) != 3 {
		t.Errorf("%d wait, %d ticks left", r.e.schedules.turns.Len(), len(f.rest))
	}
}

func TestFireSchedule(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		r.define(hourly + "overlap: queue")
		before := r.schedule("s")
		for range 2 {
			id, err := r.e.FireSchedule(r.ctx, "s")
			if err != nil {
				r.Fatal(err)
			}
			if x := r.get(id); x.Place != flow.Ready || !strings.Contains(string(x.Input), "by_hand") {
				r.Errorf("fired by hand: place %d, input %s", x.Place, x.Input)
			}
		}
		r.wantTicks("s", "by_hand", "by_hand")
		if r.schedule("s") != before {
			r.Error("firing by hand moved the schedule")
		}
	})
}

// TestScheduleReplicas fires the same schedules with four engines on one store: each time is fired once.
func TestScheduleReplicas(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(r *rig) {
		const schedules = 20
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(r.ctx)
		defer wg.Wait()
		defer stop()
		for range 3 {
			e, err := New(Options{Store: r.store, Committers: 2})
			if err != nil {
				r.Fatal(err)
			}
			wg.Go(func() {
				if err := e.Run(ctx); err != nil {
					r.Errorf("engine: %v", err)
				}
			})
		}
		for i := range schedules {
			r.define(fmt.Sprintf("kind: schedule\nname: s%d\nevery: 1s\noverlap: allow\nrun: {action: noop}\n", i))
		}
		for deadline := time.Now().Add(time.Minute); ; {
			least := 1000
			for i := range schedules {
				least = min(least, len(r.ticks(fmt.Sprintf("s%d", i))))
			}
			if least >= 3 {
				break
			}
			if time.Now().After(deadline) {
				r.Fatalf("a schedule has %d ticks after a minute", least)
			}
			if err := r.ctx.Err(); err != nil {
				r.Fatal(err)
			}
		}
		stop()
		wg.Wait()
		for i := range schedules {
			name := fmt.Sprintf("s%d", i)
			rows, err := r.store.Ticks(r.ctx, name, time.Time{}, 1000)
			if err != nil {
				r.Fatal(err)
			}
			for n, k := range rows {
				if n > 0 && rows[n-1].Nominal.Sub(k.Last) != time.Second {
					r.Errorf("%s: %s comes after %s", name, rows[n-1].Nominal, k.Last)
				}
			}
			made, err := store.List(r.ctx, r.store, store.Filter{Labels: map[string]string{ScheduleLabel: name}, Limit: 1000})
			if err != nil {
				r.Fatal(err)
			}
			of := map[flow.ID]bool{}
			for _, k := range rows {
				of[k.Execution] = true
			}
			for _, x := range made {
				if !of[x.ID] && x.CreatedAt.Before(rows[0].At) {
					r.Errorf("%s started %s, which no tick names", name, x.ID)
				}
			}
		}
	})
}

// TestTicksAreDropped checks that retention keeps the table of ticks small.
func TestTicksAreDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Retention = time.Hour })
	r.toTheHour()
	r.define(hourly + "overlap: allow")
	r.tick(time.Minute)
	r.tick(2 * time.Hour)
	if _, err := r.e.dropOld(r.ctx, store.OldTicks); err != nil {
		t.Fatal(err)
	}
	if got := r.ticks("s"); len(got) != 2 { // of the last look: one missed and one fired, or two fired
		t.Errorf("left: %q", got)
	}
}

// TestScheduleUploads checks that the executions of a schedule keep the uploads that they name.
func TestScheduleUploads(t *testing.T) {
	t.Parallel()
	r := newRig(t, withBlobs(t))
	r.toTheHour()
	name := r.upload("sent ahead")
	r.define(fmt.Sprintf("kind: schedule\nname: s\nevery: 1h\nrun: {action: code, input: {language: python, source: '1', stdin: {blob: '%s'}}}\n", name))
	if _, err := r.e.FireSchedule(r.ctx, "s"); err != nil {
		t.Fatal(err)
	}
	r.clock.move(uploads.Kept+time.Hour, uploads.Kept+time.Hour, 0)
	if _, err := r.e.uploads.Drop(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.tick(0)
	r.wantTicks("s", "by_hand", "missed catch_up 24", "catch_up")
	if s := r.e.Stats(); s.TicksFired != 1 || s.TicksMissed[schedule.MissedLate] != 24 {
		t.Errorf("%d ticks were fired and %v missed", s.TicksFired, s.TicksMissed)
	}
}
